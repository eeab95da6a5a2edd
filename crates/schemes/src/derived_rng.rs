//! Weights of batch verification that are a hash of the verified data, for verifiers that must agree or have no random generator.

use core::convert::Infallible;

use rand_core::{TryCryptoRng, TryRng};
use theta_groups::Transcript;

/// The output stream of a hash over everything that is checked. A batch's weights may come from it (the Fiat-Shamir heuristic),
/// because changing what is checked changes the weights. Never for secrets.
pub(crate) struct DerivedRng(blake3::OutputReader);

impl DerivedRng {
    /// The stream that belongs to a transcript. The transcript must have absorbed all that the adversary can choose.
    pub(crate) fn new(transcript: Transcript) -> Self {
        Self(blake3::Hasher::new().update(&transcript.finish()).finalize_xof())
    }

    /// The next 128 bits.
    pub(crate) fn next_u128(&mut self) -> u128 {
        let mut bytes = [0; 16];
        self.0.fill(&mut bytes);
        u128::from_le_bytes(bytes)
    }
}

impl TryRng for DerivedRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.0.fill(&mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill(destination);
        Ok(())
    }
}

impl TryCryptoRng for DerivedRng {}
