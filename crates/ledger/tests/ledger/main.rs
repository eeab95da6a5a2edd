//! Foundings of groups. Replicas among each other: honest, lying, crashing, cut off. And clients that follow them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod consents;
mod follow;
mod founding;
mod honest;
mod keys;
mod liars;
mod members;
mod net;
mod runs;
mod signing;
mod states;
mod warrants;
