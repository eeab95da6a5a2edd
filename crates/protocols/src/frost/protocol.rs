//! The state machine: one party is both signer and coordinator.

use core::mem;
use std::collections::BTreeSet;

use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, SeedableRng};
use theta_groups::Secret;
use theta_rounds::{Abort, Action, Blames, Bug, Outgoing, PartyId, Progress, Protocol, Recipient, Slot};
use theta_schemes::signatures::frost::{FrostSuite, SignatureShare, commit_batch};

use super::coordinator::{Coordinator, Spoiled};
use super::message::{
    CommitmentsMessage, FrostMessage, Numbered, Offer, PackageMessage, RequestMessage, ShareMessage, SignatureMessage,
    Signed, longest,
};
use super::setting::Setting;
use super::signer::{Answer, Signer, Taken};
use super::stock::{Ask, Supply};
use super::suites::StockSuite;
use crate::{Misbehaviour, Outcome};

type Actions<C> = theta_rounds::Actions<FrostMessage<C>, crate::Ask>;

/// What the stock is asked, as an action.
fn ask<C: StockSuite>(ask: Ask) -> Action<FrostMessage<C>, crate::Ask> {
    Action::Ask(ask.into())
}

/// One request for a signature at one party.
pub(super) struct RobustFrost<C: FrostSuite> {
    setting: Setting<C>,
    state: State<C>,
    excluded: BTreeSet<PartyId>,
}

/// The state, named for what it awaits.
enum State<C: FrostSuite> {
    /// The start.
    AwaitingStart,
    /// A signature from any coordinator, this party included.
    AwaitingSignature(Box<Roles<C>>),
    /// Its turn to send the signature, and to give the stock what is left to keep.
    Announcing { number: u16, signed: Signed, to: Recipient, rest: Vec<Ask> },
    /// The call that takes the result.
    Done(Signed),
    /// The call that takes the reason of the failure.
    Failed(Abort),
}

/// The state of both roles while a party signs.
struct Roles<C: FrostSuite> {
    signer: Signer,
    coordinator: Coordinator<C>,
    /// How many coordinators it waited for in vain.
    attempt: u32,
    /// What to send next.
    tasks: Vec<Task<C>>,
    /// What to ask the stock for as a signer.
    asks: Vec<Ask>,
    /// The number of this party's latest message that answers no package. It starts at a random number.
    number: u16,
    /// For the weights of batch verification.
    weights: ChaCha20Rng,
}

/// Work that needs randomness or sends something.
struct Task<C: FrostSuite> {
    coordinator: PartyId,
    /// The session and the share for it; `None` if only commitments are sent.
    answer: Option<(u16, SignatureShare<C>)>,
    /// Whether commitments for this signature are sent along.
    own: bool,
    /// How many commitments for later signatures are sent along.
    pooled: u8,
}

impl<C: StockSuite> Roles<C> {
    fn draw(rng: &mut dyn CryptoRng) -> Self {
        let mut seed = Secret::new([0; 32]);
        rng.fill_bytes(seed.expose_mut());
        Self {
            signer: Signer::new(u64::from_be_bytes(random(rng))),
            coordinator: Coordinator::new(u16::from_be_bytes(random(rng))),
            number: u16::from_be_bytes(random(rng)),
            attempt: 0,
            tasks: Vec::new(),
            asks: Vec::new(),
            weights: ChaCha20Rng::from_seed(*seed.expose()),
        }
    }

    /// Sends what the coordinator of this attempt needs; excluded coordinators are skipped.
    fn turn(&mut self, setting: &Setting<C>, excluded: &BTreeSet<PartyId>) {
        for _ in 0..setting.threshold.n() {
            match setting.coordinator(self.attempt) {
                Some(party) if party == setting.local => return self.coordinator.ask(),
                Some(party) if !excluded.contains(&party) => {
                    // The first coordinator uses commitments that it has from before. Another one must get a message:
                    // otherwise it does not know that it is asked.
                    if self.attempt == 0 && !setting.is_two_rounds() {
                        return self.asks.push(Ask::Given { to: party });
                    }
                    return self.commit_to(party);
                }
                _ => self.attempt = self.attempt.wrapping_add(1),
            }
        }
    }

    /// Gives a coordinator commitments for this signature, unless it has some.
    fn commit_to(&mut self, coordinator: PartyId) {
        if !self.signer.has_committed_to(coordinator) {
            self.tasks.push(Task { coordinator, answer: None, own: true, pooled: 0 });
        }
    }

    fn is_busy(&self, setting: &Setting<C>) -> bool {
        !self.tasks.is_empty()
            || !self.asks.is_empty()
            || self.coordinator.has_requests()
            || self.coordinator.wants_session(setting)
    }

