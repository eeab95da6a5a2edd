//! The peers of a mesh, which change while it runs.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use theta_names::NodeId;

use super::link::{Link, Target};
use crate::{Fingerprint, tls::Admits};

/// All links, and the certificates that may connect.
#[derive(Debug, Default)]
pub(super) struct Links(RwLock<Arc<Present>>);

/// The links as they are between two changes.
#[derive(Debug, Default)]
pub(super) struct Present {
    /// Ascending by peer. A peer has more than one while several machines may speak for it.
    pub(super) links: Vec<Arc<Link>>,
    pins: HashMap<Fingerprint, Arc<Link>>,
}

impl Present {
    /// The links to a peer: one, or none, or one for each of its machines.
    pub(super) fn links_to(&self, peer: NodeId) -> &[Arc<Link>] {
        let from = self.links.partition_point(|link| link.id < peer);
        let to = self.links.partition_point(|link| link.id <= peer);
        self.links.get(from..to).unwrap_or_default()
    }

    /// The link to the machine with this certificate.
    pub(super) fn link_of(&self, certificate: &Fingerprint) -> Option<&Arc<Link>> {
        self.pins.get(certificate)
    }

    /// The link that goes on with a target: that to the same machine, or else one to the same peer that no other target takes.
    fn link_for(&self, target: &Target, taken: &[Arc<Link>], same_machine: bool) -> Option<Arc<Link>> {
        let free = |link: &&Arc<Link>| !taken.iter().any(|other| Arc::ptr_eq(other, link));
        let of_machine = self.link_of(&target.peer.certificate).filter(|link| link.id == target.peer.id);
        let link = match of_machine {
            found @ Some(_) => found.filter(free),
            None if same_machine => None,
            None => self.links_to(target.peer.id).iter().find(free),
        };
        link.map(Arc::clone)
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
        let (mut links, mut new, mut changed, mut pins) = (Vec::new(), Vec::new(), Vec::new(), HashMap::new());
        let mut others = Vec::new();
        // Who is reached as before keeps its link; only then are those looked for that have become another.
        for target in targets {
            match present.link_for(&target, &links, true) {
                Some(link) => {
                    links.push(Arc::clone(&link));
                    changed.push((link, target));
                }
                None => others.push(target),
            }
        }
        for target in others {
            if let Some(link) = present.link_for(&target, &links, false) {
                links.push(Arc::clone(&link));
                changed.push((link, target));
            } else {
                pins.insert(target.peer.certificate, links.len());
                let link = make(target);
                new.push(Arc::clone(&link));
                links.push(link);
            }
        }
        let mut pins: HashMap<Fingerprint, Arc<Link>> =
            pins.into_iter().filter_map(|(pin, at)| Some((pin, Arc::clone(links.get(at)?)))).collect();
        pins.extend(changed.iter().map(|(link, target)| (target.peer.certificate, Arc::clone(link))));
        links.sort_by_key(|link| link.id);
        let before = core::mem::replace(&mut *present, Arc::new(Present { links, pins }));
        // A connection that was admitted under the pins of before sees that it ends, or sees those of now.
        for (link, target) in changed {
            link.aim(target);
        }
        for link in &before.links {
            if !present.links.iter().any(|now| Arc::ptr_eq(now, link)) {
                link.end();
            }
        }
        new
    }
}

impl Admits for Links {
    fn admits(&self, certificate: &Fingerprint) -> bool {
        self.present().link_of(certificate).is_some()
    }
}
