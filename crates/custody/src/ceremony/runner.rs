//! From a subject of any suite to its machine.

use core::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use rand_core::CryptoRng;
use theta_groups::Secret;
use theta_names::NodeId;
use theta_protocols::Machine;
use theta_protocols::ceremony::{
    CeremonyEvidence, CeremonyKeys, CeremonyPlan, Conclusion, ITEMS, JoinError, KeyCeremony, KeyOutcome, Kind, Memory,
    Recovery, RecoveryOutcome, SUMMARY, rewrite,
};
use theta_rounds::{Abort, Channel, Effect, Input, PartyId};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, CurveScheme, KeyGroup as _, KeyKind, KeyShare, PublicKeySet};
use theta_schemes::{Suite, with_scheme};

use super::Subject;
use crate::{CeremonyError, Roster};

/// How often a machine is asked for what another lacks before that one is expected to be done.
const MOST_QUESTIONS: usize = 8;

/// How a ceremony ended.
#[derive(Debug)]
pub(crate) enum Ending {
    Activated { public: AnyPublicKey, share: Option<AnyKeyShare>, certificate: Vec<u8> },
    CalledOff,
    Recovered { share: Option<AnyKeyShare> },
}

/// A ceremony of any suite at this node.
pub(crate) trait Run: Send {
    /// Takes one input; as [`Machine::handle`].
    fn handle(&mut self, input: Input, rng: &mut dyn CryptoRng) -> Vec<Effect<Ending>>;
    /// Rises with every input that must be in the journal.
    fn revision(&self) -> u64;
    /// Of the last message, what changed what the machine knows: what must be in the journal.
    fn accepted(&self) -> &[u8];
    /// The parties that lied, with evidence.
    fn evidence(&self) -> &[CeremonyEvidence];
    /// Whose statements are awaited.
    fn silent(&self) -> Vec<NodeId>;
    /// How far it is, and of how much.
    fn contributions(&self) -> (usize, usize);
    /// What one who comes late needs to end alike: public messages, of which nothing follows once everybody has ended.
    fn epilogue(&self, rng: &mut dyn CryptoRng) -> Vec<Bytes>;
}

/// The constructors of a suite's public key and share.
type Constructors<S> = (
    fn(Arc<PublicKeySet<<S as CurveScheme>::KeyGroup>>) -> AnyPublicKey,
    fn(Arc<KeyShare<<S as CurveScheme>::KeyGroup>>) -> AnyKeyShare,
);

enum Inner<S: CurveScheme> {
    Key(Box<KeyCeremony<S>>),
    Recovery(Box<Recovery<S>>),
}

impl<S: CurveScheme> Inner<S> {
    fn new(
        plan: &Arc<CeremonyPlan<S::KeyGroup>>,
        (keys, secret): (&Arc<CeremonyKeys>, Secret<[u8; 32]>),
        share: Option<Arc<KeyShare<S::KeyGroup>>>,
        memory: Memory,
        recovery: bool,
    ) -> Result<Self, JoinError> {
        let (plan, keys) = (Arc::clone(plan), Arc::clone(keys));
        if recovery {
            Recovery::new(PhantomData::<S>, plan, keys, secret, share, memory).map(Box::new).map(Self::Recovery)
        } else {
            KeyCeremony::new(PhantomData::<S>, plan, keys, secret, share, memory).map(Box::new).map(Self::Key)
        }
    }
}

/// One of the two kinds of machines.
macro_rules! each {
    ($inner:expr, $machine:ident => $body:expr) => {
        match $inner {
            Inner::Key($machine) => $body,
            Inner::Recovery($machine) => $body,
        }
    };
}

struct Runner<S: CurveScheme> {
    inner: Inner<S>,
    any: Constructors<S>,
    plan: Arc<CeremonyPlan<S::KeyGroup>>,
    keys: Arc<CeremonyKeys>,
    /// Another party, in whose name a newcomer can be told what this one knows.
    other: Option<PartyId>,
}

