//! Lists of revoked certificates (RFC 6487, section 5).

use std::collections::BTreeSet;

use rpki::repository::crl::{RevokedCertificates, TbsCertList};

use super::{Consent, Facts, Refusal, bounds, words};
use crate::{
    memory::{Digest, Entry, Issued, Number},
    registry::Authority,
};

/// Decides about a list that an authority is to sign: of what was seen here it revokes what was withdrawn or replaced, all that was withdrawn,
/// and nothing else.
pub(super) fn list(
    issuer: &Authority,
    list: &TbsCertList<RevokedCertificates>,
    digest: Digest,
    facts: &Facts<'_>,
) -> Result<Consent, Refusal> {
    if *list.issuer() != issuer.public.to_subject_name() {
        return Err(Refusal::Profile("issuer"));
    }
    if *list.authority_key_identifier() != issuer.public.key_identifier() {
        return Err(Refusal::Profile("authority key identifier"));
    }
    facts.lasts(list.this_update(), list.next_update(), facts.registry.terms.longest_list)?;
    let (number, from) = (list.crl_number().into_array(), list.this_update().timestamp());
    let last = facts.memory.of(&issuer.name).and_then(Issued::list);
    // The same one may be asked about again.
    if last.is_none_or(|last| last.digest != digest) {
        bounds::number("the list's number", number, last, facts)?;
        if last.is_some_and(|last| from < last.from) {
            return Err(Refusal::Time("beginning is before that of the last list"));
        }
    }
    let revoked: BTreeSet<_> = list.revoked_certs().iter().map(|entry| entry.user_certificate.into_array()).collect();
    facts.settled(issuer)?;
    let mut entries = vec![Entry::List { authority: issuer.name.clone(), number, digest, from }];
    entries.extend(check(issuer, &revoked, facts)?);
    let what = format!("the list of {} revoked certificates of {}", revoked.len(), issuer.name);
    Ok(Consent { what, entries })
}

/// Compares what is revoked with what is known, which is what a list of all certificates would be compared with at an agent that was never absent.
/// A serial number that was never seen here says nothing: no manifest has an object whose certificate is on its list.
fn check(issuer: &Authority, revoked: &BTreeSet<Number>, facts: &Facts<'_>) -> Result<Vec<Entry>, Refusal> {
    let publishes = facts.publishes(issuer);
    let wanted = |file: &str| {
        publishes.contains_key(file) || file == issuer.manifest_name() || file == issuer.certificate_name()
    };
    let Some(issued) = facts.memory.of(&issuer.name) else { return Ok(Vec::new()) };
    let mut entries = Vec::new();
    for (serial, certified) in revoked.iter().filter_map(|serial| Some((serial, issued.certificate(serial)?))) {
        if wanted(&certified.file) && issued.is_newest(serial) {
            return Err(Refusal::Revokes { serial: words(*serial), file: certified.file.clone() });
        }
        entries.push(Entry::Revoked { authority: issuer.name.clone(), serial: *serial });
    }
    for (serial, certified) in issued.certificates() {
        if certified.until > facts.now && !wanted(&certified.file) && !revoked.contains(serial) {
            return Err(Refusal::Spares { serial: words(*serial), file: certified.file.clone() });
        }
    }
    Ok(entries)
}
