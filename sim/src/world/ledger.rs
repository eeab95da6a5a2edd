//! The ledger in the run: what nodes have of it, the clients that follow it, and that it moves.

use std::collections::BTreeSet;

use theta_ledger::{Action, CertifiedEntry, LedgerState, Outcome};
use theta_names::KeyState;

use super::{Event, ROUND, TICK, World};
use crate::chance::below;
use crate::ledger::{Reader, Served};
use crate::node::Life;
use crate::scenario::Sabotage;
use crate::watch::{Invariant, Observation, Violation};

/// The most ticks in which an entry that one honest node has reaches every honest node that is connected.
pub(super) const SPREAD: u64 = 100;
/// The most ticks for which a ceremony runs while a quorum is connected.
pub(super) const CEREMONY: u64 = 900;
/// The same in a group in which the honest members alone are no quorum: a machine that came in the place of one that took part is among
/// those that it takes to give the ceremony up, and waits for 480 ticks of its custodian, which are 1,200 here.
const CEREMONY_OF_FEW: u64 = 2_000;
/// The same for a recovery, whose owner alone knows whether it goes on.
const RECOVERY: u64 = 2_600;
/// The most entries in one answer to a client.
const ANSWER: usize = 64;

/// How far clocks may be apart in seconds, less the time that a run takes.
const CLOCKS_APART: i64 = 2 * 86_400 - 3_600;

