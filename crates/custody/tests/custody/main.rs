//! Groups of custodians on simulated disks.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking, in their helpers too"
)]

mod crash;
mod forward;
mod late;
mod lies;
mod life;
mod net;
mod offline;
mod refusals;
mod slots;
mod states;
mod stores;
mod stragglers;
mod use_keys;
