//! What one organisation publishes of its node.

use theta_groups::Transcript;
use theta_names::{
    Address, NodeName,
    codec::{DecodeError, Reader, Writer},
};

use super::{FoundingError, armour};
use crate::operator::OperatorId;

/// Bytes of a signature: R || s of a Schnorr signature over ristretto255.
const SIGNATURE_LEN: usize = 64;
const DOMAIN: &str = "theta/card/v1";
const LABEL: &str = "THETA CARD";
/// Above the longest card: two addresses, a name, two keys, a signature, and the lengths of these.
pub(crate) const MOST_CARD: usize = 1024;

/// Checks signatures of cards.
pub trait CardSignatures {
    /// Whether the owner of this verifying key, of ceremonies, signed the transcript. In variable time: all of it is public.
    fn vartime_verify(&self, key: &[u8; 32], signed: &Transcript, signature: &[u8; SIGNATURE_LEN]) -> bool;
}

/// What a node says of itself, before it is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardContent {
    /// What people call it.
    pub name: NodeName,
    /// What its statements verify under: an element of ristretto255.
    pub ceremony_key: [u8; 32],
    /// The SHA-256 of the SubjectPublicKeyInfo of its TLS certificates, which others pin.
    pub tls_key: [u8; 32],
    /// Under which its operator signs what the node itself must not decide ([`crate::Warrant`]). Its secret is not on the node.
    pub operator_key: OperatorId,
    /// Where other nodes reach it.
    pub peer_address: Address,
    /// Where clients reach it.
    pub api_address: Address,
    /// When the card was made: seconds since 1970.
    pub made: u64,
    /// Until when a group may be put together with it: seconds since 1970. A group that was lives on.
    pub until: u64,
}

impl CardContent {
    fn encode(&self) -> Vec<u8> {
        Writer::of(DOMAIN)
            .word(self.name.as_str())
            .raw(&self.ceremony_key)
            .raw(&self.tls_key)
            .raw(self.operator_key.as_bytes())
            .text(self.peer_address.as_str())
            .text(self.api_address.as_str())
            .u64(self.made)
            .u64(self.until)
            .finish()
    }

    /// What the node's key of ceremonies signs.
    #[must_use]
    pub fn signed(&self) -> Transcript {
        Transcript::new(DOMAIN).with("card", &self.encode())
    }

    /// The card, if the signature is right.
    ///
    /// # Errors
    /// [`FoundingError`]: what is wrong with it.
    pub fn with_signature(
        self,
        signature: [u8; SIGNATURE_LEN],
        signatures: &dyn CardSignatures,
    ) -> Result<Card, FoundingError> {
        let card = self.with_unchecked(signature)?;
        card.content.operator_key.check()?;
        if !card.vartime_is_signed(signatures) {
            return Err(FoundingError::Signature(card.content.name.to_string()));
        }
        Ok(card)
    }

    fn with_unchecked(self, signature: [u8; SIGNATURE_LEN]) -> Result<Card, FoundingError> {
        if self.peer_address == self.api_address {
            return Err(FoundingError::OneAddress(self.name.to_string()));
        }
        if *self.operator_key.as_bytes() == self.ceremony_key {
            return Err(FoundingError::OneKey(self.name.to_string()));
        }
        if self.until < self.made {
            return Err(FoundingError::Period(self.name.to_string()));
        }
        Ok(Card { content: self, signature })
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FoundingError> {
        Ok(Self {
            name: reader.word()?.parse()?,
            ceremony_key: reader.array()?,
            tls_key: reader.array()?,
            operator_key: OperatorId::read(reader)?,
            peer_address: read_address(reader)?,
            api_address: read_address(reader)?,
            made: reader.u64()?,
            until: reader.u64()?,
        })
    }
}

fn read_address(reader: &mut Reader<'_>) -> Result<Address, FoundingError> {
    let text = reader.text(Address::MOST_BYTES)?;
    let address: Address =
        text.parse().map_err(|reason| FoundingError::Address { address: text.to_owned(), reason })?;
    // There is one encoding of every card.
    if address.as_str() == text { Ok(address) } else { Err(DecodeError::Field("the form of an address").into()) }
}

/// What one organisation publishes of its node: names, keys and addresses, signed by the node's key of ceremonies. Who has the
/// key has made it; whose key that is, people tell each other ([`super::Fingerprint`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    content: CardContent,
    signature: [u8; SIGNATURE_LEN],
}

impl Card {
    /// What it says.
    #[must_use]
    pub const fn content(&self) -> &CardContent {
        &self.content
    }

    /// What people call the node.
    #[must_use]
    pub const fn name(&self) -> &NodeName {
        &self.content.name
    }

    /// Whether its signature is its key's, and its operator's key is one: of a card that came in an entry or a warrant that is still to be checked.
    #[must_use]
    pub fn vartime_is_signed(&self, signatures: &dyn CardSignatures) -> bool {
        self.content.operator_key.check().is_ok()
            && signatures.vartime_verify(&self.content.ceremony_key, &self.content.signed(), &self.signature)
    }

    /// Content and signature.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Writer::onto(self.content.encode()).raw(&self.signature).finish()
    }

    /// Reads what [`Card::encode`] wrote.
    ///
    /// # Errors
    /// [`FoundingError`]: what is wrong with it.
    pub fn decode(bytes: &[u8], signatures: &dyn CardSignatures) -> Result<Self, FoundingError> {
        let (content, signature) = Self::read(bytes)?;
        content.with_signature(signature, signatures)
    }

    /// The same, with its signature and its operator's key still to be checked.
    pub(crate) fn decode_unchecked(bytes: &[u8]) -> Result<Self, FoundingError> {
        let (content, signature) = Self::read(bytes)?;
        content.with_unchecked(signature)
    }

    fn read(bytes: &[u8]) -> Result<(CardContent, [u8; SIGNATURE_LEN]), FoundingError> {
        let mut reader = Reader::of(bytes, DOMAIN)?;
        let content = CardContent::read(&mut reader)?;
        let signature = reader.array()?;
        reader.end(())?;
        Ok((content, signature))
    }

    /// Text that survives mail: the encoding in base64 between two lines that say what it is.
    #[must_use]
    pub fn to_text(&self) -> String {
        armour::write(LABEL, &self.encode())
    }

    /// All cards of a text, such as a mail. What stands around them does not matter.
    ///
    /// # Errors
    /// [`FoundingError`] of the first that is wrong; if there is none, too.
    pub fn all_from_text(text: &str, signatures: &dyn CardSignatures) -> Result<Vec<Self>, FoundingError> {
        let blocks = armour::read(LABEL, text, MOST_CARD)?;
        if blocks.is_empty() {
            return Err(FoundingError::Text("there is no card in it; theta node init and theta node card write them"));
        }
        blocks.iter().map(|bytes| Self::decode(bytes, signatures)).collect()
    }
}
