//! Members that get other machines and new cards, and the machines that are said to be gone.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use theta_custody::{MembersState, Standing};
use theta_ledger::{Action, LedgerId, MemberChange};
use theta_names::NodeId;
use theta_statements::MemberRequest;

use super::{Event, GHOST, TICK, World};
use crate::byzantine::{Behaviour, Liar};
use crate::founded::{renewal, replacement};
use crate::scenario::{Exchange, Fate, Scenario, below};
use crate::setup::{Failed, Setup, identity};
use crate::watch::{Deed, Invariant, Violation};

/// The time after which whoever brings a change asks anew, in milliseconds.
const ANEW: u64 = 30_000;

/// A change of the members that somebody brings to all of them.
pub(super) struct Wish {
    at: u64,
    change: MemberChange,
    proof: Vec<u8>,
}

impl Wish {
    pub(super) fn all(scenario: &Scenario, ledger: &LedgerId) -> Result<Vec<Self>, Failed> {
        let replaced = scenario.exchanges.iter().map(|exchange| (exchange.until, replacement(exchange.node, ledger)));
        let renewed = scenario.renewals.iter().map(|wish| (wish.at, renewal(wish.node)));
        let wish = |(at, made): (u64, Result<_, Failed>)| made.map(|(change, proof)| Self { at, change, proof });
        replaced.chain(renewed).map(wish).collect()
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

    pub(super) fn plan_exchanges(&mut self) {
        for (place, exchange) in self.scenario.exchanges.iter().enumerate() {
            self.at(exchange.at, Event::Lose(place));
            self.at(exchange.until, Event::Start(exchange.node));
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
            self.watch.deeds.note(if stolen { Deed::RunByThief } else { Deed::CameBack });
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
            self.watch.deeds.note(Deed::Unseated);
        }
        connected
    }

    pub(super) fn seated_to_each_other(&self, a: u16, b: u16) -> bool {
        self.scenario.exchanges.is_empty() || (self.knows(a, b) && self.knows(b, a))
    }

    /// Whether a machine takes another one for the member's whose number it has. One that does not run knows nobody.
    fn knows(&self, knower: u16, machine: u16) -> bool {
        let member = machine % GHOST;
        let lost = self.scenario.exchanges.iter().find(|exchange| exchange.node == member);
        let Some(lost) = lost else { return true };
        let is_second = machine < GHOST && lost.at <= self.now;
        let life = self.nodes.get(&knower).and_then(|node| node.life.as_ref());
        let ledger = life.and_then(|life| life.engine.custodian()?.ledger());
        let seat = ledger.and_then(|ledger| ledger.seats().get(&NodeId::try_from(member).ok()?));
        // The first machine is that of the founding: any later seat is the other one's.
        seat.is_some_and(|seat| (seat.since() > 0) == is_second)
    }

    /// The changes of members that not all have heard of to the end.
    pub(super) fn wishes_of_members(&self) -> Vec<Event> {
        let mut asks = Vec::new();
        for (wish, wanted) in self.wishes.iter().enumerate().filter(|(_, wanted)| wanted.at <= self.now) {
            let undecided = self.places().filter(|node| !self.has_changed(**node, wanted));
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
        let honest = || self.scenario.honest();
        let late =
            self.wishes.iter().find_map(|wish| Some((wish, honest().find(|node| !self.has_changed(*node, wish))?)));
        late.map(|(wish, node)| format!("node {node} has not seen the change of member {:?}", wish.change.node()))
    }

    /// Somebody brings a change of the members to one of them.
    pub(super) fn change_members(&mut self, number: u16, wish: usize) -> Result<(), Violation> {
        let Some(Wish { change, proof, .. }) = self.wishes.get(wish) else { return Ok(()) };
        let mut nonce = [u8::try_from(wish).unwrap_or(u8::MAX); 32];
        let (first, _) = nonce.split_at_mut(8);
        first.copy_from_slice(&(self.now / ANEW).to_be_bytes());
        let request = MemberRequest { nonce, change: change.encode(), proof: proof.clone() };
        let Some((granted, life)) = self.granted(number, request) else { return Ok(()) };
        let answer = life.engine.change_members(granted, Vec::new());
        let now = self.now;
        self.trace.tell(|| format!("{now:>6} node {number} is brought change {wish} of the members: {answer:?}"));
        match answer {
            Ok(MembersState::Refused(why)) if self.is_honest(number) && !why.starts_with("too few") => {
                let text = format!("node {number} refuses change {wish} of the members: {why}");
                self.watch.violated(Invariant::Works, text)
            }
            _ => self.look(number),
        }
    }

    /// Checks in the end that all machines know what they are.
    pub(super) fn members_are_right(&mut self) -> Result<(), Violation> {
        for exchange in &self.scenario.exchanges {
            let number = exchange.node;
            let life = self.nodes.get(&number).and_then(|node| node.life.as_ref());
            let Some(life) = life else { continue };
            let standing = life.engine.custodian().and_then(|custodian| custodian.members()).map(|it| it.standing);
            if self.watch.ledger.replaced_at(number).is_some() && standing != Some(Standing::Member) {
                let text = format!("the machine that replaced node {number} is {standing:?}");
                return self.watch.violated(Invariant::Members, text);
            }
            if life.engine.keys().iter().any(|entry| entry.share.is_some()) {
                self.watch.deeds.note(Deed::ShareRegained);
            }
        }
        Ok(())
    }
}
