//! Requests for masked shares, and the answers.

use theta_groups::{Group, Scalar, Secret};
use theta_rounds::{Malformed, PartyId};
use theta_sharing::{Commitments, Encoded, ShareIndex};

use crate::codec::{Reader, Writer, read_entries, write_entries};
use crate::dealing::{Dealing, encoded, split_digest};
use crate::encryption::EncryptionKey;
use crate::participant::Participant;
use crate::plan::{Aim, CeremonyPlan};
use crate::sealed::{Place, Sealed};
use crate::statement::{Digest, Kind, Statement, StatementSlot};
use crate::typed::TypedPlan;

/// Helpers and the digests of their masks, by rising helper.
pub(crate) type Masks = Vec<(PartyId, Digest)>;

pub(super) fn encode_masks(masks: &[(PartyId, Digest)]) -> Vec<u8> {
    write_entries(Writer::default(), masks.iter().map(|(helper, digest)| (helper, digest))).finish()
}

pub(crate) fn read_masks(body: &[u8]) -> Result<Masks, Malformed> {
    read_entries(Reader::new(body), "masks are listed by rising helper")
}

fn place(plan: &CeremonyPlan, helper: PartyId, slot: StatementSlot) -> Place<'_> {
    Place { ceremony: plan.id(), dealer: helper, slot }
}

/// An answer's body: the request's digest, and the masked share, sealed to the key that the owner has announced for
/// this attempt.
pub(super) fn answer_body<S: Scalar>(
    plan: &CeremonyPlan,
    own: &Participant,
    (request, key): (&Statement, &EncryptionKey),
    masked: &Secret<S>,
) -> Vec<u8> {
    let slot = StatementSlot::new(Kind::Answer, request.slot().number);
    // Another ephemeral key for another request, should there be two.
    let salt = request.digest();
    let mut rng = own.rng("answer", &salt);
    let mut body = salt.to_vec();
    key.encode_into(&mut body);
    let place = place(plan, own.party(), slot);
    Sealed::seal(place, [(key.recipient(), encoded(masked))], &mut rng).encode_into(&mut body);
    body
}

/// An answer that can be read.
pub(crate) struct Answer {
    pub(super) request: Digest,
    key: EncryptionKey,
    sealed: Sealed,
}

impl Answer {
    pub(crate) fn read<G: Group>(plan: &TypedPlan<G>, statement: &Statement) -> Result<Self, Malformed> {
        let (request, rest) = split_digest(statement.body())?;
        let mut reader = Reader::new(rest);
        let Aim::Recover(_, lost) = plan.aim() else { return Err(Malformed("nobody has lost a share")) };
        let owner = *plan.members().get(lost.position()).ok_or(Malformed("nobody has lost a share"))?;
        let (key, _) = EncryptionKey::read((owner, statement.slot().number), None, &mut reader)?;
        if !key.is_signed(plan) {
            return Err(Malformed("an answer under a key that its recipient has not signed"));
        }
        let place = place(plan, statement.author(), statement.slot());
        let sealed = Sealed::read(place, &mut reader, 1, plan.group().scalar_len())?;
        Ok(reader.end(Self { request, key, sealed })?)
    }

    /// Whether it is sealed to this party's present key, and not to one from before it lost its journal.
    pub(super) fn is_to(&self, own: &Participant) -> bool {
        self.key.recipient().key == own.encryption_key()
    }

    /// Opens the masked share, as the owner.
    pub(super) fn open<S: Scalar>(
        &self,
        plan: &CeremonyPlan,
        statement: &Statement,
        own: &Participant,
    ) -> Option<Secret<S>> {
        let bytes = self.sealed.open(place(plan, statement.author(), statement.slot()), own, 0)?;
        S::decode(bytes.expose()).ok().map(Secret::new)
    }

    /// The disclosure that lets others see that it is false.
    pub(super) fn disclose(&self, plan: &CeremonyPlan, statement: &Statement, own: &Participant) -> Vec<u8> {
        let mut rng = own.rng("disclosure", &statement.digest());
        self.sealed.disclose(place(plan, statement.author(), statement.slot()), own, &mut rng)
    }
}

/// The image under g of the right answer of a helper: its verification key and the masks.
pub(super) fn expected<G: Group>(
    plan: &TypedPlan<G>,
    masks: &Commitments<G>,
    helper: ShareIndex,
) -> Option<G::Element> {
    let key = plan.source_key(helper).map(Encoded::element)?;
    Some(*key + masks.vartime_at(helper))
}

/// Whether an answer, disclosed, is not what the request asked for. `None` if the parts do not belong together.
pub(crate) fn is_false_answer<G: Group>(
    plan: &TypedPlan<G>,
    request: &Statement,
    masks: &[Statement],
    answer: &Statement,
    disclosed: &[u8],
) -> Option<bool> {
    let Aim::Recover(_, lost) = plan.aim() else { return None };
    let asked = request.slot().kind == Kind::Request && plan.index_of(request.author()) == Some(*lost);
    let same_attempt = answer.slot().kind == Kind::Answer && answer.slot().number == request.slot().number;
    if !asked || !same_attempt || !request.is_signed(plan) {
        return None;
    }
    let listed: Masks = masks.iter().map(|mask| (mask.author(), mask.digest())).collect();
    if encode_masks(&listed) != request.body()[..] || masks.iter().any(|mask| !mask.is_signed(plan)) {
        return None;
    }
    let dealings: Vec<_> = masks.iter().map(|mask| Dealing::read(plan, mask).ok()).collect::<Option<_>>()?;
    let sum = Commitments::sum(dealings.iter().map(|dealing| &dealing.commitments));
    let read = Answer::read(plan, answer).ok().filter(|read| read.request == request.digest())?;
    let place = place(plan, answer.author(), answer.slot());
    let bytes = read.sealed.open_disclosed(place, read.key.recipient(), 0, disclosed)?;
    let image = expected(plan, &sum, plan.index_of(answer.author())?)?;
    Some(G::Scalar::decode(bytes.expose()).ok().is_none_or(|value| G::mul_base(&value) != image))
}
