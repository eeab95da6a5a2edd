//! One dealer's shares for all: commitments in the open, values sealed.

pub(in crate::ceremony) mod dealings;

use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::{Group, Scalar, Secret};
use theta_rounds::{Malformed, PartyId};
use theta_sharing::pedersen::Blinding;
use theta_sharing::{Commitments, CommittedShare, Encoded, Polynomial, ShareIndex};

use crate::ceremony::CeremonyKeys;
use crate::ceremony::codec::Reader;
use crate::ceremony::plan::{Aim, CeremonyPlan};
use crate::ceremony::sealed::{Place, Sealed};
use crate::ceremony::statement::{Digest, Slot, Statement};

/// What dealings of a plan look like.
pub(in crate::ceremony) enum Form<G: Group> {
    /// A random secret under Pedersen's commitments: all k of them are sent, and values are pairs.
    Hidden,
    /// A secret whose image is known: Feldman's commitments but the first, which everyone has.
    Known(G::Element),
    /// A mask that vanishes at an index: Feldman's commitments to the quotient.
    Rooted(ShareIndex),
}

impl<G: Group> Form<G> {
    /// What `dealer` has to deal.
    pub(in crate::ceremony) fn of(plan: &CeremonyPlan<G>, dealer: PartyId) -> Option<Self> {
        let index = plan.dealer_index(dealer)?;
        Some(match plan.aim() {
            Aim::Generate => Self::Hidden,
            Aim::Reshare(source) => Self::Known(*source.public.verification_key(index)?.element()),
            Aim::Recover(_, lost) => Self::Rooted(*lost),
        })
    }

    /// How many scalars each recipient gets.
    const fn width(&self) -> usize {
        if matches!(self, Self::Hidden) { 2 } else { 1 }
    }

    /// How many commitments are sent.
    fn sent(&self, plan: &CeremonyPlan<G>) -> u16 {
        if matches!(self, Self::Hidden) { plan.threshold().k() } else { plan.threshold().t() }
    }
}

/// What one recipient gets: f(i), and f'(i) where commitments are blinded.
#[derive(Debug)]
pub(in crate::ceremony) struct Values<S: Scalar> {
    pub(in crate::ceremony) value: Secret<S>,
    pub(in crate::ceremony) blinding: Option<Secret<S>>,
}

impl<S: Scalar> Values<S> {
    /// Nothing, to add to.
    pub(in crate::ceremony) fn zero(blinded: bool) -> Self {
        Self { value: Secret::new(S::ZERO), blinding: blinded.then(|| Secret::new(S::ZERO)) }
    }

    /// Adds `factor` times other values.
    pub(in crate::ceremony) fn add(&mut self, factor: S, other: &Self) {
        *self.value.expose_mut() += factor * *other.value.expose();
        if let (Some(sum), Some(blinding)) = (&mut self.blinding, &other.blinding) {
            *sum.expose_mut() += factor * *blinding.expose();
        }
    }

    pub(in crate::ceremony) fn encode(&self) -> Secret<Vec<u8>> {
        let mut bytes = Secret::new(Vec::with_capacity(2 * S::ENCODED_LEN));
        for scalar in [Some(&self.value), self.blinding.as_ref()].into_iter().flatten() {
            let encoded = Secret::new(scalar.expose().encode());
            bytes.expose_mut().extend_from_slice(encoded.expose().as_ref());
        }
        bytes
    }

    pub(in crate::ceremony) fn decode(bytes: &[u8], blinded: bool) -> Option<Self> {
        let scalar = |bytes| S::decode(bytes).ok().map(Secret::new);
        if !blinded {
            return Some(Self { value: scalar(bytes)?, blinding: None });
        }
        let (value, blinding) = bytes.split_at_checked(S::ENCODED_LEN)?;
        Some(Self { value: scalar(value)?, blinding: Some(scalar(blinding)?) })
    }
}

