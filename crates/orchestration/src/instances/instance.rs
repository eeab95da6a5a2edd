//! One running instance.

use core::time::Duration;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time,
};

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use theta_network::PeerId;
use theta_protocols::Outcome;
use theta_rounds::{Abort, Bug, Channel, Effect, Input, Machine, PartyId, Recipient};
use tokio::{sync::watch, time::Instant};
use tracing::debug;

use super::{command::Reply, ending::Ending, envelope::Content, shared::Shared};
use crate::{Culprit, InstanceId, InstanceSnapshot, InstanceState, KeyEntry, metrics::SuiteMetrics, quota::Permit};

/// What an instance's work needs from its thread.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) rng: ChaCha20Rng,
}

/// A protocol that runs for one request.
pub(crate) struct Instance {
    pub(crate) id: InstanceId,
    pub(crate) key: Arc<KeyEntry>,
    pub(crate) operation: &'static str,
    pub(crate) machine: Box<dyn Machine<Output = Outcome>>,
    pub(crate) metrics: Arc<SuiteMetrics>,
    pub(crate) ending: Ending,
    /// The first caller, if it waits for the end: it is woken once rather than twice.
    pub(crate) caller: Option<Reply>,
    /// Made for the first one who watches.
    pub(crate) watch: Option<watch::Sender<InstanceSnapshot>>,
    /// Who has said anything.
    pub(crate) heard: Vec<PartyId>,
    pub(crate) sent: Sent,
    pub(crate) culprits: Vec<Culprit>,
    /// When the orchestrator was asked.
    pub(crate) submitted: time::Instant,
    /// When its time is over.
    pub(crate) deadline: Instant,
    /// When it looks after itself next,
    pub(crate) wake: Instant,
    /// and how long it waited for that.
    pub(crate) patience: Duration,
    pub(crate) statement_bytes: usize,
    /// Its place among the running, its part of the bytes. Given back when it ends.
    pub(crate) permits: Option<(Permit, Permit)>,
}

/// What was sent in an instance, kept for peers that did not get it.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    messages: Vec<(Recipient, Bytes)>,
    answered: Vec<(PartyId, Instant)>,
    has_reply: bool,
}

impl Sent {
    pub(crate) fn bytes(&self) -> usize {
        self.messages.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Keeps one of the replies, which are alike, for all that ask again; drops the others.
    pub(crate) fn keep_reply(&mut self, replies: &mut Self) {
        let reply = replies.messages.drain(..).next_back();
        if !self.has_reply
            && let Some((_, bytes)) = reply
        {
            self.has_reply = true;
            self.messages.push((Recipient::OnRequest, bytes));
        }
    }

    /// Whether a peer may be answered: not more often than once in `interval`. If so, notes that it is.
    pub(crate) fn may_answer(&mut self, party: PartyId, now: Instant, interval: Duration) -> bool {
        match self.answered.iter_mut().find(|(answered, _)| *answered == party) {
            Some((_, last)) if now.duration_since(*last) < interval => false,
            Some((_, last)) => {
                *last = now;
                true
            }
            None => {
                self.answered.push((party, now));
                true
            }
        }
    }

    /// Sends everything that is kept for `party`, which asks for it.
    pub(crate) fn answer(&self, peer: PeerId, party: PartyId, shared: &Shared) {
        self.repeat(peer, party, true, shared, || shared.metrics.resent.inc());
    }

    /// Sends what `party` should have had by itself.
    fn remind(&self, peer: PeerId, party: PartyId, shared: &Shared) {
        self.repeat(peer, party, false, shared, || shared.metrics.reminded.inc());
    }

    fn repeat(&self, peer: PeerId, party: PartyId, asks: bool, shared: &Shared, count: impl Fn() -> u64) {
        for (to, bytes) in &self.messages {
            let meant = match to {
                Recipient::All => true,
                Recipient::OnRequest => asks,
                Recipient::Party(only) => *only == party,
            };
            if meant {
                send_to(shared, peer, bytes.clone());
                count();
            }
        }
    }
}

impl Instance {
    /// Gives the machine one input and does what it wants. Returns the end if this was it.
    pub(crate) fn step(&mut self, input: Input, worker: &mut Worker) -> Option<Result<Outcome, Abort>> {
        // The boundary for bugs: whatever goes wrong in a protocol ends its instance, not the thread with all the others.
        // The machine is not used again, so that its broken state cannot matter.
        let Ok(effects) = catch_unwind(AssertUnwindSafe(|| self.machine.handle(input, &mut worker.rng))) else {
            return Some(Err(Abort::Bug(Bug("the protocol panicked"))));
        };
        let mut end = None;
        for effect in effects {
            match effect {
                Effect::Send { channel: Channel::Ordered, .. } => {
                    end = Some(Err(Abort::Bug(Bug("this network has no total order"))));
                }
                Effect::Send { to, slot, channel, payload } => {
                    let message = Content::Message { instance: self.id, slot, channel, payload };
                    self.send(to, message.encode(), &worker.shared);
                }
                Effect::Blame(blame) => {
                    let misbehaviour = blame.offence.to_string();
                    let culprit = Culprit { party: blame.party, misbehaviour, instance: self.id };
                    worker.shared.blame(culprit.clone(), blame.offence.name());
                    self.culprits.push(culprit);
                }
                Effect::Finished(result) => end = Some(result),
            }
        }
        if end.is_none() {
            self.show_progress();
        }
        end
    }

