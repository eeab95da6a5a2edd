//! The thread of a node's custodian, and its messages from and to the node's other parts.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::Ordering::{Acquire, Relaxed},
    },
};

use core::time::Duration;

use bytes::Bytes;
use theta_custody::{
    CeremonyError, CeremonyReport, CeremonyState, ChangeError, ChangeReport, Custodian, CustodyEffect, CustodyInput,
    GroupRequest, MembersError, MembersState, To, message_subject,
};
use theta_names::{NodeId, WallTime};
use theta_network::{PeerState, PeerStatus, Transport};
use theta_schemes::keys::KeyName;
use theta_statements::{CancelRequest, CeremonyRequest, MemberRequest, StateChange, TakeBackRequest};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::sleep,
};
use tracing::{error, info, warn};

use super::router::{CustodyMail, Inboxes};
use crate::{
    Culprit, InstanceId, NodeOffence,
    instances::{Command, Content, Shared},
};

/// The most orders that are taken from the inbox at once.
const BATCH: usize = 64;

/// The longest time between two ticks, in periods.
const SLOWEST: u32 = 16;

/// An order to a custodian.
pub(crate) enum Order {
    /// A message of a peer's custodian.
    Message {
        from: NodeId,
        bytes: Bytes,
    },
    /// The time, in seconds since 1970.
    Tick(u64),
    /// A request, and what the client signed and others approved.
    Hold(CeremonyRequest, Vec<u8>, oneshot::Sender<Result<CeremonyReport, CeremonyError>>),
    /// The same, for the end of a ceremony.
    Cancel(CancelRequest, Vec<u8>, oneshot::Sender<Result<CeremonyReport, CeremonyError>>),
    /// The same, for another state of a key.
    Change(StateChange, Vec<u8>, oneshot::Sender<Result<ChangeReport, ChangeError>>),
    /// A request, and what the client signed and others approved.
    Members(MemberRequest, Vec<u8>, oneshot::Sender<Result<MembersState, MembersError>>),
    /// That a change of the members come to nothing.
    TakeBack(TakeBackRequest, oneshot::Sender<Result<MembersState, MembersError>>),
    /// An encoded warrant.
    Warrant(Bytes, oneshot::Sender<Result<MembersState, MembersError>>),
    Reports(oneshot::Sender<Vec<CeremonyReport>>),
    Watch([u8; 32], oneshot::Sender<Option<watch::Receiver<CeremonyReport>>>),
    /// Encoded entries of the ledger; the answer is the height that this node has reached.
    Entries(Vec<Bytes>, oneshot::Sender<u64>),
    /// Messages of peers wait.
    Mail,
    Stop,
}

/// A node's custodian, and the watchers of its ceremonies.
pub(crate) struct Custody {
    custodian: Box<Custodian>,
    shared: Arc<Shared>,
    /// The peers with a connection.
    connected: BTreeSet<NodeId>,
    /// The ceremonies that this node knows: whether they have ended, and their watchers.
    ceremonies: BTreeMap<[u8; 32], Watched>,
    /// To whoever asks the policy about requests that came by other nodes.
    forward: Option<mpsc::Sender<Forwarded>>,
}

/// A request to the group that another node was asked for, and has granted.
#[derive(Clone, Debug)]
pub struct Forwarded {
    /// What was asked for.
    pub request: GroupRequest,
    /// What the client signed, and others approved: see [`theta_authority::Presented::by_reason`].
    pub reason: Vec<u8>,
}

struct Watched {
    over: bool,
    /// The first tick at which it was known and not over, in seconds since 1970.
    since: Option<u64>,
    watch: Option<watch::Sender<CeremonyReport>>,
}

impl Watched {
    const fn new(over: bool) -> Self {
        Self { over, since: None, watch: None }
    }
}

impl Custody {
    pub(crate) fn new(custodian: Box<Custodian>, shared: Arc<Shared>) -> Self {
        let known = |report: CeremonyReport| (report.id, Watched::new(report.state.is_over()));
        if let Some(members) = custodian.members() {
            shared.seat(members);
        }
        shared.behind.store(custodian.is_behind(), Relaxed);
        let ceremonies = custodian.reports().into_iter().map(known).collect();
        Self { custodian, shared, connected: BTreeSet::new(), ceremonies, forward: None }
    }

