//! The group's public keys, and `theta keys`.

mod add;
mod ceremonies;
mod ceremony;
pub(crate) mod change;
mod evidence;
mod export;
mod lifecycle;
mod live;
mod show;
pub(crate) mod state;

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use theta_keyfiles::PublicKeyText as _;
use theta_schemes::{
    Purpose,
    keys::{AnyPublicKey, KeyId, KeyName},
};

use crate::{connect::ClientDir, exit::Failure, files, output::Output, vault};
pub use export::pem;

/// A public key with its name.
#[derive(Clone, Debug)]
pub struct NamedKey {
    /// Its name.
    pub name: KeyName,
    /// The key.
    pub public: AnyPublicKey,
}

impl NamedKey {
    /// Reads a `.pub` file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let (name, public) = AnyPublicKey::from_text(&files::read_text(path)?)
            .map_err(|error| Failure::Usage(format!("{} is not a usable public key: {error}", path.display())))?;
        Ok(Self { name, public })
    }

    /// Refuses a key of another purpose.
    pub(crate) fn check_purpose(&self, purpose: Purpose) -> Result<(), Failure> {
        let has = self.public.suite().purpose();
        if has == purpose {
            return Ok(());
        }
        let (name, suite) = (&self.name, self.public.suite());
        Err(Failure::Usage(format!(
            "the key {name} ({suite}) is for {has}, not for {purpose}: name a key whose purpose is {purpose} (theta keys list)"
        )))
    }
}

/// The public keys in a client directory.
#[derive(Debug)]
pub struct Keyring {
    dir: PathBuf,
}

impl Keyring {
    /// The keys in this directory, read when they are needed.
    pub fn new(client_dir: &Path) -> Self {
        Self { dir: client_dir.join("keys") }
    }

    /// The names, in order.
    pub(crate) fn names(&self) -> Result<Vec<String>, Failure> {
        let entries = fs::read_dir(&self.dir).map_err(|error| {
            let (dir, reason) = (self.dir.display(), crate::exit::reason(&error));
            Failure::Usage(format!(
                "cannot read the keys in {dir}: {reason}; name the client directory with --client or THETA_CLIENT"
            ))
        })?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".pub")?.to_owned()))
            .collect();
        names.sort();
        Ok(names)
    }

    /// All of them, by name.
    pub(crate) fn all(&self) -> Result<Vec<NamedKey>, Failure> {
        self.names()?.iter().map(|name| self.read(name)).collect()
    }

    /// The key of this name.
    pub fn named(&self, name: &str) -> Result<NamedKey, Failure> {
        let names = self.names()?;
        if !names.iter().any(|known| known == name) {
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(Failure::Usage(format!("no key named {name:?} in {}; it has: {known}", self.dir.display())));
        }
        self.read(name)
    }

    /// The key with this id, if the directory has it.
    pub(crate) fn with_id(&self, id: &KeyId) -> Result<Option<NamedKey>, Failure> {
        Ok(self.all()?.into_iter().find(|key| key.public.key_id() == id))
    }

    /// The key for a purpose: the one that was named, or the usual one.
    pub fn choose(&self, name: Option<&str>, purpose: Purpose) -> Result<NamedKey, Failure> {
        if let Some(name) = name {
            let key = self.named(name)?;
            key.check_purpose(purpose)?;
            return Ok(key);
        }
        let mut fitting = self.all()?;
        fitting.retain(|key| key.public.suite().purpose() == purpose);
        let usual = usual_name(purpose);
        if let Some(index) =
            fitting.iter().position(|key| key.name.as_str() == usual).or((fitting.len() == 1).then_some(0))
        {
            return Ok(fitting.swap_remove(index));
        }
        let names: Vec<&str> = fitting.iter().map(|key| key.name.as_str()).collect();
        Err(Failure::Usage(match names.as_slice() {
            [] => format!("no key in {} is for {purpose}: theta keys list shows what there is", self.dir.display()),
            _ => format!("several keys are for {purpose}: choose one of {} with --key", names.join(", ")),
        }))
    }

    fn read(&self, name: &str) -> Result<NamedKey, Failure> {
        let path = self.dir.join(format!("{name}.pub"));
        let key = NamedKey::read(&path)?;
        if key.name.as_str() != name {
            let (path, inside) = (path.display(), &key.name);
            return Err(Failure::Usage(format!("{path} holds the key {inside}: rename the file to {inside}.pub")));
        }
        Ok(key)
    }
}

