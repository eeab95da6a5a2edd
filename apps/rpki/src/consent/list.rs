//! Lists of revoked certificates (RFC 6487, section 5).

use std::collections::BTreeSet;

use rpki::repository::crl::{RevokedCertificates, TbsCertList};

use super::{Consent, Facts, Refusal, bounds, first_of, words};
use crate::{
    memory::{Digest, Entry, Issued, Number, Published},
    registry::Authority,
};

/// Decides about a list that an authority is to sign: it revokes all that was published and withdrawn.
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
        bounds::list(issuer, facts)?;
    }
    let revoked = revoked(list)?;
    facts.settled(issuer)?;
    let mut entries = vec![Entry::List { authority: issuer.name.clone(), number, digest, from }];
    entries.extend(check(issuer, &revoked, facts)?);
    let flag = facts.overriding(issuer);
    let what = format!("{flag}the list of {} revoked certificates of {}", revoked.len(), issuer.name);
    Ok(Consent { what, entries })
}

/// The serial numbers on a list: of certificates, each once, revoked by the time at which the list begins.
fn revoked(list: &TbsCertList<RevokedCertificates>) -> Result<BTreeSet<Number>, Refusal> {
    let mut revoked = BTreeSet::new();
    for entry in list.revoked_certs().iter() {
        let serial: Number = entry.user_certificate.into_array();
        if serial == [0; 20] || entry.revocation_date > list.this_update() || !revoked.insert(serial) {
            return Err(Refusal::Revocation(words(serial)));
        }
    }
    Ok(revoked)
}

/// Compares what is revoked with what is known. A list is good if it has all that was withdrawn and may be on a manifest that is not over. It may have more: no manifest has an
/// object whose certificate is on its list, so what should stand stands by another certificate, or by the next list. (To refuse what revokes the last certificate that
/// is known here would let an agent that was absent refuse lists for ever. To demand what was never published would let whoever had it signed keep its number to
/// himself, and so stop the authority.)
fn check(issuer: &Authority, revoked: &BTreeSet<Number>, facts: &Facts<'_>) -> Result<Vec<Entry>, Refusal> {
    let wanted = |file: &str| {
        facts.published(issuer, file).is_some() || file == issuer.manifest_name() || file == issuer.certificate_name()
    };
    let Some(issued) = facts.memory.of(&issuer.name) else { return Ok(Vec::new()) };
    // The last manifest that has what was replaced began before the one that replaces it, and may last so long from there.
    let since = facts.now.saturating_sub(facts.registry.terms.exposure());
    let stays =
        |serial: &Number, one: &Published| one.until > facts.now && !revoked.contains(serial) && !wanted(&one.file);
    let spared = || issued.exposed(since).filter(|(serial, one)| stays(serial, one));
    if let Some((_, one)) = spared().next() {
        let serials = first_of(spared().map(|(serial, _)| serial));
        return Err(Refusal::Spares { serials, file: one.file.clone(), of: issuer.name.clone() });
    }
    let seen = revoked.iter().filter(|serial| issued.certificate(serial).is_some());
    Ok(seen.map(|serial| Entry::Revoked { authority: issuer.name.clone(), serial: *serial }).collect())
}
