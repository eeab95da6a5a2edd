//! The client file: everything that a client needs, in one file for any language (`spec/client.md`).

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use theta_keyfiles::PublicKeyText as _;
use theta_ledger::{
    Digest,
    founding::{Card, Fingerprint, Founding, NodeSignatures},
};
use theta_names::NodeId;
use theta_network::{
    Identity,
    group::{GroupFile, GroupNode},
};
use theta_schemes::{
    groups::Secret,
    keys::{AnyPublicKey, KeyName},
};
use theta_statements::{Name, SigningKey};

use super::locked::{self, LockError};
use crate::OpenError;

/// The only format that there is.
const FORMAT: u64 = 1;
/// The longest file in bytes: a group of 1024 nodes with all its cards takes less.
const MOST: usize = 4 << 20;
/// The fields that hold secrets. They are read from the text itself, so that no parser makes copies of them.
const SECRETS: [&str; 2] = ["private_key", "request_key"];

/// A place in the group's ledger that was checked from the founding on when a client file was made. The client takes no history that has
/// another entry there, whoever voted for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The number of the entry, from 1.
    pub height: u64,
    /// Its digest (`spec/ledger.md`, Entries).
    pub entry: Digest,
}

/// What a client file says.
#[derive(Debug)]
pub struct ClientFile {
    /// What policies call the client.
    pub name: Name,
    /// The group, without its clients.
    pub group: GroupFile,
    /// What the group began with, if its members founded it: its fingerprint is what people compare.
    pub founding: Option<Founding>,
    /// How far the ledger was checked that the group's nodes are from. Only with a founding.
    pub checkpoint: Option<Checkpoint>,
    /// The certificate of its connections, in PEM, with the private key; none for a client that shows a token.
    pub identity: Option<(String, Secret<String>)>,
    /// The key that it signs requests with, in PEM.
    pub request_key: Option<Secret<String>>,
    /// Public keys that its owner trusts, besides those that the group's ledger has.
    pub public_keys: Vec<(KeyName, AnyPublicKey)>,
}

/// The fields, without the secrets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    format: u64,
    name: String,
    fingerprint: Option<String>,
    founding: Option<String>,
    certificate: Option<String>,
    private_key: Option<String>,
    request_key: Option<String>,
    #[serde(default)]
    public_keys: Vec<String>,
    checkpoint: Option<CheckpointFields>,
    group: toml::Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointFields {
    height: u64,
    entry: String,
}

impl CheckpointFields {
    fn read(&self) -> Result<Checkpoint, String> {
        let entry = hex::decode(&self.entry).ok().and_then(|bytes| Digest::try_from(bytes).ok());
        let entry = entry.ok_or("checkpoint.entry is not a digest of 64 hexadecimal digits")?;
        if self.height == 0 {
            return Err("checkpoint.height is 0, and the first entry has the height 1".to_owned());
        }
        Ok(Checkpoint { height: self.height, entry })
    }
}

/// Why a text is no client file.
fn wrong(path: &Path, reason: impl core::fmt::Display) -> OpenError {
    OpenError::ClientFile { path: path.to_owned(), reason: reason.to_string() }
}

impl ClientFile {
    /// Reads a client file and checks everything in it, the group against the fingerprint included.
    ///
    /// # Errors
    /// [`OpenError`] says what is wrong, and with which file.
    pub fn load(path: &Path) -> Result<Self, OpenError> {
        let unreadable = |error: std::io::Error| OpenError::Read { path: path.to_owned(), reason: error.to_string() };
        let file = File::open(path).map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(MOST);
        // Of its full size from the start: growing would leave a copy of the secrets behind.
        let mut bytes = Secret::new(Vec::with_capacity(size.saturating_add(1)));
        let bound = u64::try_from(MOST).unwrap_or(u64::MAX);
        (&file).take(bound).read_to_end(bytes.expose_mut()).map_err(unreadable)?;
        let text = std::str::from_utf8(bytes.expose()).map_err(|_| wrong(path, "it is not a text file"))?;
        let parsed = Self::parse(text, path)?;
        if parsed.identity.is_some() || parsed.request_key.is_some() {
            refuse_exposed(&file, path)?;
        }
        Ok(parsed)
    }

