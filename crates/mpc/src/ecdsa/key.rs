//! Key generation: Dalskov et al., figure 2, "Key generation".

use theta_groups::{FixedBase, Group, Transcript};
use theta_names::Epoch;
use theta_sharing::Threshold;

use super::curve::Curve;
use crate::{BlackBox, Element, Shared, Stop};

/// One party's share of a signing key, in one epoch.
///
/// It serves the parties and the black box that made it, and no other: the type names the black box. Tuples are made for one
/// share and serve no other epoch.
#[derive(Debug)]
pub struct KeyShare<B: BlackBox> {
    pub(super) secret: Shared<B>,
    /// G times each party's share, by position, if that is known.
    pub(super) points: Vec<Element<B>>,
    /// X once more, with a table of its multiples after it was used a few times.
    pub(super) fixed: FixedBase<B::Group>,
    pub(super) identity: KeyIdentity<B::Group>,
}

/// What a tuple must have in common with the key that it signs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyIdentity<G: Group> {
    pub(super) public: G::Element,
    pub(super) sharing: Sharing,
}

/// Among whom something is shared, and when. A refresh changes the epoch, and parties that stay may have shares of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sharing {
    pub(super) epoch: Epoch,
    pub(super) threshold: Threshold,
    /// This party's position.
    pub(super) position: usize,
}

impl Sharing {
    /// What a black box makes in an epoch.
    pub(super) fn of<B: BlackBox>(black_box: &B, epoch: Epoch) -> Self {
        let party = black_box.party();
        Self { epoch, threshold: party.threshold(), position: party.position() }
    }

    /// Whether a black box is of these parties.
    pub(super) fn fits<B: BlackBox>(&self, black_box: &B) -> Result<(), Stop> {
        if *self == Self::of(black_box, self.epoch) {
            Ok(())
        } else {
            Err(Stop::Input("the key is shared among other parties"))
        }
    }

    /// What all parties have in common of it, in a hash.
    pub(super) fn append_to(&self, transcript: &mut Transcript) {
        transcript.append("epoch", &self.epoch.to_be_bytes());
        transcript.append("threshold", &self.threshold.k().to_be_bytes());
        transcript.append("parties", &self.threshold.n().to_be_bytes());
    }
}

impl<B: BlackBox> KeyShare<B> {
    /// A share of the key with this identity.
    pub(super) const fn of(secret: Shared<B>, identity: KeyIdentity<B::Group>) -> Self {
        Self { secret, points: Vec::new(), fixed: FixedBase::new(identity.public), identity }
    }

    /// The same, where G times each party's share is known.
    pub(super) fn with_points(self, points: Vec<Element<B>>) -> Self {
        Self { points, ..self }
    }

    /// The public key X.
    pub const fn public_key(&self) -> &<B::Group as Group>::Element {
        &self.identity.public
    }

    /// The epoch of this sharing.
    pub const fn epoch(&self) -> Epoch {
        self.identity.sharing.epoch
    }
}

/// Makes a key: `[x]` = rand, X = open `<x>`. All parties have the same public key when they have one.
///
/// # Errors
/// [`Stop`].
pub async fn generate<B: BlackBox>(black_box: &B, epoch: Epoch) -> Result<KeyShare<B>, Stop>
where
    B::Group: Curve,
{
    let secret = black_box.random(1).await?;
    let public = black_box.open_points(&secret.part(0..1).convert()).await?;
    let Some(public) = public.first().copied().filter(|public| !B::Group::is_identity(public)) else {
        return Err(Stop::Cheated("a public key that is the identity"));
    };
    let encoded = B::Group::encode(&public);
    let digest = Transcript::new("theta/ecdsa/key/v1").with("public key", encoded.as_ref()).finish32();
    black_box.confirm(digest).await?;
    let identity = KeyIdentity { public, sharing: Sharing::of(black_box, epoch) };
    Ok(KeyShare::of(secret, identity))
}
