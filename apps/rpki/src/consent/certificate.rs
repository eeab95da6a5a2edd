//! Certificates: of authorities, and of the keys of signed objects (RFC 6487).

use rpki::{
    repository::{
        cert::{KeyUsage, Overclaim, TbsCert},
        resources::{IpResources, ResourceSet},
    },
    uri::{Https, Rsync},
};

use super::{Consent, Facts, Published, Refusal, bounds, manifest, outlasts, time, words};
use crate::{
    memory::{Digest, Entry, Issued, Number},
    registry::{Authority, Registry},
};

/// What a certificate is, if it may be signed.
struct Fitting {
    what: String,
    /// The file that it is for, or is in.
    file: String,
    /// What the certified key is for from then on.
    bound: Option<Entry>,
}

/// Decides about a certificate that an authority is to sign.
pub(super) fn certificate(
    issuer: &Authority,
    certificate: &TbsCert,
    digest: Digest,
    facts: &Facts<'_>,
) -> Result<Consent, Refusal> {
    common(issuer, certificate)?;
    let Fitting { what, file, bound } = match certificate.key_usage() {
        KeyUsage::Ca => authority(issuer, certificate, facts)?,
        KeyUsage::Ee => object(issuer, certificate, facts)?,
    };
    let serial = certificate.serial_number().into_array();
    let before = facts.memory.of(&issuer.name).and_then(|issued| issued.certificate(&serial));
    if serial == [0; 20] || before.is_some_and(|before| before.digest != digest) {
        return Err(Refusal::Number { what: "serial number", number: words(serial) });
    }
    if before.is_none() {
        bounds::certificate(issuer, &file, facts)?;
    }
    let (authority, validity) = (issuer.name.clone(), certificate.validity());
    let (from, until) = (validity.not_before().timestamp(), validity.not_after().timestamp());
    let key = identifier(certificate);
    let mut entries = vec![Entry::Certificate { authority, serial, digest, file, from, until, key }];
    entries.extend(bound);
    Ok(Consent { what, entries })
}

fn identifier(certificate: &TbsCert) -> Number {
    certificate.subject_public_key_info().key_identifier().into()
}

fn profile(good: bool, what: &'static str) -> Result<(), Refusal> {
    if good { Ok(()) } else { Err(Refusal::Profile(what)) }
}

/// What is the same in all certificates.
pub(super) fn common(issuer: &Authority, certificate: &TbsCert) -> Result<(), Refusal> {
    let key = certificate.subject_public_key_info();
    profile(*certificate.issuer() == issuer.public.to_subject_name(), "issuer")?;
    profile(*certificate.subject() == key.to_subject_name(), "subject")?;
    profile(key.allow_rpki_cert(), "public key")?;
    profile(certificate.subject_key_identifier() == key.key_identifier(), "subject key identifier")?;
    profile(certificate.overclaim() == Overclaim::Refuse, "certificate policy")?;
    profile(certificate.extended_key_usage().is_none(), "extended key usage")
}

/// Whether a certificate that is not the anchor's own points to its issuer.
pub(super) fn pointers(issuer: &Authority, certificate: &TbsCert) -> Result<(), Refusal> {
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

/// Whether a certificate has these resources, all of them and no others. What it has none of it does not mention: an extension that is there
/// and empty is the same set, and relying parties refuse it (RFC 6487, sections 4.8.10 and 4.8.11).
pub(super) fn same(certificate: &TbsCert, held: &ResourceSet, of: &impl ToString) -> Result<(), Refusal> {
    let claimed = resources(certificate).ok_or(Refusal::Profile("inheritance of resources"))?;
    if claimed != *held {
        return Err(Refusal::Resources { claimed: claimed.to_string(), of: of.to_string(), held: held.to_string() });
    }
    let exact = *certificate.as_resources() == held.to_as_resources()
        && *certificate.v4_resources() == held.to_ip_resources_v4()
        && *certificate.v6_resources() == held.to_ip_resources_v6();
    profile(exact, EXTENSION)
}

/// What is wrong with resources that are right, and written in another way.
const EXTENSION: &str = "extension of resources, of which one is there and empty,";

/// Whether resources of some kind are there and empty.
pub(super) fn empty(certificate: &TbsCert) -> Result<(), Refusal> {
    let addresses =
        |resources: &IpResources| resources.is_present() && resources.to_blocks().is_ok_and(|blocks| blocks.is_empty());
    let numbers = certificate.as_resources();
    let networks = numbers.is_present() && numbers.to_blocks().is_ok_and(|blocks| blocks.is_empty());
    let empty = networks || addresses(certificate.v4_resources()) || addresses(certificate.v6_resources());
    profile(!empty, EXTENSION)
}

/// A certificate for an authority: the anchor's own, or one that it gives to another.
fn authority(issuer: &Authority, certificate: &TbsCert, facts: &Facts<'_>) -> Result<Fitting, Refusal> {
    let subject = of_authority(issuer, certificate, facts)?;
    let validity = certificate.validity();
    let longest = facts.registry.terms.longest_authority;
    facts.lasts(validity.not_before(), validity.not_after(), longest)?;
    // One of minutes would take away all that is below it, where it takes the place of one that lasts.
    if validity.not_after().timestamp().saturating_sub(validity.not_before().timestamp()) < longest / 2 {
        return Err(Refusal::Time(
            "end comes too soon: an authority's certificate lasts half as long as the registry's terms permit, at least",
        ));
    }
    let what = format!("the certificate of the authority {}", subject.name);
    Ok(Fitting { what, file: subject.certificate_name(), bound: None })
}

/// The authority that a certificate is for, if the certificate has what follows from today's data, whenever it was signed.
pub(super) fn of_authority<'a>(
    issuer: &Authority,
    certificate: &TbsCert,
    facts: &Facts<'a>,
) -> Result<&'a Authority, Refusal> {
    let registry: &'a Registry = facts.registry;
    let key = certificate.subject_public_key_info();
    let subject = registry.authorities.iter().find(|authority| authority.public == *key);
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
    same(certificate, &registry.resources(subject), &subject.name).map_err(|refusal| match refusal {
        Refusal::Resources { claimed, of, held } => Refusal::OutOfStep { claimed, of, held },
        other => other,
    })?;
    Ok(subject)
}

