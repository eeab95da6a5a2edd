//! Whether the objects of a repository fit together, and follow those that are published. Relying parties drop a whole publication point whose
//! manifest does not match what is published (RFC 9286, section 6.5), so what does not fit is not published.
//!
//! What one authority neglects does not stop the others: a point that is as it was published is published on, even if it is not current any
//! more, and is warned of. Resources and revocations are not looked at: the issuer has seen to them, and relying parties do.

mod error;
mod point;
mod signatures;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::SystemTime,
};

use rpki::{repository::x509::Time, uri::Rsync};

use self::point::{Authority, Parsed, Repository, parse, repository};
pub use self::{
    error::CheckError,
    point::{Dated, Point, points},
};
use crate::objects::Objects;

/// Objects that can be published.
#[derive(Debug)]
pub struct Checked {
    /// Their publication points.
    pub points: Vec<Point>,
    /// What is wrong with them and was so when they were published, or came about since by time alone.
    pub warnings: Vec<CheckError>,
}

/// Checks that objects can be published now, after `published`. The manifests of `without` may be missing although a certificate names them.
///
/// # Errors
///
/// The first reason why they cannot.
pub fn check(
    objects: &Objects,
    published: Option<&Objects>,
    without: &[Rsync],
    now: SystemTime,
) -> Result<Checked, CheckError> {
    let now = Time::from(now);
    let Repository { points, authorities } = repository(objects)?;
    let bytes = |of: &Objects, uri: &Rsync| of.get(uri).map(|object| object.bytes.clone());
    let differs = |uri: &Rsync| published.and_then(|published| bytes(published, uri)) != bytes(objects, uri);
    let mut issuers: BTreeMap<&str, Vec<&Authority>> = BTreeMap::new();
    for authority in &authorities {
        issuers.entry(authority.manifest.as_str()).or_default().push(authority);
    }
    if let Some(anchor) =
        authorities.iter().find(|authority| differs(&authority.uri) && !is_valid_anchor(authority, now))
    {
        let validity = anchor.certificate.validity();
        let (from, until) = (validity.not_before(), validity.not_after());
        return Err(CheckError::NotCurrent { uri: anchor.uri.clone(), from, until });
    }
    let mut warnings = Vec::new();
    for point in &points {
        // A manifest has the hashes of all that it lists: as long as it is the same, they are.
        let changed = differs(&point.manifest.uri);
        match current(point, now) {
            Err(fault) if changed => return Err(fault),
            Err(fault) => warnings.push(fault),
            Ok(()) => {}
        }
        if let Some(published) = published.filter(|_| changed) {
            follows(point, published, differs(&point.crl.uri))?;
        }
        let issuers = issuers.get(point.manifest.uri.as_str()).map(Vec::as_slice).unwrap_or_default();
        if changed || issuers.iter().any(|issuer| differs(&issuer.uri)) {
            signatures::check(objects, point, issuers)?;
        }
    }
    warnings.extend(missing(objects, &authorities, published, without, now)?);
    Ok(Checked { points, warnings })
}

/// Whether an authority's certificate, if it is a trust anchor's own, is valid now. It is on no manifest, so nothing else says whether relying parties take it; and
/// without it they take nothing that is below it.
fn is_valid_anchor(authority: &Authority, now: Time) -> bool {
    let validity = authority.certificate.validity();
    !authority.certificate.is_self_signed() || (validity.not_before() <= now && now <= validity.not_after())
}

fn current(point: &Point, now: Time) -> Result<(), CheckError> {
    let dated = [&point.manifest, &point.crl].into_iter().find(|dated| now < dated.begins || dated.until < now);
    dated.map_or(Ok(()), |dated| {
        Err(CheckError::NotCurrent { uri: dated.uri.clone(), from: dated.begins, until: dated.until })
    })
}

/// Checks that a manifest that has changed, and its CRL if that has changed, come after the published ones: relying parties keep the manifest
/// that they have if the next one has no higher number or no later time of issue. A published one that cannot be read any more says nothing.
fn follows(point: &Point, published: &Objects, crl_changed: bool) -> Result<(), CheckError> {
    let older =
        |dated: &Dated, number| CheckError::Older { uri: dated.uri.clone(), published: number, offered: dated.number };
    let (manifest, crl) = (&point.manifest, &point.crl);
    if let Some(Ok(Parsed::Manifest(before))) = published.get(&manifest.uri).map(parse) {
        if manifest.number <= before.manifest_number() {
            return Err(older(manifest, before.manifest_number()));
        }
        if manifest.from <= before.this_update() {
            let (published, offered) = (before.this_update(), manifest.from);
            return Err(CheckError::NotLater { uri: manifest.uri.clone(), published, offered });
        }
    }
    match published.get(&crl.uri).map(parse) {
        Some(Ok(Parsed::Crl(before))) if crl_changed && crl.number <= before.crl_number() => {
            Err(older(crl, before.crl_number()))
        }
        _ => Ok(()),
    }
}

/// Warnings of points that were missing before as well. A point belongs into the folder if objects of its module are there: a reader of that
/// module finds nothing else. Authorities whose certificates have ended have nothing to publish.
///
/// # Errors
///
/// The first point that is missing, and was not.
fn missing(
    objects: &Objects,
    authorities: &[Authority],
    published: Option<&Objects>,
    without: &[Rsync],
    now: Time,
) -> Result<Vec<CheckError>, CheckError> {
    let modules: BTreeSet<&str> = objects.iter().map(|object| object.uri.module()).collect();
    let absent = authorities.iter().filter(|authority| {
        let manifest = &authority.manifest;
        objects.get(manifest).is_none()
            && modules.contains(manifest.module())
            && now <= authority.certificate.validity().not_after()
    });
    let absent: Vec<&Authority> = absent.collect();
    if absent.is_empty() {
        return Ok(Vec::new());
    }
    let before = published.map(missing_before).unwrap_or_default();
    let (known, new): (Vec<_>, Vec<_>) = absent
        .into_iter()
        .partition(|authority| without.contains(&authority.manifest) || before.contains(authority.manifest.as_str()));
    let fault = |authority: &Authority| CheckError::MissingPoint {
        certificate: authority.uri.clone(),
        manifest: authority.manifest.clone(),
    };
    match new.first() {
        Some(authority) => Err(fault(authority)),
        None => Ok(known.into_iter().map(fault).collect()),
    }
}

/// The manifests that published certificates name, and that are not published.
fn missing_before(published: &Objects) -> BTreeSet<String> {
    let named = published.iter().filter_map(|object| match parse(object) {
        Ok(Parsed::Certificate(certificate)) => certificate.rpki_manifest().cloned(),
        _ => None,
    });
    named.filter(|manifest| published.get(manifest).is_none()).map(|manifest| manifest.to_string()).collect()
}
