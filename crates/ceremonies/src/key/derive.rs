//! The key, its verification keys and this party's share, from the dealings that were agreed on.

use std::collections::BTreeMap;

use theta_groups::{Group, Scalar, Transcript};
use theta_rounds::{Bug, Malformed, PartyId};
use theta_sharing::pedersen::{Blinding, OpeningProof, prove_opening, vartime_verify_opening};
use theta_sharing::{
    Commitments, Encoded, EncodedKey, ShareIndex, coefficients_at, coefficients_at_zero, vartime_interpolate_at_zero,
    vartime_on_one_polynomial,
};

use super::judge::Selection;
use crate::codec::Reader;
use crate::dealing::{Dealing, Values, image};
use crate::participant::Participant;
use crate::plan::{Aim, CeremonyPlan};
use crate::statement::{Digest, Statement};
use crate::typed::TypedPlan;

/// What the decision gives: commitments to the polynomial of all shares, each dealer's factor in it, and its [`slope`].
pub(crate) struct Material<G: Group> {
    pub(crate) commitments: Commitments<G>,
    factors: Vec<(PartyId, G::Scalar)>,
    slope: G::Scalar,
}

impl<G: Group> Material<G> {
    /// From what was decided, and the dealings that it names in the same order.
    pub(crate) fn new(plan: &TypedPlan<G>, decided: &[(PartyId, Digest)], dealings: &[&Dealing<G>]) -> Option<Self> {
        let dealers = decided.iter().map(|(dealer, _)| *dealer);
        let (commitments, factors) = if matches!(plan.aim(), Aim::Generate) {
            let commitments = Commitments::sum(dealings.iter().map(|dealing| &dealing.commitments));
            (commitments, vec![G::Scalar::ONE; dealings.len()])
        } else {
            let indices: Vec<ShareIndex> =
                dealers.clone().map(|dealer| plan.dealer_index(dealer)).collect::<Option<_>>()?;
            let factors = coefficients_at_zero::<G::Scalar>(&indices).ok()?;
            let terms: Vec<_> =
                factors.iter().zip(dealings).map(|(factor, dealing)| (*factor, &dealing.commitments)).collect();
            (Commitments::vartime_combine(&terms), factors)
        };
        let slope = slope(plan, decided);
        Some(Self { commitments: sloping(&commitments, slope), factors: dealers.zip(factors).collect(), slope })
    }

    /// The share of the party of this index, from what each dealer dealt to it.
    pub(super) fn share<'a>(
        &self,
        index: ShareIndex,
        blinded: bool,
        values: impl Fn(PartyId) -> Option<&'a Values<G::Scalar>>,
    ) -> Option<Values<G::Scalar>> {
        let mut share = Values::zero(blinded);
        for (dealer, factor) in &self.factors {
            share.add(*factor, values(*dealer)?);
        }
        *share.value.expose_mut() += self.slope * G::Scalar::from_u64(u64::from(index.get()));
        Some(share)
    }

    /// The key, in a reshare, where the commitments do not hide it.
    pub(super) fn open_key(&self, plan: &TypedPlan<G>) -> Result<EncodedKey, Bug> {
        let (source, public_key) = plan.source().zip(plan.source_public_key()).ok_or(Bug("resharing of no key"))?;
        if self.commitments.coefficients().first() != Some(public_key.element()) {
            return Err(Bug("resharing changed the public key"));
        }
        let elements: Vec<_> = plan.threshold().indices().map(|index| self.commitments.vartime_at(index)).collect();
        let keys = Keys { public_key: *public_key, verification_keys: Encoded::batch(&elements) };
        // Public key and proof stay what they were.
        let proof_of_possession = source.public.proof_of_possession.clone();
        let key = keys.encoded(plan).ok_or(Bug("resharing gave no key"))?;
        Ok(EncodedKey { proof_of_possession, ..key })
    }
}

/// What is added to the coefficient of X in the polynomial of all shares: a hash of the decision, so that no dealer knows it when it deals.
///
/// A dealer that is a member, and deals when it has opened what all others dealt to it, chooses what its own share comes to without this:
/// zero, for example, whose image is no verification key. The public key, which is the constant, stays what it was. Where k = 1 all shares
/// are the key itself, and there is no such coefficient.
fn slope<G: Group>(plan: &TypedPlan<G>, decided: &[(PartyId, Digest)]) -> G::Scalar {
    if plan.threshold().t() == 0 {
        return G::Scalar::ZERO;
    }
    Transcript::new("theta/ceremony/slope/v1")
        .with("ceremony", plan.id().as_bytes())
        .with("decision", &Selection::Dealings(decided.to_vec()).encode())
        .challenge()
}

