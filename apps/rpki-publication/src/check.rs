//! Whether the objects of a repository fit together. Relying parties drop a whole publication point whose manifest does not match what is
//! published (RFC 9286, section 6.5), so what does not fit is not published.
//!
//! Signatures and resources are not looked at: the issuer has seen to them, and relying parties do.

use std::{collections::BTreeMap, time::SystemTime};

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

use crate::objects::{Object, Objects};

/// Why objects are not published.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// There are no objects at all.
    #[error("the folder has no objects; to take a repository away, end its publication")]
    Empty,
    /// An object cannot be parsed.
    #[error("{uri} cannot be read: {reason}")]
    Unparseable {
        /// The object.
        uri: Rsync,
        /// What the parser says.
        reason: String,
    },
    /// The ending of a name says nothing about what the object is.
    #[error("{uri}: its name ends in none of .mft, .crl, .cer, .roa, .asa, .gbr, .tak and .spl")]
    Kind {
        /// The object.
        uri: Rsync,
    },
    /// A manifest lists what is not there.
    #[error("{manifest} lists {file}, which is not in the folder")]
    Missing {
        /// The manifest.
        manifest: Rsync,
        /// The name on it.
        file: String,
    },
    /// An object is not the one that the manifest lists.
    #[error("{uri} has another hash than {manifest} lists")]
    Hash {
        /// The manifest.
        manifest: Rsync,
        /// The object.
        uri: Rsync,
    },
    /// An object is on no manifest, and no certificate of a trust anchor.
    #[error("{uri} is on no manifest")]
    Unlisted {
        /// The object.
        uri: Rsync,
    },
    /// An object is listed twice.
    #[error("{uri} is listed twice, by {first} and by {second}; each object is on one manifest, once")]
    Twice {
        /// The object.
        uri: Rsync,
        /// The URI of one manifest.
        first: String,
        /// That of the other one, or the same.
        second: String,
    },
    /// A manifest does not list exactly one CRL.
    #[error("{manifest} lists {count} CRLs; it would be one (RFC 9286)")]
    Crls {
        /// The manifest.
        manifest: Rsync,
        /// How many it lists.
        count: usize,
    },
    /// A manifest or CRL is not current.
    #[error("{uri} is for {} to {}; it is not current", .from.to_rfc3339(), .until.to_rfc3339())]
    NotCurrent {
        /// The manifest or CRL.
        uri: Rsync,
        /// Its thisUpdate.
        from: Time,
        /// The earlier of its nextUpdate and the end of its certificate.
        until: Time,
    },
    /// A manifest or CRL is older than the one that is published, or has its number.
    #[error(
        "{uri} has the number {offered}, and another one with {published} is published; numbers go up with every change"
    )]
    Older {
        /// The manifest or CRL.
        uri: Rsync,
        /// The number that is published.
        published: Serial,
        /// The number in the folder.
        offered: Serial,
    },
}

/// A manifest or a CRL: the part that counts and ages.
#[derive(Clone, Debug)]
pub struct Dated {
    /// Where it is.
    pub uri: Rsync,
    /// manifestNumber or cRLNumber.
    pub number: Serial,
    /// thisUpdate.
    pub from: Time,
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
}

/// The publication points of objects that fit together, current or not: every object can be parsed and is on one manifest, with its hash.
///
/// # Errors
///
/// The first thing that does not fit.
pub fn points(objects: &Objects) -> Result<Vec<Point>, CheckError> {
    if objects.is_empty() {
        return Err(CheckError::Empty);
    }
    let mut listed = BTreeMap::new();
    let mut points = Vec::new();
    for object in objects.iter() {
        if let Parsed::Manifest(manifest) = parse(object)? {
            points.push(point(objects, object, &manifest, &mut listed)?);
        }
    }
    for object in objects.iter() {
        let alone = match parse(object)? {
            Parsed::Manifest(_) => true,
            Parsed::Certificate(certificate) => certificate.is_self_signed(),
            Parsed::Crl(_) | Parsed::Other => false,
        };
        if !alone && !listed.contains_key(object.uri.as_str()) {
            return Err(CheckError::Unlisted { uri: object.uri.clone() });
        }
    }
    Ok(points)
}

/// Checks that objects can be published now, after `published`, and returns their publication points.
///
/// # Errors
///
/// The first reason why they cannot.
pub fn check(objects: &Objects, published: Option<&Objects>, now: SystemTime) -> Result<Vec<Point>, CheckError> {
    let now = Time::from(now);
    let points = points(objects)?;
    for dated in points.iter().flat_map(|point| [&point.manifest, &point.crl]) {
        if now < dated.from || dated.until < now {
            return Err(CheckError::NotCurrent { uri: dated.uri.clone(), from: dated.from, until: dated.until });
        }
        let Some(before) = published.and_then(|published| published.get(&dated.uri)) else { continue };
        let unchanged = objects.get(&dated.uri).is_some_and(|object| object.bytes == before.bytes);
        let number = match parse(before)? {
            Parsed::Manifest(manifest) => manifest.manifest_number(),
            Parsed::Crl(crl) => crl.crl_number(),
            Parsed::Certificate(_) | Parsed::Other => continue,
        };
        if !unchanged && dated.number <= number {
            return Err(CheckError::Older { uri: dated.uri.clone(), published: number, offered: dated.number });
        }
    }
    Ok(points)
}

enum Parsed {
    Manifest(Box<Manifest>),
    Crl(Box<Crl>),
    Certificate(Box<Cert>),
    Other,
}

fn parse(object: &Object) -> Result<Parsed, CheckError> {
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
    let mut crls = Vec::new();
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
        if let Parsed::Crl(crl) = parse(found)? {
            crls.push(Dated { uri, number: crl.crl_number(), from: crl.this_update(), until: crl.next_update() });
        }
    }
    let count = crls.len();
    let Some(crl) = crls.pop().filter(|_| count == 1) else {
        return Err(CheckError::Crls { manifest: object.uri.clone(), count });
    };
    let until = manifest.next_update().min(manifest.cert().validity().not_after());
    let (number, from) = (manifest.manifest_number(), manifest.this_update());
    Ok(Point { manifest: Dated { uri: object.uri.clone(), number, from, until }, crl })
}
