//! Whether objects are in the one form in which they are made here. The library keeps some parts of what it reads as it found them: the attributes of
//! an object, what an authority has signed, the entries of a list, the files of a manifest. Relying parties may be stricter about these than it
//! is, so they are written again from what was understood of them.

use rpki::{
    dep::bcder::{Mode, encode::Values},
    oid,
    repository::{
        Cert, Crl,
        cert::TbsCert,
        crl::{CrlEntry, RevokedCertificates, TbsCertList},
        manifest::ManifestContent,
        sigobj::SignedObject,
        x509::Time,
    },
};
use sha2::{Digest as _, Sha256};

use crate::{attestation::der, memory::Digest, objects::Kind};

/// What is said of a file that is in another form.
pub(super) const FORM: &str = "it is not in the one form in which objects are made";

fn written(values: &impl Values) -> Vec<u8> {
    values.to_captured(Mode::Der).as_slice().to_vec()
}

fn content_type(kind: Kind) -> &'static [u8] {
    match kind {
        Kind::Roa => oid::ROUTE_ORIGIN_AUTHZ.0,
        Kind::Aspa => oid::CT_ASPA.0,
        Kind::Manifest => oid::CT_RPKI_MANIFEST.0,
    }
}

/// The attributes of an object as they are signed (RFC 6488, section 2.1.6.4): a SET OF, in the order of DER.
pub(super) fn attributes(kind: Kind, digest: &Digest, time: Time) -> Vec<u8> {
    let identifier = |identifier: &[u8]| der::value(der::OBJECT_IDENTIFIER, &[identifier]);
    let attribute = |of: &[u8], value: &[u8]| {
        let values = der::value(der::SET, &[value]);
        der::value(der::SEQUENCE, &[&identifier(of), &values])
    };
    let mut attributes = [
        attribute(oid::CONTENT_TYPE.0, &identifier(content_type(kind))),
        attribute(oid::SIGNING_TIME.0, &written(&time.encode_varied())),
        attribute(oid::MESSAGE_DIGEST.0, &der::value(der::OCTET_STRING, &[digest.as_slice()])),
    ];
    attributes.sort();
    der::value(der::SET, &[&attributes.concat()])
}

/// What is to be signed of a list of revoked certificates.
pub(super) fn list(list: &TbsCertList<RevokedCertificates>) -> Vec<u8> {
    let entries: Vec<CrlEntry> = list.revoked_certs().iter().collect();
    let again = TbsCertList::new(
        list.signature(),
        list.issuer().clone(),
        list.this_update(),
        list.next_update(),
        entries,
        *list.authority_key_identifier(),
        list.crl_number(),
    );
    written(&TbsCertList::<RevokedCertificates>::from(again).encode_ref())
}

/// The content of a manifest.
pub(super) fn manifest(content: &ManifestContent) -> Vec<u8> {
    let files: Vec<_> = content.iter().collect();
    let again = ManifestContent::new(
        content.manifest_number(),
        content.this_update(),
        content.next_update(),
        content.file_hash_alg(),
        files.iter(),
    );
    written(&again.encode_ref())
}

/// Whether something signed begins with just this, which is what was signed.
fn signs(bytes: &[u8], part: &[u8]) -> bool {
    let mut rest = bytes;
    // A value of DER says how long it is, so no other one begins with it.
    der::take(&mut rest, der::SEQUENCE).is_some_and(|inner| inner.starts_with(part))
}

/// Whether a certificate, with its signature, is in its one form.
pub(super) fn is_certificate(bytes: &[u8], certificate: &Cert) -> bool {
    let signed: &TbsCert = certificate;
    certificate.to_captured().as_slice() == bytes && signs(bytes, &written(&signed.encode_ref()))
}

/// Whether a list of revoked certificates, with its signature, is in its one form.
pub(super) fn is_list(bytes: &[u8], signed: &Crl) -> bool {
    signed.to_captured().as_slice() == bytes && signs(bytes, &list(signed.as_cert_list()))
}

/// Whether an object is in its one form, with its certificate and its attributes.
pub(super) fn is_object(bytes: &[u8], object: &SignedObject, kind: Kind) -> bool {
    let digest: Digest = Sha256::digest(object.content().to_bytes()).into();
    let expected = attributes(kind, &digest, object.signing_time());
    let attributes = carried(bytes);
    let certificate = object.cert();
    attributes.is_some()
        && attributes == der::take(&mut expected.as_slice(), der::SET)
        && is_certificate(certificate.to_captured().as_slice(), certificate)
        && written(&object.encode_ref()) == bytes
}

/// The attributes that an object carries (RFC 5652, sections 5.1 and 5.3), without their tag.
fn carried(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = bytes;
    let mut information = der::take(&mut rest, der::SEQUENCE)?;
    der::take(&mut information, der::OBJECT_IDENTIFIER)?;
    let mut explicit = der::take(&mut information, der::CONTEXT_0)?;
    let mut signed = der::take(&mut explicit, der::SEQUENCE)?;
    // The version, the digest's algorithms, the content, the certificates.
    for tag in [der::INTEGER, der::SET, der::SEQUENCE, der::CONTEXT_0] {
        der::take(&mut signed, tag)?;
    }
    let mut signers = der::take(&mut signed, der::SET)?;
    let mut signer = der::take(&mut signers, der::SEQUENCE)?;
    // The version, whose signature it is, the digest's algorithm.
    for tag in [der::INTEGER, der::PRIMITIVE_0, der::SEQUENCE] {
        der::take(&mut signer, tag)?;
    }
    der::take(&mut signer, der::CONTEXT_0)
}