    /// What this party sends as a signer and as a coordinator, and what it asks the stock for.
    fn speak(&mut self, setting: &Setting<C>, rng: &mut dyn CryptoRng) -> Actions<C> {
        let mut out: Actions<C> = self.asks.drain(..).chain(self.coordinator.take_asks()).map(ask).collect();
        let send = |party, message| Action::Send(Outgoing { to: Recipient::Party(party), message });
        for Task { coordinator, answer, own, pooled } in mem::take(&mut self.tasks) {
            let own = own.then(|| self.signer.commit(setting, coordinator, rng));
            let (keep, pooled) = in_advance(setting, coordinator, pooled, rng);
            // The stock has the nonces before anybody learns the commitments.
            out.extend(keep.map(ask));
            let offer = Offer { own, pooled };
            let message = match answer {
                Some((session, share)) => FrostMessage::Share(ShareMessage { session, share, offer }),
                None if offer.is_empty() => continue,
                None => FrostMessage::Commitments(CommitmentsMessage { sent: self.next_number(), offer }),
            };
            out.push(send(coordinator, message));
        }
        for party in self.coordinator.take_requests() {
            let message = RequestMessage { sent: self.next_number(), wanted: setting.batch() };
            out.push(send(party, FrostMessage::Request(message)));
        }
        out
    }

    /// The number may wrap: no instance sends 65,536 messages of one kind, because receivers count them.
    const fn next_number(&mut self) -> u16 {
        self.number = self.number.wrapping_add(1);
        self.number
    }

    /// Ends both roles. What the stock is to keep or forget still reaches it; questions to the stock are dropped.
    fn announcing(&mut self, signed: Signed, to: Recipient) -> State<C> {
        let asked = self.asks.drain(..).chain(self.coordinator.take_asks());
        let rest = asked.filter(|ask| !ask.is_question()).collect();
        State::Announcing { number: self.next_number(), signed, to, rest }
    }

    /// Handles the answer to a package once its nonces were asked for; `None` if its coordinator has been excluded.
    fn answer(
        &mut self,
        coordinator: PartyId,
        answer: Option<Result<Answer<C>, Misbehaviour>>,
        in_advance: bool,
    ) -> Result<(), Blames<Misbehaviour>> {
        match answer.transpose().map_err(|misbehaviour| vec![(coordinator, misbehaviour)])? {
            None => {}
            Some(Answer { session, wanted, share }) => {
                // The store refused nonces of this instance. It might refuse the next ones, too, and receivers count
                // offers.
                if share.is_none() && !in_advance {
                    return Ok(());
                }
                let own = !in_advance || share.is_none();
                let answer = share.map(|share| (session, share));
                self.tasks.push(Task { coordinator, answer, own, pooled: wanted });
            }
        }
        Ok(())
    }

    /// Handles a coordinator's request for commitments of this party.
    fn take_request(&mut self, from: PartyId, wanted: u8) -> Result<(), Misbehaviour> {
        let first = self.signer.request(from)?;
        if wanted == 0 {
            self.asks.push(Ask::Withdraw { coordinator: from });
        }
        let own = !self.signer.has_committed_to(from);
        self.tasks.push(Task { coordinator: from, answer: None, own, pooled: if first { wanted } else { 0 } });
        Ok(())
    }
}

/// Makes nonces for later signatures with a coordinator, as many as it wants, within bounds. Returns what the stock is
/// to keep, and the commitments to send.
fn in_advance<C: StockSuite>(
    setting: &Setting<C>,
    coordinator: PartyId,
    wanted: u8,
    rng: &mut dyn CryptoRng,
) -> (Option<Ask>, Vec<Numbered<C>>) {
    let count = wanted.min(setting.batch());
    if count == 0 {
        return (None, Vec::new());
    }
    let first = u64::from_be_bytes(random(rng));
    let mut offered = Vec::with_capacity(count.into());
    let mut nonces = Vec::with_capacity(count.into());
    for (made, step) in commit_batch::<C>(&setting.key, count.into(), rng).into_iter().zip(0..) {
        let number = first.wrapping_add(step);
        offered.push(Numbered { number, commitments: made.1 });
        nonces.push((number, C::any_nonces(made.0)));
    }
    (Some(Ask::Keep { coordinator, nonces, most: 2 * setting.per_peer, day: setting.day }), offered)
}

fn random<const N: usize>(rng: &mut dyn CryptoRng) -> [u8; N] {
    let mut bytes = [0; N];
    rng.fill_bytes(&mut bytes);
    bytes
}

impl<C: StockSuite> RobustFrost<C> {
    /// One party's side of a request.
    pub(super) const fn new(setting: Setting<C>) -> Self {
        Self { setting, state: State::AwaitingStart, excluded: BTreeSet::new() }
    }