/// The name that `theta group init` gives to the usual key of a purpose.
const fn usual_name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Decrypt => "files",
        Purpose::Sign => "sign",
        Purpose::Coin => "coin",
    }
}

/// Which public key to use for work that needs no node.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// Name of the key in the client directory [default: the usual one for the purpose]
    #[arg(long, value_name = "NAME", conflicts_with = "public_key")]
    key: Option<String>,
    /// File of the public key, as theta keys show --file prints it; no client directory is needed then
    #[arg(long, value_name = "FILE")]
    public_key: Option<PathBuf>,
    #[command(flatten)]
    client: ClientDir,
}

impl KeyArgs {
    /// The key to use.
    pub(crate) fn choose(&self, purpose: Purpose) -> Result<NamedKey, Failure> {
        if let Some(path) = &self.public_key {
            let key = NamedKey::read(path)?;
            key.check_purpose(purpose)?;
            return Ok(key);
        }
        self.client.keyring().choose(self.key.as_deref(), purpose)
    }
}

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
    /// Give a node the share back that it lost
    Recover(lifecycle::RecoverArgs),
    /// See which ceremonies run, how far they are, and for whom they wait
    Ceremonies(ceremonies::CeremoniesArgs),
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
            Self::Recover(args) => lifecycle::recover(&args, output),
            Self::Ceremonies(args) => ceremonies::ceremonies(&args, output),
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
            Self::TrustStore(args) => vault::trust(&args, output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::{self, plan};

    fn group(keys: &[&str]) -> (tempfile::TempDir, Keyring) {
        let dir = tempfile::tempdir().unwrap();
        let keys = keys.iter().map(|key| key.parse().unwrap()).collect();
        let plan = plan::Plan::new(2, 1, keys).unwrap();
        let addresses = plan::addresses(2, &["127.0.0.1".parse().unwrap()], 7100).unwrap();
        group::create(&dir.path().join("g"), &plan, &addresses).unwrap();
        let keyring = Keyring::new(&dir.path().join("g/client"));
        (dir, keyring)
    }

    #[test]
    fn the_usual_or_only_key_is_chosen() {
        let (_dir, keyring) = group(&["files=sg02-ristretto255", "other=sg02-ristretto255", "dice=cks05-ristretto255"]);
        assert_eq!(keyring.choose(None, Purpose::Decrypt).unwrap().name.as_str(), "files");
        assert_eq!(keyring.choose(Some("other"), Purpose::Decrypt).unwrap().name.as_str(), "other");
        assert_eq!(keyring.choose(None, Purpose::Coin).unwrap().name.as_str(), "dice");
        let id = *keyring.named("other").unwrap().public.key_id();
        assert_eq!(keyring.with_id(&id).unwrap().unwrap().name.as_str(), "other");
    }

    #[test]
    fn wrong_choices_say_what_there_is() {
        let (_dir, keyring) = group(&["a=sg02-ristretto255", "b=sg02-ristretto255"]);
        let message = |result: Result<NamedKey, Failure>| result.unwrap_err().to_string();
        assert!(message(keyring.choose(None, Purpose::Decrypt)).contains("a, b"));
        assert!(message(keyring.choose(None, Purpose::Sign)).contains("no key"));
        assert!(message(keyring.named("c")).ends_with("it has: a, b"));
        assert!(message(keyring.choose(Some("a"), Purpose::Sign)).contains("for decrypt, not for sign"));
    }
}
