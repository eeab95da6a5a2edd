//! Wide area networks on one machine.
//!
//! A [`Profile`] says what lies between regions: delay, jitter, loss, rate. A [`Link`] is the model of one direction between two
//! nodes, and knows neither sockets nor clocks. Between real sockets, `Wan` gives each node a network of its own and
//! carries all packets by that model. `wan/README.md` says how far it can be believed.

mod link;
mod profile;
#[cfg(target_os = "linux")]
mod real;
mod switch;

pub use link::{Fate, Line, Link};
pub use profile::{MAX_NODES, Profile, ProfileError, Region};
pub use switch::{Counters, Switch, address};

#[cfg(target_os = "linux")]
pub use real::{Place, Refusal, Report, Wan, unshare_processes, with_privileges};
