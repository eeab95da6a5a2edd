//! Agents of zones: digests that are recognised, and requests of nodes.

mod agent;
mod digests;
mod name_servers;
mod primary;
mod standards;
mod transfers;
mod zones;
