//! Who lies in a program that failed: all its parties' views are compared with what would have been said if nobody had lied.
//!
//! What an honest party says in a round follows from its seed and from what it heard in the rounds before. Before the first round in which anything that
//! was heard is not what these seeds make, all views say the same as they would without a lie. So what an honest party has said in that round is just that,
//! and an honest party has heard it and says so: of each two whose accounts differ there one lies, now or then. `spec/ecdsa.md`, "Opened views".

use theta_sharing::Threshold;

use super::{Curve, Presigning, presign};
use crate::{Program, View, program::rehearse};

/// What one party has heard of another is not what this one's seed makes, and nothing before was false: one of them lies. By position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispute {
    /// Who should have said something else, or did.
    pub sender: usize,
    /// Who says that it heard it so.
    pub receiver: usize,
}

/// Does the program [`presign`] again for all its parties, from the seeds in their views, by position, up to where the share of x is used; `setting` is that
/// of any of them. Returns where views differ from that in the first round in which any does; nobody honest differs from another honest one there. With no
/// such round no check of the program can have failed.
///
/// `None` if views are not as many as holders, or these seeds make no program, which happens with probability 2^-250.
#[must_use]
pub fn disputes<G: Curve>(setting: &Presigning<G>, views: &[View]) -> Option<Vec<Dispute>> {
    let n = u16::try_from(setting.holders.len()).ok().filter(|_| setting.holders.len() == views.len())?;
    let threshold = Threshold::new(n.div_ceil(2), n).ok()?;
    let ideal = rehearse(threshold, views.iter().map(|view| *view.seed.expose()), |index| {
        let setting = setting.without_share();
        Program::new(index, threshold, |party| presign(party, setting))
    })?;
    let rounds = views.iter().map(|view| view.rounds.len()).max().unwrap_or(0);
    let first = (0..rounds).map(|round| differing(views, &ideal, round)).find(|disputes| !disputes.is_empty());
    Some(first.unwrap_or_default())
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
