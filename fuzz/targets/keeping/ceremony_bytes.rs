//! The messages of ceremonies and the proofs that they leave: statements, certificates, identities, evidence. Whatever
//! decodes encodes to the same bytes, and evidence convicts only parties that were convicted when the seeds were made.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use theta_ceremonies::{CeremonyEvidence, CeremonyMember, QuorumCertificate, rewrite};
use theta_fuzz::ceremony::{Recording, party};
use theta_fuzz::plant;

static RECORDINGS: LazyLock<Vec<Recording>> = LazyLock::new(Recording::all);

fuzz_target!(init: plant("ceremony_bytes", seeds()), |bytes: &[u8]| {
    if let Some(same) = rewrite(bytes, |statement| vec![statement]) {
        assert_eq!(same, bytes);
    }
    if let Ok(member) = CeremonyMember::decode(bytes) {
        assert_eq!(member.encode(), bytes);
    }
    if let Ok(certificate) = QuorumCertificate::decode(bytes) {
        assert_eq!(certificate.encode(), bytes);
        for recording in &*RECORDINGS {
            // A certificate of this ceremony exists only for statements that a quorum has signed.
            assert!(recording.was_agreed(&certificate) || !recording.is_certified(&certificate));
        }
    }
    if let Ok(evidence) = CeremonyEvidence::decode(bytes) {
        assert_eq!(evidence.encode(), bytes);
        for recording in &*RECORDINGS {
            assert!(evidence.culprit() == party(4) || !recording.is_proven(&evidence));
        }
    }
});

fn seeds() -> Vec<Vec<u8>> {
    RECORDINGS.iter().flat_map(Recording::seeds).collect()
}
