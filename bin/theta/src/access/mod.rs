//! What lets people and programs in: tokens, certificates, keys that sign requests, approvals.

mod approve;
mod approver;
mod client;
mod subject;
mod token;

use std::{
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use clap::{Args, Subcommand};
use theta_statements::{Approval, MOST_APPROVALS, SigningKey, UnixTime};

pub(crate) use self::{
    approve::{ApproveArgs, approve},
    client::{Credentials, REQUEST_KEY},
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
    /// Make a client directory with a new certificate and a key that signs requests
    New(client::NewArgs),
}

/// See [`crate::cli`].
#[derive(Debug, Subcommand)]
pub(crate) enum ApproverCommand {
    /// Make an approver's key, and the policy lines that let its approvals count
    New(approver::NewArgs),
}

impl ApproverCommand {
    /// Does it.
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::New(args) => approver::new(&args, output),
        }
    }
}

impl TokenCommand {
    /// Does it.
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::New(args) => token::new(&args, output),
        }
    }
}

impl ClientCommand {
    /// Does it.
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::New(args) => client::new(&args, output),
        }
    }
}

/// Consents that go with a request.
#[derive(Debug, Default, Args)]
pub(crate) struct ApprovalFiles {
    /// Approvals, as theta approve writes them; may be given more than once, and a file may hold several
    #[arg(long = "approval", value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl ApprovalFiles {
    /// All of them.
    pub(crate) fn read(&self) -> Result<Vec<Approval>, Failure> {
        let mut approvals = Vec::new();
        for file in &self.files {
            let wrong = |error: &dyn core::fmt::Display| Failure::Usage(format!("{}: {error}", file.display()));
            let text = files::read_text(file)?;
            let approvals_alone: String =
                text.lines().filter(|line| nonce_in(line).is_none()).flat_map(|line| [line, "\n"]).collect();
            let read = Approval::all_from_text(&approvals_alone).map_err(|error| wrong(&error))?;
            if read.is_empty() {
                return Err(wrong(&"there is no approval in it; theta approve writes them"));
            }
            approvals.extend(read);
        }
        if approvals.len() > MOST_APPROVALS {
            let got = approvals.len();
            return Err(Failure::Usage(format!(
                "--approval: there are {got}, and a request may carry {MOST_APPROVALS}"
            )));
        }
        Ok(approvals)
    }

    /// The nonce of the ceremony that they are of, if they name one.
    pub(crate) fn nonce(&self) -> Result<Option<Nonce>, Failure> {
        let mut found: Option<Nonce> = None;
        for file in &self.files {
            for written in files::read_text(file)?.lines().filter_map(nonce_in) {
                let wrong = |problem: &str| Failure::Usage(format!("{}: {problem}", file.display()));
                let nonce: Nonce = written.parse().map_err(wrong)?;
                if found.is_some_and(|other| other != nonce) {
                    return Err(wrong(
                        "it approves another request than the file before, with another nonce: all have to approve one (theta approve --nonce)",
                    ));
                }
                found = Some(nonce);
            }
        }
        Ok(found)
    }
}

/// What stands before the nonce in a file with an approval of a ceremony.
const NONCE_LINE: &str = "Nonce: ";

/// The line that tells whoever asks which request is approved.
pub(crate) fn nonce_line(nonce: Nonce) -> String {
    format!("{NONCE_LINE}{nonce}\n")
}

fn nonce_in(line: &str) -> Option<&str> {
    line.strip_prefix(NONCE_LINE).map(str::trim)
}

/// Reads a private key that signs requests or approvals.
pub(crate) fn read_signing_key(path: &std::path::Path) -> Result<SigningKey, Failure> {
    let secret = Source::open(path)?.read_secret(4096)?;
    let text = std::str::from_utf8(secret.expose()).unwrap_or_default();
    SigningKey::from_pem(text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// The time by this machine's clock.
pub(crate) fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixTime(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The lines of a policy file that say who a client is.
pub(crate) fn policy_client(name: &str, field: &str, credentials: &[String]) -> String {
    let quoted: Vec<String> = credentials.iter().map(|credential| format!("{credential:?}")).collect();
    format!("[[client]]\nname = {name:?}\n{field} = [{}]\n", quoted.join(", "))
}
