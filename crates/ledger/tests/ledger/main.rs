//! Foundings of groups, and what is no founding.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking, in their helpers too"
)]

mod damage;
mod founding;
mod keys;
mod vectors;
