//! ECDSA among nodes that crash and lie: presignatures made in advance, signatures in one round of messages.
//!
//! A coordinator, which a hash of the request selects, takes a presignature out of its [`Stock`] and sends its share to all; the other signers of that
//! presignature, on seeing its name, do the same; whoever has all k shares has the signature. Without a presignature in stock the coordinator names
//! 2t + 1 holders which make some, and sign the request, in one program of `theta-mpc`. Whatever fails is left behind by the next coordinator.
//! `spec/ecdsa.md` and `docs/adr/0051-ecdsa-in-the-service.md` have the details.
//!
//! The program follows Dalskov, Keller, Orlandi, Shrishak and Shulman (ESORICS 2020), on Shamir's sharing with active security. Rotating
//! coordinators are those of [`frost`](crate::frost).

mod collected;
mod curves;
mod message;
mod protocol;
mod run;
mod setting;
mod stock;

use theta_names::Epoch;
use theta_schemes::Statement;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey};

use crate::AnyMachine;

pub use curves::AnyPresignature;
pub use message::{EcdsaMessage, PREPARE, PROGRAM, SHARE, SIGNATURE};
pub use stock::{Ask, Served, Stock, Supply, Used};

/// Options of an ECDSA signature, besides key and message.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of presignatures below which more are made; twice as many are kept at most. With 0 nothing is made in advance, and the stock is not asked.
    pub level: usize,
    /// Today, or an earlier day, in days since 1970. Presignatures that this request makes count as made on this day.
    pub day: u32,
    /// The epoch of the share.
    pub epoch: Epoch,
}

impl Default for Options {
    fn default() -> Self {
        Self { level: 0, day: 0, epoch: Epoch::FIRST }
    }
}

/// The machine of the party that holds `share`, to sign what the statement says under `public`. `None` if `public` is no key of ECDSA or the
/// share is one of another suite. The caller makes sure that the share belongs to this very key and that the key answers the statement.
pub(crate) fn machine(
    public: &AnyPublicKey,
    share: &AnyKeyShare,
    statement: &Statement<'_>,
    options: &Options,
) -> Option<AnyMachine> {
    curves::machine(public, share, statement, options)
}
