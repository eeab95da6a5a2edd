//! Wide area networks on one machine.
//!
//! A [`Profile`] says what lies between regions: delay, jitter, loss, rate. A [`Link`] is the model of one direction between two
//! nodes, and knows neither sockets nor clocks. Between real sockets, `Wan` gives each node a network of its own and
//! carries all packets by that model. `wan/README.md` says how far it can be believed.

mod link;
mod profile;
mod switch;

#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod netlink;
#[cfg(target_os = "linux")]
mod place;
#[cfg(target_os = "linux")]
mod router;
#[cfg(target_os = "linux")]
mod wan;

pub use link::{Fate, Line, Link};
pub use profile::{MAX_NODES, Profile, ProfileError, Region};
pub use switch::{Counters, Switch, address};

#[cfg(target_os = "linux")]
pub use place::{Place, Refusal, unshare_processes, with_privileges};
#[cfg(target_os = "linux")]
pub use router::Report;
#[cfg(target_os = "linux")]
pub use wan::Wan;
