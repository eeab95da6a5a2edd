//! The task of a node that gossips: it dials and mends, sends what there is in bundles, checks what comes, and passes it on.

use core::time::Duration;
use std::{
    collections::HashSet,
    sync::{Arc, OnceLock, Weak, atomic::Ordering::Relaxed},
    time::Instant,
};

use bytes::Bytes;
use futures::StreamExt as _;
use libp2p_core::{Multiaddr, multiaddr::Protocol};
use libp2p_gossipsub::{Event, IdentTopic, Message, MessageAcceptance, MessageId, PublishError};
use libp2p_identity::PeerId;
use libp2p_swarm::{
    ConnectionId, DialError, Swarm, SwarmEvent,
    dial_opts::{DialOpts, PeerCondition},
};
use theta_names::{NodeId, WallTime};
use theta_network::{
    Fingerprint, GroupTransport as _, HostStatus, Identity,
    carrier::{Carried, Relayed},
    doorway::Occasionally,
};
use tokio::sync::{mpsc, watch};

use crate::{
    authors::{Authors, Verdict},
    bundle::{Outgoing, frames_for},
    config::{Degree, GossipLimits},
    members::{Members, key_of, peer_id},
    mesh::Mesh,
    neighbours::{Dialer, Neighbours, View},
    rate::{Rate, Spent},
    tally::Tally,
};

/// How often it is looked whom to dial, and how things are.
const LOOK: Duration = Duration::from_millis(200);
/// How long the first message waits for more neighbours than one.
const GATHER: Duration = Duration::from_secs(2);
/// How often other tasks have a turn before a bundle leaves: those of other peers have frames at the same time.
const TURNS: usize = 3;
/// A node's messages are not further apart than this for the sake of others.
const LONGEST_PACE: Duration = Duration::from_millis(250);
/// How often one of the neighbours that this node has dialled is exchanged for another, so that none surround it for long.
const EXCHANGE: Duration = Duration::from_secs(300);

/// What the task works with.
pub(crate) struct Task {
    pub(crate) local: NodeId,
    pub(crate) identity: Identity,
    pub(crate) context: Vec<u8>,
    /// The longest message, in bytes.
    pub(crate) longest: usize,
    pub(crate) topic: IdentTopic,
    pub(crate) swarm: Swarm<Mesh>,
    pub(crate) members: Arc<Members>,
    pub(crate) limits: GossipLimits,
    pub(crate) frames: mpsc::Receiver<Carried>,
    pub(crate) arrivals: mpsc::Sender<Carried>,
    pub(crate) status: watch::Sender<HostStatus>,
    pub(crate) tally: Arc<Tally>,
    /// The sessions, which know who is not reached.
    pub(crate) sessions: Arc<OnceLock<Weak<Relayed>>>,
    pub(crate) dialer: Dialer,
}

/// What changes while it runs.
struct State {
    authors: Authors,
    /// The number of the next message.
    number: u64,
    spent: Spent,
    /// When the last message left.
    last: Instant,
    /// A frame that found no room in the bundle before.
    left: Option<Carried>,
    neighbours: Neighbours,
    dialling: HashSet<PeerId>,
    /// When one of the neighbours was exchanged last.
    exchanged: Instant,
    /// When the first neighbour joined the mesh.
    first: Option<Instant>,
    /// The mesh has been there.
    ready: bool,
    warnings: Occasionally,
    /// Of those who say too much, so that these hide nothing else.
    excess: Occasionally,
    /// Of formats that this node does not know: likewise.
    unknown: Occasionally,
}

impl Task {
    /// Runs until the transport is gone.
    pub(crate) async fn run(mut self) {
        let mut state = State {
            authors: Authors::new(self.identity.fingerprint(), self.context.clone(), self.longest),
            number: first_number(),
            spent: Spent::new(Instant::now()),
            last: Instant::now(),
            left: None,
            neighbours: Neighbours::default(),
            dialling: HashSet::new(),
            exchanged: Instant::now(),
            first: None,
            ready: false,
            warnings: Occasionally::default(),
            excess: Occasionally::default(),
            unknown: Occasionally::every(Duration::from_secs(60)),
        };
        let mut looks = tokio::time::interval(LOOK);
        loop {
            let rate = self.rate();
            let due = state.spent.next(&rate.cautious()).max(state.last + self.pace());
            let pause = tokio::time::Instant::from_std(due);
            let may_speak = state.ready && self.neighbours() > 0;
            tokio::select! {
                () = self.arrivals.closed() => return,
                event = self.swarm.select_next_some() => self.heard(&mut state, event, &rate),
                came = next(&mut self.frames, &mut state.left, pause), if may_speak => {
                    let Some(first) = came else { return };
                    self.speak(&mut state, first, &rate).await;
                }
                _ = looks.tick() => self.look(&mut state),
            }
        }
    }

