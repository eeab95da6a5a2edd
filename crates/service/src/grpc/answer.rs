//! Converts results of the crates below into messages.

use bytes::Bytes;
use theta_custody::{CeremonyReport, CeremonyState, EvidenceReport};
use theta_names::NodeId;
use theta_network::{HostStatus, PeerState, PeerStatus};
use theta_orchestration::{
    Culprit, Finished, InstanceId, InstanceSnapshot, InstanceState, KeyEntry, NodeOffence, Quarantine, Stock,
};
use theta_wire::v1;

pub(crate) fn id(id: InstanceId) -> Bytes {
    Bytes::copy_from_slice(&id.0)
}

/// An outcome whose result is the instance's own.
pub(crate) fn whole_outcome(finished: &Finished) -> v1::Outcome {
    outcome(finished, Bytes::copy_from_slice(finished.result.expose()))
}

/// An outcome with a result made from the instance's, such as a plaintext.
pub(crate) fn outcome(finished: &Finished, result: Bytes) -> v1::Outcome {
    v1::Outcome {
        result,
        proof: Bytes::copy_from_slice(&finished.proof),
        contributors: finished.contributors.iter().map(|party| u32::from(party.get())).collect(),
        // The instance is clear from the context.
        culprits: finished
            .culprits
            .iter()
            .map(|found| v1::Culprit { instance_id: Bytes::new(), ..culprit(found) })
            .collect(),
    }
}

pub(crate) fn host(host: HostStatus) -> v1::HostStanding {
    v1::HostStanding {
        address: host.address,
        away: host.away.unwrap_or_default(),
        waiting_frames: u64::try_from(host.waiting).unwrap_or(u64::MAX),
        stalled_ms: u64::try_from(host.stalled.as_millis()).unwrap_or(u64::MAX),
    }
}

pub(crate) fn culprit(culprit: &Culprit) -> v1::Culprit {
    v1::Culprit {
        node: u32::from(culprit.party.get()),
        misbehaviour: culprit.offence.to_string(),
        instance_id: id(culprit.instance),
        disputed: culprit.offence == NodeOffence::Consent,
    }
}

pub(crate) fn status(instance: InstanceId, snapshot: &InstanceSnapshot) -> v1::InstanceStatus {
    let (state, outcome, failure) = match &snapshot.state {
        InstanceState::Running => (v1::InstanceState::Running, None, String::new()),
        InstanceState::Finished(finished) => {
            (v1::InstanceState::Finished, Some(whole_outcome(finished)), String::new())
        }
        InstanceState::Failed(reason) => (v1::InstanceState::Failed, None, reason.clone()),
    };
    v1::InstanceStatus {
        instance_id: id(instance),
        state: state.into(),
        outcome,
        failure,
        shares: u32::try_from(snapshot.shares).unwrap_or(u32::MAX),
        shares_needed: u32::try_from(snapshot.needed).unwrap_or(u32::MAX),
        operation: snapshot.operation.to_owned(),
        key: snapshot.key.clone(),
    }
}

/// A set of holders with which this node computes no more.
fn quarantine(quarantine: Quarantine) -> v1::Quarantine {
    let number = |node: NodeId| u32::from(node.get());
    v1::Quarantine {
        nodes: quarantine.nodes.into_iter().map(number).collect(),
        phase: quarantine.phase,
        culprit: quarantine.culprit.map_or(0, number),
    }
}

