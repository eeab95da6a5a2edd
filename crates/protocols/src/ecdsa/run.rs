//! The program of one attempt, as a machine in the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use rand_core::CryptoRng;
use theta_mpc::ecdsa::{
    Curve, Presigned, Presigning, ROUNDS_TO_MEET, SetUps, presign, presign_dishonest, presign_passive, presign_semi_ot,
};
use theta_mpc::{Program, Recording, Stop, View};
use theta_rounds::{Abort, Channel, Driver, Effect, Input, LockStep, Machine, Offence, PartyId, Recipient, Slot};
use theta_sharing::{ShareIndex, Threshold};

use super::{
    Majority, Security,
    message::{GaveUp, Reason},
    stock::UnderWay,
};
use crate::Misbehaviour;

/// The kind of a program's messages in its own numbering.
const KIND: u16 = 1;

/// A program at one of its parties. In the program parties are numbered by position among its holders; outside by the index of their share.
pub(super) struct Run<G: Curve> {
    holders: Vec<ShareIndex>,
    driver: Driver<LockStep<Program<Presigned<G>>>>,
    /// The round of the last message that was sent.
    round: u16,
    /// That round at the last tick, and the ticks since it was another one.
    at_tick: (u16, u32),
    /// Whether [`Self::meets`] has said so.
    has_met: bool,
    security: Security,
    /// The life in which each holder began.
    lives: BTreeMap<PartyId, u16>,
    /// The holders that were heard in another life, too.
    restarted: BTreeSet<PartyId>,
    /// Where what this party says follows from its seed and from what it hears, and is kept.
    recording: Recording,
    count: u16,
    /// Counts it, if it makes presignatures and its rounds go on.
    making: Option<UnderWay>,
}

/// For so many ticks a program may stand still. The service's ticks come after twice the time each, up to four seconds.
const MOST_STILL: u32 = 4;

/// What a holder sent in a round of a program.
#[derive(Clone)]
pub(super) struct Round {
    /// The kind of its sender's messages of programs, a random one from each start to the next.
    pub(super) life: u16,
    pub(super) round: u16,
    pub(super) payload: Bytes,
}

/// What comes of a step.
pub(super) enum Step<G: Curve> {
    Send {
        to: PartyId,
        round: u16,
        payload: Bytes,
    },
    Blame(PartyId, Misbehaviour),
    /// A holder has said something in another life than that in which it began: it has none of the program any more.
    Anew(PartyId),
    /// The end.
    Ended(Result<Presigned<G>, Abort>),
}

impl<G: Curve> Run<G> {
    /// Sets up the program; it begins with [`Self::start`].
    ///
    /// # Errors
    /// [`Stop::Input`] if this party is none of the holders.
    pub(super) fn new(
        local: PartyId,
        k: u16,
        kind: (Majority, Security),
        setting: Presigning<G>,
        (set_ups, making): (Arc<SetUps>, Option<UnderWay>),
        shows_views: bool,
    ) -> Result<Self, Stop> {
        let count = u16::try_from(setting.count).unwrap_or(u16::MAX);
        let holders = setting.holders.clone();
        let unfit = Stop::Input("the program is of other holders");
        let n = u16::try_from(holders.len()).map_err(|_| unfit)?;
        let threshold = Threshold::new(k, n).map_err(|_| unfit)?;
        let position = holders.iter().position(|holder| *holder == local.share());
        let index = position.and_then(ShareIndex::at).ok_or(unfit)?;
        let program =
            match kind {
                (Majority::Honest, Security::Active) => {
                    Program::new(index, threshold, move |party| presign(party, setting))?
                }
                (Majority::Honest, Security::Passive) => {
                    Program::new(index, threshold, move |party| presign_passive(party, setting))?
                }
                (Majority::Dishonest, Security::Active) => Program::new(index, threshold, move |party| async move {
                    presign_dishonest(party, setting, &set_ups).await
                })?,
                (Majority::Dishonest, Security::Passive) => Program::new(index, threshold, move |party| async move {
                    presign_semi_ot(party, setting, &set_ups).await
                })?,
            };
        let recording = if shows_views { program.record() } else { program.watch() };
        let members = threshold.indices().map(PartyId::of_share);
        let driver = Driver::new(PartyId::of_share(index), members, LockStep::new(program));
        Ok(Self {
            holders,
            driver,
            round: 0,
            at_tick: (0, 0),
            has_met: false,
            security: kind.1,
            lives: BTreeMap::new(),
            restarted: BTreeSet::new(),
            recording,
            count,
            making,
        })
    }

    pub(super) fn holders(&self) -> &[ShareIndex] {
        &self.holders
    }

    /// The round of the last message that was sent.
    pub(super) const fn round(&self) -> u16 {
        self.round
    }

    /// Time has passed. Says whether it has stood still for so long that nobody need wait for it any more; from the first tick without a new round on
    /// nobody waits for what it makes.
    pub(super) fn tick(&mut self) -> bool {
        let (before, still) = self.at_tick;
        let still = if self.round > before { 0 } else { still.saturating_add(1) };
        self.at_tick = (self.round, still);
        if still > 0 {
            self.making = None;
        }
        still >= MOST_STILL
    }

