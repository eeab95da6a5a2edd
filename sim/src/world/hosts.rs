//! Messages through hosts that nobody trusts: the links of `theta_network::carrier` between all nodes, and a carrier that loses, doubles, delays, bends and
//! repeats their frames, and gives them to others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use rustls::crypto::{GetRandomFailed, SecureRandom};
use theta_network::Identity;
use theta_network::carrier::{Budget, CarrierLimits, Link, Local, Outbox};
use theta_network::mesh::PeerCounters;

use super::{Event, World};
use crate::chance::below;
use crate::group::{Failed, party};
use crate::setup::seeded;
use crate::watch::{Observation, Violation};

/// Frames that the carrier remembers.
const MOST_SEEN: usize = 2_000;
/// Where a frame may be bent: in what all frames have, whatever their length.
const BENT: u64 = 64;

/// All that the seed decides about secrets.
#[derive(Debug)]
struct Seeded(Mutex<ChaCha20Rng>);

impl SecureRandom for Seeded {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), GetRandomFailed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fill_bytes(buffer);
        Ok(())
    }
}

/// One end of a link.
struct End {
    link: Link,
    outbox: Arc<Outbox>,
    /// The time of its next event.
    woken: u64,
}

/// The links of all nodes, and what their carrier has seen.
pub(super) struct Hosts {
    base: Instant,
    locals: BTreeMap<u16, Arc<Local>>,
    ends: BTreeMap<(u16, u16), End>,
    seen: Vec<(u16, u16, Bytes)>,
    lives: u64,
}

impl Hosts {
    pub(super) fn new(nodes: u16, seed: u64, base: Instant) -> Result<Self, Failed> {
        let mut locals = BTreeMap::new();
        for node in 1..=nodes {
            let made = Identity::generate(&format!("node-{node}")).map_err(|error| error.to_string())?;
            let identity =
                Identity::from_pem(&made.certificate_pem, &made.key_pem).map_err(|error| error.to_string())?;
            let random = Box::new(Seeded(Mutex::new(seeded(seed ^ 0x686f_7374, u64::from(node)))));
            let limits = CarrierLimits { frame_bytes: 4_000, ..CarrierLimits::default() };
            let budget = Budget::new(1_000);
            budget.among(usize::from(nodes.saturating_sub(1)));
            locals.insert(node, Arc::new(Local { identity, limits, budget, random }));
        }
        Ok(Self { base, locals, ends: BTreeMap::new(), seen: Vec::new(), lives: 0 })
    }

    fn at(&self, now: u64) -> Instant {
        self.base + Duration::from_millis(now)
    }

    /// A node's end of its link to a peer, made when it is first needed in this life of the node.
    fn end(&mut self, node: u16, peer: u16, now: u64) -> Option<&mut End> {
        let at = self.at(now);
        if !self.ends.contains_key(&(node, peer)) {
            let local = Arc::clone(self.locals.get(&node)?);
            let pinned = self.locals.get(&peer)?.identity.fingerprint();
            self.lives += 1;
            let mut boot = [0; 16];
            boot.first_chunk_mut().map(|first| *first = self.lives.to_be_bytes())?;
            let outbox = Arc::new(Outbox::new(65_536, 64 << 20));
            let counters = Arc::new(PeerCounters::new(party(peer).ok()?));
            let link = Link::new(local, pinned, boot, Arc::clone(&outbox), counters, at)?;
            self.ends.insert((node, peer), End { link, outbox, woken: 0 });
        }
        self.ends.get_mut(&(node, peer))
    }

    /// A node loses what its memory had.
    pub(super) fn crash(&mut self, crashed: u16) {
        self.ends.retain(|(node, _), _| *node != crashed);
    }
}