    /// What each author may say.
    fn rate(&self) -> Rate {
        let GossipLimits { messages_per_second, bytes_per_second, burst, .. } = self.limits;
        Rate::shared(messages_per_second, bytes_per_second, self.members.present().count(), burst)
    }

    /// The pause between two messages of this node. What comes meanwhile leaves in one.
    fn pace(&self) -> Duration {
        let n = u32::try_from(self.members.present().count()).unwrap_or(u32::MAX);
        self.limits.pace.saturating_mul(n).min(LONGEST_PACE)
    }

    /// Neighbours in the mesh.
    fn neighbours(&self) -> usize {
        self.swarm.behaviour().mesh_peers(&self.topic.hash()).count()
    }

    /// Sends this frame, and others that are there, in one message.
    async fn speak(&mut self, state: &mut State, first: Carried, rate: &Rate) {
        let mut bundle = Outgoing::new(state.number);
        state.number = state.number.saturating_add(1);
        bundle.put(&first);
        let (mut turns, mut frames) = (0, 1_u64);
        while turns < TURNS {
            match self.frames.try_recv() {
                Ok(next) if bundle.fits(&next.frame, self.limits.bundle_bytes) => {
                    bundle.put(&next);
                    frames = frames.saturating_add(1);
                    turns = 0;
                }
                Ok(next) => {
                    state.left = Some(next);
                    break;
                }
                Err(_) => {
                    tokio::task::yield_now().await;
                    turns += 1;
                }
            }
        }
        let Some(message) = bundle.sign(&self.identity, &self.context) else {
            state
                .warnings
                .warn(format_args!("this node's key signs by no scheme of TLS 1.3, so that it cannot gossip"));
            return;
        };
        let now = Instant::now();
        state.last = now;
        state.spent.take(&rate.cautious(), message.len(), now);
        match self.swarm.behaviour_mut().publish(self.topic.hash(), message) {
            Ok(_) => {
                self.tally.sent.fetch_add(1, Relaxed);
                self.status.send_if_modified(|status| {
                    status.given = status.given.saturating_add(frames);
                    false
                });
            }
            // What is lost is sent again by the sessions.
            Err(error @ (PublishError::NoPeersSubscribedToTopic | PublishError::AllQueuesFull(_))) => {
                self.tally.unsent.fetch_add(1, Relaxed);
                tracing::debug!(%error, "a bundle found no way");
            }
            Err(error) => {
                self.tally.unsent.fetch_add(1, Relaxed);
                state.warnings.warn(format_args!("a bundle was not sent: {error}"));
            }
        }
    }

    fn heard(&mut self, state: &mut State, event: SwarmEvent<Event>, rate: &Rate) {
        match event {
            SwarmEvent::Behaviour(Event::Message { propagation_source, message_id, message }) => {
                self.judge(state, propagation_source, &message_id, message, rate);
            }
            SwarmEvent::Behaviour(Event::SlowPeer { peer_id, .. }) => {
                let (node, now) = (self.name(&peer_id), Instant::now());
                state.warnings.warn(format_args!("{node} takes messages too slowly, and misses some"));
                if state.neighbours.of(peer_id, now).is_slow(now) {
                    let _ = self.swarm.disconnect_peer_id(peer_id);
                }
            }
            SwarmEvent::ConnectionEstablished { peer_id, connection_id, endpoint, .. } => {
                self.met(state, peer_id, connection_id, endpoint.is_dialer());
            }
            SwarmEvent::ConnectionClosed { peer_id, connection_id, num_established, cause, .. } => {
                state.neighbours.ended(&peer_id, connection_id);
                if num_established == 0 {
                    let reason = cause.map_or_else(|| "it was closed".to_owned(), |cause| cause.to_string());
                    let name = self.name(&peer_id);
                    let neighbour = state.neighbours.of(peer_id, Instant::now());
                    neighbour.departures.info(format_args!("{name}, a neighbour, is gone: {reason}"));
                }
            }
            SwarmEvent::OutgoingConnectionError { peer_id: Some(peer), error, .. } => {
                state.dialling.remove(&peer);
                if !matches!(error, DialError::DialPeerConditionFalse(_)) {
                    tracing::debug!(neighbour = %self.name(&peer), %error, "no connection to neighbour");
                }
            }
            _ => {}
        }
    }

