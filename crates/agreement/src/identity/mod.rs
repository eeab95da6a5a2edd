//! Under which key a node signs what it says to the group, for as long as it has this identity.

pub mod schnorr;
mod transcripts;

use core::fmt;

use rand_core::CryptoRng;
use theta_groups::{Group, Ristretto255, RistrettoScalar, Secret, Transcript};
use theta_names::NodeId;
use theta_names::codec::{Reader, Writer};
use theta_rounds::{Malformed, PartyId};
use theta_sharing::Encoded;

use crate::{Message, Signature, read_party};

/// A node's public identity, as the group file has it: the key under which its statements verify. It is on ristretto255, whatever
/// the group of the keys that ceremonies make. Nothing is ever encrypted to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    party: PartyId,
    verifying_key: Encoded<Ristretto255>,
}

impl Member {
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

    /// The key that its statements verify under.
    #[must_use]
    pub const fn verifying_key(&self) -> &Encoded<Ristretto255> {
        &self.verifying_key
    }

    /// Number, verifying key.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Writer::default().node_id(self.party.node()).raw(self.verifying_key.bytes()).finish()
    }

    /// Reads what [`Member::encode`] wrote.
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

/// A node's secret identity. It signs, and opens nothing: what is drawn at random in a ceremony, and what is sealed in it, follows
/// from a secret of that ceremony alone.
pub struct MemberKeys {
    master: Secret<[u8; 32]>,
    signing: Secret<RistrettoScalar>,
    member: Member,
}

impl MemberKeys {
    /// The key that follows from 32 secret bytes, which must be uniform and for this purpose alone.
    #[must_use]
    pub fn new(node: NodeId, master: Secret<[u8; 32]>) -> Self {
        let party = PartyId::of_node(node);
        let transcript = Transcript::new("theta/ceremony/identity/v1").with("purpose", b"sign");
        let signing = Secret::new(transcript.with("master", master.expose()).challenge::<RistrettoScalar>());
        let verifying_key = Encoded::new(Ristretto255::mul_base(signing.expose()));
        Self { master, signing, member: Member { party, verifying_key } }
    }

    /// A new key, and the secret to keep.
    pub fn generate(node: NodeId, rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut master = Secret::new([0; 32]);
        rng.fill_bytes(master.expose_mut());
        Self::new(node, master)
    }

    /// The public part of the identity, for the group file.
    #[must_use]
    pub const fn member(&self) -> &Member {
        &self.member
    }

    /// The 32 bytes that [`MemberKeys::new`] takes, to be stored sealed.
    #[must_use]
    pub const fn master(&self) -> &Secret<[u8; 32]> {
        &self.master
    }

    /// Its node, as a party.
    #[must_use]
    pub const fn party(&self) -> PartyId {
        self.member.party
    }

    /// Signs a message, whose domain says what it is for. The same message gives the same signature.
    #[must_use]
    pub fn sign(&self, message: &Message) -> Signature {
        schnorr::sign(&self.signing, &self.member.verifying_key, message)
    }
}

impl fmt::Debug for MemberKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemberKeys({}, <redacted>)", self.member.party)
    }
}
