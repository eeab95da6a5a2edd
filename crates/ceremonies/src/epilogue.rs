//! The public messages that remain of a ceremony that has ended. They reveal nothing once all parties have ended.

use bytes::Bytes;
use theta_groups::Secret;
use theta_rounds::{Channel, Effect, Machine};

use super::Memory;
use super::bulletin_board::rewrite;
use super::machine::{Ceremony, Effects, ITEMS, Input, SUMMARY};
use super::plan::Aim;
use super::statement::Kind;

/// How often a simulated newcomer is given what it lacks before it has to have ended.
const MOST_QUESTIONS: usize = 8;

impl Ceremony {
    /// The messages with which a late party ends with the same result.
    #[must_use]
    pub fn epilogue(&self) -> Vec<Bytes> {
        let parts = self.what_newcomers_need().unwrap_or_default();
        if !matches!(self.plan.aim(), Aim::Recover(..)) {
            return parts;
        }
        // All that helpers need is the owner's statement that it is done.
        let done = |part: &Bytes| {
            rewrite(part, |statement| if statement.slot().kind == Kind::Done { vec![statement] } else { Vec::new() })
        };
        parts.iter().filter_map(done).filter(|part| !part.is_empty()).map(Bytes::from).collect()
    }

    /// All messages that a party without any knowledge needs to end as this one did, found by simulating such a party.
    /// Peers cannot influence it: what was sent to one that was ignored, or asked too often, does not matter.
    fn what_newcomers_need(&self) -> Option<Vec<Bytes>> {
        let identity = self.own.identity();
        // Any other party: the simulated newcomer gets the answers in its name.
        let other = self.plan.parties().find(|party| *party != self.own.party())?;
        // The newcomer only listens, and makes no statement that depends on a secret.
        let (plan, nothing) = (self.plan.clone(), Secret::new([0; 32]));
        let mut newcomer = Self::join(plan, identity.clone(), nothing, None, Memory::Lost).ok()?;
        let mut parts = Vec::new();
        newcomer.take(Input::Start);
        for _ in 0..MOST_QUESTIONS {
            let question = questions(newcomer.take(Input::Tick)).pop()?;
            for payload in self.answer(&question) {
                let slot = ITEMS;
                newcomer.take(Input::Message {
                    from: other,
                    slot,
                    channel: Channel::Broadcast,
                    payload: payload.clone(),
                });
                parts.push(payload);
            }
            if newcomer.is_finished() {
                break;
            }
        }
        Some(parts)
    }
}

/// The summaries among the effects.
fn questions(effects: Effects) -> Vec<Bytes> {
    let payload = |effect| match effect {
        Effect::Send { slot: SUMMARY, payload, .. } => Some(payload),
        _ => None,
    };
    effects.into_iter().filter_map(payload).collect()
}
