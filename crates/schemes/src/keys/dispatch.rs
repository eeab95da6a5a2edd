//! From a key of any suite to the generic code of its scheme.

/// Runs generic code on a key of any suite.
///
/// `with_key!(any_public_key, |public: S| body)` binds `public` to a `&Arc<<S as KeyScheme>::PublicKey>` and `S` to the
/// scheme's type. The first argument is a `&AnyPublicKey`.
///
/// `with_key!(any_public_key, |public: S| if class { body } else { other })` runs `body` for the suites of a class only:
/// `one_round` (`S: ThresholdScheme`), `frost` (two rounds), `cipher` (`S: ThresholdCipher`), `signature`
/// (`S: SignatureScheme`), `coin` (`S: ThresholdCoin`) or `curve` (`S: CurveScheme`, all but RSA).
///
/// With `|public: S => any_share|`, `any_share` is bound to the constructor of `AnyKeyShare` as well.
///
/// `with_key!((any_public_key, any_key_share), |public: S, share| body, else mismatch)` binds `share` to a
/// `&Arc<<S as KeyScheme>::KeyShare>` as well; `mismatch` is evaluated if the two are of different suites. The body may
/// be an `if class`, too.
#[macro_export]
macro_rules! with_key {
    (($public:expr, $share:expr), |$pk:ident : $scheme:ident, $key:ident| if $class:ident $yes:block else $no:block,
        else $mismatch:expr) => {
        $crate::for_each_suite!(match_both! { ($public) ($share) $pk $scheme $key $class $yes $no ($mismatch) })
    };
    (($public:expr, $share:expr), |$pk:ident : $scheme:ident, $key:ident| $body:expr, else $mismatch:expr) => {
        $crate::for_each_suite!(match_both! { ($public) ($share) $pk $scheme $key any { $body } {} ($mismatch) })
    };
    ($public:expr, |$pk:ident : $scheme:ident => $any_share:ident| if $class:ident $yes:block else $no:block) => {
        $crate::for_each_suite!(match_public! { ($public) $pk $scheme $any_share $class $yes $no })
    };
    ($public:expr, |$pk:ident : $scheme:ident => $any_share:ident| $body:expr) => {
        $crate::for_each_suite!(match_public! { ($public) $pk $scheme $any_share any { $body } {} })
    };
    ($public:expr, |$pk:ident : $scheme:ident| if $class:ident $yes:block else $no:block) => {
        $crate::for_each_suite!(match_public! { ($public) $pk $scheme any_share $class $yes $no })
    };
    ($public:expr, |$pk:ident : $scheme:ident| $body:expr) => {
        $crate::for_each_suite!(match_public! { ($public) $pk $scheme any_share any { $body } {} })
    };
}

/// Runs generic code for a suite that has no key yet: `with_suite!(suite, |S, any_public, any_share| body)` binds `S` to
/// the scheme's type and the other two to the constructors of `AnyPublicKey` and `AnyKeyShare`. The body may be an
/// `if class`, as in [`with_key!`](crate::with_key).
macro_rules! with_suite {
    ($suite:expr, |$scheme:ident, $any_public:ident, $any_share:ident| if $class:ident $yes:block else $no:block) => {
        $crate::for_each_suite!(match_suite! { ($suite) $scheme $any_public $any_share $class $yes $no })
    };
    ($suite:expr, |$scheme:ident, $any_public:ident, $any_share:ident| $body:expr) => {
        $crate::for_each_suite!(match_suite! { ($suite) $scheme $any_public $any_share any { $body } {} })
    };
}

