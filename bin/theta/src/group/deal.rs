//! Dealing keys, and putting them where the nodes and clients look for them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use rand_core::CryptoRng;
use theta_network::group::GroupFile;
use theta_schemes::{
    Suite,
    keys::{AnyKeyShare, AnyPublicKey, KeyName, deal_any, deal_rsa},
};
use theta_sharing::Threshold;

use super::{
    layout::{Readable, node_dir, write},
    plan::KeySpec,
};
use crate::{exit::Failure, progress::PrimeSearch};

/// A key fresh from the dealer.
pub(crate) type DealtKey = (AnyPublicKey, Vec<AnyKeyShare>);

/// Bits of an RSA key unless others are asked for.
pub(crate) const DEFAULT_BITS: u32 = 2048;

/// How large RSA keys are.
#[derive(Debug, Args)]
pub(crate) struct ModulusArgs {
    /// Bits of the RSA keys: 2048 (the default; seconds), 3072 or 4096 (minutes)
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    bits: Option<u32>,
}

fn parse_bits(text: &str) -> Result<u32, String> {
    match text {
        "2048" => Ok(2048),
        "3072" => Ok(3072),
        "4096" => Ok(4096),
        _ => Err("RSA keys have 2048, 3072 or 4096 bits".to_owned()),
    }
}

impl ModulusArgs {
    /// The size for these keys.
    pub(crate) fn bits(&self, keys: &[KeySpec]) -> Result<u32, Failure> {
        if self.bits.is_some() && !keys.iter().any(|key| is_rsa(key.suite())) {
            return Err(Failure::Usage(
                "--bits is for RSA keys (sh00-..., cks05-sh00), and none is to be dealt".to_owned(),
            ));
        }
        Ok(self.bits.unwrap_or(DEFAULT_BITS))
    }
}

fn is_rsa(suite: Suite) -> bool {
    suite.group() == "RSA"
}

/// Deals a new key. The search for an RSA key's primes is shown on a terminal.
pub(crate) fn deal(
    key: &KeySpec,
    threshold: Threshold,
    bits: u32,
    rng: &mut dyn CryptoRng,
) -> Result<DealtKey, Failure> {
    if !is_rsa(key.suite()) {
        return Ok(deal_any(key.suite(), threshold, rng));
    }
    let search = PrimeSearch::new(key.name(), bits);
    let mut progress =
        |found: theta_schemes::groups::modular::SearchProgress| search.reached(found.tested, found.found);
    deal_rsa(key.suite(), bits, threshold, &mut progress, rng).map_err(|error| Failure::Usage(error.to_string()))
}

/// Writes a key's files into the directories of a group, or none of them.
pub(super) fn write_key(root: &Path, nodes: u16, name: &KeyName, (public, shares): &DealtKey) -> Result<(), Failure> {
    let public_text = public.to_text(name);
    let mut written = Vec::new();
    let mut put = |path: PathBuf, text: &str, readable| {
        write(&path, text.as_bytes(), readable)?;
        written.push(path);
        Ok(())
    };
    let result = public_files(root, nodes, name)
        .into_iter()
        .try_for_each(|path| put(path, &public_text, Readable::ByAll))
        .and_then(|()| {
            (1..=nodes).zip(shares).try_for_each(|(number, share)| {
                let path = node_dir(root, number).join(format!("keys/{name}.share"));
                put(path, share.to_text(name).expose(), Readable::ByOwner)
            })
        });
    if result.is_err() {
        // Half a key would keep nodes from starting; whoever reads the error knows where.
        for path in &written {
            let _ = fs::remove_file(path);
        }
    }
    result
}

fn public_files(root: &Path, nodes: u16, name: &KeyName) -> Vec<PathBuf> {
    let dirs = (1..=nodes).map(|number| node_dir(root, number)).chain([root.join("client")]);
    dirs.map(|dir| dir.join(format!("keys/{name}.pub"))).collect()
}

/// The directories of a group, all in one place as `theta group init` leaves them.
pub(crate) struct ExistingGroup {
    root: PathBuf,
    nodes: u16,
    threshold: u16,
}

impl ExistingGroup {
    /// Looks for the group's directories.
    pub(crate) fn open(root: &Path) -> Result<Self, Failure> {
        let file = root.join("group.toml");
        if !file.is_file() {
            let root = root.display();
            return Err(Failure::Usage(format!(
                "{root} is not a group's directory (it has no group.toml): name the one that theta group init made with --group"
            )));
        }
        let group = GroupFile::load(&file).map_err(|error| Failure::Usage(error.to_string()))?;
        let nodes = u16::try_from(group.nodes().len()).map_err(Failure::internal)?;
        let mut dirs = (1..=nodes).map(|number| node_dir(root, number)).chain([root.join("client")]);
        if let Some(keys) = dirs.find_map(|dir| Some(dir.join("keys")).filter(|keys| !keys.is_dir())) {
            return Err(Failure::Usage(format!(
                "{} is missing: a dealer needs the directories of all nodes in one place",
                keys.display()
            )));
        }
        Ok(Self { root: root.to_owned(), nodes, threshold: group.threshold() })
    }

    /// n.
    pub(crate) const fn nodes(&self) -> u16 {
        self.nodes
    }

    /// The k that the group file names.
    pub(crate) const fn threshold(&self) -> u16 {
        self.threshold
    }

    /// Refuses the name of a key that exists.
    pub(crate) fn check_free(&self, name: &KeyName) -> Result<(), Failure> {
        match public_files(&self.root, self.nodes, name).iter().find(|path| path.exists()) {
            Some(path) => Err(Failure::Usage(format!("{} exists already: choose another name", path.display()))),
            None => Ok(()),
        }
    }

    /// Writes the key's files.
    pub(crate) fn add(&self, name: &KeyName, key: &DealtKey) -> Result<(), Failure> {
        write_key(&self.root, self.nodes, name, key)
    }
}
