//! What demonstrations and the laboratory have in common beyond the product: groups of real node processes on this machine,
//! how long their answers take, and how a story is told.

mod cluster;
mod commands;
mod latency;
mod show;

pub use cluster::{Cluster, Lifetime, Loopback, Site, this_program};
pub use commands::end_of_input;
pub use latency::{Latencies, Percentiles};
pub use show::Show;
