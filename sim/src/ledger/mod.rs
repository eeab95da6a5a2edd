//! The group's ledger from outside: what replicas say, as bytes, and a client that follows it.
//!
//! Both are written from `spec/ledger.md`, so that liars can say what replicas never would, and so that what replicas say is counted
//! without asking them.

mod letter;
mod reader;

pub(crate) use letter::{Candidate, Letter, Vote, Votes, ledger_of, sign};
pub(crate) use reader::{Reader, Served};