/// The commitments with so much more in the coefficient of X, if there is one.
fn sloping<G: Group>(commitments: &Commitments<G>, slope: G::Scalar) -> Commitments<G> {
    let mut coefficients = commitments.coefficients().to_vec();
    if let Some(linear) = coefficients.get_mut(1) {
        *linear = *linear + G::mul_base(&slope);
    }
    Commitments::new(coefficients)
}

/// The public key and all verification keys, interpolated from k verification keys.
pub(crate) struct Keys<G: Group> {
    pub(crate) public_key: Encoded<G>,
    pub(crate) verification_keys: Vec<Encoded<G>>,
}

impl<G: Group> Keys<G> {
    pub(crate) fn interpolate(plan: &TypedPlan<G>, known: &BTreeMap<ShareIndex, Encoded<G>>) -> Option<Self> {
        let k = usize::from(plan.threshold().k());
        let chosen: Vec<_> = known.iter().take(k).map(|(index, key)| (*index, *key.element())).collect();
        if chosen.len() < k {
            return None;
        }
        let indices: Vec<_> = chosen.iter().map(|(index, _)| *index).collect();
        let elements: Vec<_> = chosen.iter().map(|(_, element)| *element).collect();
        let key = |index| match known.get(&index) {
            Some(key) => Some(*key.element()),
            None => Some(G::vartime_msm(&coefficients_at::<G::Scalar>(&indices, index).ok()?, &elements)),
        };
        let verification_keys: Vec<_> = plan.threshold().indices().map(key).collect::<Option<_>>()?;
        let public_key = Encoded::new(vartime_interpolate_at_zero::<G>(&chosen).ok()?);
        Some(Self { public_key, verification_keys: Encoded::batch(&verification_keys) })
    }

    /// The key without its proof of possession, if it is a key: with no identity in it, and on one polynomial.
    pub(super) fn encoded(&self, plan: &CeremonyPlan) -> Option<EncodedKey> {
        let Self { public_key, verification_keys } = self;
        let trivial = verification_keys.iter().chain([public_key]).any(|key| G::is_identity(key.element()));
        let whole = vartime_on_one_polynomial(plan.threshold(), public_key, verification_keys);
        (whole && !trivial).then(|| EncodedKey {
            threshold: plan.threshold(),
            public_key: public_key.bytes().to_vec(),
            verification_keys: verification_keys.iter().map(|key| key.bytes().to_vec()).collect(),
            proof_of_possession: None,
        })
    }
}

fn key_context(plan: &CeremonyPlan, party: PartyId) -> Transcript {
    Transcript::new("theta/ceremony/key/v1")
        .with("ceremony", plan.id().as_bytes())
        .with("party", &party.get().to_be_bytes())
}

/// The body of a party's key statement: g x_i, and a proof that this is what the commitments hide.
pub(super) fn key_body<G: Group>(
    plan: &TypedPlan<G>,
    own: &Participant,
    material: &Material<G>,
    share: &Values<G::Scalar>,
) -> Option<Vec<u8>> {
    let index = plan.index_of(own.party())?;
    let image = image::<G>(&share.value);
    let commitment = material.commitments.vartime_at(index);
    let secrets = [&share.value, share.blinding.as_ref()?];
    let mut rng = own.rng("key", image.bytes());
    let context = key_context(plan, own.party());
    let proof = prove_opening(&context, &Blinding::new(), &image, &commitment, secrets, &mut rng);
    let mut body = image.bytes().to_vec();
    proof.encode_into(&mut body);
    Some(body)
}

/// The key in a key statement, and its proof.
pub(crate) fn read_key<G: Group>(body: &[u8]) -> Result<(Encoded<G>, OpeningProof<G::Scalar>), Malformed> {
    let mut reader = Reader::new(body);
    let key = Encoded::decode(reader.take(G::ENCODED_LEN)?).map_err(|_| Malformed("not a verification key"))?;
    let proof = OpeningProof::decode(reader.take(OpeningProof::<G::Scalar>::ENCODED_LEN)?)
        .map_err(|_| Malformed("not a proof"))?;
    Ok(reader.end((key, proof))?)
}

/// The key in a well-formed key statement, if it is true.
pub(crate) fn check_key<G: Group>(
    plan: &TypedPlan<G>,
    blinding: &Blinding<G>,
    material: &Material<G>,
    statement: &Statement,
) -> Option<(ShareIndex, Encoded<G>)> {
    let index = plan.index_of(statement.author())?;
    let (key, proof) = read_key::<G>(statement.body()).ok()?;
    let context = key_context(plan, statement.author());
    let commitment = material.commitments.vartime_at(index);
    vartime_verify_opening(&context, blinding, &key, &commitment, &proof).then_some((index, key))
}
