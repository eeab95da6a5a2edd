//! The gRPC API over mutually authenticated TLS.

mod admission;
mod answer;
mod deadline;
mod gate;
mod governance;
mod incoming;
mod keys;
mod protocol;
pub(crate) mod refusal;
mod scheme;
mod server;
mod state;

pub(crate) use self::{
    admission::Admission,
    incoming::Caller,
    server::{ApiError, ApiServer, Serving},
    state::NodeState,
};
