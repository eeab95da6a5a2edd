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
mod message;
mod protocol;
mod run;
mod setting;
mod stock;

use core::fmt;
use std::sync::Arc;

use theta_mpc::ecdsa::{Curve, Presignature};
use theta_names::Epoch;
use theta_rounds::{Driver, PartyId};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey};
use theta_schemes::signatures::ecdsa::{Ecdsa, EcdsaCurve, P256Sha256, Secp256k1Sha256};
use theta_schemes::{MessageDigest, Statement};

use crate::{AnyMachine, start::parties};

pub use message::{EcdsaMessage, PREPARE, PROGRAM, SHARE, SIGNATURE};
use protocol::RobustEcdsa;
use setting::Setting;
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

/// A curve whose presignatures a stock keeps.
trait StockCurve: EcdsaCurve<Group: Curve> {
    fn any(presignature: Presignature<Self::Group>) -> AnyPresignature;
    /// That of this curve; `None` for another's.
    fn of(presignature: AnyPresignature) -> Option<Presignature<Self::Group>>;
}

macro_rules! curves {
    ($($name:ident: $curve:ty),* $(,)?) => {
        /// A presignature on whichever curve. Dropping it wipes it.
        pub enum AnyPresignature {
            $(#[doc = concat!("On ", stringify!($name), ".")] $name(Presignature<<$curve as EcdsaCurve>::Group>),)*
        }

        impl AnyPresignature {
            /// Its public name: no other presignature has the same.
            #[must_use]
            pub const fn id(&self) -> [u8; 32] {
                match self { $(Self::$name(presignature) => presignature.id(),)* }
            }

            /// The party that says what it signs.
            #[must_use]
            pub const fn owner(&self) -> PartyId {
                match self { $(Self::$name(presignature) => PartyId::of_share(presignature.owner()),)* }
            }

            /// The parties that can sign with it.
            fn signers(&self) -> impl Iterator<Item = PartyId> {
                let signers = match self { $(Self::$name(presignature) => presignature.signers(),)* };
                signers.iter().copied().map(PartyId::of_share)
            }
        }

        $(impl StockCurve for $curve {
            fn any(presignature: Presignature<Self::Group>) -> AnyPresignature {
                AnyPresignature::$name(presignature)
            }

            fn of(presignature: AnyPresignature) -> Option<Presignature<Self::Group>> {
                if let AnyPresignature::$name(presignature) = presignature { Some(presignature) } else { None }
            }
        })*

        /// The machine of the party that holds `share`, to sign what the statement says under `public`. `None` if `public` is no key of ECDSA or the
        /// share is one of another suite. The caller makes sure that the share belongs to this very key and that the key answers the statement.
        pub(crate) fn machine(
            public: &AnyPublicKey,
            share: &AnyKeyShare,
            statement: &Statement<'_>,
            options: &Options,
        ) -> Option<AnyMachine> {
            None$(.or_else(|| machine_of::<$curve>(public, share, statement, options)))*
        }
    };
}

curves! {
    P256: P256Sha256,
    Secp256k1: Secp256k1Sha256,
}

impl fmt::Debug for AnyPresignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyPresignature(<redacted>)")
    }
}

fn machine_of<C: StockCurve>(
    public: &AnyPublicKey,
    share: &AnyKeyShare,
    statement: &Statement<'_>,
    options: &Options,
) -> Option<AnyMachine> {
    let public: Arc<_> = Arc::clone(public.get::<Ecdsa<C>>()?);
    let key = Arc::clone(share.get::<Ecdsa<C>>()?);
    let digest = match statement {
        Statement::SignDigest(digest) => digest.to_vec(),
        _ => {
            let mut hasher = MessageDigest::Sha256.hasher();
            hasher.update(statement.bytes());
            hasher.finish()
        }
    };
    let setting = Setting::<C>::new((public, key), statement, digest.try_into().ok()?, options);
    Some(driven(setting))
}

/// The machine of a setting.
fn driven<C: StockCurve>(setting: Setting<C>) -> AnyMachine {
    let (local, threshold) = (setting.local, setting.threshold);
    Box::new(Driver::new(local, parties(threshold), RobustEcdsa::<C>::new(setting)))
}
