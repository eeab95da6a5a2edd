//! One dealer's shares for all: commitments in the open, values sealed to the keys that members have announced.

pub(crate) mod dealings;

use std::collections::BTreeMap;
use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::{Group, Scalar, Secret};
use theta_rounds::{Malformed, PartyId};
use theta_sharing::pedersen::Blinding;
use theta_sharing::{Commitments, CommittedShare, Encoded, Polynomial, ShareIndex};

use crate::codec::Reader;
use crate::encryption::EncryptionKey;
use crate::participant::Participant;
use crate::plan::{Aim, CeremonyPlan};
use crate::sealed::{Place, Sealed};
use crate::statement::{Digest, Statement, StatementSlot};
use crate::typed::TypedPlan;

/// The form of a plan's dealings.
pub(crate) enum Form<G: Group> {
    /// A random secret under Pedersen's commitments: all k of them are sent, and values are pairs.
    Hidden,
    /// A secret whose image is known: Feldman's commitments but the first, which everyone has.
    Known(G::Element),
    /// A mask that vanishes at an index: Feldman's commitments to the quotient.
    Rooted(ShareIndex),
}

impl<G: Group> Form<G> {
    /// What `dealer` has to deal.
    pub(crate) fn of(plan: &TypedPlan<G>, dealer: PartyId) -> Option<Self> {
        let index = plan.dealer_index(dealer)?;
        Some(match plan.aim() {
            Aim::Generate => Self::Hidden,
            Aim::Reshare(_) => Self::Known(*plan.source_key(index)?.element()),
            Aim::Recover(_, lost) => Self::Rooted(*lost),
        })
    }

    /// How many scalars each recipient gets.
    const fn width(&self) -> usize {
        if matches!(self, Self::Hidden) { 2 } else { 1 }
    }

    /// Whether a dealing has a value for a member: a mask is zero at its root.
    fn has_place(&self, index: ShareIndex) -> bool {
        !matches!(self, Self::Rooted(root) if *root == index)
    }

    /// How many commitments are sent.
    fn sent(&self, plan: &TypedPlan<G>) -> u16 {
        if matches!(self, Self::Hidden) { plan.threshold().k() } else { plan.threshold().t() }
    }
}

/// What one recipient gets: f(i), and f'(i) where commitments are blinded.
#[derive(Debug)]
pub(crate) struct Values<S: Scalar> {
    pub(crate) value: Secret<S>,
    pub(crate) blinding: Option<Secret<S>>,
}

impl<S: Scalar> Values<S> {
    /// Nothing, to add to.
    pub(crate) fn zero(blinded: bool) -> Self {
        Self { value: Secret::new(S::ZERO), blinding: blinded.then(|| Secret::new(S::ZERO)) }
    }

    /// Adds `factor` times other values.
    pub(crate) fn add(&mut self, factor: S, other: &Self) {
        *self.value.expose_mut() += factor * *other.value.expose();
        if let (Some(sum), Some(blinding)) = (&mut self.blinding, &other.blinding) {
            *sum.expose_mut() += factor * *blinding.expose();
        }
    }

    pub(crate) fn encode(&self) -> Secret<Vec<u8>> {
        let mut bytes = Secret::new(Vec::with_capacity(2 * S::ENCODED_LEN));
        for scalar in [Some(&self.value), self.blinding.as_ref()].into_iter().flatten() {
            bytes.expose_mut().extend_from_slice(encoded(scalar).expose());
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8], blinded: bool) -> Option<Self> {
        let scalar = |bytes| S::decode(bytes).ok().map(Secret::new);
        if !blinded {
            return Some(Self { value: scalar(bytes)?, blinding: None });
        }
        let (value, blinding) = bytes.split_at_checked(S::ENCODED_LEN)?;
        Some(Self { value: scalar(value)?, blinding: Some(scalar(blinding)?) })
    }
}

/// The content of a release: a party's values, or an error if they are not true.
pub(crate) type Released<S> = Result<(ShareIndex, Values<S>), Malformed>;

/// What members have announced that is to be encrypted to.
pub(crate) type Announced = BTreeMap<PartyId, EncryptionKey>;

/// A decoded dealing.
pub(crate) struct Dealing<G: Group> {
    pub(crate) commitments: Commitments<G>,
    pub(crate) blinded: bool,
    /// By share index: to which key there is a ciphertext, if there is one, and at which position.
    places: Vec<Option<(EncryptionKey, usize)>>,
    sealed: Sealed,
}

/// The party that a complaint convicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    DealerLies,
    ComplainerLies,
}

fn place(plan: &CeremonyPlan, dealer: PartyId, slot: StatementSlot) -> Place<'_> {
    Place { ceremony: plan.id(), dealer, slot }
}

