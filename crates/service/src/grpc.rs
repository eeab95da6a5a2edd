//! The gRPC API over mutually authenticated TLS.

mod answer;
mod backup;
mod deadline;
mod door;
mod gate;
mod governance;
mod keys;
mod order;
mod protocol;
pub(crate) mod refusal;
mod scheme;
mod server;
mod state;

pub(crate) use self::{
    backup::Backups,
    door::{Admission, Bounds, ConnectionBounds, Connections},
    server::{ApiError, ApiServer, Serving},
    state::NodeState,
};
