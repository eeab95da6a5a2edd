//! Who has signed, and who has not.

use std::{collections::BTreeSet, fmt};

use serde::Serialize;
use theta_rpki::signatures::{KeySet, MOST_KEYS, Signed};

/// Who of a set of keys has signed some bytes.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Tally {
    /// How many keys have to sign.
    need: usize,
    /// How many of them have not.
    missing: usize,
    /// The keys that have signed.
    signed: BTreeSet<String>,
    /// The keys that have not.
    unsigned: BTreeSet<String>,
    /// Signatures that count for nothing: by the keys that they name.
    void: Vec<String>,
}

impl Tally {
    /// Who of these keys has signed these bytes. An agent looks at as many signatures.
    pub(crate) fn of(keys: &KeySet, bytes: &[u8], signatures: &[Signed]) -> Self {
        let counts = |signed: &&Signed| keys.count(bytes, std::slice::from_ref(*signed)) == 1;
        let (good, void): (Vec<_>, Vec<_>) = signatures.iter().take(2 * MOST_KEYS).partition(counts);
        let signed: BTreeSet<String> = good.into_iter().map(|good| good.key.to_ascii_lowercase()).collect();
        let unsigned: BTreeSet<String> = keys.keys().filter(|key| !signed.contains(key)).collect();
        // What is no key may be anything, of any length.
        let void: Vec<String> =
            void.into_iter().map(|void| void.key.escape_debug().take(64).collect::<String>()).collect();
        Self { need: keys.need(), missing: keys.need().saturating_sub(signed.len()), signed, unsigned, void }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { need, missing, signed, unsigned, void } = self;
        writeln!(f, "  {need} of {} keys have to sign", signed.len().saturating_add(unsigned.len()))?;
        signed.iter().try_for_each(|key| writeln!(f, "    {key} has signed"))?;
        unsigned.iter().try_for_each(|key| writeln!(f, "    {key} has not"))?;
        void.iter().try_for_each(|key| {
            writeln!(f, "    {key} counts for nothing: it is none of these, or its signature is false")
        })?;
        match missing {
            0 => writeln!(f, "  that is enough"),
            missing => writeln!(f, "  {missing} more, and it is enough"),
        }
    }
}
