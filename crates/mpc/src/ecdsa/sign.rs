//! Signing, in one round: Dalskov et al., figure 2, "Signing".
//!
//! Departure: R is known from the preprocessing, and re-randomised here: R' = delta R, where delta is a hash of key, R, digest and
//! session. With k' = delta k, `[k'^-1]` = delta^-1 `[k^-1]` and `[x / k']` = delta^-1 `[x / k]` are local. `spec/ecdsa.md`
//! says what that is good for, and what is proven of it.

use theta_groups::{FixedBase, Scalar as _, Transcript};

use super::{
    curve::{Curve, abscissa, hash_to_scalar},
    key::KeyShare,
    presignature::Message,
    signature::Signature,
    tuple::Tuple,
};
use crate::{BlackBox, Scalar, Stop};

/// What is signed, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The tuple that signs it: [`Tuple::id`], the same at all parties.
    pub tuple: [u8; 32],
    /// The message's digest, 256 bits.
    pub digest: [u8; 32],
    /// What distinguishes this signature from all others that the parties make; all pass the same.
    pub session: [u8; 32],
}

/// A nonce, re-randomised for one message of one key, and what follows from it: all public.
#[derive(Clone, Copy, Debug)]
pub struct Blinded<G: Curve> {
    digest: [u8; 32],
    /// R' = delta R.
    pub(super) element: G::Element,
    /// e / delta: `[s]` = this `[1 / k]` + [`Self::of_product`] `[x / k]`.
    pub(super) of_inverse: G::Scalar,
    /// r / delta.
    pub(super) of_product: G::Scalar,
}

impl<G: Curve> Blinded<G> {
    /// That of R for a message. `None` if r is zero, which nobody can bring about.
    #[must_use]
    pub fn vartime_of(public_key: &G::Element, element: &G::Element, message: &Message) -> Option<Self> {
        let Message { digest, session } = message;
        // delta: uniform, and unknown before key, nonce, digest and session are.
        let mut delta: G::Scalar = Transcript::new("theta/ecdsa/re-randomise/v1")
            .with("group", G::NAME.as_bytes())
            .with("public key", &G::encode(public_key))
            .with("R", &G::encode(element))
            .with("digest", digest)
            .with("session", session)
            .challenge();
        let element = G::vartime_mul(element, &delta);
        let r = abscissa::<G>(&element).map(|abscissa| abscissa.r).filter(|r| *r != G::Scalar::ZERO)?;
        let e: G::Scalar = hash_to_scalar(digest);
        G::Scalar::vartime_batch_invert(core::slice::from_mut(&mut delta));
        let (of_inverse, of_product) = (e * delta, r * delta);
        Some(Self { digest: *digest, element, of_inverse, of_product })
    }

    /// The signature that the sum of all signers' shares is, if all were right: low-s or not, as it comes. Public. The key is that which it was made for.
    #[must_use]
    pub fn vartime_combine(
        &self,
        public_key: &FixedBase<G>,
        shares: impl IntoIterator<Item = G::Scalar>,
    ) -> Option<Signature<G>> {
        let s = shares.into_iter().fold(G::Scalar::ZERO, |sum, share| sum + share);
        self.signature(&s).filter(|signature| self.is_right(public_key, signature))
    }

    /// The signature of s, right or not.
    fn signature(&self, s: &G::Scalar) -> Option<Signature<G>> {
        Signature::new(&self.element, *s)
    }

    /// Whether it verifies with its own R and no other, so that the recovery id is right, too.
    fn is_right(&self, public_key: &FixedBase<G>, signature: &Signature<G>) -> bool {
        let (of_generator, of_key) = signature.factors(&self.digest);
        public_key.vartime_double_mul(&of_generator, &of_key) == self.element
    }
}

/// Signs a digest with a tuple, which is used up. One round; it needs as many parties as
/// [`BlackBox::open_recognised`], and blames those whose shares are false. The signature is valid: it has been verified.
///
/// **The caller must have agreement first.** Before any party calls this, all must agree which digest and which session
/// this tuple signs: one request for each [`Tuple::id`], ever. If one honest party signs one request with a tuple and another
/// honest party signs another one (another digest, or only another session), the adversary completes both signatures, and
/// the key is the solution of two linear equations. Nothing here can prevent it: a share that, with those of the t corrupt
/// parties, is enough for a signature gives one for whatever request its owner believed in. Agreement of t + 1 parties is
/// not enough, as t of them may tell others something else: it takes all n, or more than (n + t) / 2, or an ordered log.
///
/// Blame presumes agreement, too: a party whose share belongs to another request looks as one that lies. Where requests
/// were not agreed, [`FalseShare`](crate::Misbehaviour::FalseShare) proves nothing.
///
/// # Errors
/// [`Stop`]; [`Stop::Input`] if the request names another tuple, if the tuple is of another key, epoch or group of parties, or in the event, which nobody can bring
/// about, that r or s is zero. The tuple is lost in any case.
pub async fn sign<B: BlackBox>(
    black_box: &B,
    key: &KeyShare<B>,
    tuple: Tuple<B>,
    request: Request,
) -> Result<Signature<B::Group>, Stop>
where
    B::Group: Curve,
{
    key.identity.sharing.fits(black_box)?;
    if tuple.id != request.tuple {
        return Err(Stop::Input("the request is for another tuple"));
    }
    if tuple.key != key.identity {
        return Err(Stop::Input("the tuple was made for another key or another epoch"));
    }
    let Request { digest, session, .. } = request;
    let blinded = Blinded::<B::Group>::vartime_of(key.public_key(), &tuple.element, &Message { digest, session })
        .ok_or(Stop::Input("a nonce that gives no signature for this message"))?;

    // [s] = (e [k^-1] + r [x / k]) / delta.
    let s = &tuple.inverse.times(&blinded.of_inverse) + &tuple.product.times(&blinded.of_product);
    drop(tuple);
    let valid = |s: &Scalar<B>| blinded.signature(s).is_some_and(|signature| blinded.is_right(&key.fixed, &signature));
    let s = black_box.open_recognised(&s, valid).await?;
    blinded.signature(&s).ok_or(Stop::Input("a nonce that gives no signature for this message"))
}