impl<S: CurveScheme> Runner<S> {
    fn key_ending(&self, outcome: KeyOutcome<S>) -> Ending {
        match outcome.conclusion {
            Conclusion::CalledOff(_) => Ending::CalledOff,
            Conclusion::Activated(activated) => Ending::Activated {
                public: (self.any.0)(activated.public),
                share: activated.share.map(|share| (self.any.1)(Arc::new(share))),
                certificate: activated.certificate.encode(),
            },
        }
    }

    fn recovery_ending(&self, outcome: RecoveryOutcome<S>) -> Ending {
        Ending::Recovered { share: outcome.share.map(|share| (self.any.1)(Arc::new(share))) }
    }

    /// All that a party that knows nothing needs to end as this one did: it is tried with one. Nobody else has a say in it: a
    /// peer that was ignored, or has asked too often, leaves nothing out.
    fn what_newcomers_need(&self, rng: &mut dyn CryptoRng) -> Option<Vec<Bytes>> {
        let recovery = matches!(self.inner, Inner::Recovery(_));
        // It looks on, and says nothing that follows from a secret.
        let keys = (&self.keys, Secret::new([0; 32]));
        let mut newcomer = Inner::<S>::new(&self.plan, keys, None, Memory::Lost, recovery).ok()?;
        let other = self.other?;
        let mut parts = Vec::new();
        each!(&mut newcomer, machine => drop(machine.handle(Input::Start, rng)));
        for _ in 0..MOST_QUESTIONS {
            let question = each!(&mut newcomer, machine => questions(machine.handle(Input::Tick, rng))).pop()?;
            for payload in each!(&self.inner, machine => machine.answer(&question)) {
                let input =
                    Input::Message { from: other, slot: ITEMS, channel: Channel::Broadcast, payload: payload.clone() };
                each!(&mut newcomer, machine => drop(machine.handle(input, rng)));
                parts.push(payload);
            }
            if each!(&newcomer, machine => machine.is_finished()) {
                break;
            }
        }
        Some(parts)
    }
}

/// The summaries that are sent.
fn questions<O>(effects: Vec<Effect<O>>) -> Vec<Bytes> {
    let payload = |effect| match effect {
        Effect::Send { slot: SUMMARY, payload, .. } => Some(payload),
        _ => None,
    };
    effects.into_iter().filter_map(payload).collect()
}

fn map<O>(effects: Vec<Effect<O>>, ending: impl Fn(O) -> Ending) -> Vec<Effect<Ending>> {
    let each = |effect| match effect {
        Effect::Send { to, slot, channel, payload } => Effect::Send { to, slot, channel, payload },
        Effect::Blame(blame) => Effect::Blame(blame),
        Effect::Finished(result) => Effect::Finished(result.map(&ending).map_err(|abort: Abort| abort)),
    };
    effects.into_iter().map(each).collect()
}

impl<S: CurveScheme> Run for Runner<S> {
    fn handle(&mut self, input: Input, rng: &mut dyn CryptoRng) -> Vec<Effect<Ending>> {
        match &mut self.inner {
            Inner::Key(machine) => {
                let effects = machine.handle(input, rng);
                map(effects, |outcome| self.key_ending(outcome))
            }
            Inner::Recovery(machine) => {
                let effects = machine.handle(input, rng);
                map(effects, |outcome| self.recovery_ending(outcome))
            }
        }
    }

    fn revision(&self) -> u64 {
        each!(&self.inner, machine => machine.revision())
    }

    fn accepted(&self) -> &[u8] {
        each!(&self.inner, machine => machine.accepted())
    }

    fn evidence(&self) -> &[CeremonyEvidence] {
        each!(&self.inner, machine => machine.evidence())
    }

    fn silent(&self) -> Vec<NodeId> {
        each!(&self.inner, machine => machine.silent()).into_iter().map(PartyId::node).collect()
    }

    fn contributions(&self) -> (usize, usize) {
        each!(&self.inner, machine => machine.contributions())
    }

