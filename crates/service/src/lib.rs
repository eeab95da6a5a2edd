//! A node of a threshold group: its configuration, its API and its metrics around the orchestrator.
//!
//! [`Node::start`] takes a [`NodeConfig`] and puts the floors together: the group file and this node's identity, its key
//! shares, the mesh to the other nodes, the orchestrator, the gRPC API for clients and the metrics for the operator.
//! Only clients that the group file or the policy file knows can connect to the API; each request passes the same bounds, and
//! the node decides about each by its own policy before anything is done for it.

pub mod config;
mod grpc;
mod metrics;
mod node;

pub use config::{ConfigError, NodeConfig};
pub use node::{Listeners, Node, NodeBuilder, StartError, roster};
