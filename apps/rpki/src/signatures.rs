//! Signatures of m of n keys: of members under what they state, of operators under what they override.

use std::collections::{BTreeMap, BTreeSet};

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use serde::Deserialize;

/// The most keys of a set.
pub const MOST_KEYS: usize = 64;

/// So many signatures of one key are verified: a file may have one of before it was changed. All others cost whoever reads it nothing.
const MOST_TRIES: usize = 2;

/// Why these are no keys of which some number signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    /// One is no key.
    #[error("a key is 64 hexadecimal digits of Ed25519")]
    Key,
    /// The numbers do not fit.
    #[error("of n different keys, 1 to {MOST_KEYS}, at least 1 and at most n have to sign")]
    Numbers,
}

/// Keys of Ed25519, of which some number has to sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySet {
    keys: BTreeSet<[u8; 32]>,
    need: usize,
}

/// A signature, with the key that made it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Signed {
    /// The key, 64 hexadecimal digits.
    pub key: String,
    /// The signature, 128 hexadecimal digits.
    pub signature: String,
}

fn read<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(digits, &mut bytes).ok().map(|()| bytes)
}

impl KeySet {
    /// Reads keys in hexadecimal digits, of which `need` have to sign.
    ///
    /// # Errors
    /// [`KeySetError`].
    pub fn parse(keys: &[String], need: usize) -> Result<Self, KeySetError> {
        let read: Option<BTreeSet<_>> = keys.iter().map(|key| read(key)).collect();
        let set = read.ok_or(KeySetError::Key)?;
        let good = set.len() == keys.len() && set.len() <= MOST_KEYS && (1..=set.len()).contains(&need);
        if good { Ok(Self { keys: set, need }) } else { Err(KeySetError::Numbers) }
    }

    /// How many keys have to sign.
    #[must_use]
    pub fn need(&self) -> usize {
        self.need
    }

    /// The keys, in 64 hexadecimal digits each.
    pub fn keys(&self) -> impl Iterator<Item = String> {
        self.keys.iter().map(hex::encode)
    }

    /// How many different keys of the set have signed these bytes. Signatures of other keys, and false ones, count for nothing.
    #[must_use]
    pub fn count(&self, bytes: &[u8], signatures: &[Signed]) -> usize {
        let mut tried = BTreeMap::<_, usize>::new();
        let good = signatures.iter().take(2 * MOST_KEYS).filter_map(|signed| {
            let key = read::<32>(&signed.key).filter(|key| self.keys.contains(key))?;
            let signature = read::<64>(&signed.signature)?;
            let tries = tried.entry(key).or_default();
            *tries += 1;
            if *tries > MOST_TRIES {
                return None;
            }
            UnparsedPublicKey::new(&ED25519, key).verify(bytes, &signature).ok().map(|()| key)
        });
        good.collect::<BTreeSet<_>>().len()
    }

    /// Whether enough keys have signed these bytes.
    #[must_use]
    pub fn enough(&self, bytes: &[u8], signatures: &[Signed]) -> bool {
        self.count(bytes, signatures) >= self.need
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};

    use super::*;

    fn pair(seed: u8) -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
    }

    fn digits(pair: &Ed25519KeyPair) -> String {
        hex::encode(pair.public_key().as_ref())
    }

    fn signed(pair: &Ed25519KeyPair, bytes: &[u8]) -> Signed {
        Signed { key: digits(pair), signature: hex::encode(pair.sign(bytes).as_ref()) }
    }

    #[test]
    fn m_of_n_keys_sign_each_once() {
        let [a, b, c, foreign] = [1, 2, 3, 4].map(pair);
        let keys = KeySet::parse(&[digits(&a), digits(&b), digits(&c)], 2).unwrap();
        assert!(keys.enough(b"x", &[signed(&a, b"x"), signed(&c, b"x")]));
        assert!(!keys.enough(b"x", &[signed(&a, b"x"), signed(&a, b"x")]), "one key twice");
        assert!(!keys.enough(b"x", &[signed(&a, b"x"), signed(&b, b"y")]), "of other bytes");
        assert!(!keys.enough(b"x", &[signed(&a, b"x"), signed(&foreign, b"x")]), "of another key");
        let bent = Signed { signature: "00".to_owned(), ..signed(&b, b"x") };
        assert_eq!(keys.count(b"x", &[bent, signed(&b, b"x")]), 1);
        let old = signed(&b, b"y");
        assert_eq!(keys.count(b"x", &[old.clone(), signed(&b, b"x")]), 1, "one of before it was changed");
        assert_eq!(keys.count(b"x", &[old.clone(), old, signed(&b, b"x")]), 0, "no more are verified");
    }

    #[test]
    fn sets_of_keys_have_to_make_sense() {
        let [a, b] = [1, 2].map(|seed| digits(&pair(seed)));
        for (keys, need) in [(vec![], 1), (vec![a.clone()], 0), (vec![a.clone()], 2), (vec![b.clone(), b], 1)] {
            assert_eq!(KeySet::parse(&keys, need), Err(KeySetError::Numbers));
        }
        assert_eq!(KeySet::parse(&[a, "00".to_owned()], 1), Err(KeySetError::Key));
    }
}