impl World<'_> {
    /// Sends a message through the hosts.
    pub(super) fn entrust(&mut self, from: u16, to: u16, bytes: &Bytes) {
        let now = self.now;
        let Some(hosts) = &mut self.hosts else { return };
        let at = hosts.at(now);
        if let Some(end) = hosts.end(from, to, now) {
            // A full queue refuses, as that of a mesh.
            let _ = end.outbox.push(bytes.clone(), at);
        }
        self.pump(from, to);
    }

    /// A host gives a node a frame.
    pub(super) fn frame(&mut self, from: u16, to: u16, frame: Bytes) -> Result<(), Violation> {
        if self.apart(from, to) || self.awake(to).is_none() {
            return Ok(());
        }
        let now = self.now;
        let Some(hosts) = &mut self.hosts else { return Ok(()) };
        let at = hosts.at(now);
        if let Some(end) = hosts.end(to, from, now) {
            end.link.receive(frame, at);
        }
        self.pump(to, from);
        Ok(())
    }

    /// The link of a node to a peer has something to do by now.
    pub(super) fn wake(&mut self, node: u16, peer: u16) {
        let now = self.now;
        let due =
            self.hosts.as_ref().and_then(|hosts| hosts.ends.get(&(node, peer))).is_some_and(|end| end.woken <= now);
        if due && self.awake(node).is_some() {
            self.pump(node, peer);
        }
    }

    /// Does what a link can do now, and arranges for what it does later.
    fn pump(&mut self, node: u16, peer: u16) {
        let now = self.now;
        let Some(hosts) = &mut self.hosts else { return };
        let (at, base) = (hosts.at(now), hosts.base);
        let Some(end) = hosts.end(node, peer, now) else { return };
        let (mut frames, mut messages) = (Vec::new(), Vec::new());
        loop {
            end.link.drive(at);
            messages.extend(core::iter::from_fn(|| end.link.next_message(at)));
            let before = frames.len();
            frames.extend(core::iter::from_fn(|| end.link.next_frame()));
            if frames.len() == before {
                break;
            }
        }
        let due = end.link.due(at).saturating_duration_since(base).as_nanos().div_ceil(1_000_000);
        let due = u64::try_from(due).unwrap_or(u64::MAX).max(now + 1);
        let wakes = end.woken <= now || due < end.woken;
        if wakes {
            end.woken = due;
            self.at(due, Event::Wake { node, peer });
        }
        for bytes in messages {
            self.at(now, Event::Deliver { from: peer, to: node, bytes });
        }
        for frame in frames {
            self.carry(node, peer, &frame);
        }
    }

    /// The carrier's part: what the weather does, and what an attacker adds.
    fn carry(&mut self, from: u16, to: u16, frame: &Bytes) {
        let calm = self.now >= self.scenario.calm;
        let weather = self.scenario.weather;
        if !calm {
            self.add_false_frames(from, to, frame);
        }
        let lost = !calm && below(&mut self.rng, 1_000) < weather.loss;
        let copies = if below(&mut self.rng, 1_000) < weather.duplicates { 2 } else { 1 };
        for _ in 0..if lost { 0 } else { copies } {
            let takes = match &mut self.far {
                Some(far) => far.takes(self.now, from, to, frame.len(), calm),
                None => Some(1 + below(&mut self.rng, weather.delay)),
            };
            if let Some(takes) = takes {
                self.at(self.now + takes, Event::Frame { from, to, frame: frame.clone() });
            }
        }
    }

    fn add_false_frames(&mut self, from: u16, to: u16, frame: &Bytes) {
        let Some(hosts) = &mut self.hosts else { return };
        if hosts.seen.len() < MOST_SEEN {
            hosts.seen.push((from, to, frame.clone()));
        }
        let lots = u64::try_from(hosts.seen.len()).unwrap_or(1);
        let place = usize::try_from(below(&mut self.rng, lots)).unwrap_or(0);
        let old = hosts.seen.get(place).cloned();
        let mut added = Vec::new();
        match below(&mut self.rng, 10) {
            // A bit of it is another, and that comes first.
            0 | 1 => {
                let mut bent = frame.to_vec();
                let place = usize::try_from(below(&mut self.rng, BENT)).unwrap_or(0);
                if let Some(byte) = bent.get_mut(place) {
                    *byte ^= 1;
                }
                added.push((from, to, Bytes::from(bent)));
            }
            // An old one, once more, to whom it was for, and to whom it was not.
            2 => added.extend(old),
            3 => added.extend(old.map(|(_, _, old)| (from, to, old))),
            // In the name of somebody else.
            4 => added.push((to, from, frame.clone())),
            _ => {}
        }
        for (from, to, frame) in added {
            self.watch.observations.note(Observation::Forged);
            self.at(self.now + 1, Event::Frame { from, to, frame });
        }
    }
}
