//! Simulates whole groups of nodes: network, clocks and disks are simulated.
//!
//! The code of the nodes is real: orchestration, protocols, the store on a disk that can lose its power, the custodian of
//! keys, policies. Simulated is what lies between the nodes and below them. One number, the seed, decides everything: who
//! asks for what, what the network loses, which nodes are Byzantine and what they do. So every violation can be reproduced:
//!
//! ```text
//! cargo run --release -p theta-sim -- --seed 1234 --trace
//! cargo xtask sim --seeds 100000
//! ```
//!
//! - [`Scenario`]: what happens in a run, as data.
//! - [`Behaviour`]: what Byzantine nodes do.
//! - [`run`]: runs a scenario, and checks what must hold in every run; see [`Violation`].

mod byzantine;
mod chance;
mod client;
mod founded;
mod group;
mod ledger;
mod node;
mod permission;
mod scenario;
mod setup;
mod thief;
mod trace;
mod watch;
mod world;

pub use byzantine::{Behaviour, CeremonyLie, EcdsaLie, LedgerLie};
pub use scenario::{
    Aim, Arrival, Asked, Chain, Consent, ConsentFault, Departure, Distances, Exchange, Fate, Fault, HeldKey, Planned,
    Renewal, Sabotage, Scenario, StateWish, Step, Theft, Weather, Word,
};
pub use watch::{Invariant, Observation, Observations, Violation};
pub use world::{Outcome, run};