    /// Checks the text of a client file. `path` is only for errors.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, OpenError> {
        let (public, [private_key, request_key]) = without_secrets(text);
        let fields: Fields = toml::from_str(&public).map_err(|error| wrong(path, error.message()))?;
        if fields.format != FORMAT {
            return Err(wrong(path, format!("it has format {}, and this release reads {FORMAT}", fields.format)));
        }
        // A secret that stands there in another way was parsed like anything else, and is refused for that.
        let blank = |field: &Option<String>| field.as_ref().is_none_or(String::is_empty);
        if !blank(&fields.private_key) || !blank(&fields.request_key) {
            return Err(wrong(
                path,
                "private keys stand between lines of three quotation marks, as theta client new writes them",
            ));
        }
        let name = fields.name.parse().map_err(|error| wrong(path, error))?;
        let group = toml::to_string(&fields.group).map_err(|error| wrong(path, error))?;
        let group = GroupFile::parse(&group, path)?;
        let founding = match (&fields.fingerprint, &fields.founding) {
            (None, None) => None,
            (Some(fingerprint), Some(founding)) => Some(checked_founding(fingerprint, founding, &group, path)?),
            _ => return Err(wrong(path, "fingerprint and founding are there both or not at all")),
        };
        let checkpoint =
            fields.checkpoint.map(|fields| fields.read()).transpose().map_err(|error| wrong(path, error))?;
        if checkpoint.is_some() && founding.is_none() {
            return Err(wrong(path, "it has a checkpoint, and no founding that the ledger of it begins with"));
        }
        // The ledger begins with it.
        let group = match &founding {
            Some(founding) => group.with_founding(founding.to_text()),
            None => group,
        };
        let identity = match (fields.certificate, private_key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((certificate, Secret::new(key.to_owned()))),
            _ => return Err(wrong(path, "certificate and private_key are there both or not at all")),
        };
        let request_key = request_key.map(|key| Secret::new(key.to_owned()));
        let public_keys = fields.public_keys.iter().map(|text| {
            AnyPublicKey::from_text(text).map_err(|reason| OpenError::Key { path: path.to_owned(), reason })
        });
        let public_keys = public_keys.collect::<Result<_, _>>()?;
        Ok(Self { name, group, founding, checkpoint, identity, request_key, public_keys })
    }

    /// The file's text. Write it where its owner alone can read it.
    #[must_use]
    pub fn to_text(&self) -> Secret<String> {
        let group = self.group_text();
        let block = |field: &str, text: &str| format!("{field} = \"\"\"\n{}\n\"\"\"\n", text.trim_end());
        let mut head = format!(
            "# A client of the group {}: all that it needs, its private keys included. Keep it where its owner alone can read it.\n\n\
             format = {FORMAT}\nname = {:?}\n",
            self.group.name(),
            self.name.as_str()
        );
        if let Some(founding) = &self.founding {
            head.push_str(&format!(
                "fingerprint = \"{}\"\n{}",
                founding.fingerprint(),
                block("founding", &founding.to_text())
            ));
        }
        let keys: Vec<String> =
            self.public_keys.iter().map(|(name, key)| format!("'''\n{}'''", key.to_text(name))).collect();
        if !keys.is_empty() {
            head.push_str(&format!("public_keys = [\n{},\n]\n", keys.join(",\n")));
        }
        let secrets = self.identity.iter().map(|(_, key)| key).chain(&self.request_key);
        let secret: usize = secrets.map(|key| key.expose().len().saturating_add(64)).sum();
        let certificate = self.identity.as_ref().map(|(certificate, _)| block("certificate", certificate));
        head.push_str(&certificate.unwrap_or_default());
        // Of its full size from the start, as above.
        let group = [self.checkpoint_text(), group].concat();
        let size = head.len().saturating_add(group.len()).saturating_add(secret);
        let mut text = Secret::new(String::with_capacity(size));
        text.expose_mut().push_str(&head);
        let keys = [self.identity.as_ref().map(|(_, key)| key), self.request_key.as_ref()];
        for (field, key) in SECRETS.into_iter().zip(keys) {
            if let Some(key) = key {
                text.expose_mut().extend([field, " = \"\"\"\n", key.expose().trim_end(), "\n\"\"\"\n"]);
            }
        }
        text.expose_mut().push_str(&group);
        text
    }

    /// The checkpoint as a table of the file.
    fn checkpoint_text(&self) -> String {
        let text = |Checkpoint { height, entry }: &Checkpoint| {
            format!("\n[checkpoint]\nheight = {height}\nentry = \"{}\"\n", hex::encode(entry))
        };
        self.checkpoint.as_ref().map(text).unwrap_or_default()
    }

    /// The group as a table of the file.
    fn group_text(&self) -> String {
        // The founding stands by itself.
        let (name, threshold, nodes) = (self.group.name(), self.group.threshold(), self.group.nodes().to_vec());
        let plain = match self.group.members_at() {
            None => GroupFile::new(name, threshold, nodes, self.group.clients().to_vec()),
            Some(_) => Ok(self.group.clone().without_founding()),
        };
        let lines = plain.map_or_else(|_| self.group.to_text(), |plain| plain.to_text());
        let lines = lines.lines().map(|line| if line == "[[node]]" { "[[group.node]]" } else { line });
        let mut text = String::from("\n[group]\n");
        lines.for_each(|line| text.extend([line, "\n"]));
        text
    }

    /// Whether a passphrase locks its private keys.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.keys().any(|key| locked::is_locked(key.expose()))
    }

    fn keys(&self) -> impl Iterator<Item = &Secret<String>> {
        self.identity.iter().map(|(_, key)| key).chain(&self.request_key)
    }

    /// The same client with private keys that this passphrase locks.
    ///
    /// # Errors
    /// [`LockError`] if it has none, or has locked ones.
    pub fn lock(self, passphrase: &[u8]) -> Result<Self, LockError> {
        self.with_keys(|key| locked::lock(key.expose(), passphrase))
    }

    /// The same client with private keys that nothing locks.
    ///
    /// # Errors
    /// [`LockError`] if the passphrase is another one, or nothing is locked.
    pub fn unlock(self, passphrase: &[u8]) -> Result<Self, LockError> {
        self.with_keys(|key| locked::unlock(key.expose(), passphrase))
    }

    fn with_keys(
        self,
        change: impl Fn(&Secret<String>) -> Result<Secret<String>, LockError>,
    ) -> Result<Self, LockError> {
        if self.keys().next().is_none() {
            return Err(LockError::Nothing);
        }
        let identity = self.identity.map(|(certificate, key)| Ok((certificate, change(&key)?))).transpose()?;
        let request_key = self.request_key.as_ref().map(change).transpose()?;
        Ok(Self { identity, request_key, ..self })
    }

    /// Refuses locked keys where they are used.
    fn check_unlocked(&self, path: &Path) -> Result<(), OpenError> {
        if !self.is_locked() {
            return Ok(());
        }
        Err(wrong(
            path,
            "a passphrase locks its private keys: hosts of the PKCS#11 module give it as their PIN, and theta client unlock takes it away",
        ))
    }

    /// The certificate of its connections, with the private key.
    pub(crate) fn connects_as(&self, path: &Path) -> Result<Option<Identity>, OpenError> {
        self.check_unlocked(path)?;
        let made = self.identity.as_ref().map(|(certificate, key)| Identity::from_pem(certificate, key.expose()));
        made.transpose().map_err(|error| wrong(path, error))
    }

    /// The key that it signs requests with.
    ///
    /// # Errors
    /// [`OpenError`] if it is no such key.
    pub fn signer(&self, path: &Path) -> Result<Option<SigningKey>, OpenError> {
        self.check_unlocked(path)?;
        let key = self.request_key.as_ref().map(|key| SigningKey::from_pem(key.expose()));
        key.transpose().map_err(|error| wrong(path, format!("request_key: {error}")))
    }
}

