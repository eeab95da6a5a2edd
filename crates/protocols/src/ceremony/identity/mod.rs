//! Who a party is in ceremonies: a key to sign with and a key to decrypt with, both from one secret.

pub(in crate::ceremony) mod schnorr;
pub(in crate::ceremony) mod sealed;
mod statements;

use core::fmt;

use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, SeedableRng};
use theta_groups::{Group, Ristretto255, RistrettoScalar, Secret, Transcript};
use theta_rounds::{Malformed, PartyId};
use theta_sharing::Encoded;

use crate::ceremony::codec::{Reader, put_party};
use crate::ceremony::plan::CeremonyId;
use crate::ceremony::schnorr::{Message, Signature};

/// A party's public keys for ceremonies, as the group file has them. Both are on ristretto255, whatever the group of the
/// keys that ceremonies make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CeremonyMember {
    party: PartyId,
    verifying_key: Encoded<Ristretto255>,
    encryption_key: Encoded<Ristretto255>,
}

impl CeremonyMember {
    /// Length of an encoded member in bytes.
    pub const ENCODED_LEN: usize = 2 + 32 + 32;

    /// Whose keys these are.
    #[must_use]
    pub const fn party(&self) -> PartyId {
        self.party
    }

    /// What its statements verify under.
    pub(in crate::ceremony) const fn verifying_key(&self) -> &Encoded<Ristretto255> {
        &self.verifying_key
    }

    /// What shares are encrypted to.
    pub(in crate::ceremony) const fn encryption_key(&self) -> &Encoded<Ristretto255> {
        &self.encryption_key
    }

    /// Number, verifying key, encryption key.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::ENCODED_LEN);
        put_party(&mut bytes, self.party);
        bytes.extend_from_slice(self.verifying_key.bytes());
        bytes.extend_from_slice(self.encryption_key.bytes());
        bytes
    }

    /// Reads what [`CeremonyMember::encode`] wrote.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let party = reader.party()?;
        let mut key = || Encoded::decode(reader.take(32)?).map_err(|_| Malformed("not a key"));
        let (verifying_key, encryption_key) = (key()?, key()?);
        reader.end().map(|()| Self { party, verifying_key, encryption_key })
    }
}

/// A party's secret keys for ceremonies.
///
/// All that a party draws at random in a ceremony is derived from its secret and the ceremony's id, so that a party which
/// lost its journal deals what it dealt before rather than contradict itself.
pub struct CeremonyKeys {
    master: Secret<[u8; 32]>,
    signing: Secret<RistrettoScalar>,
    decryption: Secret<RistrettoScalar>,
    member: CeremonyMember,
}

impl CeremonyKeys {
    /// The keys that follow from 32 secret bytes, which must be uniform and for this purpose alone.
    #[must_use]
    pub fn new(party: PartyId, master: Secret<[u8; 32]>) -> Self {
        let derive = |purpose: &[u8]| {
            let transcript = Transcript::new("theta/ceremony/identity/v1").with("purpose", purpose);
            Secret::new(transcript.with("master", master.expose()).challenge::<RistrettoScalar>())
        };
        let (signing, decryption) = (derive(b"sign"), derive(b"decrypt"));
        let public = |secret: &Secret<RistrettoScalar>| Encoded::new(Ristretto255::mul_base(secret.expose()));
        let member = CeremonyMember { party, verifying_key: public(&signing), encryption_key: public(&decryption) };
        Self { master, signing, decryption, member }
    }

    /// New keys, and the secret to keep.
    pub fn generate(party: PartyId, rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut master = Secret::new([0; 32]);
        rng.fill_bytes(master.expose_mut());
        Self::new(party, master)
    }

    /// The public side.
    #[must_use]
    pub const fn member(&self) -> &CeremonyMember {
        &self.member
    }

    /// The 32 bytes that [`CeremonyKeys::new`] takes, to be stored sealed.
    #[must_use]
    pub const fn master(&self) -> &Secret<[u8; 32]> {
        &self.master
    }

    pub(in crate::ceremony) const fn party(&self) -> PartyId {
        self.member.party
    }

    pub(in crate::ceremony) const fn decryption(&self) -> &Secret<RistrettoScalar> {
        &self.decryption
    }

    pub(in crate::ceremony) fn sign(&self, message: &Message) -> Signature {
        schnorr::sign(&self.signing, &self.member.verifying_key, message)
    }

    /// The random numbers of one purpose in one ceremony; `binding` is what they must never be used twice for.
    pub(in crate::ceremony) fn rng(&self, ceremony: &CeremonyId, purpose: &'static str, binding: &[u8]) -> ChaCha20Rng {
        let transcript = Transcript::new("theta/ceremony/randomness/v1")
            .with("master", self.master.expose())
            .with("ceremony", ceremony.as_bytes())
            .with("purpose", purpose.as_bytes())
            .with("binding", binding);
        ChaCha20Rng::from_seed(transcript.finish32())
    }
}

impl fmt::Debug for CeremonyKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CeremonyKeys({}, <redacted>)", self.member.party)
    }
}
