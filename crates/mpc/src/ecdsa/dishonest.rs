//! Presignatures, and signatures, where all holders but one may lie: MASCOT among exactly k holders of a key that ceremonies shared by
//! Shamir's polynomial.
//!
//! The holders' shares times their Lagrange coefficients add up to x. Each puts its summand into the black box, unseen, and then x G is opened with
//! its MAC and must be X: whoever put in anything else has made another key, and the program ends before anything was computed from it.
//! `spec/ecdsa.md`, "Dishonest majority", has the argument.

use theta_groups::Secret;

use super::{
    Message, Presigned, Presigning,
    curve::Curve,
    key::{KeyIdentity, KeyShare, Sharing},
    presignature::{common_seeds, meet, of_all, sign_first, tuples},
};
use crate::{BlackBox, Mascot, Party, Stop};

/// Makes presignatures among exactly k holders of a key, all of whom sign with each of them; and signs a digest with one tuple more if one is
/// given. All but one of the holders may cheat: the honest ones have right presignatures or none.
///
/// First all compare what they mean to do; an honest holder goes on only if all others, the honest ones among them, mean the same, digest and
/// session included. So the tuple that signs at once signs what all honest ones have agreed on.
///
/// # Errors
/// [`Stop`]; [`Stop::Cheated`] names the phase. After it whoever runs this must not start again with the same holders by itself: each run
/// lets a cheater guess once more.
pub async fn presign_dishonest<G: Curve>(party: Party, setting: Presigning<G>) -> Result<Presigned<G>, Stop> {
    meet(&party, "theta/ecdsa/presigning/mascot/v1", &setting).await?;
    let Presigning { holders, epoch, public_key, share, session, count, digest } = setting;
    let local = party.position();
    let coefficient = theta_sharing::coefficients_at_zero::<G::Scalar>(&holders)
        .ok()
        .filter(|coefficients| coefficients.len() == party.n())
        .and_then(|coefficients| coefficients.get(local).copied())
        .ok_or(Stop::Input("the holders are not those of the program"))?;
    let summand = Secret::new(*share.expose() * coefficient);
    drop(share);

    let black_box = Mascot::<G>::new(&party).await?;
    let secret = black_box.input_summands(&summand).await?;
    drop(summand);
    let opened = black_box.open_points(&secret.part(0..1).convert()).await?;
    if opened.first() != Some(&public_key) {
        return Err(Stop::Cheated("the holders' shares are not those of the public key"));
    }
    let key =
        KeyShare { secret, identity: KeyIdentity { public: public_key, sharing: Sharing::of(&black_box, epoch) } };

    let now = digest.map(|digest| Message { digest, session });
    let (first, tuples) = tuples(&black_box, &key, count, now).await?;
    let mut presignatures = Vec::with_capacity(tuples.len());
    if !tuples.is_empty() {
        let seeds = common_seeds(&party).await?;
        let made = tuples.into_iter().enumerate();
        presignatures.extend(made.filter_map(|(place, tuple)| of_all(&holders, local, place, tuple, &seeds)));
    }
    Ok(Presigned { presignatures, signature: sign_first(&black_box, &key, first).await? })
}
