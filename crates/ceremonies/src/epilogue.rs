//! What is left to say when a ceremony has ended: public messages, of which nothing follows once everybody has ended.

use bytes::Bytes;
use theta_groups::Secret;
use theta_rounds::{Channel, Machine};

use super::Memory;
use super::agreement::value_digest;
use super::bulletin_board::{Item, rewrite};
use super::machine::{Ceremony, ITEMS, Input, messages};
use super::plan::Aim;
use super::statement::Kind;
use super::summary::Summary;

/// How often a machine is asked for what another lacks before that one is expected to be done.
const MOST_QUESTIONS: usize = 8;

impl Ceremony {
    /// What one who comes late needs to end alike.
    #[must_use]
    pub fn epilogue(&self) -> Vec<Bytes> {
        let parts = self.what_newcomers_need().unwrap_or_default();
        if !matches!(self.plan.aim(), Aim::Recover(..)) {
            return parts;
        }
        // That the owner is done is all that helpers need to hear.
        let done = |part: &Bytes| {
            rewrite(part, |statement| if statement.slot().kind == Kind::Done { vec![statement] } else { Vec::new() })
        };
        parts.iter().filter_map(done).filter(|part| !part.is_empty()).map(Bytes::from).collect()
    }

    /// All that a party that knows nothing needs to end as this one did: it is tried with one. Nobody else has a say in it: a
    /// peer that was ignored, or has asked too often, leaves nothing out.
    fn what_newcomers_need(&self) -> Option<Vec<Bytes>> {
        let identity = self.own.identity();
        // Another party, in whose name a newcomer can be told what this one knows.
        let other = self.plan.parties().find(|party| *party != self.own.party())?;
        // It looks on, and says nothing that follows from a secret.
        let (plan, nothing) = (self.plan.clone(), Secret::new([0; 32]));
        let newcomer = Self::join(plan, identity.clone(), nothing, None, Memory::Lost).ok()?;
        let mut newcomer = newcomer.who_hears_what_was_checked();
        let mut parts = Vec::new();
        newcomer.take(Input::Start);
        for _ in 0..MOST_QUESTIONS {
            newcomer.take(Input::Tick);
            for payload in self.answer(&newcomer.summary().encode()) {
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

/// What the author of a summary lacks of an epilogue; nothing for bytes that are no summary.
#[must_use]
pub fn remains_for(epilogue: &[Bytes], summary: &[u8]) -> Vec<Bytes> {
    let Ok(summary) = Summary::decode(summary) else { return Vec::new() };
    let lacks = |item: &Item| match item {
        Item::Statement(statement) if summary.has(statement) => summary.wants.contains(&statement.digest()),
        Item::Statement(statement) => summary.asks_for(statement),
        Item::Certificate(certificate) => match certificate.kind() {
            Kind::Precommit => !summary.decided,
            _ => !summary.activated,
        },
        Item::Value(value) => !summary.decided || summary.wants.contains(&value_digest(value)),
    };
    let items = epilogue.iter().flat_map(|part| Item::decode_all(part).unwrap_or_default());
    messages(&items.filter(lacks).collect::<Vec<_>>())
}