    fn epilogue(&self, rng: &mut dyn CryptoRng) -> Vec<Bytes> {
        let parts = self.what_newcomers_need(rng).unwrap_or_default();
        if matches!(self.inner, Inner::Key(_)) {
            return parts;
        }
        // That the owner is done is all that helpers need to hear.
        let done = |part: &Bytes| {
            rewrite(part, |statement| if statement.slot().kind == Kind::Done { vec![statement] } else { Vec::new() })
        };
        parts.iter().filter_map(done).filter(|part| !part.is_empty()).map(Bytes::from).collect()
    }
}

/// The source's key as the suite's own type; `None` for another suite.
fn own_public<S: CurveScheme>(public: &AnyPublicKey) -> Option<Arc<PublicKeySet<S::KeyGroup>>> {
    S::KeyGroup::key_of(public.typed()).cloned()
}

/// This node's share as the suite's own type; `None` for another suite.
fn own_share<S: CurveScheme>(share: &AnyKeyShare) -> Option<Arc<KeyShare<S::KeyGroup>>> {
    S::KeyGroup::share_of(share.typed()).cloned()
}

/// The plan of a subject as the suite's own type.
pub(super) fn plan_of<S: CurveScheme>(
    subject: &Subject,
    group: &Roster,
) -> Result<CeremonyPlan<S::KeyGroup>, CeremonyError> {
    let source = subject.source.as_ref().and_then(|source| own_public::<S>(&source.public));
    subject.plan(source, group)
}

/// Whether keys of this suite are made and renewed by ceremonies.
pub(crate) fn has_ceremonies(suite: Suite) -> bool {
    suite.key_kind() == KeyKind::Curve
}

/// The id of the ceremony that a subject is of.
///
/// # Errors
/// [`CeremonyError`] if there can be no such ceremony in this group.
pub(crate) fn id_of(subject: &Subject, group: &Roster) -> Result<[u8; 32], CeremonyError> {
    with_scheme!(subject.suite, |S| if curve {
        plan_of::<S>(subject, group).map(|plan| *plan.id().as_bytes())
    } else {
        Err(CeremonyError::TakesDealer(subject.suite))
    })
}

/// The machine of a ceremony, which starts with [`Input::Start`], and its id. With the identity goes the secret that was drawn for
/// this ceremony; `share` is this node's share of the source, if it has it.
///
/// # Errors
/// [`CeremonyError`] if there can be no such ceremony, or this node has no part in it.
pub(crate) fn begin(
    subject: &Subject,
    group: &Roster,
    keys: (&Arc<CeremonyKeys>, Secret<[u8; 32]>),
    share: Option<&AnyKeyShare>,
    memory: Memory,
) -> Result<([u8; 32], Box<dyn Run>), CeremonyError> {
    with_scheme!(subject.suite, |S| if curve {
        let share = share.zip(subject.source.as_ref()).and_then(|(share, _)| own_share::<S>(share));
        begin_of::<S>(subject, group, keys, share, memory, (AnyPublicKey::of::<S>, AnyKeyShare::of::<S>))
    } else {
        Err(CeremonyError::TakesDealer(subject.suite))
    })
}

fn begin_of<S: CurveScheme>(
    subject: &Subject,
    group: &Roster,
    (keys, secret): (&Arc<CeremonyKeys>, Secret<[u8; 32]>),
    share: Option<Arc<KeyShare<S::KeyGroup>>>,
    memory: Memory,
    any: Constructors<S>,
) -> Result<([u8; 32], Box<dyn Run>), CeremonyError> {
    let plan = Arc::new(plan_of::<S>(subject, group)?);
    let inner = Inner::<S>::new(&plan, (keys, secret), share, memory, subject.is_recovery())?;
    let other = plan.parties().find(|party| *party != keys.member().party());
    let id = *plan.id().as_bytes();
    Ok((id, Box::new(Runner { inner, any, plan, keys: Arc::clone(keys), other })))
}
