//! A node of a threshold group: its configuration, its API and its metrics around the orchestrator.
//!
//! [`Node::start`] takes a [`NodeConfig`] and assembles the group file and this node's identity, its store with the key
//! shares, the mesh to the other nodes, the orchestrator, the gRPC API for clients and the metrics for the operator.
//! Only clients of the group file or the policy file can connect to the API. Each request passes the same bounds, and
//! the node's own policy decides about it before the node does anything for it.

mod agents;
pub mod config;
mod grpc;
mod metrics;
mod node;

pub use config::{ConfigError, NodeConfig};
pub use node::{Listeners, Node, NodeBuilder, StartError, roster};
