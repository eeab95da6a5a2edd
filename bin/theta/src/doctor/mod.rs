//! `theta doctor`: what is wrong with a group, and what to do about it.

mod differences;
mod keys;
mod nodes;

use clap::Args;
use serde::Serialize;
use theta_names::WallTime;
use theta_wire::v1;

use self::{
    differences::{clocks_apart, cut_off, differing},
    keys::of_keys,
    nodes::{absent, of_host, of_one},
};
use crate::{
    connect::ClientArgs,
    culprits,
    exit::{self, Failure},
    output::{BAD, GOOD, Output},
};

/// Options of `theta doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta doctor
  theta doctor --json | jq -r '.findings[] | .kind + \": \" + .finding'

Asks every node how it is and which keys it has, and compares what they say: nodes that are down or refuse this client, policies \
and releases that differ, keys whose versions, states or epochs differ, lost shares, stores that peers have not confirmed, \
certificates near their end, hosts that are away or slow, clocks apart (corrected by half of the round trip), disks that are full, peers that do not reach \
each other, nodes that were caught. Each finding says what to do. It takes the permissions status and keys.list.

Exit code 0 if nothing was found, 1 if something was, 3 if fewer nodes answer than it takes to decrypt, sign or draw.")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    client: ClientArgs,
}

/// Something that is wrong.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Finding {
    /// A name for programs, which never changes.
    kind: &'static str,
    nodes: Vec<u16>,
    finding: String,
    advice: String,
}

impl Finding {
    fn new(kind: &'static str, nodes: Vec<u16>, finding: impl Into<String>, advice: impl Into<String>) -> Self {
        let advice = crate::terminal::pasted::pasteable(&advice.into());
        Self { kind, nodes, finding: finding.into(), advice }
    }
}

#[derive(Serialize)]
struct Report {
    healthy: bool,
    group: String,
    asked: usize,
    answered: usize,
    findings: Vec<Finding>,
    nodes: Vec<NodeView>,
}

/// What a node that answers says of itself.
#[derive(Serialize)]
struct NodeView {
    node: u16,
    version: String,
    policy: String,
    clock_offset_ms: i64,
    disk_free: Option<u64>,
    store_bytes: Option<u64>,
    certificate_ends: Option<u64>,
    audit_records: Option<u64>,
}

/// A node that answers.
struct Patient<'a> {
    node: u16,
    status: &'a v1::GetStatusResponse,
    /// By how much its clock is ahead of this one, in milliseconds.
    offset: i64,
}

impl Patient<'_> {
    fn view(&self) -> NodeView {
        let disk = self.status.disk.as_ref();
        NodeView {
            node: self.node,
            version: exit::tidy(&self.status.version),
            policy: hex::encode(&self.status.policy),
            clock_offset_ms: self.offset,
            disk_free: disk.filter(|disk| !disk.unknown).map(|disk| disk.free),
            store_bytes: disk.map(|disk| disk.store_bytes),
            certificate_ends: Some(self.status.certificate_ends).filter(|ends| *ends > 0),
            audit_records: self.status.audit.as_ref().map(|audit| audit.next),
        }
    }
}

/// `theta doctor`.
pub(crate) fn doctor(args: &DoctorArgs, output: Output) -> Result<(), Failure> {
    let session = args.client.open()?;
    let client = session.client();
    let (statuses, (keys, key_problems)) =
        session.block_on(async { (client.status().await, client.list_keys().await) });
    let patients: Vec<Patient<'_>> = statuses
        .iter()
        .filter_map(|status| {
            let (answer, _) = status.status.as_ref().ok()?;
            Some(Patient { node: status.node.get(), status: answer, offset: status.clock_offset_ms })
        })
        .collect();
    let mut findings = absent(&statuses);
    findings.extend(differing(&patients));
    findings.extend(patients.iter().flat_map(|patient| of_one(patient, WallTime::now().seconds())));
    findings.extend(patients.iter().filter_map(of_host));
    findings.extend(clocks_apart(&patients));
    findings.extend(cut_off(&patients));
    findings.extend(of_keys(&keys, &key_problems, &patients));
    findings.extend(culprits::of_statuses(&statuses).into_iter().map(|caught| {
        let (kind, advice) = if caught.disputed {
            (
                "agents-differ",
                "compare what both operators' agents go by: one copy is behind or wrong, one operator in other hands, or a client \
                 has asked the two for different things (`theta audit show`)",
            )
        } else {
            ("caught", "find out why: is it broken, of an old release, or in other hands?")
        };
        Finding::new(kind, vec![caught.node], caught.to_string(), advice)
    }));
    let (group, threshold) = (client.group().name().to_owned(), usize::from(client.group().threshold()));
    let (asked, answered) = (statuses.len(), patients.len());
    let nodes = patients.iter().map(Patient::view).collect();
    let report = Report { healthy: findings.is_empty(), group, asked, answered, findings, nodes };
    output.result(&report, |out| {
        for Finding { finding, advice, .. } in &report.findings {
            writeln!(out, "{BAD}{finding}{BAD:#}")?;
            writeln!(out, "  {advice}")?;
        }
        if report.healthy {
            writeln!(
                out,
                "{GOOD}ok{GOOD:#} {answered} of {asked} nodes answer, and nothing is wrong that they can tell"
            )?;
        }
        Ok(())
    })?;
    match report.findings.len() {
        _ if answered < threshold => Err(Failure::NoAnswer(format!(
            "only {answered} of {asked} nodes answer and it takes {threshold}: what is said above is of those alone"
        ))),
        0 => Ok(()),
        1 => Err(Failure::Failed("one thing is wrong, as said above".to_owned())),
        many => Err(Failure::Failed(format!("{many} things are wrong, as said above"))),
    }
}