/// Where a client with this file keeps what it has checked of the ledger.
pub(super) fn ledger_beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".ledger");
    path.with_file_name(name)
}

/// The text without its secrets, and these.
fn without_secrets(text: &str) -> (String, [Option<&str>; 2]) {
    let (mut found, mut places) = ([None; 2], Vec::new());
    for (secret, field) in found.iter_mut().zip(SECRETS) {
        let opening = format!("\n{field} = \"\"\"\n");
        let Some((before, rest)) = text.split_once(&opening) else { continue };
        let Some((inside, _)) = rest.split_once("\"\"\"") else { continue };
        *secret = Some(inside);
        let from = before.len().saturating_add(opening.len());
        places.push((from, from.saturating_add(inside.len())));
    }
    places.sort_unstable();
    let (mut public, mut at) = (String::with_capacity(text.len()), 0);
    for (from, to) in places {
        public.push_str(text.get(at..from).unwrap_or_default());
        at = to;
    }
    public.push_str(text.get(at..).unwrap_or_default());
    (public, found)
}

/// The founding, if it has that fingerprint and is that group's.
fn checked_founding(fingerprint: &str, text: &str, group: &GroupFile, path: &Path) -> Result<Founding, OpenError> {
    let fingerprint: Fingerprint = fingerprint.parse().map_err(|error| wrong(path, error))?;
    let founding = Founding::from_text(text, &NodeSignatures).map_err(|error| wrong(path, error))?;
    if founding.fingerprint() != fingerprint {
        let found = founding.fingerprint();
        return Err(wrong(path, format!("its founding has the fingerprint {found}, and not the one beside it")));
    }
    check_group(&founding, group).map_err(|reason| wrong(path, reason))?;
    Ok(founding)
}

