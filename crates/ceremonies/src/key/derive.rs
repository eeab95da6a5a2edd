//! The key, its verification keys and this party's share, from the dealings that were agreed on.

use std::collections::BTreeMap;
use std::sync::Arc;

use theta_groups::{Group, Scalar, Transcript};
use theta_rounds::{Bug, Malformed, PartyId};
use theta_schemes::keys::{CurveScheme, PublicKeySet};
use theta_sharing::pedersen::{Blinding, OpeningProof, prove_opening, vartime_verify_opening};
use theta_sharing::{
    Commitments, Encoded, ShareIndex, coefficients_at, coefficients_at_zero, vartime_interpolate_at_zero,
};

use crate::codec::Reader;
use crate::dealing::{Dealing, Values, image};
use crate::participant::Participant;
use crate::plan::{Aim, CeremonyPlan};
use crate::statement::Statement;

/// What the decision comes to: the polynomial of all shares, committed to, and each dealer's factor in it.
pub(crate) struct Material<G: Group> {
    pub(crate) commitments: Commitments<G>,
    factors: Vec<(PartyId, G::Scalar)>,
}

impl<G: Group> Material<G> {
    /// From the dealings that were decided, by rising dealer.
    pub(crate) fn new(plan: &CeremonyPlan<G>, dealings: &[(PartyId, &Dealing<G>)]) -> Option<Self> {
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

    /// The key where the commitments hide nothing.
    pub(super) fn open_key<S: CurveScheme<KeyGroup = G>>(
        &self,
        plan: &CeremonyPlan<G>,
    ) -> Result<Arc<PublicKeySet<G>>, Bug> {
        let source = plan.source().ok_or(Bug("resharing of no key"))?;
        if self.commitments.coefficients().first() != Some(source.public.public_key()) {
            return Err(Bug("resharing changed the public key"));
        }
        let elements: Vec<_> = plan.threshold().indices().map(|index| self.commitments.vartime_at(index)).collect();
        let public_key = Encoded::new(*source.public.public_key());
        let possession = source.public.possession().map(<[u8]>::to_vec);
        PublicKeySet::new::<S>(plan.threshold(), public_key, Encoded::batch(&elements), possession)
            .map(Arc::new)
            .map_err(|_| Bug("resharing gave no key"))
    }
}

/// Public key and all verification keys, from k of these.
pub(crate) struct Keys<G: Group> {
    pub(crate) public_key: Encoded<G>,
    pub(crate) verification_keys: Vec<Encoded<G>>,
}

impl<G: Group> Keys<G> {
    pub(crate) fn interpolate(plan: &CeremonyPlan<G>, known: &BTreeMap<ShareIndex, Encoded<G>>) -> Option<Self> {
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
}

fn key_context<G: Group>(plan: &CeremonyPlan<G>, party: PartyId) -> Transcript {
    Transcript::new("theta/ceremony/key/v1")
        .with("ceremony", plan.id().as_bytes())
        .with("party", &party.get().to_be_bytes())
}

/// The body of a party's key statement: g x_i, and a proof that this is what the commitments hide.
pub(super) fn key_body<G: Group>(
    plan: &CeremonyPlan<G>,
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
    reader.end().map(|()| (key, proof))
}

/// The key in a well-formed key statement, if it is true.
pub(crate) fn check_key<G: Group>(
    plan: &CeremonyPlan<G>,
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
