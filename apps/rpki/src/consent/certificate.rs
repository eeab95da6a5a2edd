//! Certificates: of authorities, and of the keys of signed objects (RFC 6487).

use rpki::{
    crypto::PublicKey,
    repository::{
        cert::{KeyUsage, Overclaim, TbsCert},
        resources::ResourceSet,
    },
    uri::{Https, Rsync},
};

use super::{Consent, Facts, Published, Refusal, words};
use crate::{
    memory::{Digest, Entry},
    registry::Authority,
};

/// Decides about a certificate that an authority is to sign.
pub(super) fn certificate(
    issuer: &Authority,
    certificate: &TbsCert,
    digest: Digest,
    facts: &Facts<'_>,
) -> Result<Consent, Refusal> {
    common(issuer, certificate)?;
    let (what, file) = match certificate.key_usage() {
        KeyUsage::Ca => authority(issuer, certificate, facts)?,
        KeyUsage::Ee => object(issuer, certificate, facts)?,
    };
    let serial = certificate.serial_number().into_array();
    let before = facts.memory.of(&issuer.name).and_then(|issued| issued.certificate(&serial));
    if serial == [0; 20] || before.is_some_and(|before| before.digest != digest) {
        return Err(Refusal::Number { what: "serial number", number: words(serial) });
    }
    let until = certificate.validity().not_after().timestamp();
    let entry = Entry::Certificate { authority: issuer.name.clone(), serial, digest, file, until };
    Ok(Consent { what, entries: vec![entry] })
}

fn profile(good: bool, what: &'static str) -> Result<(), Refusal> {
    if good { Ok(()) } else { Err(Refusal::Profile(what)) }
}

/// What is the same in all certificates.
fn common(issuer: &Authority, certificate: &TbsCert) -> Result<(), Refusal> {
    let key = certificate.subject_public_key_info();
    profile(*certificate.issuer() == issuer.public.to_subject_name(), "issuer")?;
    profile(*certificate.subject() == key.to_subject_name(), "subject")?;
    profile(key.allow_rpki_cert(), "public key")?;
    profile(certificate.subject_key_identifier() == key.key_identifier(), "subject key identifier")?;
    profile(certificate.overclaim() == Overclaim::Refuse, "certificate policy")?;
    profile(certificate.extended_key_usage().is_none(), "extended key usage")
}

/// Whether a certificate that is not the anchor's own points to its issuer.
fn pointers(issuer: &Authority, certificate: &TbsCert) -> Result<(), Refusal> {
    let identifier = Some(issuer.public.key_identifier());
    profile(certificate.authority_key_identifier() == identifier, "authority key identifier")?;
    let list = issuer.address(&issuer.list_name());
    profile(certificate.crl_uri().map(Rsync::as_str) == Some(list.as_str()), "address of revoked certificates")?;
    let above = Some(issuer.certificate.as_str());
    profile(certificate.ca_issuer().map(Rsync::as_str) == above, "address of the issuer's certificate")
}

fn resources(certificate: &TbsCert) -> Option<ResourceSet> {
    let blocks = certificate.as_resources().to_blocks().ok()?;
    let v4 = certificate.v4_resources().to_blocks().ok()?;
    let v6 = certificate.v6_resources().to_blocks().ok()?;
    Some(ResourceSet::new(blocks, v4.into(), v6.into()))
}

/// Whether a certificate has these resources, all of them and no others.
fn same(certificate: &TbsCert, held: &ResourceSet, of: &impl ToString) -> Result<(), Refusal> {
    let claimed = resources(certificate).ok_or(Refusal::Profile("inheritance of resources"))?;
    if claimed == *held {
        return Ok(());
    }
    Err(Refusal::Resources { claimed: claimed.to_string(), of: of.to_string(), held: held.to_string() })
}

