//! Checks the ledger: what honest nodes have in it, what they vote, and what clients believe.
//!
//! Whether an entry was certified is counted from the votes that honest nodes were heard to give, and not asked of the code that checks
//! certificates. One vote may be in an entry that nobody heard: that of the node which has it, if its own vote was the last that the entry lacked.

use std::collections::{BTreeMap, BTreeSet};

use theta_agreement::{Ballot, Digest, VoteKind};
use theta_ledger::{Action, MemberChange, Outcome};

use super::{Invariant, Observation, Observations};
use crate::founded::{is_of_liars, second_identity};
use crate::ledger::{Letter, Votes};
use crate::scenario::{Fate, Scenario};

/// What may be said of an entry that somebody believes.
type Verdict = Result<(), (Invariant, String)>;

/// What was seen of the ledger.
#[derive(Default)]
pub(crate) struct LedgerWatch {
    /// The members, the most of them that may lie, and who does.
    n: usize,
    t: usize,
    liars: BTreeSet<u16>,
    /// Every vote of every honest node.
    votes: BTreeMap<(u16, u64, Ballot), Vec<u8>>,
    /// Which honest nodes gave their second votes to an entry of a height in a view.
    precommits: BTreeMap<(u64, Digest, u32), BTreeSet<u16>>,
    /// What an honest node or a client believed first, at each height.
    believed: BTreeMap<u64, Digest>,
    /// When the first honest node had each entry, in milliseconds.
    decided: BTreeMap<u64, u64>,
    /// How far each honest node is.
    reached: BTreeMap<u16, u64>,
    /// Nodes whose stores were set back: they may vote again, like liars.
    forgetful: BTreeSet<u16>,
    /// Machines that are said to be gone, whose numbers are others', by the member's; those of them that a thief runs; and the
    /// heights of the entries that replaced them.
    gone: BTreeMap<u16, u16>,
    thieves: BTreeSet<u16>,
    replaced: BTreeMap<u16, u64>,
    /// From which heights on other machines vote in the place of members'.
    warranted: BTreeMap<u16, u64>,
    /// Those of whom somebody asks that they leave.
    leaving: BTreeSet<u16>,
    /// The heights of the entries by which members came, and left.
    joined: BTreeMap<u16, u64>,
    left: BTreeMap<u16, u64>,
    /// The members after each entry, as the first honest node has them: number, and key of ceremonies.
    members: BTreeMap<u64, Vec<(u16, Vec<u8>)>>,
    /// When ceremonies began that run.
    running: BTreeMap<u64, (u64, bool)>,
    /// The requests whose ceremonies have begun, and those that clients have made.
    begun: BTreeSet<Digest>,
    asked: BTreeSet<Digest>,
}

