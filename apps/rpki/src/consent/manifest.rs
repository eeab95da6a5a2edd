//! Manifests (RFC 9286): what an authority publishes, all of it and nothing else.

use std::collections::BTreeMap;

use rpki::repository::{
    Cert, Crl, ResourceCert,
    cert::TbsCert,
    manifest::ManifestContent,
    sigobj::SignedObject,
    tal::TalInfo,
    x509::{Serial, Time},
};

use super::{Consent, Facts, Published, Refusal, bounds, canonical, certificate, first_of, outlasts};
use crate::{
    attestation::Attestation,
    memory::{Digest, Entry, Issued, LastManifest, Number},
    objects::{Attributes, Kind, read_manifest},
    registry::Authority,
};

/// Decides about a manifest that a key is to sign. Every file on it is looked at, and has to be good until the next manifest is due.
pub(super) fn manifest(key: Number, attributes: Attributes, facts: &Facts<'_>) -> Result<Consent, Refusal> {
    let (bytes, content) = read(&attributes.digest, facts)?;
    if canonical::manifest(&content) != bytes {
        return Err(Refusal::Form);
    }
    let mut files = files(&content)?;
    // The list of revoked certificates says whose manifest it is.
    let issuer = facts.registry.authorities.iter().find(|authority| files.contains_key(&authority.list_name()));
    let issuer = issuer.ok_or(Refusal::Profile("list of revoked certificates"))?;
    facts.settled(issuer)?;
    facts.lasts(content.this_update(), content.next_update(), facts.registry.terms.longest_list)?;
    // One of seconds would take all that is on it away when it ends, until somebody issues the next.
    let lasts = content.next_update().timestamp().saturating_sub(content.this_update().timestamp());
    if lasts < facts.registry.terms.longest_list / 2 {
        return Err(Refusal::Time(
            "end comes too soon: a manifest lasts half as long as the registry's terms permit, at least",
        ));
    }
    follows(issuer, &content, attributes, &key, facts)?;
    let next = content.next_update();
    let list = files.remove(&issuer.list_name()).ok_or(Refusal::Profile("list of revoked certificates"))?;
    let list = current_list(issuer, &list, next, facts)?;
    let publishes = facts.publishes(issuer);
    if let Some((_, missing)) = publishes.iter().find(|(file, _)| !files.contains_key(*file)) {
        return Err(withdraws(issuer, missing));
    }
    if let Some(foreign) = files.keys().find(|file| !publishes.contains_key(*file)) {
        return Err(Refusal::Foreign { file: foreign.clone(), of: issuer.name.clone() });
    }
    // Who publishes nothing yet may have no certificate yet.
    let above = if files.is_empty() { None } else { Some(certificate_of(issuer, next, facts)?) };
    let mut entries = Vec::new();
    for (file, digest) in &files {
        let (Some(published), Some(above)) = (publishes.get(file), above.as_ref()) else {
            return Err(Refusal::Foreign { file: file.clone(), of: issuer.name.clone() });
        };
        let bytes = facts.store.content(digest).map_err(Refusal::Unseen)?;
        let good = match published {
            Published::Attestation(attestation) => signed(issuer, file, attestation, &bytes, above, facts),
            Published::Authority(child) => authority(issuer, child, &bytes, above, facts),
        };
        let failed = |reason| Refusal::Object { file: file.clone(), reason };
        let certificate = good.map_err(failed)?;
        if list.contains(certificate.serial_number()) {
            return Err(failed("its certificate is revoked".to_owned()));
        }
        outlasts(certificate.validity().not_after(), next).map_err(failed)?;
        let (serial, until) =
            (certificate.serial_number().into_array(), certificate.validity().not_after().timestamp());
        let (authority, from) = (issuer.name.clone(), content.this_update().timestamp());
        entries.push(Entry::Published { authority, serial, file: file.clone(), from, until });
    }
    certified(issuer, &key, &list, next, facts)?;
    bounds::manifest_key(issuer, &key, facts)?;
    let (number, digest) = (content.manifest_number().into_array(), attributes.digest);
    let (from, until) = (content.this_update().timestamp(), next.timestamp());
    entries.push(Entry::Manifest { authority: issuer.name.clone(), number, digest, key, from, until });
    let flag = facts.overriding(issuer);
    let what = format!("{flag}the manifest of {} with {} files", issuer.name, files.len().saturating_add(1));
    Ok(Consent { what, entries })
}

