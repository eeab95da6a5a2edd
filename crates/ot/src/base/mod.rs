//! Base OTs: the endemic OT of Masny and Rindal (*Endemic oblivious transfer*, CCS 2019), with Diffie-Hellman as the key agreement.
//!
//! For each transfer the receiver sends two elements r_0, r_1 such that it knows the logarithm t of r_b + H_b(r_{1-b}) for its choice
//! b, and cannot know that of the other, because one of the two hashes was computed last. The sender answers with g a, a fresh for
//! each transfer, and has the keys of (r_0 + H_0(r_1)) a and (r_1 + H_1(r_0)) a; the receiver has that of (g a) t.
//!
//! Nothing is shared between transfers: no exponent, no hash. See `docs/adr/0049-oblivious-transfer.md`.

mod receiver;
mod sender;

pub use receiver::Receiver;
pub use sender::send;

use theta_groups::{Group, Secret};

use crate::{Choices, Session, words};

/// The receiver's message: for each transfer r_0 and r_1, encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask(pub Vec<u8>);

/// The sender's message: for each transfer g a, encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer(pub Vec<u8>);

impl Ask {
    /// Its length in bytes, for a number of transfers.
    #[must_use]
    pub const fn length<G: Group>(transfers: usize) -> usize {
        2 * G::ENCODED_LEN * transfers
    }
}

impl Answer {
    /// Its length in bytes, for a number of transfers.
    #[must_use]
    pub const fn length<G: Group>(transfers: usize) -> usize {
        G::ENCODED_LEN * transfers
    }
}

/// What a sender has of random OTs: both seeds of each.
#[derive(Debug)]
pub struct SentSeeds(pub(crate) Secret<Vec<[u128; 2]>>);

/// What a receiver has of random OTs: its choices, and the seed of each.
#[derive(Debug)]
pub struct ReceivedSeeds {
    pub(crate) choices: Choices,
    pub(crate) seeds: Secret<Vec<u128>>,
}

impl SentSeeds {
    /// How many transfers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.expose().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The seeds of each transfer, for choice 0 and for choice 1.
    #[must_use]
    pub fn expose(&self) -> &[[u128; 2]] {
        self.0.expose()
    }
}

impl ReceivedSeeds {
    /// The choices with which the transfers were made.
    #[must_use]
    pub const fn choices(&self) -> &Choices {
        &self.choices
    }

    /// The chosen seed of each transfer.
    #[must_use]
    pub fn expose(&self) -> &[u128] {
        self.seeds.expose()
    }
}

/// H_slot(other): what is added to r_slot in transfer `index`, where `other` is the encoding of the other element. Takes the same
/// time for both slots.
fn mask_of_slot<G: Group>(session: &Session, index: usize, slot: u8, other: &[u8]) -> G::Element {
    let statement = session
        .transcript("theta/ot/base/slot/v1")
        .with("group", G::NAME.as_bytes())
        .with("index", &(index as u64).to_be_bytes())
        .with("slot", &[slot])
        .with("other", other)
        .finish();
    G::hash_to_group(b"THETA-V01-ot-base-slot", &[&statement])
}

/// The key of a slot, from all that was sent in the transfer and the shared element.
fn seed<G: Group>(session: &Session, index: usize, slot: u8, sent: [&[u8]; 3], shared: &[u8]) -> u128 {
    let [first, second, answer] = sent;
    let hash = session
        .transcript("theta/ot/base/seed/v1")
        .with("group", G::NAME.as_bytes())
        .with("index", &(index as u64).to_be_bytes())
        .with("slot", &[slot])
        .with("r0", first)
        .with("r1", second)
        .with("answer", answer)
        .with("shared", shared)
        .finish32();
    let hash = zeroize::Zeroizing::new(hash);
    words::blocks(hash.as_ref()).next().unwrap_or_default()
}

/// The most base OTs in one message: choices for a MAC key of 256 bits are the most that anybody needs.
const MOST: usize = 256;