    /// Opens sessions as long as there are signers for them.
    fn open_sessions(&mut self, rng: &mut dyn CryptoRng) -> Result<Actions<C>, Bug> {
        let mut out = Vec::new();
        while let State::AwaitingSignature(roles) = &mut self.state
            && roles.coordinator.wants_session(&self.setting)
        {
            let (session, packages) = roles.coordinator.open(&self.setting, rng)?;
            let send = |(party, package)| {
                Action::Send(Outgoing { to: Recipient::Party(party), message: FrostMessage::Package(package) })
            };
            out.extend(packages.into_iter().map(send));
            // With k = 1 this party's share is the only one, so the session is complete at once.
            self.complete(session);
        }
        Ok(out)
    }

    /// Ends a session if all its shares have come.
    fn complete(&mut self, session: u16) -> Blames<Misbehaviour> {
        let State::AwaitingSignature(roles) = &mut self.state else { return Vec::new() };
        match roles.coordinator.complete(&self.setting, session, &mut roles.weights) {
            None => Vec::new(),
            Some(Ok(signed)) => {
                self.state = roles.announcing(signed, Recipient::All);
                Vec::new()
            }
            Some(Err(Spoiled::By(culprits))) => {
                let local = self.setting.local;
                if culprits.contains(&local) {
                    roles.coordinator.retire();
                }
                let others = culprits.into_iter().filter(|party| *party != local);
                others.map(|party| (party, Misbehaviour::InvalidShare)).collect()
            }
            Some(Err(Spoiled::Bug(bug))) => {
                self.state = State::Failed(Abort::Bug(bug));
                Vec::new()
            }
        }
    }

    fn take_package(&mut self, from: PartyId, package: PackageMessage) -> Result<(), Misbehaviour> {
        let State::AwaitingSignature(roles) = &mut self.state else { return Ok(()) };
        let pooled = package.wanted;
        match roles.signer.take(&self.setting, from, package)? {
            Taken::Asked(ask) => roles.asks.push(ask),
            Taken::Stale => roles.tasks.push(Task { coordinator: from, answer: None, own: true, pooled }),
        }
        Ok(())
    }

    fn take_signature(&mut self, signed: Signed) -> Result<(), Misbehaviour> {
        let State::AwaitingSignature(roles) = &mut self.state else { return Ok(()) };
        if !self.setting.verify(&signed) {
            return Err(Misbehaviour::InvalidSignature);
        }
        // The coordinator has sent it to all, unless it lies or was stopped half-way. So this party sends it only to
        // those who ask.
        self.state = roles.announcing(signed, Recipient::OnRequest);
        Ok(())
    }

    /// Lets the coordinator role look for signers after something has happened.
    fn gather(&mut self) {
        if let State::AwaitingSignature(roles) = &mut self.state {
            roles.coordinator.gather(&self.setting, &self.excluded);
        }
    }

    fn receive(&mut self, from: PartyId, message: FrostMessage<C>) -> Result<Blames<Misbehaviour>, Misbehaviour> {
        let State::AwaitingSignature(roles) = &mut self.state else { return Ok(Vec::new()) };
        match message {
            FrostMessage::Commitments(CommitmentsMessage { offer, .. }) => {
                roles.coordinator.offer(&self.setting, from, offer)?;
                Ok(Vec::new())
            }
            FrostMessage::Package(package) => self.take_package(from, package).map(|()| Vec::new()),
            FrostMessage::Share(ShareMessage { session, share, offer }) => {
                roles.coordinator.take_share(&self.setting, from, session, share, offer)?;
                Ok(self.complete(session))
            }
            FrostMessage::Signature(SignatureMessage { signed, .. }) => {
                self.take_signature(signed).map(|()| Vec::new())
            }
            FrostMessage::Request(RequestMessage { wanted, .. }) => {
                roles.take_request(from, wanted).map(|()| Vec::new())
            }
        }
    }

    fn give_up_if_hopeless(&mut self) {
        let needed = self.setting.needed();
        let remaining = usize::from(self.setting.threshold.n()).saturating_sub(self.excluded.len());
        if remaining < needed && matches!(self.state, State::AwaitingStart | State::AwaitingSignature(_)) {
            self.state = State::Failed(Abort::TooFewHonest { remaining, needed });
        }
    }
}

impl<C: StockSuite> Protocol for RobustFrost<C> {
    type Message = FrostMessage<C>;
    type Output = Outcome;
    type Misbehaviour = Misbehaviour;
    type Ask = crate::Ask;
    type Supply = crate::Supply;

    fn longest(&self, slot: Slot) -> usize {
        longest::<C>(self.setting.threshold.n(), slot)
    }

