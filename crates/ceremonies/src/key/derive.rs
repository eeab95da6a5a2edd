//! The key, its verification keys and this party's share, from the dealings that were agreed on.

use std::collections::BTreeMap;

use theta_groups::{Group, Scalar, Transcript};
use theta_rounds::{Bug, Malformed, PartyId};
use theta_sharing::pedersen::{Blinding, OpeningProof, prove_opening, vartime_verify_opening};
use theta_sharing::{
    Commitments, Encoded, EncodedKey, ShareIndex, coefficients_at, coefficients_at_zero, vartime_interpolate_at_zero,
    vartime_on_one_polynomial,
};

use crate::codec::Reader;
use crate::dealing::{Dealing, Values, image};
use crate::participant::Participant;
use crate::plan::{Aim, CeremonyPlan};
use crate::statement::Statement;
use crate::typed::TypedPlan;

/// What the decision gives: commitments to the polynomial of all shares, and each dealer's factor in it.
pub(crate) struct Material<G: Group> {
    pub(crate) commitments: Commitments<G>,
    factors: Vec<(PartyId, G::Scalar)>,
}

impl<G: Group> Material<G> {
    /// From the dealings that were decided, by rising dealer.
    pub(crate) fn new(plan: &TypedPlan<G>, dealings: &[(PartyId, &Dealing<G>)]) -> Option<Self> {
        let dealers = dealings.iter().map(|(dealer, _)| *dealer);
        if matches!(plan.aim(), Aim::Generate) {
            let commitments = Commitments::sum(dealings.iter().map(|(_, dealing)| &dealing.commitments));
            return Some(Self { commitments, factors: dealers.map(|dealer| (dealer, G::Scalar::ONE)).collect() });
        }
        let indices: Vec<ShareIndex> =
            dealers.clone().map(|dealer| plan.dealer_index(dealer)).collect::<Option<_>>()?;
        let coefficients = coefficients_at_zero::<G::Scalar>(&indices).ok()?;
        let terms: Vec<_> =
            coefficients.iter().zip(dealings).map(|(factor, (_, dealing))| (*factor, &dealing.commitments)).collect();
        let commitments = Commitments::vartime_combine(&terms);
        Some(Self { commitments, factors: dealers.zip(coefficients).collect() })
    }

    /// This party's share from what each dealer dealt to it.
    pub(super) fn share<'a>(
        &self,
        blinded: bool,
        values: impl Fn(PartyId) -> Option<&'a Values<G::Scalar>>,
    ) -> Option<Values<G::Scalar>> {
        let mut share = Values::zero(blinded);
        for (dealer, factor) in &self.factors {
            share.add(*factor, values(*dealer)?);
        }
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