    fn send(&mut self, to: Recipient, bytes: Bytes, shared: &Shared) {
        self.sent.messages.push((to, bytes.clone()));
        match to {
            Recipient::All => {
                for error in shared.transport.broadcast(bytes) {
                    shared.metrics.refused_by_transport.inc();
                    debug!(instance = %self.id, %error, "a peer will have to ask again");
                }
            }
            Recipient::OnRequest => {}
            Recipient::Party(party) => {
                if let Some((peer, _)) = shared.peers.iter().find(|(_, known)| *known == party) {
                    send_to(shared, *peer, bytes);
                }
            }
        }
    }

    /// Notes that a party was heard.
    pub(crate) fn hear(&mut self, party: PartyId) {
        if !self.heard.contains(&party) {
            self.heard.push(party);
        }
    }

    /// The members of the key's group that have not said anything.
    fn silent<'a>(&'a self, shared: &'a Shared) -> impl Iterator<Item = (PeerId, PartyId)> + 'a {
        let n = self.key.public.threshold().n();
        shared.peers.iter().copied().filter(move |(_, party)| party.get() <= n && !self.heard.contains(party))
    }

    /// Asks those of whom the protocol still expects something to send again all that they sent, and tells them again what
    /// they should have had: perhaps they answer something that never reached them. Returns how many were asked. What is
    /// known already, on either side, is ignored.
    pub(crate) fn ask(&self, shared: &Shared) -> usize {
        let request = Content::Resend { instance: self.id }.encode();
        let mut asked = 0;
        for (peer, party) in shared.peers.iter().copied().filter(|(_, party)| self.machine.awaits(*party)) {
            self.sent.remind(peer, party, shared);
            send_to(shared, peer, request.clone());
            shared.metrics.asked.inc();
            asked += 1;
        }
        asked
    }

    /// Why time ran out, for people.
    pub(crate) fn expiry_text(&self, shared: &Shared) -> String {
        const MAX_NAMES: usize = 16;
        let (shares, needed) = self.machine.contributions();
        let mut text = format!("{shares} of {needed} shares after {}", seconds(shared.config.instance_ttl));
        let silent: Vec<String> = self.silent(shared).map(|(_, party)| party.to_string()).collect();
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
            text.push_str(&format!("; node {} misbehaved: {}", culprit.party, culprit.misbehaviour));
        }
        text
    }

    pub(crate) fn snapshot(&self) -> InstanceSnapshot {
        let (shares, needed) = self.machine.contributions();
        InstanceSnapshot {
            key: self.key.name.to_string(),
            operation: self.operation,
            shares,
            needed,
            state: InstanceState::Running,
        }
    }

    /// Starts to watch.
    pub(crate) fn watch(&mut self) -> watch::Receiver<InstanceSnapshot> {
        match &self.watch {
            Some(sender) => sender.subscribe(),
            None => {
                let (sender, receiver) = watch::channel(self.snapshot());
                self.watch = Some(sender);
                receiver
            }
        }
    }

    fn show_progress(&self) {
        let Some(sender) = &self.watch else { return };
        let (shares, _) = self.machine.contributions();
        sender.send_if_modified(|snapshot| core::mem::replace(&mut snapshot.shares, shares) != shares);
    }
}

/// Sends to one peer. One that cannot take it now will ask for it later.
fn send_to(shared: &Shared, peer: PeerId, bytes: Bytes) {
    if let Err(error) = shared.transport.send(peer, bytes) {
        shared.metrics.refused_by_transport.inc();
        debug!(%error, "not sent");
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
