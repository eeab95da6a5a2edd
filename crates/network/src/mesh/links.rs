//! The peers of a mesh, which change while it runs.

use std::sync::{Arc, PoisonError, RwLock};

use theta_names::NodeId;

use super::link::{Link, Target};
use crate::{
    Fingerprint,
    tls::{Admits, Pinned, Pins},
};

/// All links, and the certificates that may connect.
#[derive(Debug, Default)]
pub(super) struct Links(RwLock<Arc<Present>>);

/// The links as they are between two changes.
#[derive(Debug, Default)]
pub(super) struct Present {
    /// Ascending by peer.
    pub(super) links: Vec<Arc<Link>>,
    pins: Pins,
}

impl Present {
    /// The link to a peer.
    pub(super) fn link(&self, peer: NodeId) -> Option<&Arc<Link>> {
        let position = self.links.binary_search_by_key(&peer, |link| link.id).ok()?;
        self.links.get(position)
    }

    /// The link to the peer with this certificate.
    pub(super) fn link_of(&self, certificate: &Fingerprint) -> Option<&Arc<Link>> {
        match self.pins.owner(certificate)? {
            Pinned::Node(peer) => self.link(*peer),
            Pinned::Client(_) => None,
        }
    }
}

impl Links {
    pub(super) fn present(&self) -> Arc<Present> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts these targets in the place of the present ones: each link goes on with its own, `make` makes those that are new, and the
    /// rest end. Returns the new ones.
    pub(super) fn replace(&self, targets: Vec<Target>, make: impl Fn(Target) -> Arc<Link>) -> Vec<Arc<Link>> {
        let mut present = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let pins = targets.iter().map(|target| (target.peer.certificate, Pinned::Node(target.peer.id))).collect();
        let (mut links, mut new, mut changed) = (Vec::new(), Vec::new(), Vec::new());
        for target in targets {
            if let Some(link) = present.link(target.peer.id) {
                links.push(Arc::clone(link));
                changed.push((Arc::clone(link), target));
            } else {
                let link = make(target);
                new.push(Arc::clone(&link));
                links.push(link);
            }
        }
        links.sort_unstable_by_key(|link| link.id);
        let before = core::mem::replace(&mut *present, Arc::new(Present { links, pins }));
        // A connection that was admitted under the pins of before sees that it ends, or sees those of now.
        for (link, target) in changed {
            link.aim(target);
        }
        for link in before.links.iter().filter(|link| present.link(link.id).is_none()) {
            link.end();
        }
        new
    }
}

impl Admits for Links {
    fn admits(&self, certificate: &Fingerprint) -> bool {
        self.present().link_of(certificate).is_some()
    }
}
