//! What the demo and the laboratory have in common beyond the product: groups of real node processes on this machine, and
//! how long their answers take.

mod cluster;
mod latency;

pub use cluster::{Cluster, Lifetime, Loopback, Site, this_program};
pub use latency::{Latencies, Percentiles};
