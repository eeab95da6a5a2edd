//! What the papers state about transfers and products holds, and cheating is seen.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panicking, in their helpers too"
)]

mod base;
mod extension;
mod fixture;
mod messages;
mod products;
