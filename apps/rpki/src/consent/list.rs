//! Lists of revoked certificates (RFC 6487, section 5).

use std::collections::BTreeSet;

use rpki::repository::crl::{RevokedCertificates, TbsCertList};

use super::{Consent, Facts, Refusal, above, words};
use crate::{
    memory::{Digest, Entry},
    registry::Authority,
};

/// Decides about a list that an authority is to sign: it revokes what was withdrawn or replaced, all that was withdrawn, and nothing else.
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
    let number = list.crl_number().into_array();
    let issued = facts.memory.of(&issuer.name);
    above("the list's number", number, digest, issued.and_then(|issued| issued.list()))?;
    let revoked: BTreeSet<_> = list.revoked_certs().iter().map(|entry| entry.user_certificate.into_array()).collect();
    facts.settled(issuer)?;
    check(issuer, &revoked, facts)?;
    let entry = Entry::List { authority: issuer.name.clone(), number, digest };
    let what = format!("the list of {} revoked certificates of {}", revoked.len(), issuer.name);
    Ok(Consent { what, entries: vec![entry] })
}

fn check(issuer: &Authority, revoked: &BTreeSet<[u8; 20]>, facts: &Facts<'_>) -> Result<(), Refusal> {
    let publishes = facts.publishes(issuer);
    let wanted = |file: &str| {
        publishes.contains_key(file) || file == issuer.manifest_name() || file == issuer.certificate_name()
    };
    let issued = facts.memory.of(&issuer.name);
    for serial in revoked {
        let Some((issued, certified)) = issued.and_then(|issued| Some((issued, issued.certificate(serial)?))) else {
            return Err(Refusal::RevokesUnknown(words(*serial)));
        };
        if wanted(&certified.file) && issued.is_newest(serial) {
            return Err(Refusal::Revokes { serial: words(*serial), file: certified.file.clone() });
        }
    }
    for (serial, certified) in issued.into_iter().flat_map(|issued| issued.certificates()) {
        if certified.until > facts.now && !wanted(&certified.file) && !revoked.contains(serial) {
            return Err(Refusal::Spares { serial: words(*serial), file: certified.file.clone() });
        }
    }
    Ok(())
}