pub(crate) fn key_info(entry: &KeyEntry, stock: Option<Stock>, quarantined: Vec<Quarantine>) -> v1::KeyInfo {
    let (suite, threshold) = (entry.suite, entry.public.threshold());
    v1::KeyInfo {
        name: entry.name.to_string(),
        suite: suite.name().to_owned(),
        delivery: entry.delivery.name().to_owned(),
        scheme: suite.scheme().to_owned(),
        group: suite.group().to_owned(),
        purpose: suite.purpose().name().to_owned(),
        threshold: u32::from(threshold.k()),
        nodes: u32::from(threshold.n()),
        key_id: Bytes::copy_from_slice(entry.key_id.as_bytes()),
        public_key: Bytes::copy_from_slice(entry.public.public_key_bytes()),
        version: entry.version.get(),
        epoch: entry.epoch.wide(),
        state: entry.state.name().to_owned(),
        holders: entry.holders.iter().map(|node| u32::from(node.get())).collect(),
        primary: entry.primary,
        held: entry.has_share(),
        generation: entry.generation,
        frozen: entry.frozen,
        stock: stock.map(|Stock { kind, ready, level }| v1::Stock {
            kind: kind.to_owned(),
            ready: u64::try_from(ready).unwrap_or(u64::MAX),
            level: u64::try_from(level).unwrap_or(u64::MAX),
        }),
        quarantined: quarantined.into_iter().map(quarantine).collect(),
    }
}

/// Bytes of evidence in one answer: half of what clients read of one message by default.
const MOST_EVIDENCE: usize = 16 << 20;

pub(crate) fn ceremony(report: &CeremonyReport) -> v1::CeremonyStatus {
    let mut room = MOST_EVIDENCE;
    ceremony_within(report, &mut room)
}

pub(crate) fn ceremonies(reports: &[CeremonyReport]) -> Vec<v1::CeremonyStatus> {
    let mut room = MOST_EVIDENCE;
    reports.iter().map(|report| ceremony_within(report, &mut room)).collect()
}

fn ceremony_within(report: &CeremonyReport, room: &mut usize) -> v1::CeremonyStatus {
    let mut status = v1::CeremonyStatus {
        id: Bytes::copy_from_slice(&report.id),
        key: report.key.to_string(),
        version: report.version.get(),
        epoch: report.epoch.wide(),
        aim: report.aim.to_owned(),
        evidence: report.evidence.iter().map(|told| evidence(told, room)).collect(),
        silent: report.silent.iter().map(|node| u32::from(*node)).collect(),
        awaits: report.awaits.to_owned(),
        change: report.request.as_ref().map(|request| request.change.encode().into()).unwrap_or_default(),
        nonce: report.request.as_ref().map(|request| Bytes::copy_from_slice(&request.nonce)).unwrap_or_default(),
        ..Default::default()
    };
    let state = match &report.state {
        CeremonyState::Running { done, of } => {
            (status.done, status.of) = (*done, *of);
            v1::CeremonyState::Running
        }
        CeremonyState::Activated { key_id, certificate } => {
            status.key_id = Bytes::copy_from_slice(key_id.as_bytes());
            status.certificate = Bytes::copy_from_slice(certificate);
            v1::CeremonyState::Activated
        }
        CeremonyState::Recovered => v1::CeremonyState::Recovered,
        CeremonyState::Aborted => v1::CeremonyState::Aborted,
        CeremonyState::Cancelled => v1::CeremonyState::Cancelled,
        CeremonyState::Failed(why) => {
            status.failure.clone_from(why);
            v1::CeremonyState::Failed
        }
    };
    status.set_state(state);
    status
}

/// Who lied and how, with the proof if there is one and it finds room.
fn evidence(told: &EvidenceReport, room: &mut usize) -> v1::Evidence {
    let proof = told.encode();
    let left = room.checked_sub(proof.len());
    *room = left.unwrap_or(*room);
    v1::Evidence {
        node: u32::from(told.culprit().get()),
        misbehaviour: told.misbehaviour().to_owned(),
        evidence: left.map(|_| proof.into()).unwrap_or_default(),
    }
}

pub(crate) fn peer(peer: PeerStatus) -> v1::PeerStatus {
    let state = match peer.state {
        PeerState::Connected => v1::PeerState::Connected,
        PeerState::Connecting => v1::PeerState::Connecting,
    };
    v1::PeerStatus {
        node: u32::from(peer.peer.get()),
        address: peer.address,
        state: state.into(),
        last_error: peer.last_error.unwrap_or_default(),
        queued_messages: u64::try_from(peer.queued).unwrap_or(u64::MAX),
    }
}
