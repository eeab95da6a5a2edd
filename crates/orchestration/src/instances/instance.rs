//! One running instance.

use core::time::Duration;
use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time,
};

use bytes::Bytes;
use theta_custody::KeyEntry;
use theta_names::{NodeId, ShareIndex};
use theta_network::PeerState;
use theta_protocols::{AnyMachine, Ask, Misbehaviour, Outcome, Served, Supply, Used, ecdsa};
use theta_rounds::{Abort, Blame, Bug, Channel, Effect, Input, Offence, PartyId, Recipient, Slot};
use theta_schemes::Claim;
use tokio::{sync::watch, time::Instant};

use super::{backlog::Early, ending::Audience, envelope::Content, shared::Shared};
use crate::{
    Asker, Culprit, InstanceId, InstanceSnapshot, InstanceState, NodeOffence, asked::Asked, entropy::Entropy,
    filling::FillingPermit, metrics::SuiteMetrics, quota::Permit,
};

/// An effect of a machine of any protocol.
type AnyEffect = Effect<Outcome, Misbehaviour, Ask>;

/// The error of a machine that names a party without a share.
const NO_SUCH_SHARE: Bug = Bug("a protocol named a share that its key does not have");

/// What the work on instances needs from its thread.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) rng: Entropy,
    /// Results that wait for their check, with the instances that want to know.
    pub(crate) claims: Vec<(InstanceId, Claim)>,
    /// What instances want of stocks for which it is being made.
    pub(crate) drawing: VecDeque<Drawing>,
}

/// An instance waits for a stock.
pub(crate) struct Drawing {
    pub(crate) instance: InstanceId,
    pub(crate) ask: ecdsa::Ask,
    /// When it began to wait; nothing until the shard knows of it.
    pub(crate) since: Option<Instant>,
}

/// A protocol that runs for one request. The machine knows the parties by their share indices; all else here knows
/// nodes. The key's `Holders` map one to the other.
pub(crate) struct Instance {
    pub(crate) id: InstanceId,
    pub(crate) asked: Asked,
    pub(crate) key: Arc<KeyEntry>,
    pub(crate) machine: AnyMachine,
    pub(crate) metrics: Arc<SuiteMetrics>,
    pub(crate) audience: Audience,
    /// The audiences of instances of former epochs that this one continues, besides the one that it replaced.
    pub(crate) joined: Vec<Audience>,
    /// The nodes that have sent anything.
    pub(crate) heard: Vec<NodeId>,
    pub(crate) sent: Sent,
    pub(crate) culprits: Vec<Culprit>,
    /// When the orchestrator was asked.
    pub(crate) submitted: time::Instant,
    /// When it began here.
    pub(crate) began: Instant,
    /// When its time is over.
    pub(crate) deadline: Instant,
    /// When it is looked after next.
    pub(crate) wake: Instant,
    /// How long it waited for that.
    pub(crate) patience: Duration,
    /// Whether it has looked around: in quorum mode, has given up waiting for those that were drawn to do its work.
    pub(crate) looked_around: bool,
    /// Its place among the running instances and its part of the bytes, given back when it ends.
    pub(crate) permits: Option<(Permit, Permit)>,
    /// The client on whose account it runs; that place is given back with the permits.
    pub(crate) asker: Option<Asker>,
    /// If it fills stocks: nobody asked for it, and no epoch but this has a use for it.
    pub(crate) filling: Option<FillingPermit>,
}

/// The recipient of a message, in nodes: the counterpart of [`Recipient`].
#[derive(Clone, Copy, Debug)]
enum To {
    /// All other holders of the key.
    Holders,
    /// Holders that ask for it.
    WhoAsks,
    /// One node.
    Node(NodeId),
}

/// Messages that were sent in an instance, kept for peers that did not get them.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// To whom, in which slot of the machine if it is the machine's, and what.
    messages: Vec<(To, Option<Slot>, Bytes)>,
    /// Who was answered, when last, and how many messages there were then.
    answered: Vec<(NodeId, Instant, usize)>,
    has_reply: bool,
}

impl Sent {
    pub(crate) fn bytes(&self) -> usize {
        self.messages.iter().map(|(.., bytes)| bytes.len()).sum()
    }

    /// How many messages there are.
    pub(crate) const fn count(&self) -> usize {
        self.messages.len()
    }

