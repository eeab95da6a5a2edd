//! ECDSA among nodes that crash and lie: presignatures made in advance, signatures in one round of messages.
//!
//! A coordinator, which a hash of the request selects, takes a presignature out of its [`Stock`](crate::Stock) and sends its share to all; the other signers of that
//! presignature, on seeing its name, do the same; whoever has all k shares has the signature. Without a presignature in stock the coordinator names
//! 2t + 1 holders which make some, and sign the request, in one program of `theta-mpc`. Whatever fails is left behind by the next coordinator.
//! `spec/ecdsa.md` and `docs/adr/0051-ecdsa-in-the-service.md` have the details.
//!
//! The program follows Dalskov, Keller, Orlandi, Shrishak and Shulman (ESORICS 2020), on Shamir's sharing with active security; with a dishonest
//! [`Majority`], on MASCOT among exactly k holders; with passive [`Security`], on Shamir's sharing without checks, or on Semi-OT. Rotating coordinators are those of [`frost`](crate::frost).

mod choices;
mod collected;
mod curves;
mod elimination;
mod failures;
mod message;
mod protocol;
mod queue;
mod run;
mod setting;
mod stock;

use std::sync::Arc;

pub use theta_mpc::SetUpRoom;
pub use theta_mpc::ecdsa::SetUps;
use theta_names::Epoch;
use theta_rounds::PartyId;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey};
use theta_schemes::{Delivery, Statement};
use theta_sharing::Threshold;

use crate::AnyMachine;

pub use curves::AnyPresignature;
pub(crate) use elimination::Elimination;
pub use message::{EcdsaMessage, GAVE_UP, PREPARE, PROGRAM, SHARE, SIGNATURE, VIEW};
pub use protocol::Rehearsals;
pub use queue::Place;
pub(crate) use stock::Presignatures;
pub use stock::{Ask, Cause, Making, Quarantine, Supply, UnderWay, Used};

/// Against how many cheats of a program its honest holders are safe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Majority {
    /// Programs of 2t + 1 holders, of whom t may cheat: malicious Shamir; Shamir with passive [`Security`].
    #[default]
    Honest,
    /// Programs of exactly k holders, of whom all but one may cheat: MASCOT; Semi-OT with passive [`Security`]. Who cheats stops them, so a set of holders in which somebody did is left
    /// alone from then on.
    Dishonest,
}

impl Majority {
    /// What a key's delivery says of it.
    #[must_use]
    pub const fn of(delivery: Delivery) -> Self {
        if delivery.has_dishonest_majority() { Self::Dishonest } else { Self::Honest }
    }

    /// The number of holders in a program: 2t + 1, or k.
    #[must_use]
    pub fn members(self, threshold: Threshold) -> usize {
        match self {
            Self::Honest => 2 * usize::from(threshold.t()) + 1,
            Self::Dishonest => usize::from(threshold.k()),
        }
    }
}

/// What cheats may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    /// Whatever they like: the honest ones have right values, or stop.
    #[default]
    Active,
    /// Put together what they have seen, and no more. Who sends anything false may learn the key, and nobody notices.
    Passive,
}

impl Security {
    /// What a key's delivery says of it.
    #[must_use]
    pub const fn of(delivery: Delivery) -> Self {
        if delivery.is_passive() { Self::Passive } else { Self::Active }
    }
}

/// Options of an ECDSA signature, besides key and message.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of presignatures that a stock should have. With 0 nothing is made in advance, and the stock is not asked.
    pub level: usize,
    /// Today, or an earlier day, in days since 1970. Presignatures that this request makes count as made on this day.
    pub day: u32,
    /// The epoch of the share.
    pub epoch: Epoch,
    /// How many of the holders may cheat: an attribute of the key.
    pub majority: Majority,
    /// What they may do: an attribute of the key. Presignatures of another security are thrown away.
    pub security: Security,
    /// Sets of holders that make no programs with this one.
    pub quarantined: Vec<Quarantine>,
    /// What programs of a dishonest majority have left to later ones: those of the key's [`Stock`](crate::Stock). With none, each sets up its own.
    pub set_ups: Arc<SetUps>,
    /// What programs that make presignatures are counted by: that of the key's [`Stock`](crate::Stock).
    pub making: Making,
    /// How often programs that failed a check are done again to see who lied, when all their holders have thrown them away and shown what they know of
    /// them: that of the key's [`Stock`](crate::Stock). `None`: this party shows nothing, since a picture of its memory from before may be resumed, which does not
    /// know what has left since.
    pub rehearsals: Option<Rehearsals>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            level: 0,
            day: 0,
            epoch: Epoch::FIRST,
            majority: Majority::Honest,
            security: Security::Active,
            quarantined: Vec::new(),
            set_ups: Arc::default(),
            making: Making::default(),
            rehearsals: Some(Rehearsals::default()),
        }
    }
}

/// The most presignatures that one program makes. With a dishonest majority a round has 16,384 bytes for each, and one that signs makes fewer.
const fn most_at_once(majority: Majority) -> usize {
    match majority {
        Majority::Honest => 64,
        Majority::Dishonest => 8,
    }
}

/// How many presignatures one program makes for stocks of this level.
#[must_use]
pub const fn made_at_once(level: usize, majority: Majority) -> usize {
    let most = most_at_once(majority);
    if level < most { level } else { most }
}

/// Whether presignatures are made in advance for a key of ECDSA with this delivery and threshold.
///
/// With a dishonest majority they are where exactly k holders have shares, as each set of k would need a stock of its own, and where the security is
/// active: with passive security a lie in a transfer shows only in whether a signature is right, so each presignature in stock would be one more
/// guess.
#[must_use]
pub const fn keeps_stock(delivery: Delivery, threshold: Threshold) -> bool {
    stock_is_kept(Majority::of(delivery), Security::of(delivery), threshold)
}

/// The same of a key with these attributes.
const fn stock_is_kept(majority: Majority, security: Security, threshold: Threshold) -> bool {
    match (majority, security) {
        (Majority::Honest, _) => true,
        (Majority::Dishonest, Security::Active) => threshold.k() == threshold.n(),
        (Majority::Dishonest, Security::Passive) => false,
    }
}

/// The most presignatures that a stock of this level may have for others to fill theirs with it: there is room for as many as others lack that were
/// restarted, when this stock has just been filled itself. What is kept is bounded for each owner by itself.
#[must_use]
pub const fn most_kept(level: usize) -> usize {
    level.saturating_mul(3)
}

/// An agreement to make presignatures when nobody asks for a signature.
#[derive(Clone, Debug)]
pub struct Filling {
    /// The party that has begun it, and names the first program's holders.
    pub initiator: PartyId,
    /// What distinguishes it from all others, the same at all parties.
    pub session: [u8; 32],
    /// Parties that the initiator does without where it can: those that it does not reach, or that it doubts.
    pub avoided: Vec<PartyId>,
}

/// The machine of the party that holds `share`, to make presignatures for its stock and nothing else. Its outcome names the holders of the program;
/// none if it failed. `None` if `public` is no key of ECDSA or the share is none of it.
#[must_use]
pub fn fill(public: &AnyPublicKey, share: &AnyKeyShare, filling: &Filling, options: &Options) -> Option<AnyMachine> {
    let threshold = public.threshold();
    let fits = share.key_id() == public.key_id() && threshold.contains(share.index());
    let begins = threshold.contains(filling.initiator.share());
    (fits && begins).then(|| curves::filling(public, share, filling, options)).flatten()
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