    /// Passes requests that came by other nodes to whoever asks the policy about them; so many may wait.
    pub(crate) fn forwarding(self, most: usize) -> (Self, mpsc::Receiver<Forwarded>) {
        let (forward, forwarded) = mpsc::channel(most);
        (Self { forward: Some(forward), ..self }, forwarded)
    }

    pub(crate) const fn custodian(&self) -> &Custodian {
        &self.custodian
    }

    /// Carries out orders in their order, as many in one commit as possible; returns the keys whose entries have
    /// changed.
    pub(crate) fn obey(&mut self, orders: impl Iterator<Item = Order>) -> Vec<KeyName> {
        let (mut inputs, mut changed) = (Vec::new(), Vec::new());
        for order in orders {
            match order {
                Order::Message { from, bytes } => inputs.push(CustodyInput::Message { from, bytes }),
                Order::Tick(unix) => inputs.extend(self.time(unix)),
                Order::Mail => {}
                other => {
                    changed.append(&mut self.tell(core::mem::take(&mut inputs)));
                    changed.append(&mut self.answer(other));
                }
            }
        }
        changed.append(&mut self.tell(inputs));
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// Gives the custodian several inputs at once, which become durable in one commit.
    pub(crate) fn tell(&mut self, inputs: Vec<CustodyInput>) -> Vec<KeyName> {
        if inputs.is_empty() {
            return Vec::new();
        }
        let effects = self.custodian.handle_all(inputs);
        self.shared.behind.store(self.custodian.is_behind(), Relaxed);
        self.carry_out(effects)
    }

    /// The tick, and the peers that have connected since the last one.
    pub(crate) fn time(&mut self, unix: u64) -> Vec<CustodyInput> {
        self.shared.today.set(unix);
        self.measure(unix);
        let status = self.shared.transport.status().into_iter();
        let now: BTreeSet<NodeId> =
            status.filter(|status| status.state == PeerState::Connected).map(|status| status.peer).collect();
        let new = now.difference(&self.connected).copied();
        let inputs = new.map(CustodyInput::Connected).chain([CustodyInput::Tick(unix)]).collect();
        self.connected = now;
        inputs
    }

    /// Shows the monitoring system how old the oldest running ceremony is, and where the ledger stands.
    fn measure(&mut self, unix: u64) {
        let running = self.ceremonies.values_mut().filter(|ceremony| !ceremony.over);
        let ages = running.map(|ceremony| unix.saturating_sub(*ceremony.since.get_or_insert(unix)));
        let (count, oldest) =
            ages.fold((0, 0), |(count, oldest): (usize, u64), age| (count.saturating_add(1), oldest.max(age)));
        self.shared.metrics.ceremonies_running(count, oldest);
        if let Some(ledger) = self.custodian.ledger() {
            self.shared.metrics.ledger(ledger.height(), self.custodian.is_behind());
        }
    }

    /// Answers a question. If the caller has gone away, sending the reply fails, which is no error.
    fn answer(&mut self, order: Order) -> Vec<KeyName> {
        match order {
            Order::Hold(request, reason, reply) => {
                return self.reply(reply, |custodian, effects| custodian.hold(request, reason, effects));
            }
            Order::Cancel(cancel, reason, reply) => {
                return self.reply(reply, |custodian, effects| custodian.cancel(&cancel, reason, effects));
            }
            Order::Change(change, reason, reply) => {
                return self.reply(reply, |custodian, effects| custodian.change(&change, reason, effects));
            }
            Order::Members(request, reason, reply) => {
                return self.reply(reply, |custodian, effects| custodian.change_members(&request, reason, effects));
            }
            Order::TakeBack(request, reply) => {
                return self.reply(reply, |custodian, effects| custodian.take_back(&request, effects));
            }
            Order::Warrant(warrant, reply) => {
                return self.reply(reply, |custodian, effects| custodian.bring_warrant(&warrant, effects));
            }
            Order::Entries(entries, reply) => {
                return self.reply(reply, |custodian, effects| custodian.take_entries(&entries, effects));
            }
            Order::Reports(reply) => drop(reply.send(self.custodian.reports())),
            Order::Watch(id, reply) => drop(reply.send(self.watch(&id))),
            Order::Message { .. } | Order::Tick(_) | Order::Mail | Order::Stop => {}
        }
        Vec::new()
    }

    /// Asks the custodian, and carries out what it wants done; returns the answer and the keys whose entries have changed.
    pub(crate) fn ask<A>(
        &mut self,
        ask: impl FnOnce(&mut Custodian, &mut Vec<CustodyEffect>) -> A,
    ) -> (A, Vec<KeyName>) {
        let mut effects = Vec::new();
        let answer = ask(&mut self.custodian, &mut effects);
        self.shared.behind.store(self.custodian.is_behind(), Relaxed);
        (answer, self.carry_out(effects))
    }

    /// The same; the answer goes to whoever waits for it.
    fn reply<A>(
        &mut self,
        reply: oneshot::Sender<A>,
        ask: impl FnOnce(&mut Custodian, &mut Vec<CustodyEffect>) -> A,
    ) -> Vec<KeyName> {
        let (answer, changed) = self.ask(ask);
        drop(reply.send(answer));
        changed
    }

    /// Follows a ceremony; `None` if it is not known here.
    pub(crate) fn watch(&mut self, id: &[u8; 32]) -> Option<watch::Receiver<CeremonyReport>> {
        let report = self.custodian.report(id)?;
        let over = report.state.is_over();
        let watched = self.ceremonies.entry(*id).or_insert(Watched::new(over));
        match &watched.watch {
            Some(sender) => Some(sender.subscribe()),
            None => {
                let (sender, receiver) = watch::channel(report);
                // A ceremony that has ended does not change any more.
                watched.watch = (!over).then_some(sender);
                Some(receiver)
            }
        }
    }

    fn carry_out(&mut self, effects: Vec<CustodyEffect>) -> Vec<KeyName> {
        let mut changed = Vec::new();
        for effect in effects {
            match effect {
                CustodyEffect::Send { to, bytes } => self.send(to, bytes),
                CustodyEffect::KeyChanged { name, version } => {
                    info!(key = name.as_str(), version = version.get(), "a key has changed");
                    changed.push(name);
                }
                CustodyEffect::Asked { request, reason } => {
                    // One that finds no room is told by other peers, too, and again when it has waited for long.
                    if let Some(forward) = &self.forward {
                        drop(forward.try_send(Forwarded { request, reason }));
                    }
                }
                CustodyEffect::Report(report) => self.report(report),
                CustodyEffect::Culprit { node, offence, ceremony } => {
                    let (offence, instance) = (NodeOffence::Ceremony(offence), InstanceId(ceremony));
                    self.shared.blame(Culprit { party: node, offence, instance });
                }
                CustodyEffect::Members(members) => self.shared.seat(*members),
                CustodyEffect::RolledBack { node, rollback, witness: None } => {
                    warn!(node = node.get(), text = %rollback, "a node's store is older than what was seen of it");
                }
                CustodyEffect::RolledBack { node, rollback, witness: Some(witness) } => {
                    let (node, witness) = (node.get(), witness.get());
                    warn!(node, witness, text = %rollback, "a peer remembers more of this node's store than it knows");
                }
                CustodyEffect::LedgerOffence { node, offence } => {
                    warn!(node = node.get(), text = %offence, "a node broke the rules of the ledger");
                }
                CustodyEffect::Fault(text) => error!(text, "a fault of this program: please report it"),
                CustodyEffect::StoreConfirmed { node } => {
                    warn!(
                        node = node.get(),
                        "a node's operator has confirmed its store: it is taken in place of the one seen before"
                    );
                }
                CustodyEffect::StoreFailed(text) => {
                    error!(text, "the store failed: this node answers no requests until its disk works again");
                    self.shared.failure.set(text);
                }
                CustodyEffect::StoreRecovered => {
                    warn!("the store works again: this node goes on");
                    self.shared.failure.clear();
                }
            }
        }
        changed
    }

    fn send(&self, to: To, payload: Bytes) {
        let about = message_subject(&payload);
        let bytes = Content::Custody { payload }.encode();
        let others = if to == To::All { self.connected.len() } else { 1 };
        self.shared.metrics.custody_sent(about, bytes.len(), others);
        match to {
            To::All => self.shared.send_to_all(bytes),
            To::One(node) => {
                self.shared.send_to(node, bytes);
            }
        }
    }

    fn report(&mut self, report: CeremonyReport) {
        let over = report.state.is_over();
        let watched = self.ceremonies.entry(report.id).or_insert(Watched::new(false));
        if over && !watched.over {
            let outcome = outcome(&report.state);
            self.shared.metrics.ceremony(outcome);
            let (key, version, epoch) = (report.key.as_str(), report.version.get(), report.epoch.get());
            info!(key, version, epoch, aim = report.aim, outcome, "a ceremony has ended");
        }
        watched.over = over;
        let id = report.id;
        if let Some(watch) = &watched.watch {
            watch.send_replace(report);
        }
        if over {
            watched.watch = None;
            // Ceremonies that the custodian has forgotten are forgotten here.
            let custodian = &self.custodian;
            self.ceremonies.retain(|known, _| *known == id || custodian.report(known).is_some());
        }
    }
}

const fn outcome(state: &CeremonyState) -> &'static str {
    match state {
        CeremonyState::Running { .. } => "running",
        CeremonyState::Activated { .. } => "activated",
        CeremonyState::Recovered => "recovered",
        CeremonyState::Aborted => "aborted",
        CeremonyState::Cancelled => "cancelled",
        CeremonyState::Failed(_) => "failed",
    }
}

