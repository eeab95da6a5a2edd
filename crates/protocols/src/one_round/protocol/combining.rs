//! From shares, or the combined value of another party, to the result.

use core::mem;
use std::sync::Arc;

use theta_groups::Secret;
use theta_rounds::{Abort, Blames, PartyId, Recipient, RoundProtocol as _};
use theta_schemes::keys::Combined;
use theta_schemes::{Claim, CombineError};
use theta_sharing::ShareIndex;

use super::{OneRound, State};
use crate::one_round::checking::{Checking, Origin};
use crate::one_round::duty::Duty;
use crate::one_round::setting::Setting;
use crate::{Misbehaviour, Outcome};

impl OneRound {
    /// Takes a share, and combines if there are enough.
    pub(super) fn take(&mut self, from: PartyId, share: &[u8]) -> Blames<Misbehaviour> {
        let State::AwaitingShares(gathering) = &mut self.state else { return Vec::new() };
        let misbehaviour = match gathering.shares.put(from.share(), share) {
            Ok(true) => return self.try_combine(),
            Ok(false) => Misbehaviour::InvalidShare,
            Err(error) => Misbehaviour::MalformedShare(error),
        };
        self.exclude(from);
        vec![(from, misbehaviour)]
    }

    /// Takes the combined values that have waited, as far as they are heard now.
    pub(super) fn hear_waiting(&mut self) -> Blames<Misbehaviour> {
        let mut blames = Vec::new();
        while matches!(self.state, State::AwaitingOwnShare | State::AwaitingShares(_))
            && let Some((from, combined)) = self.hearing.next()
        {
            blames.extend(self.take_combined(from, &combined));
        }
        blames
    }

    /// Takes a combined value.
    pub(super) fn take_combined(&mut self, from: PartyId, combined: &[u8]) -> Blames<Misbehaviour> {
        if !matches!(self.state, State::AwaitingOwnShare | State::AwaitingShares(_)) {
            return Vec::new();
        }
        let accepted = match Arc::clone(&self.setting.answer).accept_claim(combined) {
            Some(claim) => claim.map(|claim| self.check(claim, Origin::Party(from))),
            None => self.setting.answer.accept_combined(combined).map(|(result, contributors)| {
                self.accept(result, Some(Secret::new(combined.to_vec())), contributors);
            }),
        };
        match accepted {
            Ok(()) => Vec::new(),
            Err(_) => self.refuse(from),
        }
    }

    /// The result follows from this combined value, which another party sent. A combiner tells all of it: the other one may have told nobody
    /// else.
    fn accept(&mut self, result: Combined, value: Option<Secret<Vec<u8>>>, contributors: Vec<ShareIndex>) {
        self.state = announcement(result, value, contributors, &self.duty);
    }

    /// A party sent a false combined value.
    fn refuse(&mut self, from: PartyId) -> Blames<Misbehaviour> {
        self.exclude(from);
        vec![(from, Misbehaviour::InvalidResult)]
    }

    /// Lets a result be checked, in which the shares of these parties are, where that is known.
    fn check(&mut self, claim: (Claim, Vec<ShareIndex>), origin: Origin) {
        let gathering = match mem::replace(&mut self.state, State::AwaitingOwnShare) {
            State::AwaitingShares(gathering) => Some(gathering),
            _ => None,
        };
        self.state = State::Checking(Checking::new(claim, origin, gathering));
    }

