//! Members that come, go, and get other machines and new cards, and the machines that are said to be gone.

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use theta_authority::BringWarrant;
use theta_custody::{MembersState, Standing};
use theta_ledger::{Action, LedgerId, MemberChange};
use theta_names::NodeId;
use theta_statements::MemberRequest;

use super::{Event, GHOST, TICK, World};
use crate::byzantine::{Behaviour, Liar};
use crate::chance::below;
use crate::founded::{arrival, renewal, replacement};
use crate::group::{Failed, identity};
use crate::scenario::{Aim, Exchange, Fate, Planned, Scenario, Word};
use crate::setup::Setup;
use crate::watch::{Invariant, Observation, Violation};

/// The time after which whoever brings a change asks anew, in milliseconds.
const ANEW: u64 = 30_000;
/// For how long a member that has left may still read, in milliseconds.
const READS_ON: u64 = 5_000;
/// What a node may say to a change that it does not take yet: its members have not agreed in time, who should leave still holds a share or
/// takes part in a ceremony, or the node has not read as far as the operators who signed.
const NOT_YET: [&str; 4] = ["too few", "holds a share", "takes part in ceremony", "it is for height"];

/// A change of the members that somebody brings to all of them.
pub(super) struct Wish {
    at: u64,
    pub(super) change: MemberChange,
    pub(super) proof: Proof,
}

/// What comes with a change.
pub(super) enum Proof {
    /// The word of an operator, or nothing.
    Reason(Vec<u8>),
    /// A warrant, as soon as it is signed.
    Warrant(Option<Bytes>),
}

impl Wish {
    pub(super) fn all(scenario: &Scenario, ledger: &LedgerId) -> Result<Vec<Self>, Failed> {
        let replaced = scenario.exchanges.iter().map(|exchange| {
            let (change, word) = replacement(exchange.node, ledger)?;
            let by_operator = exchange.by == Word::Operator;
            let proof = if by_operator { Proof::Reason(word) } else { Proof::Warrant(None) };
            Ok::<_, Failed>(Self { at: exchange.until, change, proof })
        });
        let renewed = scenario.renewals.iter().map(|wish| (wish.at, renewal(wish.node)));
        let joined = (scenario.n + 1..).zip(&scenario.arrivals).map(|(node, wish)| (wish.at, arrival(node)));
        let left = scenario.departures.iter().map(|wish| {
            let change = MemberChange::Remove { node: wish.node };
            (wish.at, Ok((change, Vec::new())))
        });
        let wish = |(at, made): (u64, Result<_, Failed>)| {
            made.map(|(change, proof)| Self { at, change, proof: Proof::Reason(proof) })
        };
        replaced.chain(renewed.chain(joined).chain(left).map(wish)).collect()
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        Action::Members(self.change.clone()).digest()
    }
}

