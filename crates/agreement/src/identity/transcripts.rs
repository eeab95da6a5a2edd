//! Signatures of a party's identity outside of ceremonies: on transcripts with domains of their own.

use theta_groups::Transcript;

use super::{Member, MemberKeys, schnorr};

impl MemberKeys {
    /// Signs a transcript, whose domain must not be that of a ceremony's statements. The same transcript gives the same
    /// signature: 64 bytes, R || s of a Schnorr signature over ristretto255.
    #[must_use]
    pub fn sign_transcript(&self, transcript: &Transcript) -> [u8; 64] {
        self.sign(transcript)
    }
}

impl Member {
    /// Whether this party signed the transcript. In variable time: all of it is public.
    #[must_use]
    pub fn vartime_verify_transcript(&self, transcript: &Transcript, signature: &[u8; 64]) -> bool {
        schnorr::vartime_verify(self.verifying_key(), transcript, signature)
    }
}