impl World<'_> {
    /// Looks at what is new in an honest node's ledger: in its store, which survives crashes.
    pub(super) fn look_at_ledger(&mut self, number: u16) -> Result<(), Violation> {
        let seen = self.watch.ledger.reached(number);
        let life = self.nodes.get(&number).and_then(|node| node.life.as_ref());
        let Some(custodian) = life.and_then(|life| life.engine.custodian()) else { return Ok(()) };
        let Some(ledger) = custodian.ledger().filter(|ledger| ledger.height() != seen) else { return Ok(()) };
        let (id, height, store) = (*ledger.id(), ledger.height(), custodian.store());
        let members: Vec<_> =
            ledger.members().iter().map(|it| (it.node().get(), it.verifying_key().bytes().to_vec())).collect();
        let stray = stray(ledger);
        if height < seen {
            let text = format!("node {number} had entry {seen}, and has {height} entries");
            return self.watch.violated(Invariant::Ledger, text);
        }
        let entries: Option<Vec<Vec<u8>>> =
            (seen + 1..=height).map(|height| store.ledger_entry(height).ok().flatten()).collect();
        let Some(entries) = entries else {
            // What a node has whose disk has failed is looked at when the node is up again.
            if self.nodes.get(&number).is_some_and(|node| node.disk.has_failed()) {
                return Ok(());
            }
            let text = format!("node {number} shows no entry that it has, and its disk works");
            return self.watch.violated(Invariant::Ledger, text);
        };
        for bytes in entries {
            let Ok(certified) = CertifiedEntry::decode(&bytes) else {
                return self.watch.violated(Invariant::Ledger, format!("node {number} has an entry that is none"));
            };
            let entry = certified.entry;
            if !certified.warrants.is_empty() && entry.height > self.watch.ledger.top() {
                self.watch.observations.note(Observation::ByWarrant);
            }
            // What it was the last to vote for it may have had before anybody heard of its vote.
            let has_voted = certified.certificate.signatures().keys().any(|party| party.get() == number);
            if has_voted && self.watch.ledger.is_first_machine(number) {
                self.watch.voted_within(number, entry.height, &certified.certificate)?;
            }
            self.watch.has_entry(number, (entry.height, entry.digest(&id), &entry.action))?;
            let (now, height) = (self.now, entry.height);
            self.trace.tell(|| format!("{now:>6} node {number} has entry {height}: {}", said(&entry.action)));
        }
        if let Some(stray) = stray {
            return self
                .watch
                .violated(Invariant::Members, format!("{stray}, as node {number} has it at entry {height}"));
        }
        self.watch.has_members(number, (height, members))
    }

    /// A client asks some node, which may lie, for what is new.
    pub(super) fn read(&mut self, number: u16) -> Result<(), Violation> {
        if self.awake(number).is_none() {
            return Ok(());
        }
        // Every other time it is one that has only just come.
        let newcomer = below(&mut self.rng, 4) == 0;
        let mut reader = self.reader.take().filter(|_| !newcomer).unwrap_or_else(|| self.newcomer());
        let judged = self.serve(number, &mut reader);
        self.reader = Some(reader);
        judged.map(drop)
    }

    fn newcomer(&self) -> Reader {
        Reader::new(&self.genesis, self.scenario.sabotage == Some(Sabotage::Credulous))
    }

    /// Gives a client what a node answers, and judges what the client believes then. Returns whether it believed something.
    fn serve(&mut self, number: u16, reader: &mut Reader) -> Result<bool, Violation> {
        let after = reader.state().height();
        let Some(node) = self.nodes.get_mut(&number) else { return Ok(false) };
        let custodian = node.life.as_ref().and_then(|life: &Life| life.engine.custodian());
        let Some((custodian, state)) = custodian.and_then(|custodian| Some((custodian, custodian.ledger()?))) else {
            return Ok(false);
        };
        let store = custodian.store();
        let entries = (after + 1..=state.height()).map_while(|height| store.ledger_entry(height).ok().flatten());
        let mut answer: Vec<Vec<u8>> = entries.take(ANSWER).collect();
        if let Some(liar) = &mut node.liar {
            answer = liar.serves(answer, state);
        }
        let Served { believed, refused } = reader.takes(&answer);
        if refused {
            self.watch.observations.note(Observation::FalseAnswer);
            if self.is_honest(number) {
                let text = format!("a client calls the ledger of node {number} false");
                return self.watch.violated(Invariant::NoFalseBlame, text);
            }
        }
        self.watch.observations.add(Observation::Followed, believed.len() as u64);
        let any = !believed.is_empty();
        for entry in believed {
            self.watch.client_believes(entry)?;
        }
        Ok(any)
    }

    /// At the end a client that knows nothing but the founding members asks all nodes, those that lie first, and has everything.
    pub(super) fn newcomer_learns_all(&mut self) -> Result<(), Violation> {
        if !self.scenario.kept {
            return Ok(());
        }
        let mut reader = self.newcomer();
        let liars: BTreeSet<u16> = self.scenario.liars.keys().copied().collect();
        let honest: Vec<u16> = self.scenario.honest().collect();
        for number in liars.into_iter().chain(self.ghosts()).chain(honest) {
            while self.serve(number, &mut reader)? {}
        }
        let (height, top) = (reader.state().height(), self.watch.ledger.top());
        if height >= top {
            return Ok(());
        }
        let text = format!("a client that asks all nodes learns of {height} entries, where there are {top}");
        self.watch.violated(Invariant::Ends, text)
    }

    /// Plans a client's next question.
    pub(super) fn plan_reading(&mut self) {
        if self.scenario.kept {
            let number = 1 + u16::try_from(below(&mut self.rng, u64::from(self.scenario.last()))).unwrap_or(0);
            let at = self.now + 1 + below(&mut self.rng, ROUND);
            self.at(at, Event::Read(number));
            for ghost in self.ghosts() {
                self.at(at, Event::Read(ghost));
            }
        }
    }

    /// Since when a node has been connected to the others without a fault, in milliseconds; `None` if it is not.
    fn connected_since(&self, number: u16) -> Option<u64> {
        let node = self.nodes.get(&number).filter(|node| node.life.is_some() && node.paused <= self.now)?;
        let joined = match self.scenario.arrival_of(number) {
            None => 0,
            Some(_) => self.watch.ledger.decided_at(self.watch.ledger.joined_at(number)?)?,
        };
        Some(node.since.max(node.paused).max(self.scenario.calm).max(joined))
    }

    /// Checks, when nothing is lost any more, that entries reach everybody and ceremonies end in the time that is stated for it.
    pub(super) fn ledger_moves(&mut self) -> Result<(), Violation> {
        let top = self.watch.ledger.top();
        let honest: Vec<u16> = self.present().collect();
        for number in honest {
            let reached = self.watch.ledger.reached(number);
            let Some(since) = self.connected_since(number).filter(|_| reached < top) else { continue };
            let since = self.watch.ledger.decided_at(reached + 1).unwrap_or(0).max(since);
            let late = self.now.saturating_sub(since) / TICK;
            self.watch.observations.most(Observation::SlowestSpread, late);
            if late > SPREAD {
                let text = format!("node {number} lacks entry {} after {late} ticks", reached + 1);
                return self.watch.violated(Invariant::Ends, text);
            }
        }
        let running: Vec<(u64, (u64, bool))> = self.watch.ledger.running().collect();
        for (ceremony, (begun, recovers)) in running {
            let ticks = self.now.saturating_sub(begun.max(self.scenario.calm)) / TICK;
            self.watch.observations.most(Observation::SlowestCeremony, ticks);
            let few = self.scenario.most_stand_ins() > 0;
            let most = if recovers {
                RECOVERY
            } else if few {
                CEREMONY_OF_FEW
            } else {
                CEREMONY
            };
            if ticks > most && self.has_quorum() {
                let text = format!("the ceremony that began with entry {ceremony} runs for {ticks} ticks");
                return self.watch.violated(Invariant::Ends, text);
            }
        }
        Ok(())
    }

    /// Whether enough honest nodes for a quorum remember what they have said, and all have clocks by which they can agree.
    pub(super) fn has_quorum(&self) -> bool {
        let quorums = self.present().filter_map(|node| {
            let life = self.nodes.get(&node)?.life.as_ref()?;
            Some(life.engine.custodian()?.ledger()?.quorum())
        });
        let remembers = |node: &u16| !self.watch.stores.has_forgotten(*node) || self.votes_anew(*node);
        let remember = self.present().filter(remembers).count();
        quorums.max().is_none_or(|quorum| remember >= quorum) && self.clocks_agree()
    }

    /// Whether the clocks of honest nodes are so close together that each may vote for what any other proposes (`spec/ledger.md`: two days).
    fn clocks_agree(&self) -> bool {
        let walls = || self.present().filter_map(|node| Some(self.nodes.get(&node)?.wall));
        let apart = walls().max().zip(walls().min()).map_or(0, |(latest, earliest)| latest.saturating_sub(earliest));
        apart <= CLOCKS_APART
    }

    /// What is still to be decided, or has not reached every honest node, where honest nodes are a quorum; `None` if nothing is.
    pub(super) fn undecided(&self) -> Option<String> {
        if !self.has_quorum() {
            return None;
        }
        if let Some(text) = self.unchanged() {
            return Some(text);
        }
        let top = self.watch.ledger.top();
        for number in self.present() {
            let Some(life) = self.nodes.get(&number).and_then(|node| node.life.as_ref()) else {
                return Some(format!("node {number} is down"));
            };
            let Some(ledger) = life.engine.custodian().and_then(|custodian| custodian.ledger()) else { continue };
            if ledger.height() < top {
                return Some(format!("node {number} has {} of {top} entries", ledger.height()));
            }
            if let Some(number) = ledger.running().keys().next() {
                return Some(format!("the ceremony that began with entry {number} has no end"));
            }
            if let Some(key) = unadopted(life, ledger) {
                return Some(format!("the ledger lacks the key {key} of node {number}"));
            }
        }
        None
    }
}

