//! A party's long-term identity in ceremonies, a signing key; and its encryption key in one ceremony, from a secret
//! that is destroyed at the ceremony's end.

pub(crate) mod encryption;
pub(crate) mod participant;
pub(crate) mod schnorr;
pub(crate) mod sealed;
mod statements;

use core::fmt;

use rand_core::CryptoRng;
use theta_groups::{Group, Ristretto255, RistrettoScalar, Secret, Transcript};
use theta_names::NodeId;
use theta_rounds::{Malformed, PartyId};
use theta_sharing::Encoded;

use crate::codec::{Reader, Writer, read_party};
use crate::schnorr::{Message, Signature};

/// A party's public identity, as in the group file: its statements verify under this key. It is on ristretto255,
/// whatever the group of the keys that ceremonies make. Nothing is ever encrypted to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CeremonyMember {
    party: PartyId,
    verifying_key: Encoded<Ristretto255>,
}

impl CeremonyMember {
    /// Length of an encoded member in bytes.
    pub const ENCODED_LEN: usize = 2 + 32;

    /// Whose key this is.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.party.node()
    }

    /// Its node, as a party of ceremonies.
    #[must_use]
    pub const fn party(&self) -> PartyId {
        self.party
    }

    /// What its statements verify under.
    pub(crate) const fn verifying_key(&self) -> &Encoded<Ristretto255> {
        &self.verifying_key
    }

    /// Number, verifying key.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Writer::default().node_id(self.party.node()).raw(self.verifying_key.bytes()).finish()
    }

    /// Reads what [`CeremonyMember::encode`] wrote.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let (party, key) = (read_party(&mut reader)?, reader.rest());
        Self::of(party.node(), key)
    }

    /// The node with this verifying key, of 32 bytes.
    ///
    /// # Errors
    /// [`Malformed`] if it is none.
    pub fn of(node: NodeId, key: &[u8]) -> Result<Self, Malformed> {
        let verifying_key = Encoded::decode(key).map_err(|_| Malformed("not a key"))?;
        Ok(Self { party: PartyId::of_node(node), verifying_key })
    }
}

/// A party's identity in ceremonies: it signs, and opens nothing. All random values of a ceremony, and the key for
/// values sealed in it, are derived from a secret of that ceremony alone: see `participant`.
pub struct CeremonyKeys {
    master: Secret<[u8; 32]>,
    signing: Secret<RistrettoScalar>,
    member: CeremonyMember,
}

impl CeremonyKeys {
    /// The identity derived from 32 secret bytes, which must be uniform and used only for this.
    #[must_use]
    pub fn new(node: NodeId, master: Secret<[u8; 32]>) -> Self {
        let party = PartyId::of_node(node);
        let transcript = Transcript::new("theta/ceremony/identity/v1").with("purpose", b"sign");
        let signing = Secret::new(transcript.with("master", master.expose()).challenge::<RistrettoScalar>());
        let verifying_key = Encoded::new(Ristretto255::mul_base(signing.expose()));
        Self { master, signing, member: CeremonyMember { party, verifying_key } }
    }

    /// A new key, and the secret to keep.
    pub fn generate(node: NodeId, rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut master = Secret::new([0; 32]);
        rng.fill_bytes(master.expose_mut());
        Self::new(node, master)
    }

    /// The public part of the identity, for the group file.
    #[must_use]
    pub const fn member(&self) -> &CeremonyMember {
        &self.member
    }

    /// The 32 bytes that [`CeremonyKeys::new`] takes, to be stored sealed.
    #[must_use]
    pub const fn master(&self) -> &Secret<[u8; 32]> {
        &self.master
    }

    pub(crate) const fn party(&self) -> PartyId {
        self.member.party
    }

    pub(crate) fn sign(&self, message: &Message) -> Signature {
        schnorr::sign(&self.signing, &self.member.verifying_key, message)
    }
}

impl fmt::Debug for CeremonyKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CeremonyKeys({}, <redacted>)", self.member.party)
    }
}
