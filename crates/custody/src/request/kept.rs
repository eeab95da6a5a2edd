//! Evidence in the record of a ceremony that has ended.
//!
//! Evidence about a key holds all dealings that were decided on, and so does that against each further liar: among more than a hundred nodes these are
//! megabytes. What several pieces of evidence have in common is kept once; and where there is no room for a proof, its culprit is kept without it, since
//! a ceremony that cannot be recorded cannot end.

use std::collections::BTreeMap;

use bytes::Bytes;
use theta_ceremonies::CeremonyEvidence;
use theta_rounds::Malformed;

use super::EvidenceReport;
use crate::codec::{Reader, Writer};

/// The tag of what has no proof; no evidence has it.
const UNPROVEN: u8 = 0;

/// Parts by their place.
#[derive(Default)]
struct Parts {
    places: BTreeMap<Vec<u8>, u16>,
    written: Vec<u8>,
}

impl Parts {
    /// The places of these parts, of which the new ones are added if there is room for them.
    fn add(&mut self, parts: Vec<Vec<u8>>, room: usize) -> Option<Vec<u16>> {
        let new = || parts.iter().filter(|part| !self.places.contains_key(*part));
        let len = new().fold(self.written.len(), |len, part| len.saturating_add(4).saturating_add(part.len()));
        let count = u16::try_from(self.places.len() + new().count()).ok()?;
        if len > room || count == u16::MAX {
            return None;
        }
        let mut places = Vec::new();
        for part in parts {
            let next = u16::try_from(self.places.len()).ok()?;
            if !self.places.contains_key(&part) {
                self.written = Writer::onto(core::mem::take(&mut self.written)).bytes(&part).finish();
            }
            places.push(*self.places.entry(part).or_insert(next));
        }
        Some(places)
    }
}

/// Evidence in `most` bytes if that is possible: the subject of all, the parts, and for each culprit its number, what it did, the tag of the evidence and
/// the places of its parts.
pub(super) fn write(evidence: &[EvidenceReport], most: usize) -> Vec<u8> {
    let subject = evidence.iter().map(EvidenceReport::subject).find(|subject| !subject.is_empty()).cloned();
    let subject = subject.unwrap_or_default();
    // Four parts at most.
    let culprits = evidence.iter().map(|told| 2 + 4 + told.misbehaviour().len() + 2 + 4 * 2);
    let room = most.saturating_sub(4 + subject.len() + 4 + culprits.sum::<usize>());
    let mut parts = Parts::default();
    let mut culprits = Vec::new();
    for told in evidence {
        let proof = told.evidence().map(CeremonyEvidence::parts);
        let proof = proof.and_then(|(tag, of)| Some((tag, parts.add(of, room)?)));
        let (tag, places) = proof.unwrap_or((UNPROVEN, Vec::new()));
        let writer = Writer::onto(culprits).node_id(told.culprit()).bytes(told.misbehaviour().as_bytes()).u8(tag);
        let writer = writer.u8(u8::try_from(places.len()).unwrap_or(u8::MAX));
        culprits = places.into_iter().fold(writer, Writer::u16).finish();
    }
    Writer::default().bytes(&subject).bytes(&parts.written).raw(&culprits).finish()
}

/// Reads what [`write`] wrote, to the end. What evidence has in common is in memory once.
pub(super) fn read(mut reader: Reader<'_>) -> Result<Vec<EvidenceReport>, Malformed> {
    let subject = Bytes::copy_from_slice(reader.bytes()?);
    let parts = Reader::new(reader.bytes()?).all(|reader| reader.bytes().map(Bytes::copy_from_slice))?;
    let mut evidence = Vec::new();
    while !reader.is_empty() {
        let culprit = reader.node_id()?;
        let misbehaviour = core::str::from_utf8(reader.bytes()?).map_err(|_| Malformed("not text"))?.to_owned();
        let (tag, count) = (reader.u8()?, reader.u8()?);
        let part = |place: u16| parts.get(usize::from(place)).cloned().ok_or(Malformed("no such part of evidence"));
        let of = (0..count).map(|_| part(reader.u16()?)).collect::<Result<Vec<_>, Malformed>>()?;
        evidence.push(match tag {
            UNPROVEN => EvidenceReport::unproven(culprit, misbehaviour),
            tag => EvidenceReport::new(subject.clone(), CeremonyEvidence::of_parts(tag, of)?),
        });
    }
    Ok(evidence)
}

