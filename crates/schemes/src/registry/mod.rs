//! Every suite as one object: code that is generic over the scheme is instantiated here, once for each, and in no crate above.
//!
//! A scheme declares two associated types ([`KeyScheme::Kind`]: the kind of its keys;
//! [`KeyScheme::Family`]: their operations) and has a line in the table of suites. Everything else
//! follows.

mod any;
mod api;
mod delivery;
mod encoded;
mod family;
mod key;
mod kind;
mod one_round;
mod table;
mod threshold;
mod with_scheme;

use core::marker::PhantomData;
use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::Secret;
use theta_groups::modular::SearchProgress;
use theta_sharing::{ProofOfPossession, Threshold};

use crate::Suite;
use crate::keys::{DealError, KeyKind, KeyScheme, PartsError, PublicParts};
use crate::signatures::sh00::{ModulusSize, RsaDealError, RsaPrimes};

pub use any::{AnyKeyShare, AnyPublicKey, deal_any, deal_rsa, deal_rsa_primes, import_any};
pub use api::SchemeError;
pub use delivery::UnsupportedDelivery;
pub use family::{Family, MadeAhead};
pub(crate) use key::{KeyObject, Keyed};
use kind::Dealing;
pub use kind::Kind;
pub(crate) use one_round::OneRoundKey;
pub use threshold::UnfitThreshold;

/// A key fresh from the dealer: its public material, and the shares of parties 1 to n.
pub(crate) type DealtKey = (AnyPublicKey, Vec<AnyKeyShare>);

/// A scheme that can have a line in the table of suites: its kind makes its keys, and its family uses them.
///
/// [`KeyScheme`] itself does not ask for this: kinds and families make and use keys of any suite, which are objects of schemes, so that
/// every scheme would stand on every other.
pub trait Registered: KeyScheme<Kind: Kind<Self>, Family: Family<Self>> {}

impl<S: KeyScheme<Kind: Kind<S>, Family: Family<S>>> Registered for S {}

/// The key and its shares as those of any suite.
fn erased<S: Registered>((public, shares): Dealing<S>) -> DealtKey {
    let shares = shares.into_iter().map(|share| AnyKeyShare::of::<S>(Arc::new(share))).collect();
    (AnyPublicKey::of::<S>(public), shares)
}

/// Where the primes of a new RSA key come from.
pub enum Primes<'a> {
    /// A search for new ones; the function is called with its progress.
    New(ModulusSize, &'a mut dyn FnMut(SearchProgress)),
    /// Primes that were found before.
    Found(&'a RsaPrimes),
}

/// The operations of a suite that need no key.
pub(crate) trait SuiteOps: Sync {
    /// The kind of its keys.
    fn key_kind(&self) -> KeyKind;
    /// Length in bytes of a secret key in its standard encoding; `None` for RSA, whose keys differ in size.
    fn secret_key_len(&self) -> Option<usize>;
    /// A new key; RSA keys get [`ModulusSize::DEFAULT`].
    fn deal(&self, threshold: Threshold, rng: &mut dyn CryptoRng) -> DealtKey;
    /// A new RSA key.
    fn deal_rsa(
        &self,
        primes: Primes<'_>,
        threshold: Threshold,
        rng: &mut dyn CryptoRng,
    ) -> Result<DealtKey, RsaDealError>;
    /// The shares of an existing secret key.
    fn import(
        &self,
        secret: &Secret<Vec<u8>>,
        threshold: Threshold,
        rng: &mut dyn CryptoRng,
    ) -> Result<DealtKey, DealError>;
    /// The key from its parts, fully checked.
    fn key(&self, parts: &PublicParts) -> Result<AnyPublicKey, PartsError>;
    /// The name of the group that public keys are elements of; `None` for RSA.
    fn key_group(&self) -> Option<&'static str>;
    /// The proof of possession of the suite's keys, if they have one.
    fn proof_of_possession(&self) -> Option<&'static dyn ProofOfPossession>;
    /// Whether one holder can tell the others what it combined.
    fn has_combined_value(&self) -> bool;
    /// Whether n must be 2 k - 1 at least, and k 2.
    fn takes_honest_majority(&self) -> bool;
    /// The suite's code in headers of ciphertexts, if its keys are for encryption.
    fn header_code(&self) -> Option<u8>;
    /// What holders make before a signature is asked for.
    fn made_ahead(&self) -> Option<MadeAhead>;
}

#[doc(hidden)]
#[macro_export]
macro_rules! define_operations {
    ($([$class:ident] $variant:ident = $type:ty, $name:literal, $scheme:literal, $group:literal, $purpose:ident,
        $doc:literal;)*) => {
        impl Suite {
            /// The suite's operations, as one object.
            pub(crate) fn ops(self) -> &'static dyn SuiteOps {
                match self { $(Self::$variant => &Of::<$type>::OPS,)* }
            }
        }
    };
}

crate::for_each_suite!(define_operations! {});

/// The operations of a scheme.
struct Of<S>(PhantomData<fn() -> S>);

impl<S> Of<S> {
    const OPS: Self = Self(PhantomData);
}

impl<S: Registered> SuiteOps for Of<S> {
    fn key_kind(&self) -> KeyKind {
        S::Kind::KIND
    }

    fn secret_key_len(&self) -> Option<usize> {
        S::Kind::secret_key_len()
    }

    fn deal(&self, threshold: Threshold, rng: &mut dyn CryptoRng) -> DealtKey {
        erased::<S>(S::Kind::deal(threshold, rng))
    }

    fn deal_rsa(
        &self,
        primes: Primes<'_>,
        threshold: Threshold,
        rng: &mut dyn CryptoRng,
    ) -> Result<DealtKey, RsaDealError> {
        S::Kind::deal_rsa(primes, threshold, rng).map(erased::<S>)
    }

    fn import(
        &self,
        secret: &Secret<Vec<u8>>,
        threshold: Threshold,
        rng: &mut dyn CryptoRng,
    ) -> Result<DealtKey, DealError> {
        S::Kind::import(secret, threshold, rng).map(erased::<S>)
    }

    fn key(&self, parts: &PublicParts) -> Result<AnyPublicKey, PartsError> {
        Ok(AnyPublicKey::of::<S>(S::Kind::key(parts)?.into()))
    }

    fn key_group(&self) -> Option<&'static str> {
        S::Kind::key_group()
    }

    fn proof_of_possession(&self) -> Option<&'static dyn ProofOfPossession> {
        S::Kind::proof_of_possession()
    }

    fn has_combined_value(&self) -> bool {
        S::Family::HAS_COMBINED_VALUE
    }

    fn takes_honest_majority(&self) -> bool {
        S::HONEST_MAJORITY
    }

    fn header_code(&self) -> Option<u8> {
        S::Family::HEADER_CODE
    }

    fn made_ahead(&self) -> Option<MadeAhead> {
        S::Family::MADE_AHEAD
    }
}
