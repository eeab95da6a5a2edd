//! `theta client new`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use theta_network::{
    GeneratedIdentity, Identity,
    group::{GroupClient, GroupFile},
};
use theta_statements::{Name, SigningKey};

use super::policy_client;
use crate::{
    exit::Failure,
    files::{DraftDirectory, new_directory, write_new},
    output::{self, Output},
};

/// The file name of the key with which a client signs requests.
pub(crate) const REQUEST_KEY: &str = "request.key";

/// Options of `theta client new`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta client new --name gateway --group theta-group/group.toml
  theta client new --name gateway --dir /etc/theta/gateway --group group.toml --json

It writes a client directory: client.crt with client.key for the connection, request.key to sign requests with, group.toml. \
Then it prints two pieces: one for policy.toml at every node, without which the client may do nothing, and one for \
group.toml, for those who keep all clients there.")]
pub(crate) struct NewArgs {
    /// What the policy calls the client
    #[arg(long, value_name = "NAME")]
    name: Name,
    /// Directory to make [default: NAME]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The group file, to put into the directory
    #[arg(long, value_name = "FILE")]
    group: Option<PathBuf>,
}

#[derive(Serialize)]
struct Made<'a> {
    name: &'a Name,
    directory: PathBuf,
    certificate: String,
    signing_key: String,
    policy: String,
    group: String,
}

/// The secrets of a client.
pub(crate) struct Credentials {
    identity: GeneratedIdentity,
    request_key: SigningKey,
}

impl Credentials {
    /// Generates new secrets.
    pub(crate) fn generate(name: &str) -> Result<Self, Failure> {
        let identity = Identity::generate(name).map_err(Failure::internal)?;
        let request_key = SigningKey::generate(&mut crate::random::generator()?).map_err(Failure::internal)?;
        Ok(Self { identity, request_key })
    }

    /// The client as group files have it.
    pub(crate) fn group_client(&self, name: &str) -> GroupClient {
        GroupClient { name: name.to_owned(), certificate: self.identity.fingerprint }
    }

    /// The client as policy files have it.
    pub(crate) fn policy_lines(&self, name: &str) -> String {
        let certificate = [self.identity.fingerprint.to_string()];
        let mut lines = policy_client(name, "certificates", &certificate);
        lines.push_str(&format!("signing_keys = [\"{}\"]\n", self.request_key.verifying_key()));
        lines
    }

    /// Makes the client's directory, without the group file.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), Failure> {
        new_directory(dir)?;
        self.fill(dir)
    }

    /// Writes the files into an existing directory.
    fn fill(&self, dir: &Path) -> Result<(), Failure> {
        new_directory(&dir.join("keys"))?;
        write_new(&dir.join("client.crt"), self.identity.certificate_pem.as_bytes(), false)?;
        write_new(&dir.join("client.key"), self.identity.key_pem.as_bytes(), true)?;
        write_new(&dir.join(REQUEST_KEY), self.request_key.to_pem().expose().as_bytes(), true)
    }
}

/// `theta client new`.
pub(super) fn new(args: &NewArgs, output: Output) -> Result<(), Failure> {
    let name = args.name.as_str();
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from(name));
    let draft = DraftDirectory::new(&dir, 0o700, "name another with --dir")?;
    let usage = |error: &dyn core::fmt::Display| Failure::Usage(error.to_string());
    let credentials = Credentials::generate(name)?;
    let client = credentials.group_client(name);
    let group = match &args.group {
        None => None,
        Some(file) => {
            let old = GroupFile::load(file).map_err(|error| usage(&error))?;
            let clients = old.clients().iter().cloned().chain([client.clone()]).collect();
            let new = GroupFile::new(old.name(), old.threshold(), old.nodes().to_vec(), clients);
            Some(new.map_err(|error| usage(&error))?)
        }
    };
    credentials.fill(draft.path())?;
    if let Some(group) = &group {
        write_new(&draft.path().join("group.toml"), group.to_text().as_bytes(), false)?;
    }
    draft.commit()?;
    let made = Made {
        name: &args.name,
        certificate: client.certificate.to_string(),
        signing_key: credentials.request_key.verifying_key().to_string(),
        policy: credentials.policy_lines(name),
        group: format!("[[client]]\nname = {name:?}\ncertificate = \"{}\"\n", client.certificate),
        directory: dir,
    };
    output.result(&made, |out| {
        writeln!(out, "made the client directory {}", made.directory.display())?;
        writeln!(out, "\nFor policy.toml, at every node, with a [[rule]] that allows {name} something:\n")?;
        write!(out, "{}", made.policy)?;
        writeln!(out, "\nFor group.toml, for those who keep all clients there:\n")?;
        write!(out, "{}", made.group)
    })?;
    if group.is_none() {
        let dir = made.directory.display();
        output::note(format_args!("put the group's group.toml into {dir}: a client needs it to find the nodes"));
    }
    Ok(())
}