impl<G: Group> Dealing<G> {
    /// The body of this party's dealing, with places for those that have announced a key. For [`Form::Known`], `secret`
    /// is dealt. The member at a root gets no value.
    pub(crate) fn deal(
        plan: &TypedPlan<G>,
        own: &Participant,
        slot: StatementSlot,
        secret: Option<&Secret<G::Scalar>>,
        announced: &Announced,
    ) -> Option<Vec<u8>> {
        let form = Form::of(plan, own.party())?;
        let mut rng = own.rng("dealing", &slot.encode());
        let (k, t) = (plan.threshold().k(), plan.threshold().t());
        let polynomials = match (&form, secret) {
            (Form::Hidden, _) => (Polynomial::random(k, &mut rng), Some(Polynomial::random(k, &mut rng))),
            (Form::Known(_), Some(secret)) => (Polynomial::with_constant(secret, k, &mut rng), None),
            (Form::Known(_), None) => return None,
            (Form::Rooted(_), _) => (Polynomial::random(t, &mut rng), None),
        };
        Self::body_of(plan, (own.party(), slot), &polynomials, announced, &mut rng)
    }

    /// The body of a dealing of these polynomials: of the values, and of what blinds the commitments to them.
    pub(crate) fn body_of(
        plan: &TypedPlan<G>,
        (dealer, slot): (PartyId, StatementSlot),
        (values, blinding): &(Polynomial<G::Scalar>, Option<Polynomial<G::Scalar>>),
        announced: &Announced,
        rng: &mut impl CryptoRng,
    ) -> Option<Vec<u8>> {
        let form = Form::of(plan, dealer)?;
        let commitments = blinding
            .as_ref()
            .map_or_else(|| Commitments::<G>::feldman(values), |blinding| Blinding::new().commit(values, blinding));
        let skipped = usize::from(matches!(form, Form::Known(_)));
        let sent = commitments.coefficients().get(skipped..)?;
        let mut body = Vec::new();
        G::encode_batch(sent).iter().for_each(|element| body.extend_from_slice(element.as_ref()));
        let mut sealed = Vec::new();
        for (index, party) in plan.threshold().indices().zip(plan.members()) {
            let Some(to) = announced.get(party).filter(|_| form.has_place(index)) else {
                body.push(0);
                continue;
            };
            body.push(1);
            to.encode_into(&mut body);
            let mut share =
                Values { value: values.at(index), blinding: blinding.as_ref().map(|blinding| blinding.at(index)) };
            if let Form::Rooted(root) = form {
                let number = |index: ShareIndex| G::Scalar::from_u64(u64::from(index.get()));
                *share.value.expose_mut() = *share.value.expose() * (number(index) - number(root));
            }
            sealed.push((to.recipient(), share.encode()));
        }
        Sealed::seal(place(plan, dealer, slot), sealed, rng).encode_into(&mut body);
        Some(body)
    }

    /// Reads a dealing; everything that can be checked without a decryption key is.
    pub(crate) fn read(plan: &TypedPlan<G>, statement: &Statement) -> Result<Self, Malformed> {
        Self::read_with(plan, statement, &Announced::new())
    }

    /// The same, without another look at signatures that were checked before.
    pub(crate) fn read_with(plan: &TypedPlan<G>, statement: &Statement, signed: &Announced) -> Result<Self, Malformed> {
        let form = Form::of(plan, statement.author()).ok_or(Malformed("not a dealer"))?;
        let mut reader = Reader::new(statement.body());
        let mut element = |_| G::decode(reader.take(G::ENCODED_LEN)?).map_err(|_| Malformed("not a group element"));
        let sent: Vec<_> = (0..form.sent(plan)).map(&mut element).collect::<Result<_, _>>()?;
        let commitments = match form {
            Form::Hidden => Commitments::new(sent),
            Form::Known(constant) => Commitments::new(core::iter::once(constant).chain(sent).collect()),
            Form::Rooted(root) => Commitments::new(sent).vartime_times_root(root),
        };
        let (mut places, mut count) = (Vec::with_capacity(plan.members().len()), 0);
        for (index, party) in plan.threshold().indices().zip(plan.members()) {
            places.push(match reader.u8()? {
                0 => None,
                1 if form.has_place(index) => {
                    let (key, known) = EncryptionKey::read((*party, 0), signed.get(party), &mut reader)?;
                    if !known && !key.is_signed(plan) {
                        return Err(Malformed("a place under a key that its recipient has not signed"));
                    }
                    count += 1;
                    Some((key, count - 1))
                }
                _ => return Err(Malformed("a place is there or is not")),
            });
        }
        let len = form.width() * G::Scalar::ENCODED_LEN;
        let place = place(plan, statement.author(), statement.slot());
        let sealed = Sealed::read(place, &mut reader, count, len)?;
        Ok(reader.end(Self { commitments, blinded: matches!(form, Form::Hidden), places, sealed })?)
    }