/// What an entry is about, in a trace.
fn said(action: &Action) -> String {
    match action {
        Action::Adopt(adopted) => format!("adopts {}@{}", adopted.key, adopted.version),
        Action::End { ceremony, outcome: Outcome::Activated { .. } } => format!("ceremony {ceremony} has made shares"),
        Action::End { ceremony, outcome } => format!("ceremony {ceremony}: {outcome:?}"),
        other => format!("{other:?}"),
    }
}

/// A key that serves at a node, and that the ledger does not have.
fn unadopted(life: &Life, ledger: &LedgerState) -> Option<String> {
    let keys = life.engine.keys();
    let missing = keys.iter().find(|entry| {
        let serves = !matches!(entry.state, KeyState::Pending | KeyState::Destroyed);
        let line = ledger.keys().get(&entry.name);
        let known = line.and_then(|line| line.versions.get(&entry.version)?.serving());
        serves && known.is_none_or(|known| known.epoch < entry.epoch)
    });
    missing.map(|entry| entry.qualified_name())
}

/// Somebody who holds a share of a key that serves, and is no member any more.
fn stray(ledger: &LedgerState) -> Option<String> {
    let is_member = |node: &u16| ledger.members().iter().any(|member| member.node().get() == *node);
    ledger.keys().iter().find_map(|(key, line)| {
        let serves = line.versions.iter().filter(|(version, _)| line.state_of(**version) != Some(KeyState::Destroyed));
        let mut holders = serves.filter_map(|(_, history)| history.serving()).flat_map(|serving| &serving.holders);
        let stray = holders.find(|node| !is_member(node))?;
        Some(format!("node {stray} holds a share of {key}, and is no member any more"))
    })
}
