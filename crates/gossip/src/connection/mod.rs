//! Connections to neighbours: TLS 1.3 with the keys that the group has pinned, as everywhere in the house, under libp2p's streams. The library's own TLS and Noise would bring
//! another cryptographic provider, and keys beside those that the group knows.

mod metered;
mod muxer;
mod socket;

pub(crate) use self::{
    metered::Traffic,
    socket::{Socket, Strangers},
};
