//! Transports between the nodes of a group, with pinned TLS identities and the group file.
//!
//! - [`Transport`] is the trait of all transports; [`mesh`] is the default one, [`carrier`] the one through others' networks,
//!   such as that of a host ([`p2p_proxy`]).
//! - [`Identity`], [`Fingerprint`] and [`tls`] are shared by the mesh, the node's API and its clients.
//! - [`archive`] lets machines that are peers no more read that they are not.
//! - [`doorway`] bounds the connections whose handshake is unfinished.
//! - [`places`] connects to whichever address of a name answers.
//! - [`tob_proxy`] is total-order broadcast through the host.
//! - [`group`] is the file that names the members of a group and pins their certificates.

pub mod archive;
pub mod carrier;
pub mod doorway;
mod fingerprint;
pub mod group;
mod identity;
pub mod mesh;
pub mod p2p_proxy;
mod peer_status;
pub mod places;
pub mod tls;
pub mod tob_proxy;
mod transport;

pub use fingerprint::{Fingerprint, FingerprintError};
pub use identity::{GeneratedIdentity, Identity, IdentityError, Period, Subject};
pub use peer_status::{PeerState, PeerStatus};
pub use transport::{GroupTransport, HostStatus, Inbound, Refused, SendError, Stopping, Transport};
