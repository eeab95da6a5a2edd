//! Evidence against a node that lied in a ceremony, typed up to where it is shown.

use bytes::Bytes;
use theta_ceremonies::CeremonyEvidence;
use theta_names::NodeId;
use theta_rounds::{Evidence as _, Malformed};

use crate::codec::{Reader, Writer};

/// The version of the encodings of evidence and of the subject in it. Format 1 had the text of a public key's file in the place of its bytes,
/// format 2 no delivery.
pub(crate) const FORMAT: u8 = 3;

/// A lie and its proof: what the culprit signed, and the subject of the ceremony, by which a third party judges it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceReport {
    /// The encoded subject; all evidence of a report shares it.
    subject: Bytes,
    culprit: NodeId,
    misbehaviour: String,
    proof: Option<CeremonyEvidence>,
}

impl EvidenceReport {
    pub(crate) fn new(subject: Bytes, evidence: CeremonyEvidence) -> Self {
        let misbehaviour = format!("{evidence} ({})", evidence.name());
        Self { subject, culprit: evidence.culprit().node(), misbehaviour, proof: Some(evidence) }
    }

    /// What is left of it without its proof.
    pub(super) const fn unproven(culprit: NodeId, misbehaviour: String) -> Self {
        Self { subject: Bytes::new(), culprit, misbehaviour, proof: None }
    }

    /// The node that lied.
    #[must_use]
    pub const fn culprit(&self) -> NodeId {
        self.culprit
    }

    /// What it did, for people.
    #[must_use]
    pub fn misbehaviour(&self) -> &str {
        &self.misbehaviour
    }

    /// The statements that prove it. `None` in the report of a ceremony that has ended if the store had no room for them.
    #[must_use]
    pub const fn evidence(&self) -> Option<&CeremonyEvidence> {
        self.proof.as_ref()
    }

    /// The encoded subject of the ceremony.
    pub(crate) const fn subject(&self) -> &Bytes {
        &self.subject
    }

    /// Proof that needs the group's roster and nothing else: see [`crate::check_evidence`]. Format (1), `[subject]`, `[evidence]`, as in
    /// `spec/custody.md`. Empty if there is none.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let proof = self.proof.as_ref();
        proof.map_or_else(Vec::new, |proof| Writer::new(FORMAT).bytes(&self.subject).bytes(&proof.encode()).finish())
    }

    /// Reads what [`EvidenceReport::encode`] wrote, and nothing else. It checks neither the subject nor what the evidence proves.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != FORMAT {
            return Err(Malformed("evidence in a format of another release"));
        }
        let (subject, evidence) = (Bytes::copy_from_slice(reader.bytes()?), CeremonyEvidence::decode(reader.bytes()?)?);
        Ok(reader.end(Self::new(subject, evidence))?)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use theta_ceremonies::{CeremonyId, CeremonyKeys, Kind, Statement, StatementSlot};
    use theta_groups::Secret;

    use super::*;

    /// What a node signed that cannot be read.
    pub(crate) fn malformed(node: u16, body: &[u8]) -> EvidenceReport {
        let keys = CeremonyKeys::new(NodeId::try_from(node).unwrap(), Secret::new([7; 32]));
        let slot = StatementSlot { kind: Kind::Dealing, number: 0 };
        let statement = Statement::sign(&CeremonyId::from_bytes([9; 32]), &keys, slot, body.to_vec());
        EvidenceReport::new(Bytes::from_static(b"subject"), CeremonyEvidence::Malformed(statement))
    }

    #[test]
    fn evidence_is_read_as_it_was_written() {
        let report = malformed(2, b"a body");
        assert_eq!(report.culprit().get(), 2);
        let bytes = report.encode();
        assert_eq!(EvidenceReport::decode(&bytes), Ok(report));
        for len in 0..bytes.len() {
            assert!(EvidenceReport::decode(&bytes[..len]).is_err(), "{len}");
        }
        assert!(EvidenceReport::decode(&[&bytes[..], &[0]].concat()).is_err());
        assert!(EvidenceReport::decode(&[&[FORMAT + 1], &bytes[1..]].concat()).is_err());
    }
}
