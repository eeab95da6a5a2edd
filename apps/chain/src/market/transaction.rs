//! What blocks are made of.

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use theta_names::codec::{DecodeError, Reader, Writer};

use super::{AccountId, Order, SealId};

/// The longest transaction, in bytes. A sealed order has about 600.
pub const MOST_TX: usize = 4 << 10;

const DOMAIN: &str = "theta/chain/transaction/v1";
const SEALED: u8 = 1;
const OPENING: u8 = 2;
const VOID: u8 = 3;
const PLAIN: u8 = 4;
const ORDERED: u8 = 5;

/// Bytes that are no transaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// Too long.
    #[error("a transaction has {MOST_TX} bytes at most")]
    TooLong,
    /// Anything else.
    #[error("no transaction: {0}")]
    Malformed(#[from] DecodeError),
}

/// A transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// An order that nobody can read yet.
    Sealed(Sealed),
    /// The key of an order that has its place.
    Opening(Opening),
    /// A validator's word that no shares open an order that has its place.
    Void(VoidWord),
    /// An order that everybody can read.
    Plain(Plain),
    /// A message of a node to all nodes, which need it in one order.
    Ordered(OrderedMessage),
}

/// An order that nobody can read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Who sends it.
    pub trader: AccountId,
    /// Its number among his orders, from 0.
    pub number: u64,
    /// Header and sealed payload.
    pub ciphertext: Bytes,
    /// The trader's Ed25519 signature over all this and the chain's name.
    pub signature: [u8; 64],
}

/// The payload key of an order that has its place. Anybody can make one who knows the key, and everybody checks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Which order.
    pub id: SealId,
    /// The payload key.
    pub key: [u8; 32],
}

/// A validator's word that no shares open an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoidWord {
    /// Which order.
    pub id: SealId,
    /// The validator's place in the genesis, from 0.
    pub validator: u16,
    /// Its Ed25519 signature over this and the chain's name.
    pub signature: [u8; 64],
}

/// A message of a node to all nodes, which the chain gives a place and otherwise ignores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedMessage {
    /// The place of the validator beside the node in the genesis, from 0.
    pub validator: u16,
    /// Its number among the validator's, which has a place once.
    pub number: u64,
    /// The message.
    pub message: Bytes,
    /// The validator's Ed25519 signature over this and the chain's name.
    pub signature: [u8; 64],
}

/// An order that everybody can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// Who sends it.
    pub trader: AccountId,
    /// Its number among his orders, from 0.
    pub number: u64,
    /// The order.
    pub order: Order,
    /// The trader's Ed25519 signature over all this and the chain's name.
    pub signature: [u8; 64],
}

impl Transaction {
    /// The bytes that are ordered.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let writer = Writer::of(DOMAIN);
        match self {
            Self::Sealed(Sealed { trader, number, ciphertext, signature }) => {
                writer.u8(SEALED).raw(trader).u64(*number).bytes(ciphertext).raw(signature)
            }
            Self::Opening(Opening { id, key }) => writer.u8(OPENING).raw(id).raw(key),
            Self::Void(VoidWord { id, validator, signature }) => writer.u8(VOID).raw(id).u16(*validator).raw(signature),
            Self::Plain(Plain { trader, number, order, signature }) => {
                writer.u8(PLAIN).raw(trader).u64(*number).raw(&order.encode()).raw(signature)
            }
            Self::Ordered(OrderedMessage { validator, number, message, signature }) => {
                writer.u8(ORDERED).u16(*validator).u64(*number).bytes(message).raw(signature)
            }
        }
        .finish()
        .into()
    }

    /// The transaction that these bytes are the encoding of.
    ///
    /// # Errors
    /// [`TransactionError`].
    pub fn decode(bytes: &Bytes) -> Result<Self, TransactionError> {
        if bytes.len() > MOST_TX {
            return Err(TransactionError::TooLong);
        }
        let mut reader = Reader::of(bytes, DOMAIN)?;
        let transaction = match reader.u8()? {
            SEALED => {
                let (trader, number) = (reader.array()?, reader.u64()?);
                let ciphertext = bytes.slice_ref(reader.bytes_within(MOST_TX)?);
                Self::Sealed(Sealed { trader, number, ciphertext, signature: reader.array()? })
            }
            OPENING => Self::Opening(Opening { id: reader.array()?, key: reader.array()? }),
            VOID => Self::Void(VoidWord { id: reader.array()?, validator: reader.u16()?, signature: reader.array()? }),
            PLAIN => {
                let (trader, number) = (reader.array()?, reader.u64()?);
                let order = Order::decode(reader.take(super::ORDER_LEN)?);
                let order = order.ok_or(DecodeError::Field("an order"))?;
                Self::Plain(Plain { trader, number, order, signature: reader.array()? })
            }
            ORDERED => {
                let (validator, number) = (reader.u16()?, reader.u64()?);
                let message = bytes.slice_ref(reader.bytes_within(MOST_TX)?);
                Self::Ordered(OrderedMessage { validator, number, message, signature: reader.array()? })
            }
            _ => return Err(DecodeError::Field("the kind of a transaction").into()),
        };
        Ok(reader.end(transaction)?)
    }
}

impl Sealed {
    /// What the trader signs.
    #[must_use]
    pub fn signed(chain: &str, trader: &AccountId, number: u64, ciphertext: &[u8]) -> Vec<u8> {
        let digest = Sha256::digest(ciphertext);
        Writer::of("theta/chain/sealed/v1").text(chain).raw(trader).u64(number).raw(&digest).finish()
    }

    pub(super) fn is_signed(&self, chain: &str) -> bool {
        let message = Self::signed(chain, &self.trader, self.number, &self.ciphertext);
        verifies(&self.trader, &message, &self.signature)
    }
}

impl Plain {
    /// What the trader signs.
    #[must_use]
    pub fn signed(chain: &str, trader: &AccountId, number: u64, order: &Order) -> Vec<u8> {
        Writer::of("theta/chain/plain/v1").text(chain).raw(trader).u64(number).raw(&order.encode()).finish()
    }

    pub(super) fn is_signed(&self, chain: &str) -> bool {
        let message = Self::signed(chain, &self.trader, self.number, &self.order);
        verifies(&self.trader, &message, &self.signature)
    }
}

impl OrderedMessage {
    /// What the validator signs.
    #[must_use]
    pub fn signed(chain: &str, validator: u16, number: u64, message: &[u8]) -> Vec<u8> {
        Writer::of("theta/chain/ordered/v1").text(chain).u16(validator).u64(number).bytes(message).finish()
    }

    pub(super) fn is_signed(&self, chain: &str, validator: &[u8; 32]) -> bool {
        verifies(validator, &Self::signed(chain, self.validator, self.number, &self.message), &self.signature)
    }
}

impl VoidWord {
    /// What the validator signs.
    #[must_use]
    pub fn signed(chain: &str, id: &SealId, validator: u16) -> Vec<u8> {
        Writer::of("theta/chain/void/v1").text(chain).raw(id).u16(validator).finish()
    }

    pub(super) fn is_signed(&self, chain: &str, validator: &[u8; 32]) -> bool {
        verifies(validator, &Self::signed(chain, &self.id, self.validator), &self.signature)
    }
}

fn verifies(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok()
}
