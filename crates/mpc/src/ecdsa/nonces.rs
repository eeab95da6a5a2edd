//! Preprocessing that depends on no key: Dalskov et al., figure 2, "User-independent preprocessing".
//!
//! Departure: R is opened here and not when signing, so that signing takes one round, and R is checked before any share of s exists.
//! What an adversary gains by knowing R early is taken away by re-randomising R when signing (`sign.rs`).

use theta_groups::{Group, Transcript};
use theta_names::Epoch;

use super::{
    curve::{Curve, abscissa},
    key::Sharing,
};
use crate::{BlackBox, Inverses, Stop, blackbox::is_zero};

/// Nonces that no signature has used: `[k^-1]` and R = k G for random k. They serve any key of the same
/// parties in the same epoch, once: at a refresh, whatever is left of them is dropped.
#[derive(Debug)]
pub struct Nonces<B: BlackBox> {
    /// `[k^-1]` and R.
    pub(super) inverses: Inverses<B>,
    pub(super) sharing: Sharing,
    id: [u8; 32],
}

impl<B: BlackBox> Nonces<B> {
    /// The public name of this batch, the same at all parties: a hash of all R, their number, the epoch, the threshold and n.
    /// Parties that keep several batches agree by it which they bind.
    #[must_use]
    pub const fn id(&self) -> [u8; 32] {
        self.id
    }

    /// The epoch they were made in.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.sharing.epoch
    }

    /// Whether they are bound by an opening: with active security and an honest majority.
    pub(super) const fn have_masks(&self) -> bool {
        self.inverses.masks.is_some()
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.inverses.elements.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.inverses.elements.is_empty()
    }
}

/// Makes nonces for keys of an epoch: `[k^-1]` is a random value, and R the generator times its inverse ([`BlackBox::inverses`]; in the paper, by a triple).
///
/// Where there is none, or r would be zero, the nonce is left out: then and only then there are fewer than `count`, the same at all parties. It happens with
/// probability 2^-254 for each.
///
/// With active security and an honest majority, whoever confirms other nonces than all others is taken for a liar: all parties pass the same epoch.
///
/// # Errors
/// [`Stop`].
pub async fn prepare_nonces<B: BlackBox>(black_box: &B, epoch: Epoch, count: usize) -> Result<Nonces<B>, Stop>
where
    B::Group: Curve,
{
    let made = black_box.inverses(count).await?;
    nonces_from(black_box, epoch, made).await
}

/// Nonces of `[k^-1]` and R.
pub(super) async fn nonces_from<B: BlackBox>(
    black_box: &B,
    epoch: Epoch,
    inverses: Inverses<B>,
) -> Result<Nonces<B>, Stop>
where
    B::Group: Curve,
{
    // The identity has no abscissa.
    let usable = |element| abscissa::<B::Group>(element).is_some_and(|abscissa| !is_zero::<B>(&abscissa.r));
    let kept: Vec<bool> = inverses.elements.iter().map(usable).collect();
    let inverses = inverses.filter(|place| kept.get(place).copied().unwrap_or(false));
    let elements = &inverses.elements;

    let sharing = Sharing::of(black_box, epoch);
    let mut transcript = Transcript::new("theta/ecdsa/nonces/v1").with("group", B::Group::NAME.as_bytes());
    sharing.append_to(&mut transcript);
    transcript.append("count", &u64::try_from(elements.len()).unwrap_or(u64::MAX).to_be_bytes());
    for encoded in B::Group::encode_batch(elements) {
        transcript.append("R", encoded.as_ref());
    }
    let id = transcript.finish32();
    if inverses.masks.is_some() {
        // All of it was verified at whoever comes here, so that it is the same at all but those who lie.
        black_box.verify().await?;
        black_box.party().agree_on_what_is_known(&id).await?;
    } else {
        black_box.confirm(id).await?;
    }
    Ok(Nonces { inverses, sharing, id })
}
