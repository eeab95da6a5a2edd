//! Who lies in a program that failed: all its parties' views are compared with what would have been said if nobody had lied.
//!
//! What an honest party says in a round follows from its seed and from what it heard in the rounds before. If all of that is what the seeds make, so is what it says, and an
//! honest party has heard it and says so: of each two whose accounts differ there one lies, now or then. `spec/ecdsa.md`, "Opened views".

use theta_sharing::Threshold;

use super::{Curve, Presigning, presignature::presign_with};
use crate::{Active, Program, View, program::rehearse};

/// What one party has heard of another is not what this one's seed makes, and the latter has heard nothing false before: one of them lies. By position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispute {
    /// Who should have said something else, or did.
    pub sender: usize,
    /// Who says that it heard it so.
    pub receiver: usize,
}

/// Does the program [`presign`](super::presign) again for all its parties, from the seeds in their views, by position, from where they have begun together up to where the share of
/// x is used; `setting` is that of any of them. Returns where views differ from that, of senders that say that they have heard nothing else before; nobody honest
/// differs from another honest one there. If nothing differs, no check of the program can have failed.
///
/// `None` if views are not as many as holders, or these seeds make no program, which happens with probability 2^-250.
#[must_use]
pub fn disputes<G: Curve>(setting: &Presigning<G>, views: &[View]) -> Option<Vec<Dispute>> {
    let ideal = again(setting, views.iter().map(|view| *view.seed.expose()))?;
    let rounds = views.iter().map(|view| view.rounds.len()).max().unwrap_or(0);
    let mut found = Vec::new();
    // By party: whether it says that it has heard nothing that is not what the seeds make.
    let mut is_clean = vec![true; views.len()];
    for round in 0..rounds {
        let differing = differing(views, &ideal, round);
        let sender_is_clean = |dispute: &&Dispute| is_clean.get(dispute.sender).copied().unwrap_or(false);
        found.extend(differing.iter().filter(sender_is_clean).copied());
        for Dispute { receiver, .. } in differing {
            is_clean.iter_mut().skip(receiver).take(1).for_each(|is_clean| *is_clean = false);
        }
    }
    Some(found)
}

/// What all would have heard.
fn again<G: Curve>(setting: &Presigning<G>, seeds: impl ExactSizeIterator<Item = [u8; 32]>) -> Option<Vec<View>> {
    let n = u16::try_from(setting.holders.len()).ok().filter(|_| setting.holders.len() == seeds.len())?;
    let threshold = Threshold::new(n.div_ceil(2), n).ok()?;
    rehearse(threshold, seeds, |index| {
        let setting = setting.without_share();
        Program::new(index, threshold, |party| async move { presign_with::<G, Active>(&party, setting).await })
    })
}

/// Where views differ in a round from what they should be.
fn differing(views: &[View], ideal: &[View], round: usize) -> Vec<Dispute> {
    let mut found = Vec::new();
    for (receiver, (view, ideal)) in views.iter().zip(ideal).enumerate() {
        let Some(heard) = view.rounds.get(round) else { continue };
        let is_last = round + 1 == view.rounds.len();
        for sender in (0..views.len()).filter(|sender| *sender != receiver) {
            let heard = heard.get(sender).copied().flatten();
            let said = ideal.rounds.get(round).and_then(|said| said.get(sender).copied().flatten());
            // What is missing in a party's last round may have been under way.
            let is_under_way = heard.is_none() && is_last;
            if heard != said && !is_under_way {
                found.push(Dispute { sender, receiver });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};
    use theta_groups::{Group, P256, Scalar as _, Secret};
    use theta_names::Epoch;

    use super::*;

    /// How messages follow from seeds is a part of the protocol: holders that draw otherwise take each other for liars.
    #[test]
    fn messages_follow_from_seeds_as_ever() {
        for (n, count, known) in [
            (3_u16, 1, "bc73aa38c72b416d307e36ff368f96abb1219240f972398e80b98d4068dfddd3"),
            (5, 70, "787ef5d6e870759bd4d85b62fc7c3180f6077773c8e4b41015cfe324209b932f"),
        ] {
            let setting = Presigning::<P256> {
                holders: (1..=n).map(|index| index.try_into().unwrap()).collect(),
                epoch: Epoch::FIRST,
                public_key: P256::generator(),
                share: Secret::new(<P256 as Group>::Scalar::ZERO),
                points: Vec::new(),
                session: [1; 32],
                count,
                digest: None,
                owner: None,
            };
            let seeds: Vec<[u8; 32]> = (0..n).map(|place| [u8::try_from(place).unwrap(); 32]).collect();
            let views = again(&setting, seeds.into_iter()).unwrap();
            let mut all = Sha256::new();
            views.iter().flat_map(|view| view.rounds.iter().flatten().flatten()).for_each(|heard| all.update(heard));
            let said = "holders of this release and of the one before would take each other for liars: let the label in `presign` be another one, then change this";
            assert_eq!(hex::encode(all.finalize()), known, "{n} holders: {said}");
        }
    }
}
