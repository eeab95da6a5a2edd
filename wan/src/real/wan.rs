//! A network of real sockets by a profile.

use std::os::fd::AsRawFd;

use super::{
    place::{Place, Refusal},
    router::{Report, Router},
};
use crate::{
    profile::{MAX_NODES, Profile},
    switch::{Switch, address},
};

/// Networks for the client and each node, and the router between them. They end when it is dropped, for whoever is still in them.
#[derive(Debug)]
pub struct Wan {
    profile: Profile,
    /// The client's, then those of the nodes 1, 2, ....
    places: Vec<Place>,
    router: Router,
}

impl Wan {
    /// Networks for so many nodes, at most [`MAX_NODES`]. Needs the right to make them ([`crate::with_privileges`]). The seed
    /// decides which packets are lost, and how delay changes.
    pub fn new(profile: &Profile, nodes: u16, seed: u64) -> Result<Self, Refusal> {
        let made: Vec<_> = (0..=nodes.min(MAX_NODES)).filter_map(address).map(Place::make).collect::<Result<_, _>>()?;
        let (places, devices): (Vec<_>, Vec<_>) = made.into_iter().unzip();
        let router = Router::start(Switch::new(profile.clone(), nodes, seed), devices)?;
        Ok(Self { profile: profile.clone(), places, router })
    }

    /// The profile that it keeps.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// How many nodes it has room for.
    pub fn nodes(&self) -> u16 {
        u16::try_from(self.places.len().saturating_sub(1)).unwrap_or(u16::MAX)
    }

    /// The network of a node, or of the client, which has the number 0.
    pub fn place(&self, node: u16) -> Option<&Place> {
        self.places.get(usize::from(node))
    }

    /// Paths in `/proc` by which other processes can open the networks, the client's first, while this process (by its number)
    /// lives.
    pub fn paths(&self, process: u32) -> Vec<String> {
        let path = |place: &Place| format!("/proc/{process}/fd/{}", place.descriptor().as_raw_fd());
        self.places.iter().map(path).collect()
    }

    /// Ends it, and says what it did.
    pub fn stop(self) -> Option<Report> {
        self.router.stop()
    }
}