#[cfg(test)]
mod tests {
    use theta_ceremonies::{CeremonyId, CeremonyKeys, Kind, QuorumCertificate, Statement, StatementSlot};
    use theta_groups::Secret;
    use theta_names::NodeId;

    use super::*;

    fn node(number: u16) -> NodeId {
        NodeId::try_from(number).unwrap()
    }

    fn said(number: u16, kind: Kind, len: usize) -> Statement {
        let keys = CeremonyKeys::new(node(number), Secret::new([7; 32]));
        let slot = StatementSlot { kind, number: 0 };
        Statement::sign(&CeremonyId::from_bytes([9; 32]), &keys, slot, vec![u8::try_from(number).unwrap(); len])
    }

    /// What 42 of 127 liars leave behind that state false keys: no more is wrong with it than that it proves nothing.
    fn false_keys() -> Vec<EvidenceReport> {
        // 85 signatures.
        let decision = Writer::new(Kind::Precommit as u8).u32(0).bytes(&[1; 32]);
        let decision = (1..=85).fold(decision, |writer, signer| writer.node_id(node(signer)).raw(&[2; 64])).finish();
        let decision = QuorumCertificate::decode(&decision).unwrap();
        // 43 commitments, 127 places with key and signature, R, its proof, and 127 ciphertexts of two scalars.
        let dealings: Vec<_> = (1..=127).map(|dealer| said(dealer, Kind::Dealing, 43 * 32 + 127 * 161 + 96)).collect();
        let of = |liar| {
            let (decision, dealings, key) = (decision.clone(), dealings.clone(), said(liar, Kind::Key, 128));
            EvidenceReport::new(Bytes::from(vec![5; 500]), CeremonyEvidence::FalseKey { decision, dealings, key })
        };
        (1..=42).map(of).collect()
    }

    #[test]
    fn what_evidence_has_in_common_is_kept_once() {
        let evidence = false_keys();
        let apart: usize = evidence.iter().map(|told| told.encode().len()).sum();
        assert!(apart > theta_store::JOURNAL_TEXT_BYTES, "{apart} bytes would have found room");
        let bytes = write(&evidence, theta_store::JOURNAL_TEXT_BYTES);
        assert!(bytes.len() < 3 << 20, "{}", bytes.len());
        assert_eq!(read(Reader::new(&bytes)), Ok(evidence));
        assert!(read(Reader::new(&bytes[..bytes.len() - 1])).is_err());
    }

    #[test]
    fn who_lied_is_kept_where_there_is_no_room_for_proofs() {
        let mut evidence = false_keys();
        evidence.truncate(3);
        let short =
            EvidenceReport::new(evidence[0].subject().clone(), CeremonyEvidence::Malformed(said(9, Kind::Key, 1)));
        evidence.push(short);
        for most in [0, 100, 1_000, 5_000, 1 << 20, 2 << 20, 3 << 20] {
            let bytes = write(&evidence, most);
            assert!(bytes.len() <= most.max(1_500), "{} of {most}", bytes.len());
            let read = read(Reader::new(&bytes)).unwrap();
            assert_eq!(read.len(), 4);
            for (kept, told) in read.iter().zip(&evidence) {
                assert_eq!((kept.culprit(), kept.misbehaviour()), (told.culprit(), told.misbehaviour()));
                assert!(kept == told || (kept.evidence().is_none() && kept.encode().is_empty()));
            }
            let whole = read.iter().filter(|kept| kept.evidence().is_some()).count();
            assert_eq!(
                whole,
                if most < 1_000 {
                    0
                } else if most < 3 << 20 {
                    1
                } else {
                    4
                },
                "{most}"
            );
            // What was left out once stays what it is.
            assert_eq!(super::read(Reader::new(&write(&read, most))).unwrap(), read);
        }
    }
}