    /// Keeps one reply that all may know, once, for others that ask: they may not be able to ask the machine any more.
    fn keep_for_all(&mut self, slot: Slot, told: &Bytes) {
        let is_kept = |(to, _, kept): &(To, Option<Slot>, Bytes)| matches!(to, To::WhoAsks) && kept == told;
        if !self.messages.iter().any(is_kept) {
            self.messages.push((To::WhoAsks, Some(slot), told.clone()));
        }
    }

    /// Keeps no messages any more of slots that are of no use.
    fn keep(&mut self, is_of_use: impl Fn(Slot) -> bool) {
        self.messages.retain(|(_, slot, _)| slot.is_none_or(&is_of_use));
        // Their numbers of messages say nothing any more.
        self.answered.clear();
    }

    /// Keeps one of the replies, which are alike, for all that ask again; drops the others.
    pub(crate) fn keep_reply(&mut self, replies: &mut Self) {
        let reply = replies.messages.drain(..).next_back();
        if !self.has_reply
            && let Some((_, slot, bytes)) = reply
        {
            self.has_reply = true;
            self.messages.push((To::WhoAsks, slot, bytes));
        }
    }

    /// Whether a peer may be answered: once in `interval` at most, and once more for each message that has come since. If so, records that
    /// it is. An answer without a message is none.
    pub(crate) fn may_answer(&mut self, node: NodeId, now: Instant, interval: Duration) -> bool {
        let count = self.messages.len();
        if count == 0 {
            return false;
        }
        match self.answered.iter_mut().find(|(answered, ..)| *answered == node) {
            Some((_, last, had)) if now.duration_since(*last) < interval && *had == count => false,
            Some((_, last, had)) => {
                (*last, *had) = (now, count);
                true
            }
            None => {
                self.answered.push((node, now, count));
                true
            }
        }
    }

    /// Sends everything that is kept for `node`, which asks for it.
    pub(crate) fn answer(&self, node: NodeId, shared: &Shared) {
        shared.metrics.resent.inc_by(self.repeat(node, true, usize::MAX, shared));
    }

    /// Sends `node` again what it should have had without asking, of the first so many messages.
    fn remind(&self, node: NodeId, first: usize, shared: &Shared) {
        shared.metrics.reminded.inc_by(self.repeat(node, false, first, shared));
    }

    /// Returns how many messages were sent.
    fn repeat(&self, node: NodeId, asks: bool, first: usize, shared: &Shared) -> u64 {
        let mut sent = 0;
        for (to, _, bytes) in self.messages.iter().take(first) {
            let meant = match to {
                To::Holders => true,
                To::WhoAsks => asks,
                To::Node(only) => *only == node,
            };
            if meant {
                shared.send_to(node, bytes.clone());
                sent += 1;
            }
        }
        sent
    }
}

impl Instance {
    /// Gives the machine one input and carries out its effects, until there are none. Returns the result if the
    /// instance has ended.
    pub(crate) fn step(&mut self, input: Input<Supply>, worker: &mut Worker) -> Option<Result<Outcome, Abort>> {
        let mut end = None;
        // Most inputs make a machine ask for nothing; then nothing is allocated.
        let mut supplies = VecDeque::new();
        let mut next = Some(input);
        while let Some(input) = next.take().or_else(|| supplies.pop_front().map(Input::Supply)) {
            // The boundary for bugs: a panic in a protocol ends its instance, and not the thread with all other
            // instances. The machine is not used again, so its broken state does not matter.
            let Ok(effects) = catch_unwind(AssertUnwindSafe(|| self.machine.handle(input, &mut worker.rng))) else {
                return Some(Err(Abort::Bug(Bug("the protocol panicked"))));
            };
            for effect in effects {
                match effect {
                    Effect::Ask(Ask::Nonces(ask)) => {
                        supplies.extend(self.supply(self.key.stock.nonces(ask), &worker.shared))
                    }
                    Effect::Ask(Ask::Presignatures(ecdsa::Ask::Quarantine(found))) => {
                        worker.shared.quarantine(&self.key, &found);
                    }
                    Effect::Ask(Ask::Presignatures(ecdsa::Ask::Failed { holders, cause, phase })) => {
                        let holders = holders.into_iter().filter_map(|party| self.node_of(party).ok());
                        worker.shared.note_failure(&self.key, holders, cause, phase);
                    }
                    Effect::Ask(Ask::Presignatures(ecdsa::Ask::Spoiled { local, signers, liars })) => {
                        for party in self.key.stock.spoiled(local, &signers, liars) {
                            let offence = Offence::Protocol(Misbehaviour::Eliminated);
                            if let Err(bug) =
                                self.carry_out(Effect::Blame(Blame { party, slot: None, offence }), &worker.shared)
                            {
                                end = Some(Err(bug.into()));
                            }
                        }
                    }
                    Effect::Ask(Ask::Presignatures(ask)) => supplies.extend(self.draw(ask, worker)),
                    Effect::Ask(Ask::Check(claim)) => worker.claims.push((self.id, claim)),
                    Effect::Finished(result) => end = Some(result),
                    effect => {
                        if let Err(bug) = self.carry_out(effect, &worker.shared) {
                            end = Some(Err(bug.into()));
                        }
                    }
                }
            }
        }
        if end.is_none() {
            self.show_progress();
        }
        end
    }

