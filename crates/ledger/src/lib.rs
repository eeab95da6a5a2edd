//! The group's history of itself: what it decides that is not a request. It begins with its [`founding`], whose fingerprint is its
//! name.
//!
//! Everything here is public, and whoever has the fingerprint can check it. `spec/ledger.md` has the formats to the byte.

pub mod founding;
