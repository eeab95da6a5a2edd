//! Credentials of people and programs: tokens, certificates, keys that sign requests, approvals.

mod approvals;
mod approve;
mod approver;
mod client;
mod credentials;
mod lock;
mod nonce;
mod subject;
mod token;

use clap::Subcommand;

pub(crate) use self::{
    approvals::ApprovalFiles,
    approve::{ApproveArgs, approve, confirm},
    credentials::{Credentials, request_key},
    nonce::Nonce,
    subject::{Subject, SubjectArgs},
};
use crate::{exit::Failure, output::Output};

/// See [`crate::cli`].
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token, and the policy lines that let its holder in
    New(token::NewArgs),
    /// Print the policy line of a token (needs no node)
    Line(token::LineArgs),
    /// Print the header by which a token proves itself to one node, for other programs (needs no node)
    Proof(Box<token::ProofArgs>),
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
            Self::Line(args) => token::line(&args, output),
            Self::Proof(args) => token::proof(&args, output),
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