    /// Takes the verdict about the result that was to be checked. If it is false, goes on where it was, with what came since.
    pub(super) fn take_verdict(&mut self, right: bool) -> Blames<Misbehaviour> {
        let checking = match mem::replace(&mut self.state, State::AwaitingOwnShare) {
            State::Checking(checking) if checking.claim.is_none() => checking,
            other => {
                self.state = other;
                return Vec::new();
            }
        };
        let Checking { combined, contributors, origin, gathering, held, .. } = checking;
        if right {
            match origin {
                Origin::Shares => self.state = self.setting.done(combined, contributors, &self.duty),
                Origin::Party(_) => {
                    let value = self.setting.answer.combined_value(&combined);
                    self.accept(combined, value, contributors);
                }
            }
            return Vec::new();
        }
        if let Some(gathering) = gathering {
            self.state = State::AwaitingShares(gathering);
        }
        let mut blames = match origin {
            Origin::Party(party) => self.refuse(party),
            Origin::Shares => {
                if let State::AwaitingShares(gathering) = &mut self.state {
                    gathering.doubt(&self.setting, self.bare);
                }
                self.try_combine()
            }
        };
        for (from, message) in held {
            blames.extend(self.update(from, message).err().into_iter().flatten());
        }
        blames.extend(self.hear_waiting());
        blames
    }

    /// Combines the shares, and tries again without the false ones until it has a result or too few shares. Blames
    /// their senders.
    pub(super) fn try_combine(&mut self) -> Blames<Misbehaviour> {
        let mut blames = Vec::new();
        let setting = Arc::clone(&self.setting);
        let needed = usize::from(setting.threshold.k());
        let State::AwaitingShares(gathering) = &mut self.state else { return blames };
        let end = loop {
            let usable = if gathering.doubts { gathering.shares.proven() } else { gathering.shares.len() };
            if usable < needed {
                break None;
            }
            let certain = gathering.shares.verified() >= needed;
            // Whoever doubts checks at once, since it has to name culprits; all others let it wait for what else is to be checked.
            if !gathering.doubts
                && !certain
                && let Some(Ok(claim)) = gathering.shares.claim()
            {
                self.check(claim, Origin::Shares);
                return blames;
            }
            if certain || (!gathering.doubts && setting.answer.is_checkable()) {
                match gathering.shares.combine() {
                    Ok((combined, contributors)) => break Some(setting.done(combined, contributors, &self.duty)),
                    Err(CombineError::ResultInvalid) if !certain => {}
                    Err(error) => break Some(State::Failed(setting.failure(&error))),
                }
                gathering.doubt(&setting, self.bare);
                continue;
            }
            let mut rng = gathering.weights.next_batch();
            let culprits = gathering.shares.verify(&mut rng);
            for party in culprits.into_iter().map(PartyId::of_share) {
                self.excluded.insert(party);
                // This party's own share is false only on a broken machine: nobody is to blame, and the others may
                // still get a result.
                if party != setting.local {
                    blames.push((party, Misbehaviour::InvalidShare));
                }
            }
        };
        match end {
            Some(state) => self.state = state,
            None => self.give_up_if_hopeless(),
        }
        blames
    }

    pub(super) fn give_up_if_hopeless(&mut self) {
        let needed = usize::from(self.setting.threshold.k());
        let remaining = usize::from(self.setting.threshold.n()).saturating_sub(self.excluded.len());
        if remaining < needed && matches!(self.state, State::AwaitingShares(_)) {
            self.state = State::Failed(Abort::TooFewHonest { remaining, needed });
        }
    }
}

impl Setting {
    /// The state with a result that was combined here.
    fn done(&self, result: Combined, contributors: Vec<ShareIndex>, duty: &Duty) -> State {
        let value = if self.quorum { self.answer.combined_value(&result) } else { None };
        announcement(result, value, contributors, duty)
    }
}

/// The state with this result. A combiner tells all; any other party tells those that ask, since the combiners may not have told them.
fn announcement(result: Combined, value: Option<Secret<Vec<u8>>>, contributors: Vec<ShareIndex>, duty: &Duty) -> State {
    let Combined { result, proof } = result;
    let outcome = Outcome { result, proof, contributors };
    let to = if matches!(duty, Duty::Combine { .. }) { Recipient::All } else { Recipient::OnRequest };
    match value {
        Some(combined) => State::Announcing { combined, to, outcome },
        None => State::Done(outcome),
    }
}