/// The first block if a family of suites is in a class, else the second.
#[doc(hidden)]
#[macro_export]
macro_rules! in_class {
    (any $family:ident $yes:block $no:block) => {
        $yes
    };
    (one_round frost $yes:block $no:block) => {
        $no
    };
    (one_round $family:ident $yes:block $no:block) => {
        $yes
    };
    (frost frost $yes:block $no:block) => {
        $yes
    };
    (cipher cipher $yes:block $no:block) => {
        $yes
    };
    (signature signature $yes:block $no:block) => {
        $yes
    };
    (signature rsa_signature $yes:block $no:block) => {
        $yes
    };
    (signature frost $yes:block $no:block) => {
        $yes
    };
    (coin coin $yes:block $no:block) => {
        $yes
    };
    (coin rsa_coin $yes:block $no:block) => {
        $yes
    };
    (curve rsa_signature $yes:block $no:block) => {
        $no
    };
    (curve rsa_coin $yes:block $no:block) => {
        $no
    };
    (curve $family:ident $yes:block $no:block) => {
        $yes
    };
    ($class:ident $family:ident $yes:block $no:block) => {
        $no
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! match_public {
    (($public:expr) $pk:ident $scheme:ident $any_share:ident $class:ident $yes:block $no:block
        $([$family:ident] $variant:ident = $type:ty, $name:literal, $literature:literal, $group:literal, $purpose:ident,
            $doc:literal;)*) => {
        match $public {
            $($crate::keys::AnyPublicKey::$variant($pk) => {
                #[allow(dead_code, reason = "not every use needs the type's name")]
                type $scheme = $type;
                let $any_share = $crate::keys::AnyKeyShare::$variant;
                let _ = ($pk, $any_share);
                $crate::in_class!($class $family $yes $no)
            })*
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! match_both {
    (($public:expr) ($share:expr) $pk:ident $scheme:ident $key:ident $class:ident $yes:block $no:block ($mismatch:expr)
        $([$family:ident] $variant:ident = $type:ty, $name:literal, $literature:literal, $group:literal, $purpose:ident,
            $doc:literal;)*) => {
        match ($public, $share) {
            $(($crate::keys::AnyPublicKey::$variant($pk), $crate::keys::AnyKeyShare::$variant($key)) => {
                #[allow(dead_code, reason = "not every use needs the type's name")]
                type $scheme = $type;
                let _ = ($pk, $key);
                $crate::in_class!($class $family $yes $no)
            })*
            #[allow(unreachable_patterns, reason = "a build with a single suite has no mismatch")]
            _ => $mismatch,
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! match_suite {
    (($suite:expr) $scheme:ident $any_public:ident $any_share:ident $class:ident $yes:block $no:block
        $([$family:ident] $variant:ident = $type:ty, $name:literal, $literature:literal, $group:literal, $purpose:ident,
            $doc:literal;)*) => {
        match $suite {
            $($crate::Suite::$variant => {
                #[allow(dead_code, reason = "not every use needs the type's name")]
                type $scheme = $type;
                let ($any_public, $any_share) =
                    ($crate::keys::AnyPublicKey::$variant, $crate::keys::AnyKeyShare::$variant);
                let _ = ($any_public, $any_share);
                $crate::in_class!($class $family $yes $no)
            })*
        }
    };
}

/// As [`with_key!`](crate::with_key) with `if curve`, for a suite that has no key yet and for other crates:
/// `with_curve_suite!(suite, |S, any_public, any_share| { body } else { other })` binds `S` to the scheme's type and the other
/// two to the constructors of `AnyPublicKey` and `AnyKeyShare`; `other` is for RSA.
#[macro_export]
macro_rules! with_curve_suite {
    ($suite:expr, |$scheme:ident, $any_public:ident, $any_share:ident| $yes:block else $no:block) => {
        $crate::for_each_suite!(match_curve_suite! { ($suite) $scheme $any_public $any_share $yes $no })
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! match_curve_suite {
    (($suite:expr) $scheme:ident $any_public:ident $any_share:ident $yes:block $no:block
        $([$family:ident] $variant:ident = $type:ty, $name:literal, $literature:literal, $group:literal, $purpose:ident,
            $doc:literal;)*) => {
        match $suite {
            $($crate::Suite::$variant => {
                #[allow(dead_code, reason = "not every use needs the type's name")]
                type $scheme = $type;
                let ($any_public, $any_share) =
                    ($crate::keys::AnyPublicKey::$variant, $crate::keys::AnyKeyShare::$variant);
                let _ = ($any_public, $any_share);
                $crate::in_class!(curve $family $yes $no)
            })*
            #[allow(unreachable_patterns, reason = "other crates do not know that these are all")]
            _ => $no,
        }
    };
}

pub(crate) use with_suite;