/// Whether a group file can be of the group that was founded so. Its nodes may be others by now: what it says of them counts as far as the
/// group's ledger says the same, and is otherwise a hint where to ask for the ledger.
///
/// # Errors
/// What differs, for people.
pub fn check_group(founding: &Founding, group: &GroupFile) -> Result<(), String> {
    let (name, k, n) = (founding.name(), founding.threshold(), founding.members().len());
    if name == group.name() && k == group.threshold() {
        return Ok(());
    }
    Err(format!("the group is not that of the founding, which is {name}, any {k} of {n}"))
}

/// The nodes of a group file that have other keys than when the group was founded, or came later.
#[must_use]
pub fn changed_since(founding: &Founding, group: &GroupFile) -> Vec<NodeId> {
    let founders: BTreeMap<NodeId, &Card> = founding.numbered().collect();
    let same = |node: &GroupNode| {
        founders.get(&node.id).is_some_and(|card| {
            let content = card.content();
            node.ceremony_key.is_some_and(|key| *key.as_bytes() == content.ceremony_key)
                && *node.certificate.as_bytes() == content.tls_key
        })
    };
    group.nodes().iter().filter(|node| !same(node)).map(|node| node.id).collect()
}

#[cfg(unix)]
fn refuse_exposed(file: &File, path: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::PermissionsExt as _;
    let unreadable = |error: std::io::Error| OpenError::Read { path: path.to_owned(), reason: error.to_string() };
    let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let name = path.display();
    Err(wrong(
        path,
        format!("it holds private keys and can be read by others (mode {mode:04o}); run: chmod 600 {name}"),
    ))
}

