//! The curves, and the machine of a key on any of them.

use core::fmt;
use std::sync::Arc;

use theta_mpc::ecdsa::{Curve, Presignature};
use theta_rounds::{Driver, PartyId};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey};
use theta_schemes::signatures::ecdsa::{Ecdsa, EcdsaCurve, P256Sha256, Secp256k1Sha256};
use theta_schemes::{MessageDigest, Statement};

use super::protocol::RobustEcdsa;
use super::setting::Setting;
use super::{Filling, Options};
use crate::{AnyMachine, parties::parties};

/// A curve whose presignatures a stock keeps.
pub(super) trait StockCurve: EcdsaCurve<Group: Curve> {
    fn any(presignature: Presignature<Self::Group>) -> AnyPresignature;
    /// That of this curve; `None` for another's.
    fn of(presignature: AnyPresignature) -> Option<Presignature<Self::Group>>;
}

macro_rules! curves {
    ($($name:ident: $curve:ty),* $(,)?) => {
        /// A presignature on whichever curve. Dropping it wipes it.
        pub enum AnyPresignature {
            $(#[doc = concat!("On ", stringify!($name), ".")] $name(Box<Presignature<<$curve as EcdsaCurve>::Group>>),)*
        }

        impl AnyPresignature {
            /// Its public name: no other presignature has the same.
            #[must_use]
            pub fn id(&self) -> [u8; 32] {
                match self { $(Self::$name(presignature) => presignature.id(),)* }
            }

            /// The party that says what it signs.
            #[must_use]
            pub fn owner(&self) -> PartyId {
                match self { $(Self::$name(presignature) => PartyId::of_share(presignature.owner()),)* }
            }

            /// The parties that can sign with it.
            pub(super) fn signers(&self) -> impl Iterator<Item = PartyId> {
                let signers = match self { $(Self::$name(presignature) => presignature.signers(),)* };
                signers.iter().copied().map(PartyId::of_share)
            }
        }

        $(impl StockCurve for $curve {
            fn any(presignature: Presignature<Self::Group>) -> AnyPresignature {
                AnyPresignature::$name(Box::new(presignature))
            }

            fn of(presignature: AnyPresignature) -> Option<Presignature<Self::Group>> {
                if let AnyPresignature::$name(presignature) = presignature { Some(*presignature) } else { None }
            }
        })*

        /// The machine of the party that holds `share`, to sign what the statement says under `public`. `None` if `public` is no key of ECDSA or the
        /// share is one of another suite. The caller makes sure that the share belongs to this very key and that the key answers the statement.
        pub(super) fn machine(
            public: &AnyPublicKey,
            share: &AnyKeyShare,
            statement: &Statement<'_>,
            options: &Options,
        ) -> Option<AnyMachine> {
            None$(.or_else(|| machine_of::<$curve>(public, share, statement, options)))*
        }

        /// The machine that makes presignatures; `None` as with [`machine`].
        pub(super) fn filling(
            public: &AnyPublicKey,
            share: &AnyKeyShare,
            filling: &Filling,
            options: &Options,
        ) -> Option<AnyMachine> {
            None$(.or_else(|| filling_of::<$curve>(public, share, filling, options)))*
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
        _ => MessageDigest::Sha256.of(statement.bytes()),
    };
    let setting = Setting::<C>::new(public, key, statement, digest.try_into().ok()?, options);
    Some(driven(setting))
}

fn filling_of<C: StockCurve>(
    public: &AnyPublicKey,
    share: &AnyKeyShare,
    filling: &Filling,
    options: &Options,
) -> Option<AnyMachine> {
    let public: Arc<_> = Arc::clone(public.get::<Ecdsa<C>>()?);
    let key = Arc::clone(share.get::<Ecdsa<C>>()?);
    Some(driven(Setting::<C>::filling(public, key, filling.clone(), options)))
}

/// The machine of a setting.
fn driven<C: StockCurve>(setting: Setting<C>) -> AnyMachine {
    let (local, threshold) = (setting.local, setting.threshold);
    Box::new(Driver::new(local, parties(threshold), RobustEcdsa::<C>::new(setting)))
}
