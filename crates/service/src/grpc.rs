//! The gRPC API over mutually authenticated TLS.

mod admission;
mod answer;
mod deadline;
mod gate;
mod incoming;
mod protocol;
mod refusal;
mod scheme;
mod server;
mod state;

pub(crate) use self::{
    admission::Admission,
    server::{ApiError, ApiServer, Serving},
    state::NodeState,
};
