//! Transports between the nodes of one group, and what makes them trustworthy: pinned TLS identities and the group file.
//!
//! - [`Transport`] is the one trait behind which every transport stands; [`mesh`] is the default one.
//! - [`Identity`], [`Fingerprint`] and [`tls`] are shared by the mesh, the node's API and its clients.
//! - [`doorway`] is where connections wait, briefly, until they have shown who they are.
//! - [`group`] is the file that names the members of a group and pins their certificates.

pub mod doorway;
mod fingerprint;
pub mod group;
mod identity;
pub mod mesh;
pub mod tls;
mod transport;
mod validity;

pub use fingerprint::{Fingerprint, FingerprintError};
pub use identity::{GeneratedIdentity, Identity, IdentityError};
pub use transport::{Inbound, PeerState, PeerStatus, SendError, Transport};
