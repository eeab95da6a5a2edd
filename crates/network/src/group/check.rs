//! From text to a checked [`GroupFile`].

use core::{ops::Range, str::FromStr as _};
use std::collections::HashSet;

use serde::Deserialize;
use theta_names::{Address, AddressError, NodeId, NodeName};
use toml::Spanned;

use super::{CeremonyKey, GroupClient, GroupFile, GroupNode, GroupProblem};
use crate::Fingerprint;

/// A problem, and where it is, in byte offsets.
type Fault = (Option<Range<usize>>, GroupProblem);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGroup {
    name: Spanned<String>,
    threshold: Spanned<i64>,
    founding: Option<String>,
    members_at: Option<u64>,
    #[serde(default)]
    node: Vec<RawNode>,
    #[serde(default)]
    client: Vec<RawClient>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNode {
    id: Spanned<i64>,
    name: Option<Spanned<String>>,
    peer_address: Spanned<String>,
    api_address: Spanned<String>,
    certificate: Spanned<String>,
    ceremony_key: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClient {
    name: Spanned<String>,
    certificate: Spanned<String>,
}

pub(super) fn parse(text: &str) -> Result<GroupFile, Fault> {
    let raw: RawGroup = toml::from_str(text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        (error.span(), GroupProblem::Syntax(message))
    })?;
    let mut seen = Seen::default();
    let name = check_name(raw.name)?;
    let n = match u16::try_from(raw.node.len()) {
        Ok(0) => return Err((None, GroupProblem::NoNodes)),
        Ok(n) => n,
        Err(_) => return Err((None, GroupProblem::TooManyNodes(raw.node.len()))),
    };
    let threshold = in_range(&raw.threshold, n, |k| GroupProblem::Threshold { k, n })?;
    // As long as nobody has left, the ids are n different numbers between 1 and n, so all of them are there.
    let last = if raw.members_at.is_some() { u16::MAX } else { n };
    let mut nodes = raw.node.into_iter().map(|node| seen.node(node, last)).collect::<Result<Vec<_>, _>>()?;
    nodes.sort_unstable_by_key(|node| node.id);
    let clients = raw.client.into_iter().map(|client| seen.client(client)).collect::<Result<_, _>>()?;
    let (founding, members_at) = (raw.founding, raw.members_at);
    Ok(GroupFile { name, threshold, founding, members_at, nodes, clients })
}

/// Values that must not occur twice.
#[derive(Default)]
struct Seen {
    ids: HashSet<u16>,
    addresses: HashSet<Address>,
    certificates: HashSet<Fingerprint>,
    ceremony_keys: HashSet<CeremonyKey>,
    clients: HashSet<String>,
    nodes: HashSet<String>,
}

impl Seen {
    fn node(&mut self, raw: RawNode, n: u16) -> Result<GroupNode, Fault> {
        let out_of_range = |id| GroupProblem::NodeId { id, n };
        let number = in_range(&raw.id, n, out_of_range)?;
        let id = NodeId::try_from(number).map_err(|_| (Some(raw.id.span()), out_of_range(number.into())))?;
        if !self.ids.insert(number) {
            return Err((Some(raw.id.span()), GroupProblem::DuplicateId(number)));
        }
        Ok(GroupNode {
            id,
            name: raw.name.map(|name| self.node_name(&name)).transpose()?,
            peer_address: self.address(raw.peer_address)?,
            api_address: self.address(raw.api_address)?,
            certificate: self.certificate(&raw.certificate)?,
            ceremony_key: raw.ceremony_key.map(|key| self.ceremony_key(&key)).transpose()?,
        })
    }

    fn client(&mut self, raw: RawClient) -> Result<GroupClient, Fault> {
        let span = raw.name.span();
        let name = check_name(raw.name)?;
        if !self.clients.insert(name.clone()) {
            return Err((Some(span), GroupProblem::DuplicateClient(name)));
        }
        Ok(GroupClient { name, certificate: self.certificate(&raw.certificate)? })
    }

    fn node_name(&mut self, raw: &Spanned<String>) -> Result<NodeName, Fault> {
        let span = raw.span();
        let name: NodeName =
            raw.get_ref().parse().map_err(|error| (Some(span.clone()), GroupProblem::NodeName(error)))?;
        if self.nodes.insert(name.folded()) {
            return Ok(name);
        }
        Err((Some(span), GroupProblem::DuplicateName(name.to_string())))
    }

    fn address(&mut self, raw: Spanned<String>) -> Result<String, Fault> {
        let span = raw.span();
        let address = raw.into_inner();
        let canonical = match Address::from_str(&address) {
            Ok(canonical) => canonical,
            Err(AddressError(reason)) => return Err((Some(span), GroupProblem::Address { address, reason })),
        };
        if !self.addresses.insert(canonical) {
            return Err((Some(span), GroupProblem::DuplicateAddress(address)));
        }
        Ok(address)
    }

    fn certificate(&mut self, raw: &Spanned<String>) -> Result<Fingerprint, Fault> {
        let fault = |problem| Err((Some(raw.span()), problem));
        let Ok(certificate) = raw.get_ref().parse() else {
            return fault(GroupProblem::Certificate(raw.get_ref().clone()));
        };
        if !self.certificates.insert(certificate) {
            return fault(GroupProblem::DuplicateCertificate(certificate.to_string()));
        }
        Ok(certificate)
    }

    fn ceremony_key(&mut self, raw: &Spanned<String>) -> Result<CeremonyKey, Fault> {
        let fault = |problem| Err((Some(raw.span()), problem));
        let Ok(key) = raw.get_ref().parse() else {
            return fault(GroupProblem::CeremonyKey(raw.get_ref().clone()));
        };
        if !self.ceremony_keys.insert(key) {
            return fault(GroupProblem::DuplicateCeremonyKey(key));
        }
        Ok(key)
    }
}

fn in_range(raw: &Spanned<i64>, n: u16, problem: impl FnOnce(i64) -> GroupProblem) -> Result<u16, Fault> {
    let value = *raw.get_ref();
    u16::try_from(value)
        .ok()
        .filter(|number| (1..=n).contains(number))
        .ok_or_else(|| (Some(raw.span()), problem(value)))
}

fn check_name(raw: Spanned<String>) -> Result<String, Fault> {
    let span = raw.span();
    let name = raw.into_inner();
    let allowed = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if allowed && begins && name.len() <= 64 { Ok(name) } else { Err((Some(span), GroupProblem::Name(name))) }
}