    /// What the stock of presignatures answers; where some are being made, the instance waits among the others.
    pub(crate) fn draw(&self, ask: ecdsa::Ask, worker: &mut Worker) -> Option<Supply> {
        match self.key.stock.presignatures(ask) {
            Served::Later(ask) => {
                worker.drawing.push_back(Drawing { instance: self.id, ask, since: None });
                None
            }
            Served::Done => None,
            Served::Supply(supply) => Some(supply),
            Served::Used(used) => worker.shared.burning.burn(self.id, self.key.key_id, used, &worker.shared.today),
        }
    }

    /// What the stock of the key's epoch answers, at once; what is taken out to sign comes when its use is recorded.
    fn supply(&self, served: Served<Supply, Used>, shared: &Shared) -> Option<Supply> {
        match served {
            Served::Done => None,
            Served::Later(never) => match never {},
            Served::Supply(supply) => Some(supply),
            Served::Used(used) => shared.burning.burn(self.id, self.key.key_id, used, &shared.today),
        }
    }

    /// Puts it aside: the same request may go on with it.
    pub(crate) fn rest(&mut self) {
        self.machine.rest();
        let Self { machine, sent, .. } = self;
        sent.keep(|slot| machine.outlives_rest(slot));
    }

    /// Tells the other holders that it begins: before all else, and again whenever it repeats what it has sent.
    pub(crate) fn announce(&mut self, announcement: Bytes, shared: &Shared) {
        self.send(To::Holders, None, announcement, shared);
    }

    /// Carries out one effect: sends a message, or records blame.
    ///
    /// # Errors
    /// [`Bug`]: the machine asks for something impossible.
    fn carry_out(&mut self, effect: AnyEffect, shared: &Shared) -> Result<(), Bug> {
        match effect {
            Effect::Send { channel: Channel::Ordered, .. } => return Err(Bug("this network has no total order")),
            Effect::Send { to, slot, channel, payload } => {
                let bytes = Content::Message { instance: self.id, slot, payload }.encode();
                let to = match to {
                    Recipient::All => To::Holders,
                    Recipient::OnRequest => To::WhoAsks,
                    Recipient::Party(party) => {
                        let node = self.node_of(party)?;
                        if channel == Channel::Broadcast {
                            self.sent.keep_for_all(slot, &bytes);
                            shared.send_to(node, bytes);
                            return Ok(());
                        }
                        To::Node(node)
                    }
                };
                self.send(to, Some(slot), bytes, shared);
            }
            Effect::Blame(blame) => {
                let party = self.node_of(blame.party)?;
                let culprit = Culprit { party, offence: NodeOffence::Instance(blame.offence), instance: self.id };
                shared.blame(culprit.clone());
                self.culprits.push(culprit);
            }
            Effect::Ask(_) | Effect::Finished(_) => {}
        }
        Ok(())
    }

    fn send(&mut self, to: To, slot: Option<Slot>, bytes: Bytes, shared: &Shared) {
        self.sent.messages.push((to, slot, bytes.clone()));
        match to {
            To::Holders => shared.send_to_holders(&self.key, bytes),
            To::WhoAsks => {}
            To::Node(node) => {
                shared.send_to(node, bytes);
            }
        }
    }

    /// The node that a party of the machine stands for.
    ///
    /// # Errors
    /// [`Bug`]: a machine knows only parties that hold shares.
    fn node_of(&self, party: PartyId) -> Result<NodeId, Bug> {
        self.holder(party.share())
    }

    /// The node that holds the share of this index.
    ///
    /// # Errors
    /// [`Bug`]: there is no such share.
    pub(crate) fn holder(&self, index: ShareIndex) -> Result<NodeId, Bug> {
        self.key.holders.node_of(index).ok_or(NO_SUCH_SHARE)
    }

    /// The party that stands for a node in the machine; `None` if the node holds no share.
    fn party_of(&self, node: NodeId) -> Option<PartyId> {
        self.key.holders.index_of(node).map(PartyId::of_share)
    }