/// The content of a manifest, as it is in the store and as it was understood.
fn read(digest: &Digest, facts: &Facts<'_>) -> Result<(Vec<u8>, ManifestContent), Refusal> {
    let bytes = facts.store.content(digest).map_err(Refusal::Unseen)?;
    let content = read_manifest(&bytes).ok_or(Refusal::Form)?;
    Ok((bytes, content))
}

/// Whether a manifest comes after the last one. Relying parties keep the one that they have if another one does not begin later.
fn follows(
    issuer: &Authority,
    content: &ManifestContent,
    attributes: Attributes,
    key: &Number,
    facts: &Facts<'_>,
) -> Result<(), Refusal> {
    let before = facts.memory.of(&issuer.name).and_then(Issued::manifest);
    // The same one may be asked about again.
    if let Some(same) = before.filter(|before| before.last.digest == attributes.digest) {
        return bounds::change(issuer, same, key);
    }
    let last = before.map(|LastManifest { last, .. }| last);
    bounds::number("the manifest's number", content.manifest_number().into_array(), last, facts)?;
    match last {
        Some(last) if content.this_update().timestamp() <= last.from => {
            Err(Refusal::Time("beginning is not after that of the last manifest"))
        }
        Some(last) if attributes.time < last.from => {
            Err(Refusal::Time("signing time is before the beginning of the last manifest"))
        }
        _ => bounds::manifest(issuer, facts),
    }
}

/// Whether no certificate is known here that would end the manifest before its time: its key may have one for an earlier manifest.
fn certified(issuer: &Authority, key: &Number, list: &Crl, next: Time, facts: &Facts<'_>) -> Result<(), Refusal> {
    let file = issuer.manifest_name();
    let revoked = |serial: Number| Serial::from_array(serial).is_ok_and(|serial| list.contains(serial));
    let certificates = facts.memory.of(&issuer.name).into_iter().flat_map(Issued::certificates);
    let mut short = certificates.filter(|&(serial, certified)| {
        let current = certified.until > facts.now && !revoked(*serial);
        certified.key == *key && certified.file == file && current && certified.until < next.timestamp()
    });
    let serials = first_of(short.by_ref().map(|(serial, _)| serial));
    if serials.is_empty() { Ok(()) } else { Err(Refusal::Ends { file, serials }) }
}

/// Whether the list on a manifest that was agreed to has this serial number.
pub(super) fn revokes(issuer: &Authority, digest: &Digest, serial: Serial, facts: &Facts<'_>) -> Result<bool, Refusal> {
    let (_, content) = read(digest, facts)?;
    let files = files(&content)?;
    let list = files.get(&issuer.list_name()).ok_or(Refusal::Profile("list of revoked certificates"))?;
    let bytes = facts.store.content(list).map_err(Refusal::Unseen)?;
    let failed = |error: String| Refusal::Object { file: issuer.list_name(), reason: error };
    let list = Crl::decode(bytes.as_slice()).map_err(|error| failed(error.to_string()))?;
    Ok(list.contains(serial))
}

/// The files with their digests.
fn files(content: &ManifestContent) -> Result<BTreeMap<String, Digest>, Refusal> {
    let mut files = BTreeMap::new();
    for (file, digest) in content.iter().map(|entry| entry.into_pair()) {
        let name = String::from_utf8_lossy(&file).into_owned();
        let digest: &[u8] = digest.as_ref();
        let digest = Digest::try_from(digest).map_err(|_| Refusal::Profile("digest of a file"))?;
        if files.insert(name, digest).is_some() {
            return Err(Refusal::Profile("order of files, one of which is there twice,"));
        }
    }
    Ok(files)
}

fn withdraws(issuer: &Authority, missing: &Published<'_>) -> Refusal {
    match missing {
        Published::Attestation(attestation) => {
            let who = issuer.member.clone().unwrap_or_default();
            Refusal::Withdraws { what: attestation.to_string(), who }
        }
        Published::Authority(child) => {
            let what = format!("the certificate of the authority {}", child.name);
            Refusal::Withdraws { what, who: "the registry's data".to_owned() }
        }
    }
}

