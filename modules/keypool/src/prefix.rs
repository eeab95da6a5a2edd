//! The names of a pool's keys: `PREFIX-SUITE-NUMBER`.

use std::{collections::BTreeSet, fmt, str::FromStr};

use theta_names::KeyName;
use theta_schemes::Suite;

/// The suites of which hosts make keys.
pub const SUITES: [Suite; 4] = [Suite::EcdsaP256, Suite::FrostEd25519, Suite::EcdsaSecp256k1, Suite::Sh00Pkcs1Sha256];

/// The longest prefix in bytes: with the longest suite and the largest number a name has 62, of 64.
const MOST: usize = 32;

/// What the names of a pool's keys begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(String);

/// Not a prefix; at most 80 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no pool: names of keys begin with it, so write 1 to {MOST} of a-z, 0-9, '.', '_', '-', the first a letter or digit"
)]
pub struct PrefixError(String);

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let named = text.parse::<KeyName>().is_ok() && text.len() <= MOST;
        if named { Ok(Self(text.to_owned())) } else { Err(PrefixError(text.chars().take(80).collect())) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Prefix {
    /// The name of the pool's key of this suite and number; `None` for suites with longer names than those of [`SUITES`].
    #[must_use]
    pub fn name(&self, suite: Suite, number: u32) -> Option<KeyName> {
        format!("{}-{}-{number}", self.0, suite.name()).parse().ok()
    }

    /// The names that keys of this suite may get, the smallest number first, without these numbers. A key with a large number takes no others
    /// with it.
    pub fn free_names(&self, suite: Suite, taken: &BTreeSet<u32>) -> impl Iterator<Item = KeyName> {
        (1..=u32::MAX).filter(|number| !taken.contains(number)).map_while(move |number| self.name(suite, number))
    }

    /// The suite and the number in the name of a key of this pool; `None` for other keys.
    #[must_use]
    pub fn parse(&self, name: &str) -> Option<(Suite, u32)> {
        let rest = name.strip_prefix(&self.0)?.strip_prefix('-')?;
        let (suite, number) = rest.rsplit_once('-')?;
        let suite = SUITES.into_iter().find(|known| known.name() == suite)?;
        let plain = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
        plain.then(|| number.parse().ok())?.map(|number| (suite, number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_pool_are_read_as_they_are_written() {
        let prefix: Prefix = "zone".parse().unwrap();
        for suite in SUITES {
            let name = prefix.name(suite, 17).unwrap();
            assert_eq!(prefix.parse(name.as_str()), Some((suite, 17)), "{name}");
        }
        let longest: Prefix = "x".repeat(MOST).parse().unwrap();
        assert!(SUITES.into_iter().all(|suite| longest.name(suite, u32::MAX).is_some()));
    }

    #[test]
    fn the_largest_number_leaves_all_others() {
        let prefix: Prefix = "zone".parse().unwrap();
        let taken = BTreeSet::from([1, 3, u32::MAX]);
        let names: Vec<_> = prefix.free_names(Suite::EcdsaP256, &taken).take(2).collect();
        assert_eq!(names, ["zone-ecdsa-p256-2", "zone-ecdsa-p256-4"].map(|name| name.parse().unwrap()));
    }

    #[test]
    fn other_names_are_of_no_pool() {
        let prefix: Prefix = "zone".parse().unwrap();
        for name in [
            "zone",
            "zone-ecdsa-p256",
            "zone-ecdsa-p256-",
            "zone-ecdsa-p256-0",
            "zone-ecdsa-p256-01",
            "zone-ecdsa-p256-+1",
            "zone-ecdsa-p256-4294967296",
            "zones-ecdsa-p256-1",
            "zone-bls04-bls12381-min-pk-1",
            "zone-2-ecdsa-p256-1",
        ] {
            assert_eq!(prefix.parse(name), None, "{name}");
        }
        for wrong in ["", "-zone", "Zone", "zone@1", &"x".repeat(MOST + 1)] {
            assert!(wrong.parse::<Prefix>().is_err(), "{wrong}");
        }
    }
}