    /// A connection stands.
    fn met(&mut self, state: &mut State, peer: PeerId, connection: ConnectionId, dialled: bool) {
        state.dialling.remove(&peer);
        let known = key_of(&peer).filter(|key| self.members.present().by_key(key).is_some());
        let Some(key) = known else {
            let _ = self.swarm.disconnect_peer_id(peer);
            return;
        };
        let (name, now) = (self.name(&peer), Instant::now());
        self.dialer.connected(&key, now);
        let neighbour = state.neighbours.of(peer, now);
        let (first, too_many) = neighbour.connected(connection, dialled);
        if first {
            neighbour.arrivals.info(format_args!("connected to {name}, a neighbour"));
        }
        if let Some(oldest) = too_many {
            self.swarm.close_connection(oldest);
        }
    }

    /// Judges a message, passes it on if it is its author's, and takes what is for this node.
    fn judge(&mut self, state: &mut State, source: PeerId, id: &MessageId, message: Message, rate: &Rate) {
        let now = Instant::now();
        let verdict = state.authors.judge(Bytes::from(message.data), &self.members, rate, now);
        let (acceptance, counter) = match &verdict {
            Verdict::New(..) => (MessageAcceptance::Accept, &self.tally.received),
            Verdict::Again => (MessageAcceptance::Ignore, &self.tally.replayed),
            Verdict::TooMuch => (MessageAcceptance::Ignore, &self.tally.excessive),
            Verdict::Stranger => (MessageAcceptance::Ignore, &self.tally.strange),
            Verdict::Unknown => (MessageAcceptance::Ignore, &self.tally.unknown),
            Verdict::False => (MessageAcceptance::Reject, &self.tally.forged),
        };
        counter.fetch_add(1, Relaxed);
        self.swarm.behaviour_mut().report_message_validation_result(id, &source, acceptance);
        if !state.neighbours.of(source, now).passes(&self.passing(), now) {
            self.leave(source, "passes on more than all members may say");
        }
        match verdict {
            Verdict::New(author, body) => {
                let frames = self.take(author, body);
                state.authors.charge(&author, frames, rate, now);
            }
            Verdict::False => self.blame(state, source, now),
            Verdict::TooMuch => state.excess.warn(format_args!(
                "a member says more than its share, of which {} passes some on; the rest is dropped",
                self.name(&source)
            )),
            Verdict::Unknown => state.unknown.warn(format_args!(
                "{} passes on messages of a format that this node does not know: is this node older than others?",
                self.name(&source)
            )),
            Verdict::Again | Verdict::Stranger => {}
        }
    }

    /// How many frames it had for this node.
    fn take(&self, author: Fingerprint, body: Bytes) -> usize {
        let members = self.members.present();
        let Some(member) = members.by_key(&author) else { return 0 };
        // An author whose message is no list of frames has signed nonsense: that harms nobody.
        let frames = frames_for(self.local, body).unwrap_or_default();
        let (all, count) = (frames.len(), u64::try_from(frames.len()).unwrap_or(u64::MAX));
        for frame in frames {
            // What finds no room is sent again by its author.
            let _ = self.arrivals.try_send(Carried { node: member.id, frame });
        }
        self.status.send_if_modified(|status| {
            status.got = status.got.saturating_add(count);
            false
        });
        all
    }

    /// A neighbour has passed on a false message, which no honest node does. Who goes on is left.
    fn blame(&self, state: &mut State, source: PeerId, now: Instant) {
        let node = self.name(&source);
        state.warnings.warn(format_args!("{node} passed on a message that its author has not signed"));
        if state.neighbours.of(source, now).lied(now) > self.limits.false_messages {
            self.leave(source, "passes on false messages");
        }
    }

    /// What a neighbour may pass on: twice what all members may say, so that none is left for what others say.
    fn passing(&self) -> Rate {
        let n = u32::try_from(self.members.present().count()).unwrap_or(u32::MAX);
        let messages = self.limits.messages_per_second.max(n.saturating_mul(10)).saturating_mul(2);
        Rate::shared(messages, u32::MAX, 1, self.limits.burst.saturating_mul(2))
    }

