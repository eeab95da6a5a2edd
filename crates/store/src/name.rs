//! Names in the keys of tables.

/// The name, followed by a byte that no name contains, so that no name is a prefix of another in a table's keys.
pub(crate) fn terminated(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(0);
    bytes
}
