//! One party in one ceremony: its identity, and a secret that is drawn for the ceremony and destroyed at its end.

use std::sync::Arc;

use theta_groups::{Group, Ristretto255, RistrettoScalar, Secret, SecretRng, Transcript};
use theta_rounds::PartyId;
use theta_sharing::Encoded;

use crate::CeremonyKeys;
use crate::plan::CeremonyId;
use crate::statement::{Statement, StatementSlot};

/// All that a party draws at random in a ceremony, and its encryption key, is derived from 32 bytes that are used for
/// nothing else. Replayed from its journal the party repeats itself; when the 32 bytes are destroyed, nobody can open
/// what was sealed to it.
pub(crate) struct Participant {
    identity: Arc<CeremonyKeys>,
    ceremony: CeremonyId,
    seed: Secret<[u8; 32]>,
    decryption: Secret<RistrettoScalar>,
    encryption_key: Encoded<Ristretto255>,
}

impl Participant {
    pub(crate) fn new(identity: Arc<CeremonyKeys>, ceremony: CeremonyId, seed: Secret<[u8; 32]>) -> Self {
        let transcript = Transcript::new("theta/ceremony/decryption/v1").with("seed", seed.expose());
        let decryption = transcript.with("ceremony", ceremony.as_bytes()).challenge::<RistrettoScalar>();
        let decryption = Secret::new(decryption);
        let encryption_key = Encoded::new(Ristretto255::mul_base(decryption.expose()));
        Self { identity, ceremony, seed, decryption, encryption_key }
    }

    pub(crate) fn party(&self) -> PartyId {
        self.identity.party()
    }

    pub(crate) const fn decryption(&self) -> &Secret<RistrettoScalar> {
        &self.decryption
    }

    /// The key to which others encrypt in this ceremony.
    pub(crate) const fn encryption_key(&self) -> &Encoded<Ristretto255> {
        &self.encryption_key
    }

    pub(crate) fn sign(&self, slot: StatementSlot, body: Vec<u8>) -> Statement {
        Statement::sign(&self.ceremony, &self.identity, slot, body)
    }

    /// The random numbers of one purpose. They must be used for one `binding` only.
    pub(crate) fn rng(&self, purpose: &'static str, binding: &[u8]) -> SecretRng {
        let transcript = Transcript::new("theta/ceremony/randomness/v2")
            .with("seed", self.seed.expose())
            .with("ceremony", self.ceremony.as_bytes())
            .with("purpose", purpose.as_bytes())
            .with("binding", binding);
        SecretRng::new(&Secret::new(transcript.finish32()))
    }
}
