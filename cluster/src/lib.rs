//! What demonstrations and the laboratory have in common beyond the product: groups of real node processes on this machine,
//! how long their answers take, the CPU that they use, and how a story is told.

mod cluster;
mod commands;
mod latency;
mod process;
mod show;

pub use cluster::{Cluster, Lifetime, Loopback, Site, this_program};
pub use commands::end_of_input;
pub use latency::{Latencies, Percentiles};
pub use process::cpu_time;
pub use show::Show;
