//! An arithmetic black box over the scalars of a group and over the group itself, and threshold ECDSA on it.
//!
//! [`BlackBox`] is what programs are written on; [`Shamir`] and [`Rep3`] provide it, each with passive and with active
//! security, for an honest majority; [`SemiOt`] (passive) and [`Mascot`] (active) where all parties but one may be corrupt. [`ecdsa`] is a program on any of them. [`Program`] makes an async program a machine of
//! `theta-rounds`. What the protocols send, check and prove is in `spec/mpc.md` and `spec/ecdsa.md`.
//!
//! Programs that are not ECDSA: a sum of squares at [`BlackBox`]; a sealed-bid auction in `tests/mpc/auction.rs`. `theta-bench ecdsa` measures.
//!
//! The structure follows Dalskov, Keller, Orlandi, Shrishak and Shulman, "Securing DNSSEC Keys via Threshold ECDSA From
//! Generic MPC" (ESORICS 2020).

mod blackbox;
pub mod ecdsa;
mod mascot;
mod pairs;
mod program;
mod rep3;
mod security;
mod semi_ot;
mod shamir;

pub use blackbox::{BlackBox, Cell, Element, Inverses, Scalar, Shared, SharedPoints, Triples};
pub use mascot::{Check, Mascot, MascotMinus, MascotOf, MascotSetUps, Outcome, Sacrifice};
pub use pairs::{Cheats, SetUpRoom, SetUps};
pub use program::{
    Exchange, Gather, Heard, LONGEST_MESSAGE, MOST_ROUNDS, Misbehaviour, Party, Program, Recording, RoundMessage, Stop,
    View, all, both,
};
pub use rep3::{ActiveRep3, PassiveRep3, Rep3};
pub use security::{Active, Passive, Security};
pub use semi_ot::{SemiOt, SemiOtSetUps};
pub use shamir::{ActiveShamir, MOST_PARTIES, PassiveShamir, Shamir};

/// The phases of programs that end because their parties mean different things, or did not begin together. That is no proof that anybody cheated, and
/// nothing hidden has been used when it is found.
pub const APART: [&str; 2] = [ecdsa::MEANT_APART, pairs::BEGAN_APART];
