//! Whether relying parties that begin with a locator (RFC 8630) come to the trust anchor of the registry's data.

use std::path::Path;

use rpki::repository::tal::{Tal, TalUri};
use theta_rpki::registry::{Authority, Registry};

use super::{files, known::Wrong};

/// What is wrong with a locator: each thing by itself.
pub(super) fn check(path: &Path, registry: &Registry) -> Vec<Wrong> {
    let reasons = match files::read(path) {
        Ok(text) => mismatches(&text, registry),
        Err(error) => vec![error.to_string()],
    };
    let file = path.display().to_string();
    reasons.into_iter().map(|reason| Wrong { file: file.clone(), reason }).collect()
}

fn mismatches(text: &str, registry: &Registry) -> Vec<String> {
    let tal = match Tal::read_named(String::new(), &mut text.as_bytes()) {
        Ok(tal) => tal,
        Err(error) => {
            return vec![format!(
                "it is no trust anchor locator, which has addresses, an empty line, and a public key in base64: {error}"
            )];
        }
    };
    let of_key = registry.authorities.iter().find(|authority| authority.public == *tal.key_info());
    match of_key {
        Some(anchor) if anchor.parent.is_none() => tal.uris().filter_map(|uri| elsewhere(uri, anchor)).collect(),
        Some(Authority { name, .. }) => vec![format!(
            "its key is that of the authority {name}, which is no trust anchor: relying parties would take nothing that is above it or beside it"
        )],
        None => vec![
            "its key is that of no trust anchor of the registry's data: relying parties that begin with it take nothing that is signed here"
                .to_owned(),
        ],
    }
}

/// What is said of an address at which the anchor's certificate is not published. The data say where it is for rsync alone: where a web server shows it is
/// known to nobody here.
fn elsewhere(uri: &TalUri, anchor: &Authority) -> Option<String> {
    let Authority { name, certificate, .. } = anchor;
    let is_elsewhere = uri.is_rsync() && uri.as_str() != certificate.as_str();
    is_elsewhere.then(|| {
        format!("it leads to {uri}, and the certificate of {name} is published at {certificate}", uri = uri.as_str())
    })
}