/// The main loop of the custodian's thread.
pub(crate) fn keep(custody: Custody, inbox: mpsc::Receiver<Order>, mail: &CustodyMail, shards: &Inboxes) {
    let shared = Arc::clone(&custody.shared);
    if catch_unwind(AssertUnwindSafe(|| work(custody, inbox, mail, shards))).is_err() {
        // What is durable is whole; an operator has to decide what comes next.
        error!("bug: the custodian panicked; please report it, and restart this node");
        shared.failure.set("bug: the custodian panicked".to_owned());
    }
}

/// Takes the node's own orders first, then as many messages of peers, in turns. A tick passes when the mail that came
/// before it is read.
fn work(mut custody: Custody, mut inbox: mpsc::Receiver<Order>, mail: &CustodyMail, shards: &Inboxes) {
    let mut batch = Vec::with_capacity(2 * BATCH);
    let mut clock = Clock::default();
    while !custody.shared.stopping.load(Acquire) && mail.next(&mut inbox, BATCH, &mut batch) {
        clock.hold_back(&mut batch, mail.len());
        for name in custody.obey(batch.drain(..)) {
            for shard in shards.iter() {
                // A shard that has stopped holds no shares.
                drop(shard.blocking_send(Command::KeyChanged(name.clone())));
            }
        }
    }
}

