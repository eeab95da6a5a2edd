//! The state machine: signer and coordinator under one roof.

use core::mem;
use std::collections::BTreeSet;

use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, SeedableRng};
use theta_groups::Secret;
use theta_rounds::{Abort, Bug, Outgoing, PartyId, Progress, Recipient, Round, RoundProtocol, Slot};
use theta_schemes::signatures::frost::{FrostSuite, SignatureShare};

use super::Misbehaviour;
use super::coordinator::{Coordinator, Spoiled};
use super::message::{
    CommitmentsMessage, FrostMessage, Offer, PackageMessage, REQUEST, RequestMessage, ShareMessage, SignatureMessage,
    Signed, longest,
};
use super::setting::Setting;
use super::signer::{Answer, Signer};
use crate::Outcome;

type Blames = Vec<(PartyId, Misbehaviour)>;

/// One request at one party.
pub struct RobustFrost<C: FrostSuite> {
    setting: Setting<C>,
    state: State<C>,
    excluded: BTreeSet<PartyId>,
}

/// What it awaits.
enum State<C: FrostSuite> {
    /// Its start.
    AwaitingStart,
    /// A signature, from whichever coordinator: others, and perhaps itself.
    AwaitingSignature(Box<Roles<C>>),
    /// To tell the others.
    Announcing { number: u16, signed: Signed, to: Recipient },
    /// To be asked for the result.
    Done(Signed),
    /// To be asked for the reason.
    Failed(Abort),
}

/// What a party is while it signs.
struct Roles<C: FrostSuite> {
    signer: Signer<C>,
    coordinator: Coordinator<C>,
    /// How many coordinators were waited for in vain.
    attempt: u32,
    /// What to send next.
    tasks: Vec<Task<C>>,
    /// The number of this party's next message of its own accord. The first is random.
    number: u16,
    /// For the weights of batch verification.
    weights: ChaCha20Rng,
}

/// Work that needs randomness or sends something.
struct Task<C: FrostSuite> {
    coordinator: PartyId,
    /// The session and the share for it, if that is what there is to send.
    answer: Option<(u16, SignatureShare<C>)>,
    /// Whether commitments for this signature go with it,
    own: bool,
    /// and how many for later ones.
    pooled: u8,
}

impl<C: FrostSuite> Roles<C> {
    fn draw(rng: &mut dyn CryptoRng) -> Self {
        let mut seed = Secret::new([0; 32]);
        rng.fill_bytes(seed.expose_mut());
        Self {
            signer: Signer::new(u64::from_be_bytes(random(rng))),
            coordinator: Coordinator::new(u16::from_be_bytes(random(rng))),
            number: u16::from_be_bytes(random(rng)),
            attempt: 0,
            tasks: Vec::new(),
            weights: ChaCha20Rng::from_seed(*seed.expose()),
        }
    }

    /// Turns to the coordinator of this attempt, or the next one that is not excluded.
    fn turn(&mut self, setting: &Setting<C>, excluded: &BTreeSet<PartyId>) {
        for _ in 0..setting.threshold.n() {
            match setting.coordinator(self.attempt) {
                Some(party) if party == setting.local => return self.coordinator.ask(),
                Some(party) if !excluded.contains(&party) => {
                    // The first one uses what it was given in advance. To another one, silence would not tell that it is asked.
                    let in_advance = self.attempt == 0 && setting.reserve.has_given(party);
                    if !in_advance && !self.signer.has_committed_to(party) {
                        self.tasks.push(Task { coordinator: party, answer: None, own: true, pooled: 0 });
                    }
                    return;
                }
                _ => self.attempt = self.attempt.wrapping_add(1),
            }
        }
    }

    fn is_busy(&self, setting: &Setting<C>) -> bool {
        !self.tasks.is_empty() || self.coordinator.has_requests() || self.coordinator.wants_session(setting)
    }

    /// What this party says as a signer, and what it asks signers for.
    fn speak(&mut self, setting: &Setting<C>, rng: &mut dyn CryptoRng) -> Vec<Outgoing<FrostMessage<C>>> {
        let mut out = Vec::new();
        for Task { coordinator, answer, own, pooled } in mem::take(&mut self.tasks) {
            let own = own.then(|| self.signer.commit(setting, coordinator, rng));
            let offer = Offer { own, pooled: setting.reserve.give(coordinator, pooled, &setting.key, rng) };
            let message = match answer {
                Some((session, share)) => FrostMessage::Share(ShareMessage { session, share, offer }),
                None if offer.is_empty() => continue,
                None => FrostMessage::Commitments(CommitmentsMessage { kind: self.next_number(), offer }),
            };
            out.push(Outgoing { to: Recipient::Party(coordinator), message });
        }
        for party in self.coordinator.take_requests() {
            let message = RequestMessage { kind: self.next_number(), wanted: setting.reserve.first_batch() };
            out.push(Outgoing { to: Recipient::Party(party), message: FrostMessage::Request(message) });
        }
        out
    }

    /// No instance comes near to 65,536 messages of one kind: they are counted at the other end.
    const fn next_number(&mut self) -> u16 {
        self.number = self.number.wrapping_add(1);
        self.number
    }

    /// A coordinator lacks commitments of this party.
    fn take_request(&mut self, setting: &Setting<C>, from: PartyId, wanted: u8) -> Result<(), Misbehaviour> {
        let first = self.signer.request(from)?;
        if wanted == 0 {
            setting.reserve.withdraw(from);
        }
        let own = !self.signer.has_committed_to(from);
        self.tasks.push(Task { coordinator: from, answer: None, own, pooled: if first { wanted } else { 0 } });
        Ok(())
    }
}

