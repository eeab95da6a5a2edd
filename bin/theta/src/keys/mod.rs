//! The group's public keys, and `theta keys`.

mod add;
mod ceremonies;
pub(crate) mod change;
mod choice;
mod evidence;
mod export;
mod keyring;
mod lifecycle;
mod live;
mod recovery;
mod show;
pub(crate) mod state;

use clap::Subcommand;

use crate::{exit::Failure, output::Output, vault};
pub(crate) use add::deal_all;
pub(crate) use ceremonies::{CeremonyArgs, find as find_ceremony, hold};
pub(crate) use change::warn_of_passive;
pub(crate) use choice::KeyArgs;
pub use export::pem;
pub use keyring::{Keyring, NamedKey};
pub(crate) use recovery::{held, shares_of};

/// See [`crate::cli`].
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// List the keys: name, suite, purpose, how many nodes it takes
    List(show::ListArgs),
    /// Show one key
    Show(show::ShowArgs),
    /// Print the public key as other software reads it: PEM, OpenSSH, hexadecimal digits or bytes
    #[command(alias = "public")]
    Export(export::ExportArgs),
    /// Make keys that nobody ever holds: the nodes generate them among themselves
    Create(lifecycle::CreateArgs),
    /// Make the next version of a key; older versions decrypt what was encrypted to them
    Rotate(lifecycle::RotateArgs),
    /// Give the holders of a key new shares and destroy the old ones; the public key stays
    Refresh(lifecycle::RefreshArgs),
    /// Change who holds a key, or how many it takes; the public key stays
    Reshare(lifecycle::ReshareArgs),
    /// Give a node the share back that it lost, or all of them
    Recover(recovery::RecoverArgs),
    /// See which ceremonies run, how far they are, and for whom they wait
    Ceremonies(ceremonies::CeremoniesArgs),
    /// Cancel a ceremony that runs
    Cancel(ceremonies::CancelArgs),
    /// Check evidence that a node lied in a ceremony; it takes the group file and nobody's word
    CheckEvidence(evidence::EvidenceArgs),
    /// Let a disabled key serve again
    Enable(state::StateArgs),
    /// Let a key serve nobody, until it is enabled
    Disable(state::StateArgs),
    /// Destroy the shares of a key for ever
    Destroy(state::DestroyArgs),
    /// Deal more keys to a group, while its node directories are still together
    Deal(add::DealArgs),
    /// Share a private key made elsewhere among the nodes; its public key stays the same
    Import(add::ImportArgs),
    /// Take a key out of the stores of stopped nodes: the way out if they do not start with it
    Remove(vault::RemoveArgs),
    /// Write a sealed backup of a node's keys, memory and log, while it runs or when it is stopped
    Backup(vault::BackupArgs),
    /// Read a backup to its end and check everything in it
    CheckBackup(vault::CheckArgs),
    /// Make a node's store from a backup; the store refuses what may have been used since the backup
    Restore(vault::RestoreArgs),
    /// Tell a stopped node that another one was restored on purpose
    ConfirmRestore(vault::ConfirmArgs),
    /// Let another key or passphrase open a stopped node's store
    Reseal(vault::ResealArgs),
    /// Trust a stopped node's own store although peers remember more of it, or too few have confirmed it
    TrustStore(vault::TrustArgs),
}

impl KeysCommand {
    /// Runs the command.
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::List(args) => show::list(&args, output),
            Self::Show(args) => show::show(&args, output),
            Self::Export(args) => export::export(&args, output),
            Self::Create(args) => lifecycle::create(&args, output),
            Self::Rotate(args) => lifecycle::rotate(&args, output),
            Self::Refresh(args) => lifecycle::refresh(&args, output),
            Self::Reshare(args) => lifecycle::reshare(&args, output),
            Self::Recover(args) => recovery::recover(&args, output),
            Self::Ceremonies(args) => ceremonies::ceremonies(&args, output),
            Self::Cancel(args) => ceremonies::cancel(&args, output),
            Self::CheckEvidence(args) => evidence::check(&args, output),
            Self::Enable(args) => state::enable(&args, output),
            Self::Disable(args) => state::disable(&args, output),
            Self::Destroy(args) => state::destroy(&args, output),
            Self::Deal(args) => add::deal(&args, output),
            Self::Import(args) => add::import(&args, output),
            Self::Remove(args) => vault::remove(&args, output),
            Self::Backup(args) => vault::backup(&args, output),
            Self::CheckBackup(args) => vault::check(&args, output),
            Self::Restore(args) => vault::restore(&args, output),
            Self::ConfirmRestore(args) => vault::confirm(&args, output),
            Self::Reseal(args) => vault::reseal(&args, output),
            Self::TrustStore(args) => vault::trust(&args, output),
        }
    }
}
