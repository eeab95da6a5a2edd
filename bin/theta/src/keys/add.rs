//! `theta keys deal` and `theta keys import`: more keys for a group whose node directories are still together.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use rand_core::CryptoRng;
use serde::Serialize;
use theta_custody::KeyEntry;
use theta_groups::Secret;
use theta_keyfiles::{KeyFormat, import_key};
use theta_names::Delivery;
use theta_schemes::{Suite, keys::KeyName};
use theta_sharing::Threshold;

use super::change::DeliveryArgs;
use crate::{
    exit::Failure,
    files::Source,
    group::{self, ExistingGroup, plan::KeySpec},
    output::{self, Output, Table},
    suites,
};

/// The longest file of a private key, in bytes.
const LONGEST_KEY_FILE: usize = 1 << 16;

/// The group for which the keys are.
#[derive(Debug, Args)]
struct GroupArgs {
    /// Directory that theta group init made, with all node directories in it
    #[arg(long, value_name = "DIR", default_value = "theta-group")]
    group: PathBuf,
}

impl GroupArgs {
    fn open(&self) -> Result<(ExistingGroup, Threshold), Failure> {
        let group = ExistingGroup::open(&self.group)?;
        let k = group.threshold();
        let threshold = Threshold::new(k, group.nodes())
            .map_err(|error| Failure::Usage(format!("the group file says {k} of {}: {error}", group.nodes())))?;
        Ok((group, threshold))
    }
}

/// Options of `theta keys deal`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys deal release=frost-ed25519
  theta keys deal rsa=sh00-pkcs1-sha256 --bits 3072
  theta keys deal names=bls04-bls12381-min-pk --delivery quorum
  theta keys deal vault=ecdsa-p256 --security active --majority honest
  theta keys deal --group my-group vault=sg02-p256 beacon-2=cks05-bls04-min-sig

theta suites lists what there is. The nodes must not run, and this process sees the keys: theta keys create needs neither.")]
pub(crate) struct DealArgs {
    /// Keys to deal, each a SUITE or NAME=SUITE
    #[arg(value_name = "NAME=SUITE", required = true)]
    keys: Vec<KeySpec>,
    #[command(flatten)]
    delivery: DeliveryArgs,
    #[command(flatten)]
    group: GroupArgs,
    #[command(flatten)]
    modulus: group::ModulusArgs,
}

/// Options of `theta keys import`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys import --name release --suite frost-ed25519 id_ed25519
  theta keys import --name release --suite frost-ed25519 key.pem       of openssl genpkey -algorithm ed25519
  theta keys import --name old --suite frost-ed25519 --format seed seed.hex
  theta keys import --name wallet --suite ecdsa-secp256k1 key.pem       of openssl ecparam -name secp256k1 -genkey
  theta keys import --name bls --suite bls04-bls12381-min-pk --format raw secret.hex

The nodes must not run. The public key stays the same: whoever trusts it need not know that the key is shared now. The original stays, too, \
and whoever has it needs no node: destroy it and every copy of it. Never go on using it elsewhere.")]
pub(crate) struct ImportArgs {
    /// File of the private key; - for standard input
    file: PathBuf,
    /// What the key will be called
    #[arg(long, value_name = "NAME")]
    name: String,
    /// What the key will be for: one of theta suites
    #[arg(long, value_name = "SUITE", value_parser = suites::parse)]
    suite: Suite,
    /// What the file is: auto, pkcs8 (PEM or DER, as OpenSSL writes), openssh, jwk, raw (a scalar) or seed (RFC 8032), the
    /// last two as bytes or hexadecimal digits
    #[arg(long, value_name = "FORMAT", default_value_t)]
    format: KeyFormat,
    #[command(flatten)]
    delivery: DeliveryArgs,
    #[command(flatten)]
    group: GroupArgs,
}

/// A key that was dealt.
#[derive(Serialize)]
pub(crate) struct Added {
    name: String,
    suite: &'static str,
    delivery: &'static str,
    threshold: u16,
    nodes: u16,
    key_id: String,
    public_key: String,
}

impl Added {
    fn new(name: &KeyName, delivery: Delivery, (public, _): &group::DealtKey) -> Self {
        Self {
            name: name.to_string(),
            suite: public.suite().name(),
            delivery: delivery.name(),
            threshold: public.threshold().k(),
            nodes: public.threshold().n(),
            key_id: public.key_id().to_string(),
            public_key: hex::encode(public.public_key_bytes()),
        }
    }
}

