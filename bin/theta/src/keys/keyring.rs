//! The group's public keys as this client knows them.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use theta_client::{KeyRef, KeyState, KnownKey, KnownKeys, Version};
use theta_keyfiles::PublicKeyText as _;
use theta_names::Delivery;
use theta_schemes::{
    Purpose,
    keys::{AnyPublicKey, KeyId, KeyName},
};
use theta_statements::UnixTime;

use crate::{exit::Failure, files};

/// A public key with its name.
#[derive(Clone, Debug)]
pub struct NamedKey {
    /// Its name.
    pub name: KeyName,
    /// The key.
    pub public: AnyPublicKey,
    /// Which version it is, if that is known.
    pub version: Option<Version>,
    /// Who makes shares for a request, as far as the ledger says.
    pub(crate) delivery: Option<Delivery>,
    /// The version's state, as far as the ledger says.
    pub(crate) state: Option<KeyState>,
    /// When it will be destroyed, in seconds since 1970, if the ledger says so.
    pub(crate) doomed: Option<u64>,
    /// Whether this version was asked for.
    is_asked: bool,
}

impl NamedKey {
    /// Reads a `.pub` file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let (name, public) = AnyPublicKey::from_text(&files::read_text(path)?)
            .map_err(|error| Failure::Usage(format!("{} is not a usable public key: {error}", path.display())))?;
        Ok(Self { name, public, version: None, delivery: None, state: None, doomed: None, is_asked: false })
    }

    fn of(key: KnownKey, asked: Option<Version>) -> Self {
        let KnownKey { name, version, delivery, state, doomed, public, .. } = key;
        Self { name, public, version: version.or(asked), delivery, state, doomed, is_asked: asked.is_some() }
    }

    /// What the nodes are asked for: NAME, or NAME@VERSION if the version was named.
    #[must_use]
    pub fn asked(&self) -> String {
        KeyRef { name: self.name.clone(), version: self.version.filter(|_| self.is_asked) }.to_string()
    }

    /// Its state as far as the ledger says, and when it will be destroyed.
    pub(crate) fn state_in_words(&self) -> Option<String> {
        let state = self.state?.name();
        let doom = self.doomed.map(|doom| format!(", destroyed at {}", UnixTime(doom.saturating_mul(1_000))));
        Some(format!("{state}{}", doom.unwrap_or_default()))
    }

    /// NAME@VERSION, if the version is known.
    pub(crate) fn full_name(&self) -> String {
        KeyRef { name: self.name.clone(), version: self.version }.to_string()
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

/// The public keys that a client knows: those of the group's ledger in all versions, and those in its directory.
#[derive(Clone, Debug)]
pub struct Keyring {
    dir: PathBuf,
    known: OnceLock<Arc<KnownKeys>>,
}

impl Keyring {
    /// The keys of the client with this directory, read when they are needed.
    pub fn new(client_dir: &Path) -> Self {
        Self { dir: client_dir.to_owned(), known: OnceLock::new() }
    }

    /// The keys of a client that is open.
    pub(crate) fn of(client_dir: &Path, known: &Arc<KnownKeys>) -> Self {
        Self { dir: client_dir.to_owned(), known: OnceLock::from(Arc::clone(known)) }
    }

    fn known(&self) -> Result<&KnownKeys, Failure> {
        if let Some(known) = self.known.get() {
            return Ok(known);
        }
        files::check_client(&self.dir)?;
        let known = KnownKeys::open(&self.dir)?;
        Ok(self.known.get_or_init(|| Arc::new(known)))
    }

    /// The names, in order.
    pub(crate) fn names(&self) -> Result<Vec<String>, Failure> {
        Ok(self.known()?.names().iter().map(ToString::to_string).collect())
    }

    /// All of them, by name; of each the version that is meant where none is named.
    pub(crate) fn all(&self) -> Result<Vec<NamedKey>, Failure> {
        let known = self.known()?;
        let found = known.names().into_iter().filter_map(|name| known.find(&KeyRef { name, version: None }));
        Ok(found.map(|key| NamedKey::of(key, None)).collect())
    }

    /// The key of this name, or this version of it.
    pub fn named(&self, name: &str) -> Result<NamedKey, Failure> {
        let known = self.known()?;
        let key: Option<KeyRef> = name.parse().ok();
        if let Some((key, found)) = key.as_ref().and_then(|key| Some((key, known.find(key)?))) {
            return Ok(NamedKey::of(found, key.version));
        }
        let line = key.map(|key| KeyRef { version: None, ..key });
        let mut versions: Vec<Version> = self.versions(line.as_ref())?.iter().filter_map(|key| key.version).collect();
        versions.sort_unstable();
        let versions: Vec<String> = versions.iter().map(ToString::to_string).collect();
        if !versions.is_empty() {
            let versions = versions.join(", ");
            return Err(Failure::Usage(format!("there is no {name}; of this key there are the versions {versions}")));
        }
        let names = self.names()?;
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Err(Failure::Usage(format!("no key named {name:?} in {}; it has: {known}", self.dir.display())))
    }

    /// The newest sharing of each version.
    fn versions(&self, key: Option<&KeyRef>) -> Result<Vec<NamedKey>, Failure> {
        let Some(key) = key else { return Ok(Vec::new()) };
        let mut all: Vec<NamedKey> = self.candidates(key)?;
        all.dedup_by_key(|key| key.version);
        Ok(all)
    }

    /// The version that has taken this one's place.
    pub(super) fn successor(&self, key: &NamedKey) -> Option<Version> {
        let primary = self.known().ok()?.primary(&key.name)?;
        key.version.filter(|version| *version < primary).map(|_| primary)
    }

    /// All that something by this key may have been made with: every version, or the one that is named, in each of its sharings.
    fn candidates(&self, key: &KeyRef) -> Result<Vec<NamedKey>, Failure> {
        Ok(self.known()?.versions(key).into_iter().map(|known| NamedKey::of(known, key.version)).collect())
    }

    /// The first version and sharing of the key for which a check succeeds, or else the failure for the one that is meant.
    pub(crate) fn fitting<E>(&self, key: &NamedKey, check: impl Fn(&NamedKey) -> Result<(), E>) -> Result<NamedKey, E> {
        let first = match check(key) {
            Ok(()) => return Ok(key.clone()),
            Err(first) => first,
        };
        let asked = KeyRef { name: key.name.clone(), version: key.version.filter(|_| key.is_asked) };
        let others = self.candidates(&asked).unwrap_or_default();
        others.into_iter().find(|other| check(other).is_ok()).ok_or(first)
    }

    /// The key with this id, if this client knows it.
    pub(crate) fn with_id(&self, id: &KeyId) -> Result<Option<NamedKey>, Failure> {
        Ok(self.known()?.of_id(id).map(|key| NamedKey::of(key, None)))
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
}

/// The name that `theta group init` gives to the usual key of a purpose.
const fn usual_name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Decrypt => "files",
        Purpose::Sign => "sign",
        Purpose::Coin => "coin",
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