    /// Under which key there is something for a member, and where.
    fn place_of(&self, index: ShareIndex) -> Option<(&EncryptionKey, usize)> {
        self.places.get(index.position())?.as_ref().map(|(key, position)| (key, *position))
    }

    /// The members that have a place, and what is encrypted to there.
    fn recipients<'a>(&'a self, plan: &'a CeremonyPlan) -> impl Iterator<Item = (PartyId, &'a EncryptionKey)> {
        let places = plan.members().iter().zip(&self.places);
        places.filter_map(|(party, place)| place.as_ref().map(|(key, _)| (*party, key)))
    }

    /// What a member's values are encrypted to; `None` if it was left out.
    pub(crate) fn key_of(&self, index: ShareIndex) -> Option<&EncryptionKey> {
        self.place_of(index).map(|(key, _)| key)
    }

    /// What the dealer sent to this party; `None` if that is no scalars.
    pub(crate) fn open(
        &self,
        plan: &TypedPlan<G>,
        statement: &Statement,
        own: &Participant,
    ) -> Option<Values<G::Scalar>> {
        let (_, position) = self.place_of(plan.index_of(own.party())?)?;
        let bytes = self.sealed.open(place(plan, statement.author(), statement.slot()), own, position)?;
        Values::decode(bytes.expose(), self.blinded)
    }

    /// These values as a claim about the commitments.
    pub(crate) fn claim<'a>(
        &'a self,
        index: ShareIndex,
        values: &'a Values<G::Scalar>,
        blinding: Blinding<G>,
    ) -> CommittedShare<'a, G> {
        let blinding = values.blinding.as_ref().map(|value| (value, blinding));
        CommittedShare { commitments: &self.commitments, index, value: &values.value, blinding }
    }

    /// The body of a complaint of this party's.
    pub(crate) fn complain(&self, plan: &TypedPlan<G>, statement: &Statement, own: &Participant) -> Vec<u8> {
        let mut rng = own.rng("complaint", &statement.digest());
        let mut body = statement.digest().to_vec();
        let place = place(plan, statement.author(), statement.slot());
        body.extend_from_slice(&self.sealed.disclose(place, own, &mut rng));
        body
    }

    /// Who lies, if the complaint is about this dealing.
    pub(crate) fn judge(
        &self,
        plan: &TypedPlan<G>,
        blinding: Blinding<G>,
        statement: &Statement,
        complaint: &Statement,
    ) -> Option<Judgement> {
        let (digest, disclosed) = split_digest(complaint.body()).ok()?;
        if digest != statement.digest() || complaint.slot().party() != Some(statement.author()) {
            return None;
        }
        let index = plan.index_of(complaint.author())?;
        let place = place(plan, statement.author(), statement.slot());
        // A party that was left out cannot complain: nobody can tell whether its key was there in time.
        let bytes = self
            .place_of(index)
            .and_then(|(key, position)| self.sealed.open_disclosed(place, key.recipient(), position, disclosed));
        let Some(bytes) = bytes else {
            return Some(Judgement::ComplainerLies);
        };
        let values = Values::decode(bytes.expose(), self.blinded);
        let right = values.is_some_and(|values| self.claim(index, &values, blinding).is_true());
        Some(if right { Judgement::ComplainerLies } else { Judgement::DealerLies })
    }

    /// The values that a release shows, if they are true; `None` too if it is about another dealing.
    pub(crate) fn released(
        &self,
        plan: &TypedPlan<G>,
        blinding: Blinding<G>,
        statement: &Statement,
        release: &Statement,
    ) -> Option<Released<G::Scalar>> {
        let (digest, bytes) = split_digest(release.body()).ok()?;
        let index = plan.index_of(release.author())?;
        if digest != statement.digest() {
            return None;
        }
        let values = Values::decode(bytes, self.blinded);
        let right = values.filter(|values| self.claim(index, values, blinding).is_true());
        Some(right.map(|values| (index, values)).ok_or(Malformed("not what was dealt")))
    }
}

/// The digest at the beginning of a body, and the rest.
pub(crate) fn split_digest(body: &[u8]) -> Result<(Digest, &[u8]), Malformed> {
    let (digest, rest) = body.split_first_chunk::<32>().ok_or(Malformed("no digest"))?;
    Ok((*digest, rest))
}

/// The secret of a key's share.
pub(crate) type SecretShare<G> = Arc<Secret<<G as Group>::Scalar>>;

/// The image of a secret value.
pub(crate) fn image<G: Group>(value: &Secret<G::Scalar>) -> Encoded<G> {
    Encoded::new(G::mul_base(value.expose()))
}

/// A secret scalar's bytes.
pub(crate) fn encoded<S: Scalar>(secret: &Secret<S>) -> Secret<Vec<u8>> {
    let encoding = Secret::new(secret.expose().encode());
    Secret::new(encoding.expose().as_ref().to_vec())
}