impl World<'_> {
    /// The members' numbers.
    pub(super) fn places(&self) -> impl Iterator<Item = &u16> {
        self.nodes.keys().filter(|node| **node < GHOST)
    }

    /// The machines that are said to be gone, and are not.
    pub(super) fn ghosts(&self) -> Vec<u16> {
        self.nodes.keys().copied().filter(|node| *node >= GHOST).collect()
    }

    pub(super) fn plan_machines(&mut self) {
        for (place, exchange) in self.scenario.exchanges.iter().enumerate() {
            self.at(exchange.at, Event::Lose(place));
            self.at(exchange.until, Event::Start(exchange.node));
            if exchange.by == Word::Warrant {
                self.at(exchange.until, Event::Sign(place));
            }
            if let Fate::Back(at) | Fate::Stolen(at, _) = exchange.fate {
                self.at(at, Event::Start(exchange.node + GHOST));
            }
        }
    }

    /// A machine is lost. Another one, that is not started yet, has its place in the network.
    pub(super) fn lose(&mut self, place: usize) -> Result<(), Violation> {
        let Some(exchange) = self.scenario.exchanges.get(place) else { return Ok(()) };
        let number = exchange.node;
        let ghost = match self.ghost_of(exchange) {
            Ok(liar) => liar,
            Err(text) => return self.watch.violated(Invariant::Works, text),
        };
        let disk = match Setup::second_disk(number) {
            Ok(disk) => disk,
            Err(text) => return self.watch.violated(Invariant::Works, text),
        };
        self.watch.crashed(number);
        self.watch.consents.set_back(number);
        self.watch.ledger.lost(number, number + GHOST);
        self.watch.stores.replaced(number);
        let Some(mut old) = self.nodes.remove(&number) else { return Ok(()) };
        old.crash(&mut self.rng);
        old.liar = ghost;
        self.nodes.insert(number, old.second(disk));
        if exchange.fate != Fate::Gone {
            self.nodes.insert(number + GHOST, old);
            let at = self.now + 1 + below(&mut self.rng, TICK);
            self.at(at, Event::Tick(number + GHOST));
            let stolen = matches!(exchange.fate, Fate::Stolen(..));
            self.watch.observations.note(if stolen { Observation::RunByThief } else { Observation::CameBack });
        }
        Ok(())
    }

    /// The thief who runs a machine, if one does. All liars sign for him.
    fn ghost_of(&self, exchange: &Exchange) -> Result<Option<Liar>, Failed> {
        let Fate::Stolen(_, lie) = exchange.fate else { return Ok(None) };
        let mut rng = ChaCha8Rng::seed_from_u64(self.scenario.seed);
        rng.set_stream(u64::from(exchange.node + GHOST));
        let all = || {
            let liars = self.scenario.liars.keys().copied().chain([exchange.node]);
            liars.map(identity).collect::<Result<Vec<_>, _>>()
        };
        let group = || Ok::<_, Failed>((identity(exchange.node)?, all()?));
        Liar::new(Behaviour::Ledger(lie), identity(exchange.node)?, rng, group).map(Some)
    }

    /// Whether the machines have a connection: each has the other's key in the card of the member that it knows.
    pub(super) fn are_connected(&mut self, from: u16, to: u16) -> bool {
        let connected = self.seated_to_each_other(from, to);
        if !connected {
            self.watch.observations.note(Observation::Unseated);
        }
        connected
    }

    pub(super) fn seated_to_each_other(&self, a: u16, b: u16) -> bool {
        !self.scenario.has_other_machines() || (self.knows(a, b) && self.knows(b, a))
    }

    /// Whether a machine takes another one for the member's whose number it has. One that does not run knows nobody.
    fn knows(&self, knower: u16, machine: u16) -> bool {
        let (member, scenario) = (machine % GHOST, self.scenario);
        let lost = scenario.exchanges.iter().find(|exchange| exchange.node == member);
        let leaves = scenario.departures.iter().any(|departure| departure.node == member);
        if lost.is_none() && !leaves && member <= scenario.n {
            return true;
        }
        let life = self.nodes.get(&knower).and_then(|node| node.life.as_ref());
        let custodian = life.and_then(|life| life.engine.custodian());
        let (Some(custodian), Ok(node)) = (custodian, NodeId::try_from(member)) else { return false };
        let seat = custodian.ledger().and_then(|ledger| ledger.seats().get(&node));
        let Some(seat) = seat else { return self.watch.ledger.left_since(member, self.now.saturating_sub(READS_ON)) };
        let Some(lost) = lost else { return true };
        let is_second = machine < GHOST && lost.at <= self.now;
        // The first machine is that of the founding: any later seat is the other one's. Under a warrant both are heard.
        let stands_in = || custodian.members().is_some_and(|it| it.stand_ins.iter().any(|(other, _)| *other == node));
        (seat.since() > 0) == is_second || (is_second && lost.by == Word::Warrant && stands_in())
    }

    /// Whether clients are served at a node: not before its machine is a member's, nor after the member has left.
    pub(super) fn is_open(&self, number: u16) -> bool {
        let leaves = self.scenario.departures.iter().any(|departure| departure.node == number);
        (number <= self.scenario.n && !leaves) || self.standing(number) == Some(Standing::Member)
    }

    fn standing(&self, number: u16) -> Option<Standing> {
        let life = self.nodes.get(&number)?.life.as_ref()?;
        Some(life.engine.custodian()?.members()?.standing)
    }

    /// Whether all who are to hold shares after a ceremony are members, as far as a node has read.
    pub(super) fn knows_holders(&self, number: u16, planned: &Planned) -> bool {
        let Aim::Reshare(_, _, holders) = &planned.aim else { return true };
        let life = self.nodes.get(&number).and_then(|node| node.life.as_ref());
        let ledger = life.and_then(|life| life.engine.custodian()?.ledger());
        let sits =
            |holder: &u16| ledger.is_some_and(|it| it.members().iter().any(|member| member.node().get() == *holder));
        holders.iter().all(|holder| *holder <= self.scenario.n || sits(holder))
    }

    /// The honest nodes but those whose members have left: these need not learn what is decided afterwards.
    pub(super) fn present(&self) -> impl Iterator<Item = u16> {
        self.scenario.honest().filter(|node| !self.watch.ledger.has_left(*node))
    }

    /// The changes of members that not all have heard of to the end.
    pub(super) fn wishes_of_members(&self) -> Vec<Event> {
        let mut asks = Vec::new();
        for (wish, wanted) in self.wishes.iter().enumerate().filter(|(_, wanted)| wanted.at <= self.now) {
            let undecided = self.places().filter(|node| self.is_open(**node) && !self.has_changed(**node, wanted));
            asks.extend(undecided.map(|node| Event::Members { node: *node, wish }));
        }
        asks
    }

    fn has_changed(&self, number: u16, wish: &Wish) -> bool {
        let life = self.nodes.get(&number).and_then(|node| node.life.as_ref());
        let ledger = life.and_then(|life| life.engine.custodian()?.ledger());
        ledger.is_some_and(|ledger| ledger.changed_at(&wish.digest()).is_some())
    }

    /// A change of the members that has not come about at an honest node, if there is one.
    pub(super) fn unchanged(&self) -> Option<String> {
        let lacks = |node: &u16, wish: &Wish| !self.has_changed(*node, wish) && !self.stays(*node, wish);
        let late = self.wishes.iter().find_map(|wish| Some((wish, self.present().find(|node| lacks(node, wish))?)));
        late.map(|(wish, node)| format!("node {node} has not seen the change of member {:?}", wish.change.node()))
    }

    /// Whether somebody who is to leave still holds something, as far as a node has read.
    fn stays(&self, number: u16, wish: &Wish) -> bool {
        let life = self.nodes.get(&number).and_then(|node| node.life.as_ref());
        let ledger = life.and_then(|life| life.engine.custodian()?.ledger());
        let is_removal = matches!(wish.change, MemberChange::Remove { .. });
        is_removal && ledger.is_none_or(|ledger| ledger.check(&Action::Members(wish.change.clone())).is_err())
    }

    /// Somebody brings a change of the members to one of them.
    pub(super) fn change_members(&mut self, number: u16, wish: usize) -> Result<(), Violation> {
        let Some(Wish { change, proof, .. }) = self.wishes.get(wish) else { return Ok(()) };
        let proof = match proof {
            Proof::Reason(proof) => proof.clone(),
            Proof::Warrant(None) => return Ok(()),
            Proof::Warrant(Some(warrant)) => {
                let Some((granted, life)) = self.granted(number, BringWarrant { warrant: warrant.clone() }) else {
                    return Ok(());
                };
                let answer = life.engine.bring_warrant(granted);
                return self.judge_answer(number, wish, answer.ok());
            }
        };
        let mut nonce = [u8::try_from(wish).unwrap_or(u8::MAX); 32];
        let (first, _) = nonce.split_at_mut(8);
        first.copy_from_slice(&(self.now / ANEW).to_be_bytes());
        let request = MemberRequest { nonce, change: change.encode(), proof };
        let Some((granted, life)) = self.granted(number, request) else { return Ok(()) };
        let answer = life.engine.change_members(granted, Vec::new());
        self.judge_answer(number, wish, answer.ok())
    }

    /// An honest node takes a change that may be, sooner or later.
    fn judge_answer(&mut self, number: u16, wish: usize, answer: Option<MembersState>) -> Result<(), Violation> {
        let now = self.now;
        self.trace.tell(|| format!("{now:>6} node {number} is brought change {wish} of the members: {answer:?}"));
        let excused = |why: &str| NOT_YET.iter().any(|known| why.contains(known));
        match answer {
            Some(MembersState::Refused(why)) if self.is_honest(number) && !excused(&why) => {
                let text = format!("node {number} refuses change {wish} of the members: {why}");
                self.watch.violated(Invariant::Works, text)
            }
            _ => self.look(number),
        }
    }

    /// Checks in the end that all machines know what they are.
    pub(super) fn members_are_right(&mut self) -> Result<(), Violation> {
        for departure in &self.scenario.departures {
            let (number, standing) = (departure.node, self.standing(departure.node));
            let knows = self.watch.ledger.left_at(number).is_some_and(|at| self.watch.ledger.reached(number) >= at);
            if knows && standing != Some(Standing::Gone) {
                let text = format!("the machine of node {number}, which has left, is {standing:?}");
                return self.watch.violated(Invariant::Members, text);
            }
        }
        for number in self.scenario.n + 1..=self.scenario.last() {
            let standing = self.standing(number);
            let knows = self.watch.ledger.joined_at(number).is_some_and(|at| self.watch.ledger.reached(number) >= at);
            if knows && standing != Some(Standing::Member) {
                let text = format!("the machine of node {number}, which has joined, is {standing:?}");
                return self.watch.violated(Invariant::Members, text);
            }
        }
        for exchange in &self.scenario.exchanges {
            let number = exchange.node;
            let life = self.nodes.get(&number).and_then(|node| node.life.as_ref());
            let Some(life) = life else { continue };
            let standing = life.engine.custodian().and_then(|custodian| custodian.members()).map(|it| it.standing);
            let knows = self.watch.ledger.replaced_at(number).is_some_and(|at| self.watch.ledger.reached(number) >= at);
            if knows && standing != Some(Standing::Member) {
                let text = format!("the machine that replaced node {number} is {standing:?}");
                return self.watch.violated(Invariant::Members, text);
            }
            if life.engine.keys().iter().any(|entry| entry.has_share()) {
                self.watch.observations.note(Observation::ShareRegained);
            }
        }
        Ok(())
    }
}
