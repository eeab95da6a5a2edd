//! What there is in a pool.

use std::collections::BTreeMap;

use theta_keypool::{Bindings, Members, PoolConfig, Prefix, Sharing, State, Unfit};
use theta_names::{KeyRef, Version};
use theta_schemes::{
    Suite,
    keys::{AnyPublicKey, KeyName, PublicParts},
};

use crate::exit::Failure;

/// What a program wants when it makes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) suite: Suite,
    /// The bits of a key of RSA, where they are known.
    pub(super) bits: Option<u32>,
}

impl Kind {
    fn of(public: &AnyPublicKey) -> Self {
        let bits = match public.parts() {
            PublicParts::Rsa { modulus, .. } => u32::try_from(modulus.len().saturating_mul(8)).ok(),
            PublicParts::Curve(_) => None,
        };
        Self { suite: public.suite(), bits }
    }
}

/// A key that signs.
pub(super) struct Key {
    pub(super) name: KeyName,
    pub(super) version: Version,
    pub(super) public: AnyPublicKey,
    /// How it is shared, if the nodes tell so alike.
    pub(super) sharing: Option<Sharing>,
}

/// How many keys there are of a kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) free: usize,
    pub(super) bound: usize,
    pub(super) released: usize,
}

/// All kinds of a pool.
pub(super) struct Stock {
    counts: BTreeMap<Kind, Count>,
    bindings: Bindings,
    /// Keys that are called as if they were of the pool, and are given to nobody.
    unfit: Vec<(KeyName, Unfit)>,
    /// Later versions of its keys: programs are given the first alone.
    rotated: Vec<KeyRef>,
}

impl Stock {
    /// Counts these keys, of which those of other names do not belong to the pool, nor do those that these members do not share as the
    /// group shares its own.
    pub(super) fn count(pool: &PoolConfig, members: &Members, keys: &[Key]) -> Result<Self, Failure> {
        let bindings = pool.bindings.read().map_err(|error| Failure::Failed(error.to_string()))?;
        let (mut counts, mut unfit, mut rotated) = (BTreeMap::<Kind, Count>::new(), Vec::new(), Vec::new());
        for key in keys.iter().filter(|key| bindings.is_free(key.public.key_id().as_bytes())) {
            let Some((named, _)) = pool.prefix.parse(key.name.as_str()) else { continue };
            if key.version != Version::FIRST {
                rotated.push(KeyRef { name: key.name.clone(), version: Some(key.version) });
                continue;
            }
            match members.check(named, pool.security, &key.public, key.sharing.as_ref()) {
                Ok(()) => counts.entry(Kind::of(&key.public)).or_default().free += 1,
                Err(reason) => unfit.push((key.name.clone(), reason)),
            }
        }
        for binding in bindings.iter() {
            // The bindings of another pool may be in the same file.
            let Some((suite, _)) = number(&pool.prefix, &binding.key) else { continue };
            let known = keys.iter().find(|key| *key.public.key_id().as_bytes() == binding.key_id);
            let kind = known.map_or(Kind { suite, bits: None }, |key| Kind::of(&key.public));
            let count = counts.entry(kind).or_default();
            match binding.state {
                State::Bound => count.bound += 1,
                State::Released => count.released += 1,
            }
        }
        Ok(Self { counts, bindings, unfit, rotated })
    }

    /// How many are free of a kind.
    pub(super) fn free(&self, kind: Kind) -> u32 {
        self.counts.get(&kind).map_or(0, |count| u32::try_from(count.free).unwrap_or(u32::MAX))
    }

    /// What there is of each kind.
    pub(super) fn rows(&self) -> impl Iterator<Item = (Kind, Count)> {
        self.counts.iter().map(|(kind, count)| (*kind, *count))
    }

    /// Keys that are called as if they were of the pool, and why they are given to nobody.
    pub(super) fn unfit(&self) -> &[(KeyName, Unfit)] {
        &self.unfit
    }

    /// Later versions of the pool's keys, which are given to nobody.
    pub(super) fn rotated(&self) -> &[KeyRef] {
        &self.rotated
    }

    /// The suites and numbers of all keys that programs have, or had.
    pub(super) fn numbers(&self, prefix: &Prefix) -> impl Iterator<Item = (Suite, u32)> {
        self.bindings.iter().filter_map(|binding| number(prefix, &binding.key))
    }
}

/// The suite and number of a key of the pool, by its name with the version.
fn number(prefix: &Prefix, reference: &str) -> Option<(Suite, u32)> {
    prefix.parse(reference.split_once('@').map_or(reference, |(name, _)| name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng as _};
    use theta_keypool::{BindingsFile, Security};
    use theta_names::{Delivery, NodeId};
    use theta_schemes::keys::deal_any;
    use theta_sharing::Threshold;

    use super::*;

    /// The module gives the first version of a key, and no other.
    #[test]
    fn later_versions_are_not_free() {
        let folder = tempfile::tempdir().unwrap();
        let bindings = BindingsFile::new(folder.path().join("bindings.toml"));
        let pool = PoolConfig { prefix: "zone".parse().unwrap(), bindings, security: Security::Active };
        let holders: BTreeSet<NodeId> = (1..=3).map(|node| NodeId::try_from(node).unwrap()).collect();
        let members = Members::new(2, holders.iter().copied());
        let key = |number: u8, version: u32| {
            let threshold = Threshold::new(2, 3).unwrap();
            let seed = [number ^ u8::try_from(version << 4).unwrap(); 32];
            let (public, _) = deal_any(Suite::FrostEd25519, threshold, &mut ChaCha20Rng::from_seed(seed));
            let delivery = Suite::FrostEd25519.implied_delivery(Delivery::default(), threshold);
            Key {
                name: format!("zone-frost-ed25519-{number}").parse().unwrap(),
                version: Version::new(version).unwrap(),
                public,
                sharing: Some(Sharing { k: 2, holders: holders.clone(), delivery }),
            }
        };
        let stock = Stock::count(&pool, &members, &[key(1, 2), key(2, 1), key(3, 1)]).unwrap();
        assert_eq!(stock.free(Kind { suite: Suite::FrostEd25519, bits: None }), 2, "{:?}", stock.unfit());
        assert_eq!(stock.rotated().iter().map(ToString::to_string).collect::<Vec<_>>(), ["zone-frost-ed25519-1@2"]);
    }
}