/// `theta keys deal`.
pub(super) fn deal(args: &DealArgs, output: Output) -> Result<(), Failure> {
    let (group, threshold) = args.group.open()?;
    let bits = args.modulus.bits(&args.keys)?;
    report(&deal_all(&group, threshold, &args.delivery.of(&args.keys, threshold)?, bits)?, output)
}

/// Deals these keys into the stores of a group whose nodes do not run.
pub(crate) fn deal_all(
    group: &ExistingGroup,
    threshold: Threshold,
    keys: &[KeySpec],
    bits: u32,
) -> Result<Vec<Added>, Failure> {
    group::plan::check_names(keys)?;
    keys.iter().try_for_each(|key| group.check_free(key.key_name()))?;
    let mut rng = crate::random::generator()?;
    // All are dealt before the first is written: whoever ends the command meanwhile, as the search for primes lasts, has none of them.
    let dealt = keys.iter().map(|key| {
        let dealt = group::deal(key, threshold, bits, &mut rng)?;
        group.check_new(key.key_name(), &dealt)?;
        Ok((key.key_name(), key.delivery(), dealt))
    });
    let dealt = dealt.collect::<Result<Vec<_>, Failure>>()?;
    group.add(&dealt)?;
    Ok(dealt.iter().map(|(name, delivery, dealt)| Added::new(name, *delivery, dealt)).collect())
}

/// `theta keys import`.
pub(super) fn import(args: &ImportArgs, output: Output) -> Result<(), Failure> {
    let name: KeyName = args.name.parse().map_err(|error| Failure::Usage(format!("--name: {error}")))?;
    group::plan::check_delivery(name.as_str(), args.suite, args.delivery.get())?;
    let (group, threshold) = args.group.open()?;
    let delivery = args.delivery.implied(args.suite, threshold);
    group::plan::check_threshold(name.as_str(), (args.suite, delivery), threshold)?;
    group.check_free(&name)?;
    let source = Source::open(&args.file)?;
    let from = source.name.clone();
    args.delivery.comment(name.as_str(), delivery);
    let secret = source.read_secret(LONGEST_KEY_FILE)?;
    let mut rng = crate::random::generator()?;
    let dealt = import_key(args.suite, args.format, &secret, threshold, &mut rng)
        .map_err(|error| Failure::Usage(format!("{}: {error}", from.display())))?;
    group.check_new(&name, &dealt)?;
    check_other_purposes(&group.keys()?, args, &secret, &mut rng)?;
    let added = Added::new(&name, delivery, &dealt);
    group.add(&[(&name, delivery, dealt)])?;
    report(&[added], output)?;
    output::diagnostic(
        "warning",
        &format!(
            "{} still holds the whole key: destroy it and every copy, or whoever finds one needs no node",
            from.display()
        ),
    );
    Ok(())
}

/// Refuses a secret that a key of another purpose has. The same scalar has another public key in each group, so the secret
/// is tried in each of the existing keys' groups.
fn check_other_purposes(
    known: &[Arc<KeyEntry>],
    args: &ImportArgs,
    secret: &Secret<Vec<u8>>,
    rng: &mut dyn CryptoRng,
) -> Result<(), Failure> {
    let alone = Threshold::new(1, 1).map_err(Failure::internal)?;
    for key in known.iter().filter(|key| key.suite.purpose() != args.suite.purpose()) {
        let same = import_key(key.suite, args.format, secret, alone, rng)
            .is_ok_and(|(public, _)| *public.key_id() == key.key_id);
        if same {
            return Err(group::one_secret(&key.name));
        }
    }
    Ok(())
}

fn report(added: &[Added], output: Output) -> Result<(), Failure> {
    output.result(&added, |out| {
        let mut table = Table::new(&["key", "suite", "takes", "key id"], &[]);
        for key in added {
            let id = key.key_id.get(..8).unwrap_or_default().to_owned();
            let takes = format!("{} of {}", key.threshold, key.nodes);
            table.row([key.name.clone(), key.suite.to_owned(), takes, id]);
        }
        table.write(out)?;
        writeln!(out, "\nThis process has seen the whole keys. The nodes serve them when they start.")
    })
}
