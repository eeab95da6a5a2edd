//! What a party has in one ceremony beside its identity: a key to be encrypted to, from a secret that ends with it.

pub(crate) mod encryption;
pub(crate) mod participant;
pub(crate) mod sealed;