fn random<const N: usize>(rng: &mut dyn CryptoRng) -> [u8; N] {
    let mut bytes = [0; N];
    rng.fill_bytes(&mut bytes);
    bytes
}

impl<C: FrostSuite> RobustFrost<C> {
    /// A party's side of a request.
    pub(super) const fn new(setting: Setting<C>) -> Self {
        Self { setting, state: State::AwaitingStart, excluded: BTreeSet::new() }
    }

    /// Opens sessions as long as there are signers for them.
    fn open_sessions(&mut self, rng: &mut dyn CryptoRng) -> Result<Vec<Outgoing<FrostMessage<C>>>, Bug> {
        let mut out = Vec::new();
        while let State::AwaitingSignature(roles) = &mut self.state
            && roles.coordinator.wants_session(&self.setting)
        {
            let (session, packages) = roles.coordinator.open(&self.setting, rng)?;
            let send =
                |(party, package)| Outgoing { to: Recipient::Party(party), message: FrostMessage::Package(package) };
            out.extend(packages.into_iter().map(send));
            // Where one is enough, there is nobody to wait for and nobody else's share to be false.
            self.complete(session);
        }
        Ok(out)
    }

    /// Ends a session if all its shares are there.
    fn complete(&mut self, session: u16) -> Blames {
        let State::AwaitingSignature(roles) = &mut self.state else { return Vec::new() };
        match roles.coordinator.complete(&self.setting, session, &mut roles.weights) {
            None => Vec::new(),
            Some(Ok(signed)) => {
                self.state = State::Announcing { number: roles.next_number(), signed, to: Recipient::All };
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
        let (session, pooled) = (package.session, package.wanted);
        roles.tasks.push(match roles.signer.answer(&self.setting, from, package)? {
            Answer::Share { share, in_advance } => {
                Task { coordinator: from, answer: Some((session, share)), own: !in_advance, pooled }
            }
            Answer::Stale => Task { coordinator: from, answer: None, own: true, pooled },
        });
        Ok(())
    }

    fn take_signature(&mut self, signed: Signed) -> Result<(), Misbehaviour> {
        let State::AwaitingSignature(roles) = &mut self.state else { return Ok(()) };
        if !self.setting.verify(&signed) {
            return Err(Misbehaviour::InvalidSignature);
        }
        // Its coordinator has sent it to all; unless it lies, or was stopped half-way.
        self.state = State::Announcing { number: roles.next_number(), signed, to: Recipient::OnRequest };
        Ok(())
    }

    /// Lets the coordinator look for signers after something has happened.
    fn gather(&mut self) {
        if let State::AwaitingSignature(roles) = &mut self.state {
            roles.coordinator.gather(&self.setting, &self.excluded);
        }
    }

    fn receive(&mut self, from: PartyId, message: FrostMessage<C>) -> Result<Blames, Misbehaviour> {
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
                roles.take_request(&self.setting, from, wanted).map(|()| Vec::new())
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

impl<C: FrostSuite> RoundProtocol for RobustFrost<C> {
    type Message = FrostMessage<C>;
    type Output = Outcome;
    type Misbehaviour = Misbehaviour;

    /// Sessions run side by side, each at its own pace: once started, messages of all rounds are welcome.
    fn round(&self) -> Round {
        match self.state {
            State::AwaitingStart => Round(0),
            _ => REQUEST,
        }
    }

    fn longest(&self, slot: Slot) -> usize {
        longest::<C>(self.setting.threshold.n(), slot)
    }

    fn do_round(&mut self, rng: &mut dyn CryptoRng) -> Result<Vec<Outgoing<Self::Message>>, Bug> {
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
            if let State::Announcing { number, signed, to } = mem::replace(&mut self.state, nothing) {
                let message = FrostMessage::Signature(SignatureMessage { kind: number, signed: signed.clone() });
                out.push(Outgoing { to, message });
                self.state = State::Done(signed);
            }
        }
        Ok(out)
    }

    fn update(&mut self, from: PartyId, message: Self::Message) -> Result<(), Blames> {
        let received = self.receive(from, message);
        self.gather();
        match received {
            Ok(blames) if blames.is_empty() => Ok(()),
            Ok(blames) => Err(blames),
            Err(misbehaviour) => Err(vec![(from, misbehaviour)]),
        }
    }

    /// Who waited in vain turns to the next coordinator; the old one may still come up with a signature.
    fn expire_round(&mut self) {
        if let State::AwaitingSignature(roles) = &mut self.state {
            roles.coordinator.expire(&self.setting);
            roles.attempt = roles.attempt.wrapping_add(1);
            roles.turn(&self.setting, &self.excluded);
        }
        self.gather();
    }

    fn exclude(&mut self, party: PartyId) {
        self.excluded.insert(party);
        if let State::AwaitingSignature(roles) = &mut self.state {
            roles.signer.exclude(party);
            roles.coordinator.exclude(&self.setting, party);
            if self.setting.coordinator(roles.attempt) == Some(party) {
                roles.turn(&self.setting, &self.excluded);
            }
        }
        self.give_up_if_hopeless();
        self.gather();
    }

    /// Anyone may have the signature, or commitments for us.
    fn awaits(&self, party: PartyId) -> bool {
        !self.excluded.contains(&party)
    }

    fn progress(&self) -> Progress {
        match &self.state {
            State::AwaitingStart | State::Announcing { .. } => Progress::NextRound,
            State::AwaitingSignature(roles) if roles.is_busy(&self.setting) => Progress::NextRound,
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