/// The list on the manifest, if it is good, none is newer, and it lasts until the next manifest is due.
fn current_list(issuer: &Authority, digest: &Digest, next: Time, facts: &Facts<'_>) -> Result<Crl, Refusal> {
    let failed = |reason: String| Refusal::Object { file: issuer.list_name(), reason };
    let bytes = facts.store.content(digest).map_err(Refusal::Unseen)?;
    let mut list = Crl::decode(bytes.as_slice()).map_err(|error| failed(error.to_string()))?;
    list.verify_signature(&issuer.public).map_err(|error| failed(error.to_string()))?;
    if !canonical::is_list(&bytes, &list) {
        return Err(failed(canonical::FORM.to_owned()));
    }
    if list.next_update().timestamp() <= facts.now {
        return Err(failed("it is not current any more".to_owned()));
    }
    let last = facts.memory.of(&issuer.name).and_then(Issued::list);
    if last.is_some_and(|last| list.crl_number().into_array() < last.number) {
        return Err(failed("there is a newer one".to_owned()));
    }
    outlasts(list.next_update(), next).map_err(failed)?;
    // Every file's certificate is looked for in it.
    list.cache_serials();
    Ok(list)
}

/// The certificate of an authority, with those above it, all of which last until the next manifest is due.
fn certificate_of(authority: &Authority, next: Time, facts: &Facts<'_>) -> Result<ResourceCert, Refusal> {
    let failed = |reason: String| Refusal::Object { file: authority.certificate_name(), reason };
    let bytes = facts.store.published(authority.certificate.as_str()).map_err(Refusal::Unseen)?;
    let certificate = Cert::decode(bytes.as_slice()).map_err(|error| failed(error.to_string()))?;
    if *certificate.subject_public_key_info() != authority.public {
        return Err(failed("it is of another key".to_owned()));
    }
    certificate::empty(&certificate).map_err(|refusal| failed(refusal.to_string()))?;
    outlasts(certificate.validity().not_after(), next).map_err(failed)?;
    let validated = match facts.registry.parent(authority) {
        // A parent comes before its children, so this ends.
        Some(parent) => certificate.validate_ca_at(&certificate_of(parent, next, facts)?, true, facts.time()),
        None => certificate.validate_ta_at(TalInfo::from_name(authority.name.clone()).into_arc(), true, facts.time()),
    };
    validated.map_err(|error| failed(error.to_string()))
}

/// Whether a file is this object, good, in its place; its certificate.
fn signed(
    issuer: &Authority,
    file: &str,
    attestation: &Attestation,
    bytes: &[u8],
    above: &ResourceCert,
    facts: &Facts<'_>,
) -> Result<ResourceCert, String> {
    let object = SignedObject::decode(bytes, true).map_err(|error| error.to_string())?;
    if object.content().to_bytes() != attestation.encode() {
        return Err(format!("its content is not {attestation}"));
    }
    let (kind, identifier) = match attestation {
        Attestation::Roa { .. } => (Kind::Roa, rpki::oid::ROUTE_ORIGIN_AUTHZ),
        Attestation::Aspa { .. } => (Kind::Aspa, rpki::oid::CT_ASPA),
    };
    if *object.content_type() != identifier {
        return Err("it is an object of another kind".to_owned());
    }
    if !canonical::is_object(bytes, &object, kind) {
        return Err(canonical::FORM.to_owned());
    }
    let signer: &TbsCert = object.cert();
    if signer.signed_object().map(|address| address.as_str()) != Some(issuer.address(file).as_str()) {
        return Err("its certificate is for another file".to_owned());
    }
    let fits = certificate::common(issuer, signer)
        .and_then(|()| certificate::pointers(issuer, signer))
        .and_then(|()| certificate::same(signer, &attestation.resources(), attestation));
    fits.map_err(|refusal| refusal.to_string())?;
    object.validate_at(above, true, facts.time()).map_err(|error| error.to_string())
}

/// Whether a file is the certificate of this authority, with what today's data have; that certificate.
fn authority(
    issuer: &Authority,
    child: &Authority,
    bytes: &[u8],
    above: &ResourceCert,
    facts: &Facts<'_>,
) -> Result<ResourceCert, String> {
    let certificate = Cert::decode(bytes).map_err(|error| error.to_string())?;
    if *certificate.subject_public_key_info() != child.public {
        return Err("it is of another key".to_owned());
    }
    if !canonical::is_certificate(bytes, &certificate) {
        return Err(canonical::FORM.to_owned());
    }
    let fits =
        certificate::common(issuer, &certificate).and_then(|()| certificate::of_authority(issuer, &certificate, facts));
    fits.map_err(|refusal| refusal.to_string())?;
    certificate.validate_ca_at(above, true, facts.time()).map_err(|error| error.to_string())
}
