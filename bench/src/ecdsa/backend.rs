//! The black boxes and curves that there are, and among how many parties.

use std::future::Future;

use clap::ValueEnum;
use theta::exit::Failure;
use theta_groups::{Group, P256, Secp256k1};
use theta_mpc::{
    Active, BlackBox, MOST_PARTIES, Mascot, Party, Passive, Rep3, Security, SemiOt, Shamir, Stop, ecdsa::Curve,
};
use theta_sharing::Threshold;

/// A black box, by the name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Backend {
    /// Shamir's sharing, passive security, t of 2t + 1 corrupt
    Shamir,
    /// Shamir's sharing, active security, t of 2t + 1 corrupt
    MaliciousShamir,
    /// Replicated sharing, passive security, one of three corrupt
    Rep3,
    /// Replicated sharing, active security, one of three corrupt
    MaliciousRep3,
    /// Oblivious transfer, passive security, all but one corrupt
    SemiOt,
    /// Oblivious transfer, active security, all but one corrupt
    Mascot,
}

/// A curve, by the name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum CurveName {
    /// NIST's P-256
    #[value(name = "p256")]
    P256,
    /// Bitcoin's and Ethereum's
    Secp256k1,
}

impl Backend {
    /// How many of so many parties may not be corrupt, where this black box serves so many.
    pub(super) fn threshold(self, nodes: u16) -> Option<Threshold> {
        let is_small = usize::from(nodes) <= MOST_PARTIES;
        let corrupt = match self {
            Self::Shamir | Self::MaliciousShamir if nodes >= 3 && nodes % 2 == 1 && is_small => nodes / 2,
            Self::Rep3 | Self::MaliciousRep3 if nodes == 3 => 1,
            Self::SemiOt | Self::Mascot if nodes >= 2 && is_small => nodes - 1,
            _ => return None,
        };
        Threshold::new(corrupt + 1, nodes).ok()
    }
}

/// A black box that is measured.
pub(super) trait Measured: BlackBox<Group: Curve> {
    /// The most tuples for which one program may send enough.
    const BATCH: usize;
    /// Sets it up.
    fn make(party: &Party) -> impl Future<Output = Result<Self, Stop>> + Send;
    /// One that opens, without a set-up.
    fn make_for_openings(party: &Party) -> Result<Self, Stop>;
}

macro_rules! measured {
    ($($name:ident<G $(, $security:ident)?>: $batch:literal),* $(,)?) => { $(
        impl<G: Curve $(, $security: Security)?> Measured for $name<G $(, $security)?> {
            const BATCH: usize = $batch;
            fn make(party: &Party) -> impl Future<Output = Result<Self, Stop>> + Send {
                Self::new(party)
            }
            fn make_for_openings(party: &Party) -> Result<Self, Stop> {
                Self::openings_only(party)
            }
        }
    )* };
}
measured!(Shamir<G, M>: 5_000, Rep3<G, M>: 5_000, SemiOt<G>: 100, Mascot<G>: 20);

/// What can be done with any black box.
pub(super) trait Visitor {
    /// What comes of it.
    type Output;
    /// Does it.
    fn visit<B: Measured>(self) -> Result<Self::Output, Failure>;
}

/// Does it with this one, on this curve.
pub(super) fn with<V: Visitor>(backend: Backend, curve: CurveName, visitor: V) -> Result<V::Output, Failure> {
    match curve {
        CurveName::P256 => with_curve::<P256, V>(backend, visitor),
        CurveName::Secp256k1 => with_curve::<Secp256k1, V>(backend, visitor),
    }
}

fn with_curve<G: Curve, V: Visitor>(backend: Backend, visitor: V) -> Result<V::Output, Failure> {
    match backend {
        Backend::Shamir => visitor.visit::<Shamir<G, Passive>>(),
        Backend::MaliciousShamir => visitor.visit::<Shamir<G, Active>>(),
        Backend::Rep3 => visitor.visit::<Rep3<G, Passive>>(),
        Backend::MaliciousRep3 => visitor.visit::<Rep3<G, Active>>(),
        Backend::SemiOt => visitor.visit::<SemiOt<G>>(),
        Backend::Mascot => visitor.visit::<Mascot<G>>(),
    }
}

/// What a black box and its group are called, and whether it has active security.
pub(super) struct Names;

impl Visitor for Names {
    type Output = (&'static str, &'static str, bool);

    fn visit<B: Measured>(self) -> Result<Self::Output, Failure> {
        Ok((B::NAME, B::Group::NAME, B::ACTIVE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_black_box_serves_the_numbers_of_parties_that_it_can() {
        let served = |backend: Backend| -> Vec<(u16, u16)> {
            (0..=16).filter_map(|nodes| backend.threshold(nodes)).map(|found| (found.t(), found.n())).collect()
        };
        for shamir in [Backend::Shamir, Backend::MaliciousShamir] {
            assert_eq!(served(shamir), [(1, 3), (2, 5), (3, 7), (4, 9), (5, 11), (6, 13), (7, 15)]);
        }
        for rep3 in [Backend::Rep3, Backend::MaliciousRep3] {
            assert_eq!(served(rep3), [(1, 3)]);
        }
        for pairs in [Backend::SemiOt, Backend::Mascot] {
            assert_eq!(served(pairs), (2..=15).map(|nodes| (nodes - 1, nodes)).collect::<Vec<_>>());
        }
    }
}
