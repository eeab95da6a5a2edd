//! From a key of any suite to the generic code of its scheme.

/// Runs generic code on a key of any suite.
///
/// `with_key!(any_public_key, |public: S| body)` binds `public` to a `&Arc<<S as ThresholdScheme>::PublicKey>` and `S`
/// to the scheme's type. The first argument is a `&AnyPublicKey`.
///
/// `with_key!((any_public_key, any_key_share), |public: S, share| body, else mismatch)` binds `share` to a
/// `&Arc<<S as ThresholdScheme>::KeyShare>` as well; `mismatch` is evaluated if the two are of different suites.
#[macro_export]
macro_rules! with_key {
    (($public:expr, $share:expr), |$pk:ident : $scheme:ident, $key:ident| $body:expr, else $mismatch:expr) => {
        $crate::with_key!(@both $public, $share, $pk, $scheme, $key, $body, $mismatch;
            Sg02Ristretto255 = $crate::ciphers::sg02::Sg02<$crate::groups::Ristretto255>,
            Sg02Bls12381 = $crate::ciphers::sg02::Sg02<$crate::groups::bls12_381::G1>,
            Bls04MinPk = $crate::signatures::bls04::Bls04<$crate::signatures::bls04::MinPk>,
            Bls04MinSig = $crate::signatures::bls04::Bls04<$crate::signatures::bls04::MinSig>,
            Cks05Ristretto255 = $crate::coins::cks05::Cks05<$crate::groups::Ristretto255>,
            Cks05Bls12381 = $crate::coins::cks05::Cks05<$crate::groups::bls12_381::G1>)
    };
    ($public:expr, |$pk:ident : $scheme:ident| $body:expr) => {
        $crate::with_key!(@one $public, $pk, $scheme, $body;
            Sg02Ristretto255 = $crate::ciphers::sg02::Sg02<$crate::groups::Ristretto255>,
            Sg02Bls12381 = $crate::ciphers::sg02::Sg02<$crate::groups::bls12_381::G1>,
            Bls04MinPk = $crate::signatures::bls04::Bls04<$crate::signatures::bls04::MinPk>,
            Bls04MinSig = $crate::signatures::bls04::Bls04<$crate::signatures::bls04::MinSig>,
            Cks05Ristretto255 = $crate::coins::cks05::Cks05<$crate::groups::Ristretto255>,
            Cks05Bls12381 = $crate::coins::cks05::Cks05<$crate::groups::bls12_381::G1>)
    };
    (@both $public:expr, $share:expr, $pk:ident, $scheme:ident, $key:ident, $body:expr, $mismatch:expr;
        $($variant:ident = $type:ty),*) => {
        match ($public, $share) {
            $(($crate::keys::AnyPublicKey::$variant($pk), $crate::keys::AnyKeyShare::$variant($key)) => {
                #[allow(dead_code, reason = "not every use needs the type's name")]
                type $scheme = $type;
                $body
            })*
            #[allow(unreachable_patterns, reason = "a build with a single suite has no mismatch")]
            _ => $mismatch,
        }
    };
    (@one $public:expr, $pk:ident, $scheme:ident, $body:expr; $($variant:ident = $type:ty),*) => {
        match $public {
            $($crate::keys::AnyPublicKey::$variant($pk) => {
                #[allow(dead_code, reason = "not every use needs the type's name")]
                type $scheme = $type;
                $body
            })*
        }
    };
}

/// Runs generic code for a suite that has no key yet: `with_suite!(suite, |S, any_public, any_share| body)` binds `S` to the
/// scheme's type and the other two to the constructors of `AnyPublicKey` and `AnyKeyShare`.
macro_rules! with_suite {
    ($suite:expr, |$scheme:ident, $any_public:ident, $any_share:ident| $body:expr) => {
        with_suite!(@arms $suite, $scheme, $any_public, $any_share, $body;
            Sg02Ristretto255 = $crate::ciphers::sg02::Sg02<theta_groups::Ristretto255>,
            Sg02Bls12381 = $crate::ciphers::sg02::Sg02<theta_groups::bls12_381::G1>,
            Bls04MinPk = $crate::signatures::bls04::Bls04<$crate::signatures::bls04::MinPk>,
            Bls04MinSig = $crate::signatures::bls04::Bls04<$crate::signatures::bls04::MinSig>,
            Cks05Ristretto255 = $crate::coins::cks05::Cks05<theta_groups::Ristretto255>,
            Cks05Bls12381 = $crate::coins::cks05::Cks05<theta_groups::bls12_381::G1>)
    };
    (@arms $suite:expr, $scheme:ident, $any_public:ident, $any_share:ident, $body:expr;
        $($variant:ident = $type:ty),*) => {
        match $suite {
            $($crate::Suite::$variant => {
                type $scheme = $type;
                let ($any_public, $any_share) =
                    ($crate::keys::AnyPublicKey::$variant, $crate::keys::AnyKeyShare::$variant);
                $body
            })*
        }
    };
}

pub(super) use with_suite;