    /// A message of a node as input for the machine; `None` if the node holds no share.
    pub(crate) fn input(&self, message: Early) -> Option<Input<Supply>> {
        let Early { from, slot, channel, payload } = message;
        Some(Input::Message { from: self.party_of(from)?, slot, channel, payload })
    }

    /// Records that a node has sent something.
    pub(crate) fn hear(&mut self, node: NodeId) {
        if !self.heard.contains(&node) {
            self.heard.push(node);
        }
    }

    /// The other holders of the key that have sent nothing.
    fn silent<'a>(&'a self, shared: &'a Shared) -> impl Iterator<Item = NodeId> + 'a {
        let others = self.key.holders.iter().filter(|node| *node != shared.local);
        others.filter(|node| !self.heard.contains(node))
    }

    /// Asks the holders from which the protocol still expects something to send their messages again, and sends them
    /// again what they should have had, in case their answer waits for that: of the first so many messages. Returns how many were
    /// asked. Both sides ignore messages that they know already.
    pub(crate) fn ask(&self, shared: &Shared, first: usize) -> usize {
        let request = Content::Resend { instance: self.id }.encode();
        let mut asked = 0;
        let awaited = |node: NodeId| self.party_of(node).is_some_and(|party| self.machine.awaits(party));
        for node in shared.peers().iter().copied().filter(|node| awaited(*node)) {
            self.sent.remind(node, first, shared);
            shared.send_to(node, request.clone());
            shared.metrics.asked.inc();
            asked += 1;
        }
        asked
    }

    /// Whether to end it before its time: nobody waits for it any more, and missing shares cannot come, since fewer
    /// than k holders have been heard or are connected. The same request resumes it.
    pub(crate) fn is_in_vain(&self, shared: &Shared, now: Instant) -> bool {
        let began = self.deadline.checked_sub(shared.config.instance_ttl).unwrap_or(self.deadline);
        let fresh = now.duration_since(began) < shared.config.unattended;
        let waits = core::iter::once(&self.audience).chain(&self.joined).any(Audience::is_there);
        if fresh || waits {
            return false;
        }
        let status = shared.transport.status();
        let connected =
            |node: NodeId| status.iter().any(|peer| peer.peer == node && peer.state == PeerState::Connected);
        let of_use = |node: &NodeId| *node == shared.local || self.heard.contains(node) || connected(*node);
        let (shares, needed) = self.machine.contributions();
        shares < needed && self.key.holders.iter().filter(of_use).count() < needed
    }

    /// Why time ran out, in words.
    pub(crate) fn expiry_text(&self, shared: &Shared, after: Duration) -> String {
        const MAX_NAMES: usize = 16;
        let (shares, needed) = self.machine.contributions();
        let mut text = format!("{shares} of {needed} shares after {}", seconds(after));
        let silent: Vec<String> = self.silent(shared).map(|node| node.to_string()).collect();
        match silent.as_slice() {
            [] => text.push_str("; every node was heard"),
            [node] => text.push_str(&format!("; nothing from node {node}: is it running? see theta status")),
            nodes => {
                let names: Vec<&str> = nodes.iter().take(MAX_NAMES).map(String::as_str).collect();
                let more = nodes.len().saturating_sub(MAX_NAMES);
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                let names = names.join(", ");
                text.push_str(&format!("; nothing from nodes {names}{more}: are they running? see theta status"));
            }
        }
        for culprit in self.culprits.iter().take(MAX_NAMES) {
            text.push_str(&format!("; node {} misbehaved: {}", culprit.party, culprit.offence));
        }
        text
    }

    pub(crate) fn snapshot(&self) -> InstanceSnapshot {
        let (shares, needed) = self.machine.contributions();
        InstanceSnapshot {
            key: self.asked.key.to_string(),
            operation: self.asked.statement.as_statement().operation(),
            shares,
            needed,
            // An instance that goes on only to help others has ended for its callers.
            state: self.audience.ending.state().unwrap_or(InstanceState::Running),
        }
    }

    /// Starts to watch.
    pub(crate) fn watch(&mut self) -> watch::Receiver<InstanceSnapshot> {
        let snapshot = self.snapshot();
        self.audience.watch(|| snapshot)
    }

    fn show_progress(&self) {
        let contributions = self.machine.contributions();
        self.audience.show(contributions);
        for audience in &self.joined {
            audience.show(contributions);
        }
    }
}

/// `60 s`, or `1500 ms` where seconds are not whole.
fn seconds(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} ms", duration.as_millis())
    }
}