#[cfg(not(unix))]
fn refuse_exposed(_: &File, _: &Path) -> Result<(), OpenError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

    use super::*;

    fn file() -> ClientFile {
        let group = format!(
            "name = \"demo\"\nthreshold = 1\n[[node]]\nid = 1\nname = \"a \\\"quoted\\\" node\"\npeer_address = \"a:1\"\n\
             api_address = \"a:2\"\ncertificate = \"{:064x}\"\n",
            1
        );
        let made = Identity::generate("ann").unwrap();
        let signer = SigningKey::generate(&mut ChaCha20Rng::from_seed([1; 32])).unwrap();
        let (public, _) = theta_schemes::keys::deal_any(
            theta_schemes::Suite::Sg02Ristretto255,
            theta_sharing::Threshold::new(1, 1).unwrap(),
            &mut ChaCha20Rng::from_seed([2; 32]),
        );
        ClientFile {
            name: "ann".parse().unwrap(),
            group: GroupFile::parse(&group, "group".as_ref()).unwrap(),
            founding: None,
            checkpoint: None,
            identity: Some((made.certificate_pem, Secret::new(made.key_pem.to_string()))),
            request_key: Some(signer.to_pem()),
            public_keys: vec![("files".parse().unwrap(), public)],
        }
    }

    fn parse(text: &str) -> Result<ClientFile, OpenError> {
        ClientFile::parse(text, "ann.client".as_ref())
    }

    #[test]
    fn what_was_written_is_read() {
        let file = file();
        let text = file.to_text();
        let read = parse(text.expose()).unwrap();
        assert_eq!((&read.name, &read.group), (&file.name, &file.group));
        assert_eq!(read.public_keys[0].1.parts(), file.public_keys[0].1.parts());
        assert_eq!(read.to_text().expose(), text.expose());
        let path = Path::new("ann.client");
        assert!(read.connects_as(path).unwrap().is_some() && read.signer(path).unwrap().is_some());
        // As a program sees it that reads PEM and skips the rest: the first key belongs to the first certificate.
        assert!(Identity::from_pem(text.expose(), text.expose()).is_ok());
    }

    #[test]
    fn a_passphrase_locks_both_keys() {
        let path = Path::new("ann.client");
        let locked = file().lock(b"correct horse").unwrap();
        let text = locked.to_text();
        assert!(!text.expose().contains("BEGIN PRIVATE KEY"));
        let read = parse(text.expose()).unwrap();
        assert!(read.is_locked() && read.signer(path).is_err());
        let refused = read.connects_as(path).unwrap_err().to_string();
        assert!(refused.contains("a passphrase locks"), "{refused}");
        assert_eq!(parse(text.expose()).unwrap().unlock(b"battery staple").unwrap_err(), LockError::Passphrase);
        let unlocked = read.unlock(b"correct horse").unwrap();
        assert_eq!(unlocked.to_text().expose().lines().count(), file().to_text().expose().lines().count());
        assert!(unlocked.connects_as(path).unwrap().is_some() && unlocked.signer(path).unwrap().is_some());
        assert_eq!(unlocked.unlock(b"correct horse").unwrap_err(), LockError::Form);
    }

    #[test]
    fn no_parser_sees_a_secret() {
        let file = file();
        let text = file.to_text();
        let (public, secrets) = without_secrets(text.expose());
        for key in [&file.identity.as_ref().unwrap().1, file.request_key.as_ref().unwrap()] {
            let line = key.expose().lines().nth(1).unwrap();
            assert!(!public.contains(line) && secrets.iter().flatten().any(|secret| secret.contains(line)));
        }
        assert!(!format!("{file:?}").contains("BEGIN PRIVATE KEY"));
    }

    #[test]
    fn what_is_missing_or_strange_is_refused() {
        let text = file().to_text();
        let without = |from: &str, to: &str| text.expose().replacen(from, to, 1);
        for (bad, word) in [
            (without("format = 1", "format = 2"), "format 2"),
            (without("name = \"ann\"", "name = \"no name\""), "not a name"),
            (without("certificate = \"\"\"", "certificat = \"\"\""), "certificat"),
            (without("request_key = \"\"\"\n", "request_key = '''\n"), ""),
            (without("threshold = 1", "threshold = 2"), "threshold"),
            (without("[group]", "fingerprint = \"x\"\n[group]"), "both"),
        ] {
            let error = parse(&bad).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        let cut = text.expose();
        for at in (0..cut.len()).step_by(97) {
            // Whatever comes of it, it is an answer.
            let _ = parse(cut.get(..at).unwrap());
        }
    }
}
