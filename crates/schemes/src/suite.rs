//! The names of the suites and what they say; which scheme is behind a name is known to [`registry`](crate::registry) alone.

use core::{fmt, str::FromStr};

use theta_names::{Purpose, SuiteName};

#[doc(hidden)]
#[macro_export]
macro_rules! define_suite {
    ($([$class:ident] $variant:ident = $type:ty, $name:literal, $scheme:literal, $group:literal, $purpose:ident,
        $doc:literal;)*) => {
        /// A suite: a scheme in one form on one group. A key's suite never changes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Suite {
            $(#[doc = $doc] $variant,)*
        }

        impl Suite {
            const COUNT: usize = [$($name),*].len();
            /// Every suite of this build.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$variant),*];

            /// The name in files, on the command line and in every hash.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The scheme's short name in the literature.
            #[must_use]
            pub const fn scheme(self) -> &'static str {
                match self { $(Self::$variant => $scheme,)* }
            }

            /// The group's name.
            #[must_use]
            pub const fn group(self) -> &'static str {
                match self { $(Self::$variant => $group,)* }
            }

            /// What keys of this suite are for.
            #[must_use]
            pub const fn purpose(self) -> Purpose {
                match self { $(Self::$variant => Purpose::$purpose,)* }
            }

            /// One sentence for people.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self { $(Self::$variant => $doc,)* }
            }
        }
    };
}
crate::for_each_suite!(define_suite! {});

impl Suite {
    /// One by one: to join an array of names whose lengths the compiler knows took it 30 s in `theta-names`.
    fn list() -> String {
        let mut list = String::new();
        for suite in Self::ALL {
            list.push_str(if list.is_empty() { "" } else { ", " });
            list.push_str(suite.name());
        }
        list
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A suite name that this build does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown suite {0:?}; the known ones are {list}", list = Suite::list())]
pub struct UnknownSuite(pub String);

impl FromStr for Suite {
    type Err = UnknownSuite;

    fn from_str(name: &str) -> Result<Self, UnknownSuite> {
        Self::ALL.into_iter().find(|suite| suite.name() == name).ok_or_else(|| UnknownSuite(name.to_owned()))
    }
}

impl From<Suite> for SuiteName {
    fn from(suite: Suite) -> Self {
        Self::known(suite.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_has_a_name_that_requests_may_have() {
        for suite in Suite::ALL {
            assert_eq!(suite.name().parse(), Ok(SuiteName::from(suite)));
        }
    }
}
