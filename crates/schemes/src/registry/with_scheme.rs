//! From a suite to the Rust type of its scheme, for benchmarks and tests that are generic over the scheme.

/// Runs generic code for a suite: `with_scheme!(suite, |S| if class { body } else { other })` binds `S` to the scheme's type and
/// runs `body` for the suites of a class: `one_round` (`S: ThresholdScheme`), `frost` (`S` is a `Frost<C>`), `ecdsa` (`S` is an `Ecdsa<C>`),
/// `curve` (`S: CurveScheme`, all but RSA) or `any`. Every use instantiates its body once for each suite; code that serves requests uses
/// [`AnyPublicKey`](crate::keys::AnyPublicKey) instead.
#[macro_export]
macro_rules! with_scheme {
    ($suite:expr, |$scheme:ident| if $class:ident $yes:block else $no:block) => {
        $crate::for_each_suite!(match_scheme! { ($suite) $scheme $class $yes $no })
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! match_scheme {
    (($suite:expr) $scheme:ident $class:ident $yes:block $no:block
        $([$of:ident] $variant:ident = $type:ty, $name:literal, $literature:literal, $group:literal, $purpose:ident,
            $doc:literal;)*) => {
        match $suite {
            $($crate::Suite::$variant => {
                #[allow(dead_code, reason = "not every use needs the type's name")]
                type $scheme = $type;
                $crate::in_class!($class $of $yes $no)
            })*
            #[allow(unreachable_patterns, reason = "other crates do not know that these are all")]
            _ => $no,
        }
    };
}

/// The first block if a suite's class is in another, else the second.
#[doc(hidden)]
#[macro_export]
macro_rules! in_class {
    (any $of:ident $yes:block $no:block) => {
        $yes
    };
    (one_round one_round $yes:block $no:block) => {
        $yes
    };
    (one_round rsa $yes:block $no:block) => {
        $yes
    };
    (frost frost $yes:block $no:block) => {
        $yes
    };
    (ecdsa ecdsa $yes:block $no:block) => {
        $yes
    };
    (curve one_round $yes:block $no:block) => {
        $yes
    };
    (curve frost $yes:block $no:block) => {
        $yes
    };
    (curve ecdsa $yes:block $no:block) => {
        $yes
    };
    ($class:ident $of:ident $yes:block $no:block) => {
        $no
    };
}