    /// Notes that a message of this round leaves. Returns whether it is the first after those in which holders find that they mean the same: where all
    /// but one may cheat, the first that comes of what is hidden.
    pub(super) const fn meets(&mut self, round: u16) -> bool {
        let is_first = !self.has_met && round > ROUNDS_TO_MEET;
        self.has_met |= is_first;
        is_first
    }

    /// Whether [`Self::meets`] has said so.
    pub(super) const fn has_met(&self) -> bool {
        self.has_met
    }

    /// Whether no round of it has passed between the last two ticks.
    pub(super) const fn stands_still(&self) -> bool {
        self.at_tick.1 > 0
    }

    /// What counts it, for whoever keeps what it has made.
    pub(super) fn take_making(&mut self) -> Option<UnderWay> {
        self.making.take()
    }

    /// How many presignatures it makes.
    pub(super) const fn count(&self) -> u16 {
        self.count
    }

    /// What this party tells the others when it throws the program away, and what it shows them when all have, once. `None` if holders have not begun together
    /// yet, or the program has come to where its share of x is used: then it neither tells nor shows anything.
    pub(super) fn give_up(&self, reason: Reason) -> Option<(GaveUp, View)> {
        let (run, view) = (self.recording.run()?, self.recording.take()?);
        Some((GaveUp { reason, run }, view))
    }

    /// Whether it is this run, which all have begun together.
    pub(super) fn is(&self, gave_up: &GaveUp) -> bool {
        self.recording.run() == Some(gave_up.run)
    }

    /// Pairs of holders of which one has lied, past where the share of x is used, and it does not show which.
    pub(super) fn disputes(&self) -> Vec<[PartyId; 2]> {
        let found = self.recording.disputes();
        let holder = |position: usize| self.holders.get(position).copied().map(PartyId::of_share);
        found.into_iter().filter_map(|[one, other]| Some([holder(one)?, holder(other)?])).collect()
    }

    pub(super) fn start(&mut self, rng: &mut dyn CryptoRng) -> Vec<Step<G>> {
        self.handle(Input::Start, rng)
    }

    /// Takes what a holder sent; nothing comes of it if it is none of the program.
    ///
    /// A holder that was restarted deals other numbers than before. Nothing of its second life is heard, and the program comes to nothing by silence: false numbers look like
    /// a cheat, or, with passive security, nothing finds them.
    pub(super) fn receive(&mut self, from: PartyId, message: Round, rng: &mut dyn CryptoRng) -> Vec<Step<G>> {
        let Round { life, round, payload } = message;
        if *self.lives.entry(from).or_insert(life) != life {
            return if self.restarted.insert(from) { vec![Step::Anew(from)] } else { Vec::new() };
        }
        let position = self.holders.iter().position(|holder| *holder == from.share());
        let Some(index) = position.and_then(ShareIndex::at) else { return Vec::new() };
        let slot = Slot { kind: KIND, number: round };
        let from = PartyId::of_share(index);
        self.handle(Input::Message { from, slot, channel: Channel::Private, payload }, rng)
    }

    /// The holders whose messages are missing.
    pub(super) fn missing(&self) -> impl Iterator<Item = PartyId> {
        let awaited = |(position, holder): (usize, &ShareIndex)| {
            let inner = PartyId::of_share(ShareIndex::at(position)?);
            self.driver.awaits(inner).then(|| PartyId::of_share(*holder))
        };
        self.holders.iter().enumerate().filter_map(awaited)
    }

    fn holder(&self, party: PartyId) -> Option<PartyId> {
        self.holders.get(party.share().position()).copied().map(PartyId::of_share)
    }

    fn handle(&mut self, input: Input<core::convert::Infallible>, rng: &mut dyn CryptoRng) -> Vec<Step<G>> {
        let effects = self.driver.handle(input, rng);
        let mut steps = Vec::with_capacity(effects.len());
        for effect in effects {
            match effect {
                Effect::Send { to: Recipient::Party(party), slot, payload, .. } => {
                    self.round = slot.number;
                    steps.extend(self.holder(party).map(|to| Step::Send { to, round: slot.number, payload }));
                }
                Effect::Blame(blame) => {
                    let offence = match blame.offence {
                        // Where nothing was verified, a liar can make honest shares look false.
                        Offence::Protocol(theta_mpc::Misbehaviour::FalseShare)
                            if self.security == Security::Passive =>
                        {
                            None
                        }
                        Offence::Protocol(misbehaviour) => Some(Misbehaviour::Program(misbehaviour)),
                        // Whoever was restarted begins anew, and says other things than before.
                        Offence::Equivocation { .. } => None,
                        _ => Some(Misbehaviour::MalformedRound),
                    };
                    steps.extend(self.holder(blame.party).zip(offence).map(|(party, what)| Step::Blame(party, what)));
                }
                Effect::Finished(result) => steps.push(Step::Ended(result)),
                Effect::Send { .. } | Effect::Ask(_) => {}
            }
        }
        steps
    }
}