/// A certificate for the key of a signed object.
fn object(issuer: &Authority, certificate: &TbsCert, facts: &Facts<'_>) -> Result<Fitting, Refusal> {
    profile(facts.pool.has(certificate.subject_public_key_info()), "public key")?;
    pointers(issuer, certificate)?;
    profile(certificate.basic_ca().is_none(), "basic constraints")?;
    let authority = certificate.ca_repository().is_some() || certificate.rpki_manifest().is_some();
    profile(!authority && certificate.rpki_notify().is_none(), "pointer to a repository")?;
    let address = certificate.signed_object().ok_or(Refusal::Profile("address of the object"))?;
    let file = address.as_str().strip_prefix(issuer.repository.as_str());
    let file = file.ok_or(Refusal::Profile("address of the object"))?.to_owned();
    let (by, what, bound) = if file == issuer.manifest_name() {
        of_manifest(issuer, certificate, facts)?;
        (facts.overriding(issuer), format!("the manifest of {}", issuer.name), None)
    } else {
        let Some(Published::Attestation(attestation)) = facts.published(issuer, &file) else {
            // What is not known to be authorised may be.
            facts.settled(issuer)?;
            let (what, of) = (super::refusal::object(&file), Some(issuer.name.clone()));
            return Err(Refusal::Unauthorised { what, of });
        };
        same(certificate, &attestation.resources(), attestation)?;
        let (key, digest) = (identifier(certificate), attestation.digest());
        bounds::object_key(issuer, &key, digest, facts)?;
        let authority = issuer.name.clone();
        let bound = Entry::Content { key, digest, authority, from: facts.now };
        (facts.by(issuer, &file), attestation.to_string(), Some(bound))
    };
    let validity = certificate.validity();
    facts.lasts(validity.not_before(), validity.not_after(), facts.registry.terms.longest_object)?;
    Ok(Fitting { what: format!("{by}the certificate of the key of {what}"), file, bound })
}

/// Whether a certificate is for the key that has signed the last manifest, begins no later than that, lasts as long and no longer (RFC 9286, section 5.1), and is
/// not revoked by the list on it.
fn of_manifest(issuer: &Authority, certificate: &TbsCert, facts: &Facts<'_>) -> Result<(), Refusal> {
    let inherits = certificate.as_resources().is_inherited()
        && certificate.v4_resources().is_inherited()
        && certificate.v6_resources().is_inherited();
    profile(inherits, "inheritance of resources")?;
    let key = identifier(certificate);
    bounds::manifest_key(issuer, &key, facts)?;
    let signed = facts.memory.of(&issuer.name).and_then(Issued::manifest).filter(|signed| signed.key == key);
    let signed = signed.ok_or_else(|| Refusal::Unsigned(issuer.name.clone()))?;
    let failed = |reason| Refusal::Object { file: issuer.manifest_name(), reason };
    let (end, until) = (certificate.validity().not_after(), time(signed.until));
    outlasts(end, until).map_err(failed)?;
    if end != until {
        return Err(failed(format!("its certificate ends after its next update at {}", until.to_rfc3339())));
    }
    // Until it begins relying parties take the manifest for none.
    let begins = time(signed.last.from);
    if certificate.validity().not_before() > begins {
        return Err(failed(format!("its certificate begins after the manifest does at {}", begins.to_rfc3339())));
    }
    if manifest::revokes(issuer, &signed.last.digest, certificate.serial_number(), facts)? {
        return Err(failed("the list on it revokes the serial number of its certificate".to_owned()));
    }
    Ok(())
}
