//! Manifests (RFC 9286): what an authority publishes, all of it and nothing else.

use std::collections::BTreeMap;

use rpki::repository::{
    Cert, Crl, ResourceCert, cert::TbsCert, manifest::ManifestContent, resources::ResourceSet, sigobj::SignedObject,
    tal::TalInfo, x509::Serial,
};

use super::{Consent, Facts, Published, Refusal, above};
use crate::{
    attestation::Attestation,
    memory::{Digest, Entry},
    objects::read_manifest,
    registry::Authority,
};

/// Decides about the content of a manifest. Every file on it is looked at.
pub(super) fn manifest(bytes: &[u8], digest: Digest, facts: &Facts<'_>) -> Result<Consent, Refusal> {
    let content = read_manifest(bytes).ok_or(Refusal::Form)?;
    let mut files = files(&content)?;
    // The list of revoked certificates says whose manifest it is.
    let issuer = facts.registry.authorities.iter().find(|authority| files.contains_key(&authority.list_name()));
    let issuer = issuer.ok_or(Refusal::Profile("list of revoked certificates"))?;
    facts.settled(issuer)?;
    facts.lasts(content.this_update(), content.next_update(), facts.registry.terms.longest_list)?;
    let number = content.manifest_number().into_array();
    let issued = facts.memory.of(&issuer.name);
    above("the manifest's number", number, digest, issued.and_then(|issued| issued.manifest()))?;
    let list = files.remove(&issuer.list_name()).ok_or(Refusal::Profile("list of revoked certificates"))?;
    let list = current_list(issuer, &list, facts)?;
    let publishes = facts.publishes(issuer);
    if let Some((_, missing)) = publishes.iter().find(|(file, _)| !files.contains_key(*file)) {
        return Err(withdraws(issuer, missing));
    }
    if let Some(foreign) = files.keys().find(|file| !publishes.contains_key(*file)) {
        return Err(Refusal::Foreign(foreign.clone()));
    }
    // Who publishes nothing yet may have no certificate yet.
    let above = if files.is_empty() { None } else { Some(certificate_of(issuer, facts)?) };
    for (file, digest) in &files {
        let (Some(published), Some(above)) = (publishes.get(file), above.as_ref()) else {
            return Err(Refusal::Foreign(file.clone()));
        };
        let bytes = facts.store.content(digest).map_err(Refusal::Unseen)?;
        let serial = match published {
            Published::Attestation(attestation) => signed(issuer, file, attestation, &bytes, above, facts),
            Published::Authority(child) => authority(child, &bytes, above, facts),
        };
        let failed = |reason| Refusal::Object { file: file.clone(), reason };
        if list.contains(serial.map_err(failed)?) {
            return Err(failed("its certificate is revoked".to_owned()));
        }
    }
    let entry = Entry::Manifest { authority: issuer.name.clone(), number, digest };
    let what = format!("the manifest of {} with {} files", issuer.name, files.len().saturating_add(1));
    Ok(Consent { what, entries: vec![entry] })
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

/// The list on the manifest, if it is good and none is newer.
fn current_list(issuer: &Authority, digest: &Digest, facts: &Facts<'_>) -> Result<Crl, Refusal> {
    let failed = |reason: String| Refusal::Object { file: issuer.list_name(), reason };
    let bytes = facts.store.content(digest).map_err(Refusal::Unseen)?;
    let mut list = Crl::decode(bytes.as_slice()).map_err(|error| failed(error.to_string()))?;
    list.verify_signature(&issuer.public).map_err(|error| failed(error.to_string()))?;
    if list.next_update().timestamp() <= facts.now {
        return Err(failed("it is not current any more".to_owned()));
    }
    let last = facts.memory.of(&issuer.name).and_then(|issued| issued.list());
    if last.is_some_and(|(last, _)| list.crl_number().into_array() < *last) {
        return Err(failed("there is a newer one".to_owned()));
    }
    // Every file's certificate is looked for in it.
    list.cache_serials();
    Ok(list)
}

/// The certificate of an authority, with those above it.
fn certificate_of(authority: &Authority, facts: &Facts<'_>) -> Result<ResourceCert, Refusal> {
    let failed = |reason: String| Refusal::Object { file: authority.certificate_name(), reason };
    let bytes = facts.store.published(authority.certificate.as_str()).map_err(Refusal::Unseen)?;
    let certificate = Cert::decode(bytes.as_slice()).map_err(|error| failed(error.to_string()))?;
    if *certificate.subject_public_key_info() != authority.public {
        return Err(failed("it is of another key".to_owned()));
    }
    let parent = authority.parent.as_deref().and_then(|parent| facts.registry.authority(parent));
    let validated = match parent {
        // A parent comes before its children, so this ends.
        Some(parent) => certificate.validate_ca_at(&certificate_of(parent, facts)?, true, facts.time()),
        None => certificate.validate_ta_at(TalInfo::from_name(authority.name.clone()).into_arc(), true, facts.time()),
    };
    validated.map_err(|error| failed(error.to_string()))
}

/// Whether a file is this object, good, in its place; the serial number of its certificate.
fn signed(
    issuer: &Authority,
    file: &str,
    attestation: &Attestation,
    bytes: &[u8],
    above: &ResourceCert,
    facts: &Facts<'_>,
) -> Result<Serial, String> {
    let object = SignedObject::decode(bytes, true).map_err(|error| error.to_string())?;
    if object.content().to_bytes() != attestation.encode() {
        return Err(format!("its content is not {attestation}"));
    }
    let kind = match attestation {
        Attestation::Roa { .. } => *object.content_type() == rpki::oid::ROUTE_ORIGIN_AUTHZ,
        Attestation::Aspa { .. } => *object.content_type() == rpki::oid::CT_ASPA,
    };
    if !kind {
        return Err("it is an object of another kind".to_owned());
    }
    let certificate: &TbsCert = object.cert();
    if certificate.signed_object().map(|address| address.as_str()) != Some(issuer.address(file).as_str()) {
        return Err("its certificate is for another file".to_owned());
    }
    let serial = certificate.serial_number();
    let certificate = object.validate_at(above, true, facts.time()).map_err(|error| error.to_string())?;
    let (v4, v6) = (certificate.v4_resources().clone(), certificate.v6_resources().clone());
    let claimed = ResourceSet::new(certificate.as_resources().clone(), v4.into(), v6.into());
    if claimed != attestation.resources() {
        return Err(format!("its certificate has {claimed}"));
    }
    Ok(serial)
}

/// Whether a file is the certificate of this authority; its serial number.
fn authority(child: &Authority, bytes: &[u8], above: &ResourceCert, facts: &Facts<'_>) -> Result<Serial, String> {
    let certificate = Cert::decode(bytes).map_err(|error| error.to_string())?;
    if *certificate.subject_public_key_info() != child.public {
        return Err("it is of another key".to_owned());
    }
    let claimed = ResourceSet::try_from(&certificate).map_err(|error| error.to_string())?;
    let held = facts.registry.resources(child);
    if claimed != held {
        return Err(format!("it has {claimed}; {} has {held}", child.name));
    }
    let serial = certificate.serial_number();
    certificate.validate_ca_at(above, true, facts.time()).map_err(|error| error.to_string())?;
    Ok(serial)
}
