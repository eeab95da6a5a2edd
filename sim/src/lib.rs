//! Whole groups of nodes on an imagined network, clock and disk.
//!
//! Everything that runs is real: orchestration, protocols, the store on a disk that loses its power, the custodian of keys,
//! policies. What is imagined is what lies between the nodes and below them. One number, the seed, decides everything: who
//! asks for what, what the network loses, who is taken over and what it does then. Whoever sees a violation sees it again:
//!
//! ```text
//! cargo run --release -p theta-sim -- --seed 1234 --trace
//! cargo xtask sim --seeds 100000
//! ```
//!
//! - [`Scenario`]: what happens, as data.
//! - [`Behaviour`]: what nodes do that were taken over.
//! - [`run`]: lets it happen, and checks what must hold in every run; see [`Violation`].

mod byzantine;
mod client;
mod node;
mod permission;
mod scenario;
mod setup;
mod thief;
mod trace;
mod watch;
mod world;

pub use byzantine::{Behaviour, CeremonyLie};
pub use scenario::{
    Aim, Asked, Consent, ConsentFault, Fault, HeldKey, Planned, Sabotage, Scenario, StateWish, Theft, Weather,
};
pub use watch::{Deed, Deeds, Invariant, Violation};
pub use world::{Outcome, run};