/// What a release shows: someone's values, or nothing true.
pub(in crate::ceremony) type Released<S> = Result<(ShareIndex, Values<S>), Malformed>;

/// A dealing as its statement says.
pub(in crate::ceremony) struct Dealing<G: Group> {
    pub(in crate::ceremony) commitments: Commitments<G>,
    pub(in crate::ceremony) blinded: bool,
    sealed: Sealed,
}

/// Whom a complaint convicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ceremony) enum Judgement {
    DealerLies,
    ComplainerLies,
}

fn place<G: Group>(plan: &CeremonyPlan<G>, dealer: PartyId, slot: Slot) -> Place<'_> {
    Place { ceremony: plan.id(), dealer, slot }
}

impl<G: Group> Dealing<G> {
    /// The body of the dealing of the owner of `keys`. For [`Form::Known`], `secret` is what is dealt.
    pub(in crate::ceremony) fn deal(
        plan: &CeremonyPlan<G>,
        keys: &CeremonyKeys,
        slot: Slot,
        secret: Option<&Secret<G::Scalar>>,
        rng: &mut impl CryptoRng,
    ) -> Option<Vec<u8>> {
        let form = Form::of(plan, keys.party())?;
        let (k, t) = (plan.threshold().k(), plan.threshold().t());
        let (values, blinding) = match (&form, secret) {
            (Form::Hidden, _) => (Polynomial::random(k, rng), Some(Polynomial::random(k, rng))),
            (Form::Known(_), Some(secret)) => (Polynomial::with_constant(secret, k, rng), None),
            (Form::Known(_), None) => return None,
            (Form::Rooted(_), _) => (Polynomial::random(t, rng), None),
        };
        let commitments = blinding
            .as_ref()
            .map_or_else(|| Commitments::<G>::feldman(&values), |blinding| Blinding::new().commit(&values, blinding));
        let skipped = usize::from(matches!(form, Form::Known(_)));
        let sent = commitments.coefficients().get(skipped..)?;
        let mut body = Vec::new();
        G::encode_batch(sent).iter().for_each(|element| body.extend_from_slice(element.as_ref()));
        let shares = plan.threshold().indices().zip(plan.members()).filter_map(|(index, party)| {
            let mut share =
                Values { value: values.at(index), blinding: blinding.as_ref().map(|blinding| blinding.at(index)) };
            if let Form::Rooted(root) = form {
                let number = |index: ShareIndex| G::Scalar::from_u64(u64::from(index.get()));
                *share.value.expose_mut() = *share.value.expose() * (number(index) - number(root));
            }
            Some((plan.member(*party)?, share.encode()))
        });
        Sealed::seal(place(plan, keys.party(), slot), shares, rng).encode_into(&mut body);
        Some(body)
    }

    /// Reads a dealing; everything that can be checked without a decryption key is.
    pub(in crate::ceremony) fn read(plan: &CeremonyPlan<G>, statement: &Statement) -> Result<Self, Malformed> {
        let form = Form::of(plan, statement.author()).ok_or(Malformed("not a dealer"))?;
        let mut reader = Reader::new(statement.body());
        let mut element = |_| G::decode(reader.take(G::ENCODED_LEN)?).map_err(|_| Malformed("not a group element"));
        let sent: Vec<_> = (0..form.sent(plan)).map(&mut element).collect::<Result<_, _>>()?;
        let commitments = match form {
            Form::Hidden => Commitments::new(sent),
            Form::Known(constant) => Commitments::new(core::iter::once(constant).chain(sent).collect()),
            Form::Rooted(root) => Commitments::new(sent).vartime_times_root(root),
        };
        let len = form.width() * G::Scalar::ENCODED_LEN;
        let place = place(plan, statement.author(), statement.slot());
        let sealed = Sealed::read(place, &mut reader, plan.members().len(), len)?;
        reader.end()?;
        Ok(Self { commitments, blinded: matches!(form, Form::Hidden), sealed })
    }

