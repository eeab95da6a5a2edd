//! Threshold ECDSA: what a signer makes of a presignature, its share of a signature.

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use theta::exit::Failure;
use theta_groups::{Group, P256, P256Scalar, Scalar, Secret};
use theta_mpc::ecdsa::{Message, Presignature, Presigning, presign_passive};
use theta_names::Epoch;
use theta_sharing::{Threshold, split};

use super::{Target, parties::run, party, seeded};
use crate::timing::dudect::Class;

/// Among three holders, of whom two sign: of so many presignatures the first holder signs with two.
const COUNT: usize = 3;

pub(super) fn all() -> Vec<Target> {
    vec![Target::new("ecdsa-signature-share", "nonce and key the same, or random", |trial| {
        trial.fallible_steps(prepare, |(presignature, message)| {
            presignature.share(&message).ok_or("a presignature of others, or a nonce that is of no use")
        })
    })]
}

/// A presignature of the first holder, with nonce, key and masks of the class; and a new message.
fn prepare(class: Class, rng: &mut ChaCha20Rng) -> Result<(Presignature<P256>, Message), Failure> {
    let threshold = Threshold::new(2, 3).map_err(Failure::internal)?;
    let holders: Vec<_> = threshold.indices().collect();
    let mut seeded = seeded(class, rng);
    let secret = Secret::new(P256Scalar::random(&mut seeded));
    let public_key = P256::mul_base(secret.expose());
    let mut shares = split(&secret, threshold, &mut seeded).into_iter();
    let presigned = run(threshold, &mut seeded, |_| {
        let share = shares.next().ok_or_else(|| Failure::internal("a holder without a share"))?;
        let (holders, epoch, session) = (holders.clone(), Epoch::FIRST, [7; 32]);
        let setting = Presigning::<P256> {
            holders,
            epoch,
            public_key,
            share,
            points: Vec::new(),
            session,
            count: COUNT,
            digest: None,
            owner: None,
        };
        Ok(move |party| presign_passive(party, setting))
    })?;
    let first = party(0)?;
    let made = presigned.into_iter().next().map(|presigned| presigned.presignatures).unwrap_or_default();
    let presignature = made.into_iter().find(|presignature| presignature.signers().contains(&first));
    let presignature = presignature.ok_or_else(|| Failure::internal("no presignature of the first holder"))?;
    let mut message = Message { digest: [0; 32], session: [0; 32] };
    rng.fill_bytes(&mut message.digest);
    rng.fill_bytes(&mut message.session);
    Ok((presignature, message))
}