impl LedgerWatch {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let (n, t) = (usize::from(scenario.n), usize::from(scenario.k.saturating_sub(1)));
        let stolen = scenario.exchanges.iter().filter(|exchange| matches!(exchange.fate, Fate::Stolen(..)));
        let thieves = stolen.map(|exchange| exchange.node).collect();
        let leaving = scenario.departures.iter().map(|departure| departure.node).collect();
        Self { n, t, liars: scenario.liars.keys().copied().collect(), thieves, leaving, ..Self::default() }
    }

    /// A client asks for a ceremony: the digest of its request.
    pub(crate) fn asked(&mut self, request: Digest) {
        self.asked.insert(request);
    }

    /// An honest node sends a message of the ledger.
    pub(crate) fn said(&mut self, node: u16, message: &[u8]) -> Verdict {
        let Some(Letter::Votes(Votes { height, votes, .. })) = Letter::read(message) else { return Ok(()) };
        votes.into_iter().try_for_each(|vote| self.votes_for(node, height, vote.ballot, vote.body))
    }

    /// An honest node gives a vote.
    pub(crate) fn votes_for(&mut self, node: u16, height: u64, ballot: Ballot, body: Vec<u8>) -> Verdict {
        let first = self.votes.entry((node, height, ballot)).or_insert_with(|| body.clone());
        if *first != body && !self.forgetful.contains(&node) {
            let text = format!("node {node} says two things under {ballot:?} at height {height}");
            return Err((Invariant::Ledger, text));
        }
        let digest = Digest::try_from(body).ok().filter(|_| ballot.kind == VoteKind::Precommit);
        if let Some(digest) = digest {
            self.precommits.entry((height, digest, ballot.view)).or_default().insert(node);
        }
        Ok(())
    }

    /// A node's store was set back: it has less, and may say again what it has said.
    pub(crate) fn set_back(&mut self, node: u16) {
        self.forgetful.insert(node);
        self.reached.remove(&node);
    }

    /// A member's machine is lost: what it said was said by `gone`. Another one begins with nothing.
    pub(crate) fn lost(&mut self, node: u16, gone: u16) {
        self.reached.remove(&node);
        self.gone.insert(node, gone);
        let of_node = self.votes.extract_if(.., |(voter, ..), _| *voter == node).collect::<Vec<_>>();
        self.votes.extend(of_node.into_iter().map(|((_, height, ballot), body)| ((gone, height, ballot), body)));
        for voted in self.precommits.values_mut().filter(|voted| voted.contains(&node)) {
            voted.remove(&node);
            voted.insert(gone);
        }
    }

    /// Whether a member has the machine with which it began.
    pub(crate) fn is_first_machine(&self, node: u16) -> bool {
        !self.gone.contains_key(&node)
    }

    /// The height of the entry that replaced a member's machine.
    pub(crate) fn replaced_at(&self, node: u16) -> Option<u64> {
        self.replaced.get(&node).copied()
    }

    /// Operators have signed that another machine votes for a member.
    pub(crate) fn warranted(&mut self, node: u16, from: u64) {
        self.warranted.entry(node).or_insert(from);
    }

    /// Whether they have.
    pub(crate) fn is_warranted(&self, node: u16) -> bool {
        self.warranted.contains_key(&node)
    }

    /// The height of the entry by which a node joined.
    pub(crate) fn joined_at(&self, node: u16) -> Option<u64> {
        self.joined.get(&node).copied()
    }

    /// The height of the entry by which a node left.
    pub(crate) fn left_at(&self, node: u16) -> Option<u64> {
        self.left.get(&node).copied()
    }

    /// Whether a node has left.
    pub(crate) fn has_left(&self, node: u16) -> bool {
        self.left.contains_key(&node)
    }

    /// Whether a node left at that time or later, in milliseconds.
    pub(crate) fn left_since(&self, node: u16, time: u64) -> bool {
        self.left_at(node).and_then(|height| self.decided_at(height)).is_some_and(|at| at >= time)
    }

    /// Whether a node is a member that decides a height.
    fn decides(&self, node: u16, height: u64) -> bool {
        let came = usize::from(node) <= self.n || self.joined_at(node).is_some_and(|at| height > at);
        came && self.left_at(node).is_none_or(|at| height <= at)
    }

    /// How many members decide a height.
    fn size(&self, height: u64) -> usize {
        let before = |heights: &BTreeMap<u16, u64>| heights.values().filter(|at| **at < height).count();
        (self.n + before(&self.joined)).saturating_sub(before(&self.left))
    }

    /// An honest node has these members after an entry.
    pub(crate) fn has_members(&mut self, node: u16, (height, members): (u64, Vec<(u16, Vec<u8>)>)) -> Verdict {
        for (member, after) in &self.replaced {
            let key = members.iter().find(|(number, _)| number == member).map(|(_, key)| &key[..]);
            let is_second =
                key == second_identity(*member).as_ref().ok().map(|keys| keys.member().verifying_key().bytes());
            if is_second != (*after <= height) {
                let text = format!("node {node} has the wrong machine for member {member} after entry {height}");
                return Err((Invariant::Members, text));
            }
        }
        let numbers = (1..=u16::MAX).take(self.n + self.joined.len());
        let numbers: Vec<u16> = numbers.filter(|node| self.decides(*node, height.saturating_add(1))).collect();
        if !members.iter().map(|(number, _)| number).eq(&numbers) {
            let text = format!("node {node} has other members than {numbers:?} after entry {height}");
            return Err((Invariant::Members, text));
        }
        let first = self.members.entry(height).or_insert_with(|| members.clone());
        if *first == members {
            return Ok(());
        }
        Err((Invariant::Members, format!("node {node} has other members than others after entry {height}")))
    }

    /// How many members these votes are of at a height: of a member whose machine was replaced only those of the machine that it has
    /// there count.
    fn members_of(&self, voted: &BTreeSet<u16>, height: u64) -> usize {
        let is_first = |member: &u16| self.replaced.get(member).is_none_or(|after| height <= *after);
        let is_second = |member: &u16| {
            let stands_in = self.warranted.get(member).is_some_and(|from| height >= *from);
            stands_in || self.replaced.get(member).is_none_or(|after| height > *after)
        };
        let named = voted.iter().filter(|node| !self.gone.values().any(|gone| gone == *node));
        let named = named.filter(|node| !self.gone.contains_key(node) || is_second(node));
        let gone = self.gone.iter().filter(|(member, gone)| voted.contains(gone) && is_first(member));
        let thieves = self.thieves.iter().filter(|member| is_first(member));
        let others = self.liars.iter().chain(&self.forgetful).chain(thieves);
        let all = named.chain(gone.map(|(member, _)| member)).chain(others);
        all.filter(|member| self.decides(**member, height)).collect::<BTreeSet<_>>().len()
    }

    /// How far an honest node is.
    pub(crate) fn reached(&self, node: u16) -> u64 {
        self.reached.get(&node).copied().unwrap_or(0)
    }

    /// The height of the last entry that an honest node has.
    pub(crate) fn top(&self) -> u64 {
        self.decided.last_key_value().map_or(0, |(height, _)| *height)
    }

    /// When the first honest node had an entry.
    pub(crate) fn decided_at(&self, height: u64) -> Option<u64> {
        self.decided.get(&height).copied()
    }

    /// The ceremonies that run, with the times of their begins.
    pub(crate) fn running(&self) -> impl Iterator<Item = (u64, (u64, bool))> {
        self.running.iter().map(|(number, at)| (*number, *at))
    }

    /// Whether a ceremony has begun for a request, by the request's digest.
    pub(crate) fn has_begun(&self, request: &Digest) -> bool {
        self.begun.contains(request)
    }

    /// An honest node has an entry in its ledger.
    pub(crate) fn has(
        &mut self,
        node: u16,
        (height, digest, action): (u64, Digest, &Action),
        now: u64,
        observations: &mut Observations,
    ) -> Verdict {
        let news = height > self.top();
        self.believes(&format!("node {node}"), (height, digest))?;
        self.reached.insert(node, height);
        if news {
            self.decided.insert(height, now);
            self.counts(height, action, now, observations);
            if let Action::Members(change) = action
                && self.is_of_liars(change)
            {
                let text = format!("entry {height} is a change of the members that only liars want");
                return Err((Invariant::Members, text));
            }
            if let Action::Begin(request) = action
                && !self.asked.contains(&request.digest())
            {
                return Err((
                    Invariant::Permitted,
                    format!("entry {height} begins a ceremony that no client asked for"),
                ));
            }
        }
        Ok(())
    }

    /// Whether nobody but liars has asked for a change.
    fn is_of_liars(&self, change: &MemberChange) -> bool {
        match change {
            MemberChange::Remove { node } => !self.leaving.contains(node),
            MemberChange::Add(card) | MemberChange::Replace { card, .. } | MemberChange::Renew { card, .. } => {
                is_of_liars(card)
            }
        }
    }

    /// A client, or an honest node, believes an entry.
    pub(crate) fn believes(&mut self, who: &str, (height, digest): (u64, Digest)) -> Verdict {
        let first = *self.believed.entry(height).or_insert(digest);
        if first != digest {
            return Err((Invariant::Ledger, format!("{who} has another entry {height} than others")));
        }
        let views = self.precommits.range((height, digest, 0)..=(height, digest, u32::MAX));
        let most = views.map(|(_, voted)| self.members_of(voted, height)).max().unwrap_or(0);
        // So many that any two such sets have an honest member in common.
        let n = self.size(height);
        let needed = n.min(usize::midpoint(n, self.t) + 1);
        if most < needed {
            let text = format!("{who} believes entry {height}, for which {most} of {needed} can have voted");
            return Err((Invariant::Certified, text));
        }
        Ok(())
    }

    fn counts(&mut self, height: u64, action: &Action, now: u64, observations: &mut Observations) {
        observations.note(match action {
            Action::Members(MemberChange::Replace { .. }) => Observation::Replaced,
            Action::Members(MemberChange::Renew { .. }) => Observation::Renewed,
            Action::Members(MemberChange::Add(_)) => Observation::Joined,
            Action::Members(MemberChange::Remove { .. }) => Observation::Left,
            Action::Adopt(_) => Observation::Adopted,
            Action::Begin(_) => Observation::Begun,
            Action::End { outcome: Outcome::Activated { .. }, .. } => Observation::Activated,
            Action::End { outcome: Outcome::Recovered, .. } => Observation::Recovered,
            Action::End { outcome: Outcome::Aborted, .. } => Observation::Aborted,
            Action::End { outcome: Outcome::Cancelled, .. } | Action::SetState(_) => Observation::OtherEntry,
        });
        match action {
            Action::Members(MemberChange::Replace { node, .. }) => drop(self.replaced.insert(*node, height)),
            Action::Members(MemberChange::Remove { node }) => drop(self.left.insert(*node, height)),
            Action::Members(MemberChange::Add(_)) => {
                // No number is given twice.
                let number = u16::try_from(self.n + self.joined.len() + 1).unwrap_or(u16::MAX);
                self.joined.insert(number, height);
            }
            Action::Begin(request) => {
                let recovers = matches!(request.change, theta_statements::KeyChange::Recover { .. });
                self.running.insert(height, (now, recovers));
                self.begun.insert(request.digest());
            }
            Action::End { ceremony, .. } => {
                self.running.remove(ceremony);
            }
            _ => {}
        }
    }
}