/// A certificate for an authority: the anchor's own, or one that it gives to another.
fn authority(issuer: &Authority, certificate: &TbsCert, facts: &Facts<'_>) -> Result<(String, String), Refusal> {
    let key = certificate.subject_public_key_info();
    let subject = facts.registry.authorities.iter().find(|authority| authority.public == *key);
    let subject = subject.ok_or(Refusal::Profile("public key"))?;
    if subject.name == issuer.name {
        profile(issuer.parent.is_none(), "issuer")?;
        let own = Some(issuer.public.key_identifier());
        let identifier = certificate.authority_key_identifier();
        profile(identifier.is_none() || identifier == own, "authority key identifier")?;
        profile(certificate.crl_uri().is_none() && certificate.ca_issuer().is_none(), "pointer to an issuer")?;
    } else {
        profile(subject.parent.as_deref() == Some(issuer.name.as_str()), "issuer")?;
        pointers(issuer, certificate)?;
    }
    profile(certificate.basic_ca() == Some(true), "basic constraints")?;
    let manifest = subject.address(&subject.manifest_name());
    let repository = Some(subject.repository.as_str());
    profile(certificate.ca_repository().map(Rsync::as_str) == repository, "address of the repository")?;
    profile(certificate.rpki_manifest().map(Rsync::as_str) == Some(manifest.as_str()), "address of the manifest")?;
    let notify = subject.notify.as_ref().map(Https::as_str);
    profile(certificate.rpki_notify().map(Https::as_str) == notify, "address of notifications")?;
    profile(certificate.signed_object().is_none(), "address of an object")?;
    same(certificate, &facts.registry.resources(subject), &subject.name)?;
    let validity = certificate.validity();
    facts.lasts(validity.not_before(), validity.not_after(), facts.registry.terms.longest_authority)?;
    Ok((format!("the certificate of the authority {}", subject.name), subject.certificate_name()))
}

/// A certificate for the key of a signed object.
fn object(issuer: &Authority, certificate: &TbsCert, facts: &Facts<'_>) -> Result<(String, String), Refusal> {
    let key = certificate.subject_public_key_info();
    profile(facts.pool.has(key), "public key")?;
    pointers(issuer, certificate)?;
    profile(certificate.basic_ca().is_none(), "basic constraints")?;
    let authority = certificate.ca_repository().is_some() || certificate.rpki_manifest().is_some();
    profile(!authority && certificate.rpki_notify().is_none(), "pointer to a repository")?;
    let address = certificate.signed_object().ok_or(Refusal::Profile("address of the object"))?;
    let file = address.as_str().strip_prefix(issuer.repository.as_str());
    let file = file.ok_or(Refusal::Profile("address of the object"))?.to_owned();
    let (what, digest) = if file == issuer.manifest_name() {
        let inherits = certificate.as_resources().is_inherited()
            && certificate.v4_resources().is_inherited()
            && certificate.v6_resources().is_inherited();
        profile(inherits, "inheritance of resources")?;
        let last = facts.memory.of(&issuer.name).and_then(|issued| issued.manifest());
        (format!("the manifest of {}", issuer.name), last.map(|(_, digest)| *digest))
    } else {
        let publishes = facts.publishes(issuer);
        let Some(Published::Attestation(attestation)) = publishes.get(&file) else {
            // What is not known to be authorised may be.
            facts.settled(issuer)?;
            return Err(Refusal::Unauthorised(format!("the object {file}")));
        };
        same(certificate, &attestation.resources(), attestation)?;
        (attestation.to_string(), Some(attestation.digest()))
    };
    signs(key, digest, facts)?;
    let validity = certificate.validity();
    facts.lasts(validity.not_before(), validity.not_after(), facts.registry.terms.longest_object)?;
    Ok((format!("the certificate of the key of {what}"), file))
}

/// Whether a key has signed, if anything, the content that it is certified for.
fn signs(key: &PublicKey, digest: Option<Digest>, facts: &Facts<'_>) -> Result<(), Refusal> {
    let signed = facts.memory.content(&key.key_identifier().into());
    match (signed, digest) {
        (Some(signed), Some(digest)) if *signed != digest => Err(Refusal::SecondContent),
        _ => Ok(()),
    }
}
