//! Networks of real sockets.

mod kernel;
mod netlink;
mod place;
mod router;
mod wan;

pub use place::{Place, Refusal, unshare_processes, with_privileges};
pub use router::Report;
pub use wan::Wan;
