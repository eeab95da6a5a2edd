//! A node of a threshold group: its configuration, its API and its metrics around the orchestrator.
//!
//! [`Node::start`] takes a [`NodeConfig`] and puts the floors together: the group file and this node's identity, its key
//! shares, the mesh to the other nodes, the orchestrator, the gRPC API for clients and the metrics for the operator.
//! Only clients whose certificates the group file pins can connect to the API; each request passes the same bounds.

pub mod config;
mod grpc;
mod metrics;
mod node;

pub use config::{ConfigError, NodeConfig};
pub use node::{Listeners, Node, NodeBuilder, StartError};
