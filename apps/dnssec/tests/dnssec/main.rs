//! Agents of zones: digests that are recognised, and requests of nodes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests are test code, too"
)]

mod agent;
mod differences;
mod digests;
mod name_servers;
mod no_zones;
mod nsec3;
mod previous;
mod primary;
mod roles;
mod standards;
mod transfers;
mod zones;
