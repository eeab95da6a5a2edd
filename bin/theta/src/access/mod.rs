//! Credentials of people and programs: tokens, certificates, keys that sign requests, approvals.

mod approve;
mod approver;
mod client;
mod lock;
mod subject;
mod token;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use clap::{Args, Subcommand};
use theta_statements::{Approval, MOST_APPROVALS, SigningKey, UnixTime};

pub(crate) use self::{
    approve::{ApproveArgs, approve, confirm},
    client::{Credentials, request_key},
    subject::{Subject, SubjectArgs},
};
use crate::{
    exit::Failure,
    files::{self, Source},
    keys::change::Nonce,
    output::Output,
};

/// See [`crate::cli`].
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a bearer token, and the policy lines that let its holder in
    New(token::NewArgs),
}

/// See [`crate::cli`].
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Make a client file: a new certificate, a key that signs requests, and all that leads to the group
    New(client::NewArgs),
    /// Make a client file of a client directory
    Convert(client::ConvertArgs),
    /// Lock the private keys of a client file with a passphrase, for the PKCS#11 module
    Lock(lock::LockArgs),
    /// Take the passphrase of a client file away
    Unlock(lock::UnlockArgs),
}

/// See [`crate::cli`].
#[derive(Debug, Subcommand)]
pub(crate) enum ApproverCommand {
    /// Make an approver's key, and the policy lines that let its approvals count
    New(approver::NewArgs),
}

impl ApproverCommand {
    /// Runs the command.
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::New(args) => approver::new(&args, output),
        }
    }
}

impl TokenCommand {
    /// Runs the command.
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::New(args) => token::new(&args, output),
        }
    }
}

impl ClientCommand {
    /// Runs the command.
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::New(args) => client::new(&args, output),
            Self::Convert(args) => client::convert(&args, output),
            Self::Lock(args) => lock::lock(&args, output),
            Self::Unlock(args) => lock::unlock(&args, output),
        }
    }
}

/// The approvals that go with a request.
#[derive(Debug, Default, Args)]
pub(crate) struct ApprovalFiles {
    /// Approvals, as theta approve writes them; may be given more than once, and a file may hold several
    #[arg(long = "approval", value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// The contents of files with approvals.
#[derive(Default)]
pub(crate) struct Approved {
    pub(crate) approvals: Vec<Approval>,
    /// The nonce of the approved ceremony, if the files name one.
    pub(crate) nonce: Option<Nonce>,
}

impl ApprovalFiles {
    /// Whether any file was named.
    pub(crate) fn is_given(&self) -> bool {
        !self.files.is_empty()
    }

    /// Reads all files, each once because it may be a pipe.
    pub(crate) fn read(&self) -> Result<Approved, Failure> {
        let mut approved = Approved::default();
        for file in &self.files {
            approved
                .add(&files::read_text(file)?)
                .map_err(|problem| Failure::Usage(format!("{}: {problem}", file.display())))?;
        }
        let mut of_each: BTreeMap<[u8; 32], usize> = BTreeMap::new();
        for approval in &approved.approvals {
            *of_each.entry(approval.terms().statement.0).or_default() += 1;
        }
        if let Some(got) = of_each.into_values().find(|count| *count > MOST_APPROVALS) {
            return Err(Failure::Usage(format!(
                "--approval: there are {got}, and a request may carry {MOST_APPROVALS}"
            )));
        }
        Ok(approved)
    }
}

impl Approved {
    /// Takes the contents of a file. The error says what is wrong with them.
    fn add(&mut self, text: &str) -> Result<(), String> {
        let mut approvals_alone = String::with_capacity(text.len());
        for line in text.lines() {
            let Some(written) = line.strip_prefix(NONCE_LINE) else {
                approvals_alone.extend([line, "\n"]);
                continue;
            };
            let nonce: Nonce = written.trim().parse()?;
            if self.nonce.is_some_and(|other| other != nonce) {
                return Err(
                    "it approves another request than the file before, with another nonce: all have to approve one \
                            (theta approve --nonce)"
                        .to_owned(),
                );
            }
            self.nonce = Some(nonce);
        }
        let read = Approval::all_from_text(&approvals_alone).map_err(|error| error.to_string())?;
        if read.is_empty() {
            return Err("there is no approval in it; theta approve writes them".to_owned());
        }
        self.approvals.extend(read);
        Ok(())
    }
}

/// The prefix of the nonce in a file with the approval of a ceremony.
const NONCE_LINE: &str = "Nonce: ";

/// The line that says which request of a ceremony is approved.
pub(crate) fn nonce_line(nonce: Nonce) -> String {
    format!("{NONCE_LINE}{nonce}\n")
}

/// Reads a private key that signs requests or approvals.
pub(crate) fn read_signing_key(path: &std::path::Path) -> Result<SigningKey, Failure> {
    let secret = Source::open_private(path)?.read_secret(4096)?;
    let text = std::str::from_utf8(secret.expose()).unwrap_or_default();
    SigningKey::from_pem(text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// The time on this machine's clock.
pub(crate) fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixTime(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The lines of a policy file that identify a client.
pub(crate) fn policy_client(name: &str, field: &str, credentials: &[String]) -> String {
    let quoted: Vec<String> = credentials.iter().map(|credential| format!("{credential:?}")).collect();
    format!("[[client]]\nname = {name:?}\n{field} = [{}]\n", quoted.join(", "))
}
