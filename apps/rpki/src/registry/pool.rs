//! The keys of signed objects: of a pool that the nodes have made, each of which signs one object.

use std::collections::BTreeMap;

use rpki::crypto::PublicKey;

use super::read_key;

/// Public keys of objects, by their names at the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool(BTreeMap<String, PublicKey>);

impl Pool {
    /// Reads a text with a key on each line: its name, and its SubjectPublicKeyInfo in base64. Lines that begin with # are comments.
    ///
    /// # Errors
    /// The number of the first line that is no key, or has the name of one before it.
    pub fn parse(text: &str) -> Result<Self, usize> {
        let lines = text.lines().map(str::trim).zip(1..);
        let mut keys = BTreeMap::new();
        for (line, number) in lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#')) {
            let (name, public) = line.split_once(' ').ok_or(number)?;
            if keys.insert(name.to_owned(), read_key(public).ok_or(number)?).is_some() {
                return Err(number);
            }
        }
        Ok(Self(keys))
    }

    /// The key with this name.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&PublicKey> {
        self.0.get(name)
    }

    /// The keys with their names.
    pub fn keys(&self) -> impl Iterator<Item = (&str, &PublicKey)> {
        self.0.iter().map(|(name, key)| (name.as_str(), key))
    }

    /// Whether this is one of them.
    #[must_use]
    pub fn has(&self, key: &PublicKey) -> bool {
        self.0.values().any(|other| other == key)
    }
}
