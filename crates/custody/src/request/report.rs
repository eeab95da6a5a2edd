//! The state of a ceremony, for reports.

use theta_names::{Epoch, NodeId, Version};
use theta_rounds::Malformed;
use theta_schemes::keys::{KeyId, KeyName};
use theta_statements::CeremonyRequest;

use super::{EvidenceReport, kept};
use crate::codec::{Reader, Writer};

/// The version of the encoding in the store. Format 1 had each piece of evidence as it is shown, with all that they have in common.
const FORMAT: u8 = 2;

/// The state of a ceremony at this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CeremonyReport {
    /// Its id: a hash of its subject and the identities.
    pub id: [u8; 32],
    /// Which key.
    pub key: KeyName,
    /// Which version.
    pub version: Version,
    /// The epoch that it makes, or whose share it recovers.
    pub epoch: Epoch,
    /// `create`, `rotate`, `refresh`, `reshare` or `recover`.
    pub aim: &'static str,
    /// Whether it runs, and how it ended if it does not.
    pub state: CeremonyState,
    /// The parties that lied, with evidence that anybody can check.
    pub evidence: Vec<EvidenceReport>,
    /// The numbers of the nodes that have not sent what is due. They may be slow, cut off, or unwilling.
    pub silent: Vec<u16>,
    /// While it runs, what it waits for, for people; empty when it is over.
    pub awaits: &'static str,
    /// What was asked for, while the group has not begun it: whoever asked may take it back.
    pub request: Option<CeremonyRequest>,
}

/// How a change of a key's state stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeReport {
    /// Whether the group has decided it: the ledger has it.
    pub decided: bool,
    /// Whether this node has stopped using the key already, durably.
    pub frozen: bool,
    /// For whom it waits, as far as this node knows.
    pub awaits: Vec<NodeId>,
}

/// How far a change of the members is, or a warrant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembersState {
    /// It waits for its decision.
    Waiting {
        /// For whom.
        awaits: Vec<NodeId>,
    },
    /// It was decided.
    Decided {
        /// By the entry of this height.
        height: u64,
    },
    /// Nothing comes of it; why, for people.
    Refused(String),
    /// This node votes against it, since a client has taken it back.
    TakenBack,
}

/// Whether a ceremony runs, and how it ended if it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CeremonyState {
    /// It runs.
    Running {
        /// The number of steps done; it never falls.
        done: u32,
        /// The number of all steps.
        of: u32,
    },
    /// A key, or new shares of it, are in use.
    Activated {
        /// The key's id.
        key_id: KeyId,
        /// The signatures of a quorum.
        certificate: Vec<u8>,
    },
    /// The lost share was recovered.
    Recovered,
    /// A quorum agreed to abort it.
    Aborted,
    /// The group cancelled it, as a client asked.
    Cancelled,
    /// It failed at this node, with the reason.
    Failed(String),
}

impl CeremonyState {
    /// Whether it is over.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        !matches!(self, Self::Running { .. })
    }
}

/// The values of `aim`.
pub(crate) const AIMS: [&str; 5] = ["create", "rotate", "refresh", "reshare", "recover"];

impl CeremonyReport {
    /// The report of a request for which nobody has asked this node.
    pub(crate) fn of_request(request: &CeremonyRequest) -> Self {
        let change = &request.change;
        Self {
            id: request.digest(),
            key: change.key().clone(),
            version: change.version().unwrap_or(Version::FIRST),
            epoch: Epoch::FIRST,
            aim: change.aim(),
            state: CeremonyState::Running { done: 0, of: 1 },
            evidence: Vec::new(),
            silent: Vec::new(),
            awaits: "",
            request: None,
        }
    }

    /// As it is kept, in `most` bytes: where they are too few for all evidence, its culprits are kept without it.
    pub(crate) fn encode(&self, most: usize) -> Vec<u8> {
        let writer = Writer::new(FORMAT).raw(&self.id).word(self.key.as_str()).version(self.version).epoch(self.epoch);
        let writer = writer.word(self.aim);
        let writer = match &self.state {
            CeremonyState::Running { done, of } => writer.u8(0).u32(*done).u32(*of),
            CeremonyState::Activated { key_id, certificate } => writer.u8(1).raw(key_id.as_bytes()).bytes(certificate),
            CeremonyState::Recovered => writer.u8(2),
            CeremonyState::Aborted => writer.u8(3),
            CeremonyState::Cancelled => writer.u8(5),
            CeremonyState::Failed(why) => writer.u8(4).bytes(why.as_bytes()),
        };
        let report: Vec<u8> = writer.nodes(&self.silent).finish();
        let evidence = kept::write(&self.evidence, most.saturating_sub(report.len()));
        [report, evidence].concat()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != FORMAT {
            return Err(Malformed("a report of another release"));
        }
        let (id, key, version, epoch) = (reader.array()?, reader.key_name()?, reader.version()?, reader.epoch()?);
        let word = reader.word()?;
        let aim = AIMS.into_iter().find(|aim| *aim == word).ok_or(Malformed("no such aim"))?;
        let state = match reader.u8()? {
            0 => CeremonyState::Running { done: reader.u32()?, of: reader.u32()? },
            1 => CeremonyState::Activated {
                key_id: KeyId::from_bytes(reader.array()?),
                certificate: reader.bytes()?.to_vec(),
            },
            2 => CeremonyState::Recovered,
            3 => CeremonyState::Aborted,
            5 => CeremonyState::Cancelled,
            4 => {
                let why = core::str::from_utf8(reader.bytes()?).map_err(|_| Malformed("not text"))?;
                CeremonyState::Failed(why.to_owned())
            }
            _ => return Err(Malformed("no such state")),
        };
        let silent = reader.nodes()?;
        let evidence = kept::read(reader)?;
        // What is kept is over.
        Ok(Self { id, key, version, epoch, aim, state, evidence, silent, awaits: "", request: None })
    }
}

#[cfg(test)]
mod tests {
    use super::super::evidence::tests::malformed;
    use super::*;

    #[test]
    fn reports_are_kept_as_they_are() {
        let states = [
            CeremonyState::Running { done: 3, of: 7 },
            CeremonyState::Activated { key_id: KeyId::from_bytes([4; 32]), certificate: vec![1, 2, 3] },
            CeremonyState::Recovered,
            CeremonyState::Aborted,
            CeremonyState::Cancelled,
            CeremonyState::Failed("nobody came".to_owned()),
        ];
        for (state, aim) in states.into_iter().zip(AIMS) {
            let evidence = [2_u16, 3].map(|node| malformed(node, &node.to_be_bytes()));
            let report = CeremonyReport {
                id: [9; 32],
                key: "a".parse().unwrap(),
                version: Version::FIRST,
                epoch: Epoch::new(5),
                aim,
                state,
                evidence: evidence.to_vec(),
                silent: vec![1, 4],
                awaits: "",
                request: None,
            };
            let bytes = report.encode(10_000);
            assert_eq!(CeremonyReport::decode(&bytes).as_ref(), Ok(&report));
            assert!(CeremonyReport::decode(&bytes[..bytes.len() - 1]).is_err());
        }
    }
}
