//! Signed statements, the bulletin board that keeps them, certificates, what parties tell of what they have, and the encodings of
//! all four.

pub(crate) mod bulletin_board;
pub(crate) mod certificate;
pub(crate) mod codec;
pub(crate) mod statement;
pub(crate) mod summary;

use std::collections::BTreeMap;

/// The entries by their keys. Whoever collects an iterator of a function that is generic over the group instead gets a sort for each group, of 4 KB.
pub(crate) fn map_of<K: Ord, V>(entries: Vec<(K, V)>) -> BTreeMap<K, V> {
    entries.into_iter().collect()
}
