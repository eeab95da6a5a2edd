//! The black boxes and curves that there are, and among how many parties.

use std::future::Future;

use clap::ValueEnum;
use theta::exit::Failure;
use theta_groups::{Group, P256, Secp256k1};
use theta_mpc::{
    Active, BlackBox, MOST_PARTIES, Mascot, MascotMinus, MascotSetUps, Party, Passive, Rep3, Security, SemiOt,
    SemiOtSetUps, Shamir, Stop, ecdsa::Curve,
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
    /// The same, without checks of what the signature shows to be right
    MascotMinus,
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
            Self::SemiOt | Self::Mascot | Self::MascotMinus if nodes >= 2 && is_small => nodes - 1,
            _ => return None,
        };
        Threshold::new(corrupt + 1, nodes).ok()
    }
}

/// A black box that is measured.
pub(super) trait Measured: BlackBox<Group: Curve> {
    /// The most tuples that one program makes.
    const BATCH: usize;
    /// What a party keeps of set-ups for later programs.
    type SetUps: Default + Send + Sync + 'static;
    /// Sets it up, on what programs of the same parties have left.
    fn make(party: &Party, set_ups: &Self::SetUps) -> impl Future<Output = Result<Self, Stop>> + Send;
    /// Leaves its set-up to later programs.
    fn leave(&self);
    /// One that opens, without a set-up.
    fn make_for_openings(party: &Party) -> Result<Self, Stop>;
}

macro_rules! with_an_honest_majority {
    ($($name:ident),* $(,)?) => { $(
        impl<G: Curve, M: Security> Measured for $name<G, M> {
            const BATCH: usize = 10_000;
            type SetUps = ();
            fn make(party: &Party, (): &()) -> impl Future<Output = Result<Self, Stop>> + Send {
                Self::new(party)
            }
            fn leave(&self) {}
            fn make_for_openings(party: &Party) -> Result<Self, Stop> {
                Self::openings_only(party)
            }
        }
    )* };
}
with_an_honest_majority!(Shamir, Rep3);

macro_rules! with_transfers {
    ($($name:ident: $batch:literal, $set_ups:ty),* $(,)?) => { $(
        impl<G: Curve> Measured for $name<G> {
            const BATCH: usize = $batch;
            type SetUps = $set_ups;
            fn make(party: &Party, set_ups: &Self::SetUps) -> impl Future<Output = Result<Self, Stop>> + Send {
                Self::on(party, set_ups, &[])
            }
            fn leave(&self) {
                self.end_well();
            }
            fn make_for_openings(party: &Party) -> Result<Self, Stop> {
                Self::openings_only(party)
            }
        }
    )* };
}
with_transfers!(
    SemiOt: 1_000, SemiOtSetUps,
    Mascot: 1_000, MascotSetUps,
    MascotMinus: 1_000, MascotSetUps,
);

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
        Backend::MascotMinus => visitor.visit::<MascotMinus<G>>(),
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
        for pairs in [Backend::SemiOt, Backend::Mascot, Backend::MascotMinus] {
            assert_eq!(served(pairs), (2..=15).map(|nodes| (nodes - 1, nodes)).collect::<Vec<_>>());
        }
    }
}
