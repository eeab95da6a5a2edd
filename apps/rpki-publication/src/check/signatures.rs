//! Signatures of what a manifest lists, and its own. `rpki` validates signed objects from a trust anchor down, which a folder need not have:
//! here each signature is checked under the one key that should have made it.

use bytes::Bytes;
use rpki::{
    crypto::{DigestAlgorithm, KeyIdentifier, RpkiSignature, RpkiSignatureAlgorithm},
    dep::bcder::{
        Mode, OctetString, Tag,
        decode::{Constructed, DecodeError, Source},
    },
    oid,
    repository::{
        Cert,
        sigobj::{MessageDigest, SignedAttrs, SignedObject},
    },
    uri::Rsync,
};

use super::{
    error::CheckError,
    point::{Authority, Parsed, Point, parse},
};
use crate::objects::{Object, Objects};

/// Checks all signatures at a publication point. `issuers` are those whose certificates say that the point is theirs: several, if a key was
/// certified twice. Without one, which is where the authority's certificate is published elsewhere, signed objects are checked under the
/// certificates in them, and nothing says who signed these.
pub(super) fn check(objects: &Objects, point: &Point, issuers: &[&Authority]) -> Result<(), CheckError> {
    let all = std::iter::once(&point.manifest.uri).chain(&point.listed);
    for object in all.filter_map(|uri| objects.get(uri)) {
        match parse(object)? {
            Parsed::Crl(crl) => {
                issued(&object.uri, issuers, |issuer| crl.verify_signature(issuer.subject_public_key_info()).is_ok())?;
            }
            Parsed::Certificate(certificate) => issued_certificate(&object.uri, issuers, &certificate)?,
            Parsed::Manifest(_) | Parsed::Other => {
                let signed = signed_object(object)?;
                if !is_signed_by_its_certificate(&signed, &object.bytes) {
                    return Err(CheckError::Signature { uri: object.uri.clone() });
                }
                issued_certificate(&object.uri, issuers, signed.cert())?;
            }
        }
    }
    Ok(())
}

fn signed_object(object: &Object) -> Result<SignedObject, CheckError> {
    let signed = SignedObject::decode(object.bytes.clone(), true);
    signed.map_err(|error| CheckError::Unparseable { uri: object.uri.clone(), reason: error.to_string() })
}

fn issued_certificate(uri: &Rsync, issuers: &[&Authority], certificate: &Cert) -> Result<(), CheckError> {
    issued(uri, issuers, |issuer| certificate.verify_signature(issuer, true).is_ok())
}

/// Whether one of the issuers has signed; if none is known, nobody can tell.
fn issued(uri: &Rsync, issuers: &[&Authority], by: impl Fn(&Cert) -> bool) -> Result<(), CheckError> {
    match issuers.first() {
        Some(first) if !issuers.iter().any(|issuer| by(&issuer.certificate)) => {
            Err(CheckError::Issuer { uri: uri.clone(), certificate: first.uri.clone() })
        }
        _ => Ok(()),
    }
}

/// RFC 6488, section 3, steps 1.c and 2: the certificate is the signer's, the attributes have the digest of the content, and its key has
/// signed them.
fn is_signed_by_its_certificate(object: &SignedObject, bytes: &Bytes) -> bool {
    let decoded = Mode::Der.decode(bytes.clone(), |cons| {
        cons.take_sequence(|cons| {
            oid::SIGNED_DATA.skip_if(cons)?;
            cons.take_constructed_if(Tag::CTX_0, |cons| cons.take_sequence(take_signer))
        })
    });
    let Ok(signer) = decoded else { return false };
    let digest = object.digest_algorithm().digest(&object.content().to_bytes());
    let (signed, contained): (&[u8], &[u8]) = (signer.digest.as_ref(), digest.as_ref());
    let key = object.cert().subject_public_key_info();
    signer.key == object.cert().subject_key_identifier()
        && signed == contained
        && key.verify(&signer.attributes.encode_verify(), &signer.signature).is_ok()
}

/// What a signed object's signer says (RFC 5652, section 5.3), which `rpki` keeps to itself.
struct Signer {
    key: KeyIdentifier,
    attributes: SignedAttrs,
    digest: MessageDigest,
    signature: RpkiSignature,
}

/// The signer of a SignedData, whose form [`SignedObject::decode`] has checked.
fn take_signer<S: Source>(cons: &mut Constructed<S>) -> Result<Signer, DecodeError<S::Error>> {
    cons.skip_u8_if(3)?;
    DigestAlgorithm::take_set_from(cons)?;
    // The content, and the certificate.
    cons.skip_one()?;
    cons.skip_one()?;
    cons.take_set(|cons| {
        cons.take_sequence(|cons| {
            cons.skip_u8_if(3)?;
            let key = cons.take_value_if(Tag::CTX_0, KeyIdentifier::from_content)?;
            DigestAlgorithm::take_from(cons)?;
            let (attributes, digest, _, _) = SignedAttrs::take_from(cons)?;
            let algorithm = RpkiSignatureAlgorithm::cms_take_from(cons)?;
            let signature = RpkiSignature::new(algorithm, OctetString::take_from(cons)?.into_bytes());
            Ok(Signer { key, attributes, digest, signature })
        })
    })
}
