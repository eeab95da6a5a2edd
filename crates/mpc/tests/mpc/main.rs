//! Programs on the black boxes, in groups of real machines over a simulated network.

mod auction;
mod blackbox;
mod cheating;
mod ecdsa;
mod group;
mod program;