    /// What the dealer sent to the owner of `keys`; `None` if that is no scalars.
    pub(in crate::ceremony) fn open(
        &self,
        plan: &CeremonyPlan<G>,
        statement: &Statement,
        keys: &CeremonyKeys,
    ) -> Option<Values<G::Scalar>> {
        let position = plan.index_of(keys.party())?.position();
        let bytes = self.sealed.open(place(plan, statement.author(), statement.slot()), keys, position)?;
        Values::decode(bytes.expose(), self.blinded)
    }

    /// These values as a claim about the commitments.
    pub(in crate::ceremony) fn claim<'a>(
        &'a self,
        index: ShareIndex,
        values: &'a Values<G::Scalar>,
        blinding: Blinding<G>,
    ) -> CommittedShare<'a, G> {
        let blinding = values.blinding.as_ref().map(|value| (value, blinding));
        CommittedShare { commitments: &self.commitments, index, value: &values.value, blinding }
    }

    /// The body of a complaint of the owner of `keys`.
    pub(in crate::ceremony) fn complain(
        &self,
        plan: &CeremonyPlan<G>,
        statement: &Statement,
        keys: &CeremonyKeys,
    ) -> Vec<u8> {
        let mut rng = keys.rng(plan.id(), "complaint", &statement.digest());
        let mut body = statement.digest().to_vec();
        let place = place(plan, statement.author(), statement.slot());
        body.extend_from_slice(&self.sealed.disclose(place, keys, &mut rng));
        body
    }

    /// Who lies, if the complaint is about this dealing.
    pub(in crate::ceremony) fn judge(
        &self,
        plan: &CeremonyPlan<G>,
        statement: &Statement,
        complaint: &Statement,
    ) -> Option<Judgement> {
        let (digest, disclosed) = split_digest(complaint.body()).ok()?;
        if digest != statement.digest() || complaint.slot().party() != Some(statement.author()) {
            return None;
        }
        let index = plan.index_of(complaint.author())?;
        let recipient = plan.member(complaint.author())?;
        let place = place(plan, statement.author(), statement.slot());
        let Some(bytes) = self.sealed.open_disclosed(place, recipient, index.position(), disclosed) else {
            return Some(Judgement::ComplainerLies);
        };
        let values = Values::decode(bytes.expose(), self.blinded);
        let right = values.is_some_and(|values| self.claim(index, &values, Blinding::new()).is_true());
        Some(if right { Judgement::ComplainerLies } else { Judgement::DealerLies })
    }

    /// The values that a release shows, if they are true; `None` too if it is about another dealing.
    pub(in crate::ceremony) fn released(
        &self,
        plan: &CeremonyPlan<G>,
        statement: &Statement,
        release: &Statement,
    ) -> Option<Released<G::Scalar>> {
        let (digest, bytes) = split_digest(release.body()).ok()?;
        let index = plan.index_of(release.author())?;
        if digest != statement.digest() {
            return None;
        }
        let values = Values::decode(bytes, self.blinded);
        let right = values.filter(|values| self.claim(index, values, Blinding::new()).is_true());
        Some(right.map(|values| (index, values)).ok_or(Malformed("not what was dealt")))
    }
}

/// The digest at the beginning of a body, and the rest.
pub(in crate::ceremony) fn split_digest(body: &[u8]) -> Result<(Digest, &[u8]), Malformed> {
    let (digest, rest) = body.split_first_chunk::<32>().ok_or(Malformed("no digest"))?;
    Ok((*digest, rest))
}

/// A key's share.
pub(in crate::ceremony) type ShareOf<G> = Arc<theta_schemes::keys::KeyShare<G>>;

/// The image of a secret value.
pub(in crate::ceremony) fn image<G: Group>(value: &Secret<G::Scalar>) -> Encoded<G> {
    Encoded::new(G::mul_base(value.expose()))
}
