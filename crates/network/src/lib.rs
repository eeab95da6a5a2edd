//! Transports between the nodes of a group, with pinned TLS identities and the group file.
//!
//! - [`Transport`] is the trait of all transports; [`mesh`] is the default one.
//! - [`Identity`], [`Fingerprint`] and [`tls`] are shared by the mesh, the node's API and its clients.
//! - [`archive`] lets machines that are peers no more read that they are not.
//! - [`doorway`] bounds the connections whose handshake is unfinished.
//! - [`tob_proxy`] is total-order broadcast through the host.
//! - [`group`] is the file that names the members of a group and pins their certificates.

pub mod archive;
pub mod doorway;
mod fingerprint;
pub mod group;
mod identity;
pub mod mesh;
pub mod tls;
pub mod tob_proxy;
mod transport;

pub use fingerprint::{Fingerprint, FingerprintError};
pub use identity::{GeneratedIdentity, Identity, IdentityError, Period, Subject};
pub use transport::{Inbound, PeerState, PeerStatus, SendError, Transport};