/// Lets no tick pass before the mail that came earlier is read. Otherwise a custodian that is behind would take the
/// others to be late, and ask again for what waits in its mail. The mail of each peer is bounded, so nobody can hold back
/// time for long.
#[derive(Debug, Default)]
struct Clock {
    /// The tick that is due, and how many messages are to be read before it.
    due: Option<(u64, usize)>,
}

impl Clock {
    /// Takes the ticks out of a batch, after which so many messages wait, and puts one at its end when it is due.
    fn hold_back(&mut self, batch: &mut Vec<Order>, waiting: usize) {
        let read = batch.iter().filter(|order| matches!(order, Order::Message { .. })).count();
        if let Some((_, before)) = &mut self.due {
            *before = before.saturating_sub(read).min(waiting);
        }
        batch.retain(|order| {
            let Order::Tick(unix) = order else { return true };
            let before = self.due.map_or(waiting, |(_, before)| before);
            self.due = Some((*unix, before));
            false
        });
        if let Some((unix, _)) = self.due.take_if(|(_, before)| *before == 0) {
            batch.push(Order::Tick(unix));
        }
    }
}

/// Sends ticks to the custodian. One that is behind gets fewer ticks, not more.
pub(crate) async fn tick(inbox: mpsc::Sender<Order>, period: Duration, transport: Arc<dyn Transport>) {
    while inbox.send(Order::Tick(WallTime::now().seconds())).await.is_ok() {
        sleep(pace(period, transport.status())).await;
    }
}