    fn act(&mut self, rng: &mut dyn CryptoRng) -> Result<Actions<C>, Bug> {
        if matches!(self.state, State::AwaitingStart) {
            let mut roles = Roles::draw(rng);
            roles.turn(&self.setting, &self.excluded);
            self.state = State::AwaitingSignature(Box::new(roles));
            self.gather();
        }
        let mut out = Vec::new();
        if let State::AwaitingSignature(roles) = &mut self.state {
            out = roles.speak(&self.setting, rng);
        }
        out.extend(self.open_sessions(rng)?);
        if let State::Announcing { .. } = self.state {
            let nothing = State::Failed(Abort::Bug(Bug("an announcement that was taken twice")));
            if let State::Announcing { number, signed, to, rest } = mem::replace(&mut self.state, nothing) {
                out.extend(rest.into_iter().map(ask));
                let message = FrostMessage::Signature(SignatureMessage { sent: number, signed: signed.clone() });
                out.push(Action::Send(Outgoing { to, message }));
                self.state = State::Done(signed);
            }
        }
        Ok(out)
    }

    fn update(&mut self, from: PartyId, message: Self::Message) -> Result<(), Blames<Misbehaviour>> {
        let received = self.receive(from, message);
        self.gather();
        match received {
            Ok(blames) if blames.is_empty() => Ok(()),
            Ok(blames) => Err(blames),
            Err(misbehaviour) => Err(vec![(from, misbehaviour)]),
        }
    }

    /// Takes what the stock answers.
    fn supply(&mut self, supply: crate::Supply) -> Result<(), Blames<Misbehaviour>> {
        let State::AwaitingSignature(roles) = &mut self.state else { return Ok(()) };
        // It asks for no checks.
        let crate::Supply::Nonces(supply) = supply else { return Ok(()) };
        match supply {
            Supply::Given { to, any } => {
                if !any && self.setting.coordinator(roles.attempt) == Some(to) {
                    roles.commit_to(to);
                }
                Ok(())
            }
            Supply::Nonces { coordinator, number, nonces, in_advance } => {
                let nonces = nonces.and_then(C::nonces);
                let answer = roles.signer.answer(&self.setting, (coordinator, number), nonces);
                roles.answer(coordinator, answer, in_advance)
            }
            // The coordinator must not look for signers again here: it would ask the stock the same without end.
            Supply::Drawn { commitments, held, doubts } => {
                roles.coordinator.supply(&self.setting, &self.excluded, commitments, (held, doubts));
                Ok(())
            }
        }
    }

    /// A party that waited in vain goes on to the next coordinator; the earlier one may still send a signature.
    fn expire(&mut self) {
        if let State::AwaitingSignature(roles) = &mut self.state {
            roles.coordinator.expire();
            roles.attempt = roles.attempt.wrapping_add(1);
            roles.turn(&self.setting, &self.excluded);
        }
        self.gather();
    }

    fn exclude(&mut self, party: PartyId) {
        self.excluded.insert(party);
        if let State::AwaitingSignature(roles) = &mut self.state {
            roles.signer.exclude(party);
            roles.coordinator.exclude(party);
            if self.setting.coordinator(roles.attempt) == Some(party) {
                roles.turn(&self.setting, &self.excluded);
            }
        }
        self.give_up_if_hopeless();
        self.gather();
    }

    /// Any party may have the signature, or commitments for this one.
    fn awaits(&self, party: PartyId) -> bool {
        !self.excluded.contains(&party)
    }

    fn progress(&self) -> Progress {
        match &self.state {
            State::AwaitingStart | State::Announcing { .. } => Progress::Act,
            State::AwaitingSignature(roles) if roles.is_busy(&self.setting) => Progress::Act,
            State::AwaitingSignature(_) => Progress::Waiting,
            State::Done(_) => Progress::Finalize,
            State::Failed(_) => Progress::Failed,
        }
    }

    fn contributions(&self) -> (usize, usize) {
        let needed = self.setting.needed();
        let shares = match &self.state {
            State::AwaitingSignature(roles) => roles.coordinator.contributions(),
            State::Announcing { .. } | State::Done(_) => needed,
            State::AwaitingStart | State::Failed(_) => 0,
        };
        (shares, needed)
    }

    fn finalize(self) -> Result<Outcome, Abort> {
        match self.state {
            State::Done(Signed { signature, signers, commitments }) => {
                let contributors = signers.into_iter().map(PartyId::share).collect();
                Ok(Outcome { result: Secret::new(signature), proof: commitments, contributors })
            }
            State::Failed(abort) => Err(abort),
            _ => Err(Abort::Bug(Bug("asked for a signature before there is one"))),
        }
    }
}