    /// Lets a neighbour go that does what no honest one does, and does not let it in again for a while.
    fn leave(&self, source: PeerId, why: &str) {
        let Some(key) = key_of(&source).filter(|key| !self.members.is_banned(key)) else { return };
        self.members.ban(key, self.limits.banned_for);
        self.tally.banned.fetch_add(1, Relaxed);
        tracing::warn!(neighbour = %self.name(&source), banned_for = ?self.limits.banned_for, "left a neighbour that {why}");
    }

    /// Looks whom to dial and whom to leave, and says how things are.
    fn look(&mut self, state: &mut State) {
        let (now, members) = (Instant::now(), self.members.present());
        let leave = |peer: &PeerId| {
            key_of(peer).is_none_or(|key| members.by_key(&key).is_none() || self.members.is_banned(&key))
        };
        let leaving: Vec<PeerId> = self.swarm.connected_peers().filter(|peer| leave(peer)).copied().collect();
        for peer in leaving {
            let _ = self.swarm.disconnect_peer_id(peer);
        }
        state.authors.keep(&self.members);
        state.neighbours.forget(now);
        self.dialer.keep(|key| members.by_key(key).is_some());

        let connected = state.neighbours.present().chain(&state.dialling).filter_map(key_of);
        let neighbours: HashSet<Fingerprint> = connected.collect();
        let sessions = self.sessions.get().and_then(Weak::upgrade);
        let unreached = sessions.map(|sessions| sessions.unreached()).unwrap_or_default();
        let unreached = unreached.into_iter().map(|peer| peer.certificate).collect();
        let degree = Degree::of(members.count());
        let own = state.neighbours.dialled();
        let dialled = own.len().saturating_add(state.dialling.len());
        let view = View { neighbours: &neighbours, dialled, unreached: &unreached, degree, now };
        for key in
            self.dialer.due(members.peers().filter(|peer| !self.members.is_banned(&peer.certificate)), &view, random)
        {
            self.dial(state, &key);
        }

        // Where all are neighbours there is nobody to exchange one for.
        if now.duration_since(state.exchanged) >= EXCHANGE {
            state.exchanged = now;
            let others = members.count().saturating_sub(1) > neighbours.len();
            if others && self.dialer.is_free() && own.len() >= degree.low {
                own.get(random(own.len())).map(|connection| self.swarm.close_connection(*connection));
            }
        }

        let in_mesh = self.neighbours();
        if in_mesh > 0 {
            let first = *state.first.get_or_insert(now);
            let enough = in_mesh >= degree.low.min(members.count().saturating_sub(1));
            state.ready |= enough || now.duration_since(first) >= GATHER;
        }
        self.tally.note(state.neighbours.present().count(), in_mesh);
        let away = (in_mesh == 0).then(|| "no neighbour is in its gossip mesh".to_owned());
        let waiting = self.frames.len();
        self.status.send_if_modified(|status| {
            if status.away.is_some() && away.is_none() {
                status.attached = status.attached.saturating_add(1);
            }
            status.waiting = waiting;
            let news = status.away != away;
            status.away = away;
            news
        });
    }

    fn dial(&mut self, state: &mut State, key: &Fingerprint) {
        let Some(peer) = peer_id(key) else { return };
        let place = Multiaddr::empty().with(Protocol::P2p(peer));
        let how = DialOpts::peer_id(peer).condition(PeerCondition::DisconnectedAndNotDialing).addresses(vec![place]);
        match self.swarm.dial(how.build()) {
            Ok(()) => {
                state.dialling.insert(peer);
            }
            Err(error) => tracing::debug!(neighbour = %self.name(&peer), %error, "a neighbour is not dialled"),
        }
    }

    fn name(&self, peer: &PeerId) -> String {
        self.members.present().node(peer).map_or_else(|| "a stranger".to_owned(), |node| format!("node {node}"))
    }
}

/// The next frame, when one may leave.
async fn next(
    frames: &mut mpsc::Receiver<Carried>,
    left: &mut Option<Carried>,
    pause: tokio::time::Instant,
) -> Option<Carried> {
    tokio::time::sleep_until(pause).await;
    match left.take() {
        Some(frame) => Some(frame),
        None => frames.recv().await,
    }
}

/// The number of a life's first message, above all of the lives before: microseconds since 1970, since no node sends one message each microsecond.
fn first_number() -> u64 {
    WallTime::now().microseconds().max(1)
}

/// A number below `below`. Without randomness the first is as good as any.
fn random(below: usize) -> usize {
    let mut bytes = [0; 4];
    let _ = getrandom::fill(&mut bytes);
    usize::try_from(u32::from_be_bytes(bytes)).unwrap_or(0).checked_rem(below).unwrap_or(0)
}
