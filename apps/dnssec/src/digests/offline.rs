//! What a key of the keys that is kept offline signs: sets of keys, at the times of the key signing request that it answers, and between them. Nothing of
//! that is an event of the zone.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    Guesses,
    added::{for_parent, some_of},
    candidates::{Digest, bytes_of, digest_of, template},
    moments::{Moment, Style},
    work::Work,
};
use crate::{
    key_request::{Bundle, KeyRequest},
    keys::{Keys, Signer},
    zone::{Zone, rtype},
};

/// An hour in seconds.
const HOUR: u64 = 3_600;
/// The most selections of keys of the keys that are tried with the keys of a bundle: all of six.
const MOST_SELECTIONS: usize = 63;

/// What may be signed so.
#[derive(Debug)]
pub struct Offline {
    zone: Arc<Zone>,
    request: KeyRequest,
    /// Some of the keys of the keys.
    selections: Vec<BTreeSet<Vec<u8>>>,
    /// Sets of keys for the parent, which do not depend on which keys sign the zone.
    for_parent: Vec<Box<[u8]>>,
    /// Who may sign sets of keys.
    signers: Vec<Signer>,
}

/// What was recognised: when, and the bytes that are signed.
pub(super) type Signed = (Moment, Vec<u8>);

impl Offline {
    /// What the keys of the keys among these sign of the zone to answer a request; sets for the parent have the times to live of
    /// [`ttl::of_keys`](crate::ttl::of_keys).
    #[must_use]
    pub fn new(zone: Arc<Zone>, keys: &Keys, key_ttls: &[u32], request: KeyRequest) -> Self {
        let of_keys = |signer: &Signer| keys.may_sign(*signer, true).is_ok();
        let signers = keys.signers_of_digests().into_iter().filter(of_keys).collect();
        let entries: Vec<_> = keys.entries().into_iter().map(|entry| vec![entry]).collect();
        let mut selections = some_of(&entries);
        selections.truncate(MOST_SELECTIONS);
        let for_parent = for_parent(&zone, keys, key_ttls);
        Self { zone, request, selections, for_parent, signers }
    }

    /// What is asked for.
    pub(crate) const fn request(&self) -> &KeyRequest {
        &self.request
    }

    /// Looks at the times at which something was recognised before, and at those of the request.
    pub(super) fn find(
        &self,
        sought: &Digest,
        mut known: impl Iterator<Item = Moment>,
        (guesses, now): (&Guesses, u64),
        work: &mut Work,
    ) -> Option<Signed> {
        let found = known.find_map(|moment| {
            let bundle = self.request.bundles().rev().find(|(bundle, _)| bundle.time <= moment.time);
            let keys = bundle.map(|(bundle, _)| self.keys_of(bundle)).unwrap_or_default();
            self.find_at(sought, self.for_parent.iter().chain(&keys), moment, work)
        });
        found.or_else(|| {
            let mut bundles = self.request.bundles();
            bundles
                .find_map(|(bundle, _)| self.find_keys(sought, bundle, bundle.time..=bundle.time, (guesses, now), work))
        })
    }

    /// Looks at each hour between the times of the request: as long before the end of one signature as signers make the next one. Keys for the
    /// parent are not looked for, since the set of all keys is signed before them.
    pub(super) fn find_between(
        &self,
        sought: &Digest,
        (guesses, now): (&Guesses, u64),
        work: &mut Work,
    ) -> Option<Signed> {
        self.request.bundles().find_map(|(bundle, until)| {
            let first = bundle.time.saturating_add(HOUR);
            self.find_keys(sought, bundle, first..=until, (guesses, now), work)
        })
    }

    /// Looks for the set of all keys at each hour of a time, as far as its signature may be consented to now.
    fn find_keys(
        &self,
        sought: &Digest,
        bundle: &Bundle,
        times: core::ops::RangeInclusive<u64>,
        (guesses, now): (&Guesses, u64),
        work: &mut Work,
    ) -> Option<Signed> {
        let is_wanted = |moment: &Moment| {
            let Style { back, lifetime } = moment.style;
            let begins = moment.time.saturating_sub(back.into());
            begins <= now.saturating_add(guesses.ahead.into()) && moment.time.saturating_add(lifetime.into()) > now
        };
        let styles = || guesses.styles.iter().copied();
        let hours = || (*times.start()..=*times.end()).step_by(usize::try_from(HOUR).unwrap_or(usize::MAX));
        let mut moments =
            hours().flat_map(|time| styles().map(move |style| Moment { time, style })).filter(is_wanted).peekable();
        if self.signers.is_empty() || moments.peek().is_none() {
            return None;
        }
        let keys = self.keys_of(bundle);
        moments.find_map(|moment| self.find_at(sought, keys.iter(), moment, work))
    }

    fn find_at<'a>(
        &self,
        sought: &Digest,
        sets: impl Iterator<Item = &'a Box<[u8]>>,
        moment: Moment,
        work: &mut Work,
    ) -> Option<Signed> {
        for set in sets {
            for signer in &self.signers {
                work.take(set.len())?;
                if digest_of(set, *signer, moment)? == *sought {
                    return Some((moment, bytes_of(set, *signer, moment)?));
                }
            }
        }
        None
    }

    /// The sets of DNSKEY records of a bundle: its keys, with some of the keys of the keys.
    fn keys_of(&self, bundle: &Bundle) -> Vec<Box<[u8]>> {
        let with = |selection: &BTreeSet<Vec<u8>>| {
            let data = selection.iter().chain(&bundle.keys).cloned().collect();
            template(&self.zone, self.zone.apex(), rtype::DNSKEY, bundle.ttl, data)
        };
        self.selections.iter().map(with).collect()
    }
}