/// The time between two ticks: as long as messages take to half of the peers, and never less than `period`. What custodians repeat, and
/// whom they give up, they count in ticks; so on a slow network or a busy machine they do not ask for what is on its way, which would make it
/// slower still. Fewer liars than honest peers move it no further than an honest peer does, and nobody beyond [`SLOWEST`].
fn pace(period: Duration, peers: Vec<PeerStatus>) -> Duration {
    let connected = peers.into_iter().filter(|peer| peer.state == PeerState::Connected);
    let mut latencies: Vec<Duration> = connected.filter_map(|peer| peer.latency).collect();
    latencies.sort_unstable();
    let half = latencies.len().saturating_sub(1) / 2;
    let latency = latencies.get(half).copied().unwrap_or_default();
    latency.clamp(period, period.saturating_mul(SLOWEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Order {
        Order::Message { from: NodeId::try_from(1).unwrap(), bytes: Bytes::new() }
    }

    /// The time at the end of what is left of a batch, if it is there.
    fn given(clock: &mut Clock, mut batch: Vec<Order>, waiting: usize) -> Option<u64> {
        clock.hold_back(&mut batch, waiting);
        let ticks = batch.iter().filter(|order| matches!(order, Order::Tick(_))).count();
        let last = if let Some(Order::Tick(unix)) = batch.last() { Some(*unix) } else { None };
        assert_eq!(ticks, usize::from(last.is_some()));
        last
    }

    #[test]
    fn ticks_are_as_slow_as_messages_to_half_of_the_peers() {
        let peer = |latency: Option<u64>, state| PeerStatus {
            peer: NodeId::try_from(1).unwrap(),
            address: String::new(),
            state,
            last_error: None,
            queued: 0,
            latency: latency.map(Duration::from_millis),
        };
        let paced = |latencies: &[Option<u64>], state| {
            pace(Duration::from_millis(250), latencies.iter().map(|latency| peer(*latency, state)).collect())
        };
        let millis = |latencies: &[Option<u64>]| paced(latencies, PeerState::Connected).as_millis();
        assert_eq!(millis(&[]), 250);
        assert_eq!(millis(&[Some(5), Some(9), None, Some(90_000)]), 250);
        assert_eq!(millis(&[Some(600), Some(700), Some(800), Some(90_000), Some(90_000)]), 800);
        assert_eq!(millis(&[Some(600), Some(90_000)]), 600, "one of two peers may be slow by itself");
        assert_eq!(millis(&[Some(90_000), Some(90_000), Some(5)]), 4_000);
        assert_eq!(paced(&[Some(900), Some(900)], PeerState::Connecting).as_millis(), 250);
    }

    #[test]
    fn time_passes_when_what_came_before_is_read() {
        let mut clock = Clock::default();
        assert_eq!(given(&mut clock, vec![Order::Tick(1), message()], 0), Some(1));
        assert_eq!(given(&mut clock, vec![message()], 0), None);
        assert_eq!(given(&mut clock, vec![Order::Tick(2), message()], 3), None);
        // Another one meanwhile is the same, and what comes meanwhile does not delay it.
        assert_eq!(given(&mut clock, vec![Order::Tick(3), message(), message()], 100), None);
        assert_eq!(given(&mut clock, vec![message()], 100), Some(3));
        assert_eq!(given(&mut clock, vec![message()], 100), None);
        assert_eq!(given(&mut clock, vec![Order::Tick(4)], 100), None);
        assert_eq!(given(&mut clock, vec![], 0), Some(4), "nothing waits any more");
    }
}
