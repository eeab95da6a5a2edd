//! In which order candidates are tried: what is likely, and what is cheap, first.

use super::{
    Current, Guesses,
    candidates::{Candidates, Digest, Serials, Which},
    memory::Table,
    moments::{Moment, Style, times},
    offline::Signed,
    work::Work,
};
use crate::keys::Signer;

/// How far a signer may have counted the serial on before an event that is known.
const FAR: u32 = 4_096;
/// The same if the event is not known: each serial is tried at each time then.
const NEAR: u32 = 64;
/// How many seconds after the beginning of an event that is known the zone may get its serial, if that is the time.
const SIGNING: u32 = 600;
/// How many of the last events may still be under way.
const UNDER_WAY: usize = 2;

/// What is known of the signers.
#[derive(Debug)]
pub(super) struct Outline {
    /// Events that were recognised, the newest first.
    pub(super) events: Vec<Moment>,
    /// Those whose sets need not be searched.
    pub(super) tabled: Vec<(Moment, Signer)>,
    /// How times were made.
    pub(super) styles: Vec<Style>,
    /// Who signed.
    pub(super) signers: Vec<Signer>,
    /// The last serial.
    pub(super) serial: Option<u32>,
    /// When an offline key was seen to sign, the last time first.
    pub(super) offline: Vec<Moment>,
}

/// What a digest is of.
#[derive(Debug)]
pub(super) enum Hit {
    /// A set of the zone, in an event.
    Now(Found),
    /// What an offline key signs.
    Offline(Signed),
}

/// A digest that was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) which: Which,
    pub(super) signer: Signer,
    pub(super) moment: Moment,
}

impl Outline {
    /// The digests of the whole event, for the key that was found and for those that signed before.
    pub(super) fn tables(&self, found: &Found, candidates: &Candidates, work: &mut Work) -> Vec<Table> {
        let others = self.signers.iter().filter(|signer| **signer != found.signer);
        let signers = others.chain([&found.signer]).filter(|signer| !self.is_tabled(found.moment, **signer));
        signers.map(|signer| Table::new(candidates, *signer, found.moment, work)).collect()
    }

    fn is_tabled(&self, moment: Moment, signer: Signer) -> bool {
        self.tabled.contains(&(moment, signer))
    }

    /// In an event that is known.
    const fn far(&self) -> Serials {
        Serials { last: self.serial, reach: FAR, seconds: SIGNING }
    }

    /// In one that is not.
    const fn near(&self) -> Serials {
        Serials { last: self.serial, reach: NEAR, seconds: NEAR }
    }
}

/// Looks for a digest: at the times of the request that an offline key answers, if there is one; in the events of now; and between these times.
pub(super) fn search(
    digest: &Digest,
    Current { candidates, offline, .. }: Current<'_>,
    guesses: &Guesses,
    outline: &Outline,
    now: u64,
    work: &mut Work,
) -> Option<Hit> {
    // What is cheap comes first, and takes half at most.
    let mut half = work.half();
    let known = outline.offline.iter().copied();
    let signed = offline.and_then(|offline| offline.find(digest, known, (guesses, now), &mut half));
    work.count(&half);
    if let Some(signed) = signed {
        return Some(Hit::Offline(signed));
    }
    let Some(offline) = offline else {
        return find_now(digest, candidates, guesses, outline, now, work).map(Hit::Now);
    };
    let mut half = work.half();
    let found = find_now(digest, candidates, guesses, outline, now, &mut half);
    work.count(&half);
    found.map(Hit::Now).or_else(|| offline.find_between(digest, (guesses, now), work).map(Hit::Offline))
}

/// Looks for a digest: in the events that are known, then in such as may have begun about now.
fn find_now(
    digest: &Digest,
    candidates: &Candidates,
    guesses: &Guesses,
    outline: &Outline,
    now: u64,
    work: &mut Work,
) -> Option<Found> {
    // Serials are in no table.
    for moment in outline.events.iter().copied().take(UNDER_WAY) {
        for signer in outline.signers.iter().copied() {
            let which = candidates.find_start(digest, signer, moment, &outline.far(), work);
            if let Some(which) = which {
                return Some(Found { which, signer, moment });
            }
        }
    }
    // Keys are signed by a key of their own, with the times of the rest.
    for moment in outline.events.iter().copied().take(1) {
        for signer in candidates.signers().iter().copied().filter(|signer| !outline.is_tabled(moment, *signer)) {
            let which = candidates.find(digest, signer, moment, &outline.far(), work);
            if let Some(which) = which {
                return Some(Found { which, signer, moment });
            }
        }
    }
    // As before takes half at most, so that a signer that has changed its ways is recognised, too.
    let mut half = work.half();
    let begun = Begun { digest, candidates, outline, now };
    let found = begun.find(&outline.styles, &outline.signers, |_, _| true, &mut half);
    work.count(&half);
    found.or_else(|| {
        let is_new = |style, signer| !outline.styles.contains(&style) || !outline.signers.contains(&signer);
        begun.find(&guesses.styles, candidates.signers(), is_new, work)
    })
}

/// What is looked for in events that are not known yet.
struct Begun<'a> {
    digest: &'a Digest,
    candidates: &'a Candidates,
    outline: &'a Outline,
    now: u64,
}

impl Begun<'_> {
    fn find(
        &self,
        styles: &[Style],
        signers: &[Signer],
        is_wanted: impl Fn(Style, Signer) -> bool,
        work: &mut Work,
    ) -> Option<Found> {
        for time in times(self.now) {
            for style in styles.iter().copied() {
                let moment = Moment { time, style };
                for signer in signers.iter().copied().filter(|signer| is_wanted(style, *signer)) {
                    if self.outline.is_tabled(moment, signer) {
                        continue;
                    }
                    let which = self.candidates.find(self.digest, signer, moment, &self.outline.near(), work);
                    if let Some(which) = which {
                        return Some(Found { which, signer, moment });
                    }
                }
            }
        }
        None
    }
}
