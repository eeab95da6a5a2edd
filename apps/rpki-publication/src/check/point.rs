//! What is in a folder of objects: publication points, and the certificates of those who have them.

use std::collections::BTreeMap;

use bytes::Bytes;
use rpki::{
    repository::{
        Cert, Crl, Manifest, Roa,
        aspa::Aspa,
        manifest::ManifestHash,
        sigobj::SignedObject,
        x509::{Serial, Time},
    },
    uri::Rsync,
};

use super::error::CheckError;
use crate::objects::{Object, Objects};

/// A manifest or a CRL: the part that counts and ages.
#[derive(Clone, Debug)]
pub struct Dated {
    /// Where it is.
    pub uri: Rsync,
    /// manifestNumber or cRLNumber.
    pub number: Serial,
    /// thisUpdate.
    pub from: Time,
    /// From when on relying parties take it: thisUpdate, or the beginning of the manifest's own certificate if that is later.
    pub begins: Time,
    /// nextUpdate, or the end of the manifest's own certificate if that is earlier.
    pub until: Time,
}

/// The objects of one authority.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its manifest.
    pub manifest: Dated,
    /// Its CRL, which the manifest lists.
    pub crl: Dated,
    /// All that the manifest lists, with the CRL.
    pub listed: Vec<Rsync>,
}

/// An authority with a certificate in the folder.
pub(super) struct Authority {
    /// Where its certificate is.
    pub(super) uri: Rsync,
    pub(super) certificate: Cert,
    /// Where its manifest is, here or elsewhere (RFC 6487, section 4.8.8.1).
    pub(super) manifest: Rsync,
}

impl Authority {
    /// `None` for certificates of others than authorities: of routers, which have no manifest.
    fn of(uri: &Rsync, certificate: Cert) -> Option<Self> {
        let manifest = certificate.rpki_manifest()?.clone();
        Some(Self { uri: uri.clone(), certificate, manifest })
    }
}

/// Objects that fit together.
pub(super) struct Repository {
    pub(super) points: Vec<Point>,
    pub(super) authorities: Vec<Authority>,
}

/// The publication points of objects that fit together, current or not: every object can be parsed and is on one manifest, with its hash.
///
/// # Errors
///
/// The first thing that does not fit.
pub fn points(objects: &Objects) -> Result<Vec<Point>, CheckError> {
    Ok(repository(objects)?.points)
}

pub(super) fn repository(objects: &Objects) -> Result<Repository, CheckError> {
    if objects.is_empty() {
        return Err(CheckError::Empty);
    }
    let (mut points, mut authorities) = (Vec::new(), Vec::new());
    let (mut listed, mut to_be_listed) = (BTreeMap::new(), Vec::new());
    for object in objects.iter() {
        match parse(object)? {
            Parsed::Manifest(manifest) => points.push(point(objects, object, &manifest, &mut listed)?),
            Parsed::Certificate(certificate) => {
                if !certificate.is_self_signed() {
                    to_be_listed.push(&object.uri);
                }
                authorities.extend(Authority::of(&object.uri, *certificate));
            }
            Parsed::Crl(_) | Parsed::Other => to_be_listed.push(&object.uri),
        }
    }
    if let Some(uri) = to_be_listed.into_iter().find(|uri| !listed.contains_key(uri.as_str())) {
        return Err(CheckError::Unlisted { uri: uri.clone() });
    }
    Ok(Repository { points, authorities })
}

pub(super) enum Parsed {
    Manifest(Box<Manifest>),
    Crl(Box<Crl>),
    Certificate(Box<Cert>),
    Other,
}

pub(super) fn parse(object: &Object) -> Result<Parsed, CheckError> {
    let bytes: Bytes = object.bytes.clone();
    let ending = object.uri.path().rsplit_once('.').map(|(_, ending)| ending);
    let parsed = match ending {
        Some("mft") => Manifest::decode(bytes, true).map(|manifest| Parsed::Manifest(Box::new(manifest))),
        Some("crl") => Crl::decode(bytes).map(|crl| Parsed::Crl(Box::new(crl))),
        Some("cer") => Cert::decode(bytes).map(|certificate| Parsed::Certificate(Box::new(certificate))),
        Some("roa") => Roa::decode(bytes, true).map(|_| Parsed::Other),
        Some("asa") => Aspa::decode(bytes, true).map(|_| Parsed::Other),
        Some("gbr" | "tak" | "spl") => SignedObject::decode(bytes, true).map(|_| Parsed::Other),
        _ => return Err(CheckError::Kind { uri: object.uri.clone() }),
    };
    parsed.map_err(|error| CheckError::Unparseable { uri: object.uri.clone(), reason: error.to_string() })
}

/// What one manifest lists, by URI, goes into `listed`, with the manifest's own URI.
fn point(
    objects: &Objects,
    object: &Object,
    manifest: &Manifest,
    listed: &mut BTreeMap<String, String>,
) -> Result<Point, CheckError> {
    let missing = |file: &[u8]| CheckError::Missing {
        manifest: object.uri.clone(),
        file: String::from_utf8_lossy(file).into_owned(),
    };
    let (mut crls, mut here) = (Vec::new(), Vec::new());
    for entry in manifest.content().iter() {
        let (file, hash) = entry.into_pair();
        let uri = object.uri.parent().and_then(|folder| folder.join(&file).ok()).ok_or_else(|| missing(&file))?;
        let found = objects.get(&uri).ok_or_else(|| missing(&file))?;
        let hash = ManifestHash::new(hash, manifest.file_hash_alg());
        if hash.verify(&found.bytes).is_err() {
            return Err(CheckError::Hash { manifest: object.uri.clone(), uri });
        }
        if let Some(first) = listed.insert(uri.as_str().to_owned(), object.uri.to_string()) {
            return Err(CheckError::Twice { uri, first, second: object.uri.to_string() });
        }
        here.push(uri.clone());
        if let Parsed::Crl(crl) = parse(found)? {
            let (number, from, until) = (crl.crl_number(), crl.this_update(), crl.next_update());
            crls.push(Dated { uri, number, from, begins: from, until });
        }
    }
    let count = crls.len();
    let Some(crl) = crls.pop().filter(|_| count == 1) else {
        return Err(CheckError::Crls { manifest: object.uri.clone(), count });
    };
    let own = manifest.cert().validity();
    let (number, from) = (manifest.manifest_number(), manifest.this_update());
    let (begins, until) = (from.max(own.not_before()), manifest.next_update().min(own.not_after()));
    let manifest = Dated { uri: object.uri.clone(), number, from, begins, until };
    Ok(Point { manifest, crl, listed: here })
}
