//! What happens at each event.

use bytes::Bytes;
use theta_authority::{Granted, Judged, Request};
use theta_names::{Epoch, NodeId};
use theta_network::Inbound;
use theta_orchestration::{InstanceError, Pending, SubmitError};
use theta_policy::SlotStanding;
use theta_rounds::Abort;
use theta_statements::UnixTime;

use super::{Event, GHOST, ROUND, TICK, World};
use crate::chance::below;
use crate::node::{Node, after};
use crate::permission::presented;
use crate::scenario::{Aim, Sabotage};
use crate::watch::{Invariant, Observation, Role, Signer, Violation};

impl World<'_> {
    pub(super) fn step(&mut self, event: Event) -> Result<(), Violation> {
        let now = self.now;
        self.trace.absorb(&[&now.to_be_bytes()]);
        if !matches!(event, Event::Tick(_) | Event::Frame { .. } | Event::Wake { .. }) {
            self.trace.tell(|| format!("{now:>6} {}", said(&event)));
        }
        match event {
            Event::Deliver { from, to, bytes } => self.deliver(from, to, bytes),
            Event::Frame { from, to, frame } => self.frame(from, to, frame),
            Event::Wake { node, peer } => {
                self.wake(node, peer);
                Ok(())
            }
            Event::Tick(node) => self.tick(node),
            Event::Round => {
                self.round();
                Ok(())
            }
            Event::Ask { node, request } => self.ask(node, request),
            Event::Hold { node, ceremony } => self.hold(node, ceremony),
            Event::Change { node, change } => self.change(node, change),
            Event::Read(node) => self.read(node),
            Event::Copy(node) => {
                self.copy(node);
                Ok(())
            }
            Event::SetBack { node, copied } => self.set_back(node, copied),
            Event::Confirm(node) => self.confirm(node),
            Event::Steal(node) => {
                self.steal(node);
                Ok(())
            }
            Event::Doom { node, writes } => {
                if let Some(node) = self.nodes.get(&node).filter(|node| node.life.is_some()) {
                    node.disk.fail_after(writes);
                }
                Ok(())
            }
            Event::Crash(node) => {
                self.crash(node);
                Ok(())
            }
            Event::Start(node) => self.start(node),
            Event::Part(side) => {
                self.watch.observations.note(Observation::Parted);
                self.side = side;
                Ok(())
            }
            Event::Lose(exchange) => self.lose(exchange),
            Event::Sign(exchange) => self.sign(exchange),
            Event::Members { node, wish } => self.change_members(node, wish),
            Event::Block => {
                self.block();
                Ok(())
            }
            Event::Order(node) => self.bring(node),
            Event::Heal => {
                self.side.clear();
                Ok(())
            }
            Event::Jump { node, seconds, pause } => {
                if let Some(node) = self.nodes.get_mut(&node) {
                    node.wall = node.wall.saturating_add(seconds);
                    node.paused = now + pause;
                }
                Ok(())
            }
        }
    }

    pub(super) fn crash(&mut self, number: u16) {
        self.watch.crashed(number);
        self.watch.observations.note(Observation::Crashed);
        if let Some(hosts) = &mut self.hosts {
            hosts.crash(number);
        }
        if let Some(order) = &mut self.order {
            order.crash(number);
        }
        if let Some(node) = self.nodes.get_mut(&number) {
            node.crash(&mut self.rng);
        }
    }

    fn start(&mut self, number: u16) -> Result<(), Violation> {
        let (run, sabotage) = ((self.scenario.seed, self.scenario.kept), self.bug(number));
        let moment = after(self.base, self.now);
        let Some(policy) = self.policies.get(&(number % GHOST)) else { return Ok(()) };
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&number).filter(|node| node.life.is_none()) else { return Ok(()) };
        node.since = now;
        match node.start(run, (&self.setup, policy), moment, sabotage) {
            Ok(()) => self.drain(number),
            Err(text) => self.watch.violated(Invariant::Works, format!("node {number} does not start: {text}")),
        }
    }

    /// The node, if it runs and is not paused.
    pub(super) fn awake(&mut self, number: u16) -> Option<&mut Node> {
        let now = self.now;
        self.nodes.get_mut(&number).filter(|node| node.life.is_some() && node.paused <= now)
    }

    fn deliver(&mut self, from: u16, to: u16, bytes: Bytes) -> Result<(), Violation> {
        let deaf = self.bug(to) == Some(Sabotage::Deaf) && self.now > 500;
        if deaf || self.apart(from, to) || !self.are_connected(from, to) {
            return Ok(());
        }
        let Ok(peer) = NodeId::try_from(from % GHOST) else { return Ok(()) };
        if self.is_honest(to) {
            if self.awake(to).is_none() {
                return Ok(());
            }
            self.watch.delivered(to, from, &bytes);
        }
        let Some(node) = self.awake(to) else { return Ok(()) };
        let state = node.life.as_ref().and_then(|life| life.engine.custodian()?.ledger());
        let copied = node.liar.as_mut().and_then(|liar| liar.hear(from, &bytes, state));
        if let Some(life) = &mut node.life {
            life.engine.receive(Inbound { from: peer, channel: theta_names::Channel::Private, bytes });
        }
        if let Some((copied, to_all)) = copied {
            let told = |other: &u16| *other < GHOST && *other != to && (to_all || *other == from);
            let others: Vec<u16> = self.nodes.keys().copied().filter(told).collect();
            others.into_iter().for_each(|other| self.post(to, other, 0, &copied));
        }
        self.look(to)
    }

    fn tick(&mut self, number: u16) -> Result<(), Violation> {
        self.at(self.now + TICK, Event::Tick(number));
        let (now, moment) = (self.now, after(self.base, self.now));
        let up = |node: &&u16| **node < GHOST && self.nodes.get(*node).is_some_and(|node| node.life.is_some());
        let reached: Vec<u16> = self.nodes.keys().filter(up).copied().collect();
        let reached: Vec<u16> = reached
            .into_iter()
            .filter(|peer| !self.apart(number, *peer) && self.seated_to_each_other(number, *peer))
            .collect();
        let Some(node) = self.awake(number) else { return Ok(()) };
        node.outbox.reach(reached.into_iter());
        let wall = node.wall_clock(now);
        if let Some(life) = &mut node.life {
            life.engine.tick(moment, wall);
        }
        self.look(number)
    }

    /// Sends a node's messages, and records what has ended at it.
    pub(super) fn look(&mut self, number: u16) -> Result<(), Violation> {
        self.drain(number)?;
        if !self.is_honest(number) {
            return Ok(());
        }
        self.look_at_ledger(number)?;
        self.look_at_quarantines(number)?;
        let Some(life) = self.nodes.get_mut(&number).and_then(|node| node.life.as_mut()) else { return Ok(()) };
        self.watch.load(number, &life.engine.load(), &self.setup.config, self.scenario.last())?;
        let over = |(_, pending): &mut (usize, Pending)| pending.outcome().is_some();
        let ended: Vec<_> = life.pending.extract_if(.., over).collect();
        for (request, pending) in ended {
            match pending.outcome() {
                Some(Ok(finished)) => self.finished(number, request, &finished)?,
                Some(Err(InstanceError::Aborted(abort)))
                    if self.may_lack_a_set() && !matches!(abort, Abort::Bug(_)) =>
                {
                    let now = self.now;
                    self.trace.tell(|| format!("{now:>6} node {number} gives request {request} up: {abort}"));
                }
                Some(Err(InstanceError::Aborted(abort))) => {
                    let text = format!("request {request} at node {number}: {abort}");
                    return self.watch.violated(Invariant::Ends, text);
                }
                Some(Err(InstanceError::Slot(refusal))) => {
                    let now = self.now;
                    self.trace.tell(|| format!("{now:>6} node {number} refuses request {request}: {refusal}"));
                    self.refused.insert((request, number), refusal.is_final());
                }
                // The clients ask again.
                _ => {}
            }
        }
        Ok(())
    }

    fn finished(
        &mut self,
        number: u16,
        request: usize,
        finished: &theta_orchestration::Finished,
    ) -> Result<(), Violation> {
        let Some(wanted) = self.wanted.get(request) else { return Ok(()) };
        // Keys of all epochs that this node has had: the proof of a coin names the shares from which it was made.
        let keys = self.known.get(&(number, wanted.asked.key)).map_or(&[][..], |keys| &keys[..]);
        let Some(place) = wanted.right_under(finished, keys) else {
            let text = format!("node {number} has a false result of request {request}");
            return self.watch.violated(Invariant::OneResult, text);
        };
        let mut result = finished.result.expose().clone();
        if self.bug(number) == Some(Sabotage::OtherResult) {
            result.push(0);
        }
        let now = self.now;
        self.trace.absorb(&[&result]);
        self.trace.tell(|| format!("{now:>6} node {number} has the result of request {request}"));
        let key = keys.get(place).map_or(&[][..], |key| key.public_key_bytes());
        if wanted.has_one_result() {
            self.watch.finished(number, (request, key.to_vec()), &result)?;
        }
        self.served.insert((request, number));
        Ok(())
    }

    /// Clients ask all nodes for everything that they lack.
    fn round(&mut self) {
        self.at(self.now + ROUND, Event::Round);
        let late = self.scenario.weather.delay;
        let mut asks = Vec::new();
        // Each round begins with another request. Otherwise the last would never pass where a rate admits few.
        let first = usize::try_from(self.now / ROUND).unwrap_or(0).checked_rem(self.wanted.len()).unwrap_or(0);
        let in_turn = self.wanted.iter().enumerate().cycle().skip(first).take(self.wanted.len());
        for (request, wanted) in in_turn.filter(|(_, wanted)| wanted.asked.at <= self.now) {
            // A restarted node has forgotten its result, which others may still need.
            let all_served = self.places().all(|node| self.served.contains(&(request, *node)));
            let refused = |node: &u16| self.refused.get(&(request, *node)) == Some(&true);
            for node in self.places().filter(|node| !all_served && !refused(node) && self.is_open(**node)) {
                let held_back = wanted.asked.later_at.contains(node) && self.now < wanted.asked.at + 2_000;
                asks.extend((!held_back).then_some(Event::Ask { node: *node, request }));
            }
        }
        for (ceremony, planned) in self.scenario.ceremonies.iter().enumerate() {
            let due = |node: &&u16| planned.at <= self.now && !self.ended.contains_key(&(ceremony, **node));
            let due = |node: &&u16| due(node) && self.is_open(**node) && self.knows_holders(**node, planned);
            asks.extend(self.places().filter(due).map(|node| Event::Hold { node: *node, ceremony }));
        }
        asks.extend(self.changes_and_repetitions());
        asks.extend(self.wishes_of_members());
        self.plan_reading();
        for ask in asks {
            let time = self.now + 1 + below(&mut self.rng, late);
            self.at(time, ask);
        }
    }

    /// A client sends a request to a node, which asks its policy.
    fn ask(&mut self, number: u16, request: usize) -> Result<(), Violation> {
        let now = UnixTime(1_000 * self.nodes.get(&number).map_or(0, |node| node.wall_clock(self.now)));
        let (bug, honest) = (self.bug(number), self.is_honest(number));
        if self.awake(number).is_none() {
            return Ok(());
        }
        let Some(wanted) = self.wanted.get(request) else { return Ok(()) };
        let Some(life) = self.nodes.get(&number).and_then(|node| node.life.as_ref()) else { return Ok(()) };
        let asked = match wanted.decoded(life.engine.keys()) {
            Ok(asked) => asked,
            Err(error) => {
                let text = format!("node {number} does not understand request {request}: {error}");
                return self.watch.violated(Invariant::Works, text);
            }
        };
        let takes_slot = life.gate.takes_slot(&asked);
        // As in the service: an old copy of the store does not know which slots are taken.
        if takes_slot && !self.trusts_its_store(number)? && bug != Some(Sabotage::TrustsItself) {
            if self.watch.stores.is_set_back(number) {
                self.watch.observations.note(Observation::Distrusted);
            }
            return Ok(());
        }
        if !self.may_decide(number, request, &asked, now)? {
            return Ok(());
        }
        let Some(wanted) = self.wanted.get(request) else { return Ok(()) };
        let Some(life) = self.nodes.get_mut(&number).and_then(|node| node.life.as_mut()) else { return Ok(()) };
        if life.pending.iter().any(|(other, _)| *other == request) {
            return Ok(());
        }
        let mut granted = None;
        if honest {
            if let Some(custodian) = life.engine.custodian().filter(|_| bug == Some(Sabotage::TrustsItself)) {
                custodian.store().set_confirmed(true);
            }
            let Ok(Judged { answer, .. }) = life.gate.decide(&wanted.presented(number), asked.clone(), now) else {
                return Ok(());
            };
            let claims = answer.as_ref().map(Granted::claims).unwrap_or_default();
            let taken = claims.iter().all(|claim| claim.standing == SlotStanding::Taken);
            let allowed = answer.is_ok();
            self.decided(number, request, now.0 / 1_000, (allowed, taken))?;
            if allowed {
                self.permitted.insert((request, number));
                self.permit(number);
            } else if bug != Some(Sabotage::NoPolicy) {
                return Ok(());
            }
            granted = answer.ok().filter(|_| bug != Some(Sabotage::NoCertificates));
        }
        let granted = match granted {
            Some(granted) => granted,
            // A liar asks no policy, and neither does a node with a bug.
            None => match self.open.decide(&presented(&[]), asked, now).map(|judged| judged.answer) {
                Ok(Ok(granted)) => granted,
                Ok(Err(refusal)) | Err(refusal) => {
                    return self.watch.violated(Invariant::Works, format!("the open gate refuses: {refusal}"));
                }
            },
        };
        self.submit(number, request, granted)
    }

    /// A node begins with what it was asked for.
    fn submit(&mut self, number: u16, request: usize, granted: Granted<Request>) -> Result<(), Violation> {
        let Some(life) = self.nodes.get_mut(&number).and_then(|node| node.life.as_mut()) else { return Ok(()) };
        match life.engine.submit(granted) {
            Ok(pending) => life.pending.push((request, pending)),
            // The node has lost this key with its store.
            Err(SubmitError::Request(_)) if self.watch.stores.has_forgotten(number) => {}
            Err(SubmitError::Request(error)) => {
                let text = format!("node {number} refuses request {request}: {error}");
                return self.watch.violated(Invariant::Works, text);
            }
            Err(_) => {}
        }
        self.look(number)
    }

    /// Checks a decision of a node's policy at the second that its clock showed.
    fn decided(
        &mut self,
        number: u16,
        request: usize,
        clock: u64,
        (allowed, taken): (bool, bool),
    ) -> Result<(), Violation> {
        let Some(asked) = self.scenario.requests.get(request) else { return Ok(()) };
        let Some(held) = self.scenario.keys.get(asked.key) else { return Ok(()) };
        if held.rated {
            self.watch.rated((number, asked.key), clock, allowed)?;
        }
        let may = !held.refused_by.contains(&number) && (!held.consents || asked.is_consented(number));
        if allowed && !may {
            return self.watch.violated(Invariant::Permitted, format!("node {number} permits request {request}"));
        }
        if !allowed && may && !held.rated && !held.slots {
            return self.watch.violated(Invariant::Works, format!("the policy of {number} refuses request {request}"));
        }
        match asked.slot.filter(|_| held.slots && allowed && taken) {
            Some(slot) => self.watch.slot(number, asked.key, slot, &asked.text),
            None => Ok(()),
        }
    }

    /// Tells the watch all instances that a node's policy has permitted, under the present keys: when a key changes, its
    /// requests go on under the new one.
    pub(super) fn permit(&mut self, number: u16) {
        let Some(life) = self.nodes.get_mut(&number).and_then(|node| node.life.as_mut()) else { return };
        life.generation = life.engine.keys().generation();
        for entry in life.engine.keys().iter().filter(|_| !self.scenario.liars.contains_key(&number)) {
            let newest = self.newest.entry((entry.name.clone(), entry.version)).or_insert(Epoch::FIRST);
            *newest = entry.epoch.max(*newest);
        }
        for (request, wanted) in self.wanted.iter().enumerate() {
            if !self.permitted.contains(&(request, number)) {
                continue;
            }
            for entry in life.engine.keys().versions(wanted.key.as_str()) {
                let known = self.known.entry((number, wanted.asked.key)).or_default();
                if !known.contains(&entry.public) {
                    known.push(entry.public.clone());
                }
                let has_slots = self.scenario.keys.get(wanted.asked.key).is_some_and(|key| key.slots);
                for (epoch, id) in wanted.instances(&entry.public, entry.epoch) {
                    if let Some(slot) = wanted.asked.slot.filter(|_| has_slots) {
                        self.watch.about(id, wanted.asked.key, slot, &wanted.asked.text);
                    }
                    let index = if epoch == Epoch::FIRST { number } else { index(&self.scenario.ceremonies, number) };
                    let signer = Signer { index, element_len: wanted.element_len() };
                    let role = if wanted.is_frost() {
                        Some(Role::Frost(signer))
                    } else if wanted.is_ecdsa() {
                        Some(Role::Ecdsa)
                    } else {
                        None
                    };
                    self.watch.permit(number, id, role);
                }
            }
        }
    }

    /// A client asks a node to hold a ceremony; the node asks its policy.
    fn hold(&mut self, number: u16, ceremony: usize) -> Result<(), Violation> {
        let Some(request) = self.ceremonies.get(ceremony).cloned() else { return Ok(()) };
        let Some((granted, life)) = self.granted(number, request) else { return Ok(()) };
        let answer = life.engine.hold(granted, Vec::new());
        if self.ended.contains_key(&(ceremony, number)) {
            self.asked_again(answer.as_ref().err());
        }
        let now = self.now;
        self.trace.tell(|| {
            format!(
                "{now:>6} node {number} is asked for ceremony {ceremony}: {}",
                match &answer {
                    Ok(report) => format!("{:?}", report.state),
                    Err(error) => error.to_string(),
                }
            )
        });
        if let Ok(report) = answer {
            let answered =
                if self.is_honest(number) { self.watch.consents.answered(ceremony, &report) } else { Ok(()) };
            answered.or_else(|text| self.watch.violated(Invariant::ConsentOnce, text))?;
            self.names.insert(ceremony, report.id);
            self.held.insert((ceremony, number));
        }
        self.look(number)
    }
}

/// The index of a node's share after the first ceremony.
fn index(ceremonies: &[crate::scenario::Planned], node: u16) -> u16 {
    let moved = ceremonies.iter().find_map(|planned| match &planned.aim {
        Aim::Reshare(_, _, holders) => holders.iter().position(|holder| *holder == node),
        _ => None,
    });
    moved.and_then(|place| u16::try_from(place + 1).ok()).unwrap_or(node)
}

fn said(event: &Event) -> String {
    match event {
        Event::Deliver { from, to, bytes } => {
            use prost::Message as _;
            let Ok(envelope) = theta_wire::peer::Envelope::decode(bytes.clone()) else {
                return format!("{from} -> {to}: {} bytes of garbage", bytes.len());
            };
            let id = hex::encode(envelope.instance_id.get(..4).unwrap_or_default());
            let (kind, number, len) = (envelope.kind, envelope.number, envelope.payload.len());
            format!("{from} -> {to}: stream {} {id} kind {kind} number {number} {len} bytes", envelope.stream)
        }
        other => format!("{other:?}"),
    }
}
