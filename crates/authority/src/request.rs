//! What is asked of a key: decoded once, at the door, and read by everybody below.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use theta_custody::{KeyEntry, KeyTable, ResolveError};
use theta_groups::Secret;
use theta_names::{KeyRef, Operation, Version};
use theta_schemes::{RequestError, Statement, ciphers::HeaderBytes, keys::KeyId};

/// The seed of a re-randomised key; clones share it.
pub type Seed = Arc<Secret<Vec<u8>>>;

/// What a key is asked to do, as it comes from outside.
#[derive(Clone, Debug)]
pub enum KeyRequest {
    /// Unwrap the payload key of the ciphertext with this header.
    Decapsulate(Bytes),
    /// The same, and the payload is opened at the node.
    Decrypt(Bytes),
    /// Sign this message.
    Sign(Bytes),
    /// Sign this message under a re-randomised key, which is made of the seed and of the commitments that the outcome's
    /// proof holds. For FROST keys.
    SignRandomized {
        /// The message.
        message: Bytes,
        /// 32 to 64 random bytes, known to the nodes and to the client alone.
        seed: Seed,
    },
    /// Sign the message with this digest, by the hash function of the key's suite.
    SignDigest(Bytes),
    /// Draw the coin of this name.
    FlipCoin(Bytes),
}

/// What a key answers, parsed; clones share its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedStatement {
    /// The header of the ciphertext to open.
    Header(HeaderBytes),
    /// The message to sign.
    Message(Bytes),
    /// The digest of the message to sign.
    Digest(Bytes),
    /// The name of the coin to draw.
    CoinName(Bytes),
}

impl ParsedStatement {
    /// As the schemes have it; they parse no header again.
    #[must_use]
    pub fn as_statement(&self) -> Statement<'_> {
        match self {
            Self::Header(header) => Statement::Header(header),
            Self::Message(message) => Statement::Sign(message),
            Self::Digest(digest) => Statement::SignDigest(digest),
            Self::CoinName(name) => Statement::FlipCoin(name),
        }
    }

    /// All of its bytes, whatever it is.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        match self {
            Self::Header(header) => header.bytes(),
            Self::Message(bytes) | Self::Digest(bytes) | Self::CoinName(bytes) => bytes,
        }
    }

    /// How long it is, in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Whether it has no bytes, as an empty message.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// The key that a ciphertext is encrypted to.
    #[must_use]
    pub const fn key_id(&self) -> Option<&KeyId> {
        match self {
            Self::Header(header) => Some(header.key_id()),
            Self::Message(_) | Self::Digest(_) | Self::CoinName(_) => None,
        }
    }

    /// The same with a buffer of its own: what comes from the network is a view that keeps a whole message alive.
    #[must_use]
    pub fn with_own_buffer(&self) -> Self {
        match self {
            Self::Header(header) => Self::Header(header.with_own_buffer()),
            Self::Message(bytes) => Self::Message(Bytes::copy_from_slice(bytes)),
            Self::Digest(bytes) => Self::Digest(Bytes::copy_from_slice(bytes)),
            Self::CoinName(bytes) => Self::CoinName(Bytes::copy_from_slice(bytes)),
        }
    }
}

/// A request to a key: the same request at every node meets in the same instance.
///
/// It is made at a node's door, which decodes it and looks its key up in the node's own table, once. It asks for nothing yet:
/// only the gate makes a [`Granted`](crate::Granted) of it.
#[derive(Clone, Debug)]
pub struct Request {
    key: KeyRef,
    operation: Operation,
    statement: ParsedStatement,
    seed: Option<Seed>,
    slot: Option<u64>,
    /// Not to be told to anybody who may not use the key, so no words are made of it yet; `None` if there was nothing.
    found: Option<Found>,
    /// The key table that was looked at, and its generation.
    seen: (u64, u64),
}

/// What a name stood for at the door.
#[derive(Clone, Debug)]
struct Found {
    /// The version that answers; no other one does, whatever the name stands for later.
    version: Version,
    /// Held weakly: a share that has left the key table lives no longer because somebody's request waits.
    entry: Weak<KeyEntry>,
}

impl Request {
    /// Decodes what is asked and looks its key up. That there is no such key is for those to hear whom the gate lets in:
    /// [`Request::entry`] says it.
    ///
    /// # Errors
    /// The bytes are no header of a ciphertext.
    pub fn new(keys: &KeyTable, key: KeyRef, asked: KeyRequest) -> Result<Self, RequestError> {
        use Operation::{Decapsulate, Decrypt, FlipCoin, Sign, SignDigest};
        use ParsedStatement::{CoinName, Digest, Header, Message};
        let (operation, statement, seed) = match asked {
            KeyRequest::Decapsulate(header) => (Decapsulate, Header(HeaderBytes::parse(header)?), None),
            KeyRequest::Decrypt(header) => (Decrypt, Header(HeaderBytes::parse(header)?), None),
            KeyRequest::Sign(message) => (Sign, Message(message), None),
            KeyRequest::SignRandomized { message, seed } => (Sign, Message(message), Some(seed)),
            KeyRequest::SignDigest(digest) => (SignDigest, Digest(digest), None),
            KeyRequest::FlipCoin(name) => (FlipCoin, CoinName(name), None),
        };
        // Read first: a table that changes after it is looked at again.
        let seen = (keys.id(), keys.generation());
        let found = keys.look_up(&key, statement.key_id());
        let found = found.map(|entry| Found { version: entry.version, entry: Arc::downgrade(&entry) });
        Ok(Self { key, operation, statement, seed, slot: None, found, seen })
    }

    /// For a slot, which signing rules count.
    #[must_use]
    pub fn at(mut self, slot: Option<u64>) -> Self {
        self.slot = slot;
        self
    }

    /// The key, as it was asked for.
    #[must_use]
    pub const fn key(&self) -> &KeyRef {
        &self.key
    }

    /// What for.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        self.operation
    }

    /// What the key answers.
    #[must_use]
    pub const fn statement(&self) -> &ParsedStatement {
        &self.statement
    }

    /// The seed of the re-randomised key that it answers under, if any.
    #[must_use]
    pub const fn seed(&self) -> Option<&Seed> {
        self.seed.as_ref()
    }

    /// The slot that it is for, if any.
    #[must_use]
    pub const fn slot(&self) -> Option<u64> {
        self.slot
    }

    /// The version of the key that answers, and the generation of the key table in which it was found: the version that the
    /// name stood for when the request was made, before the policy was asked, and no other one. `keys` is the table that the
    /// request was made with. That version is looked up again only if the table has changed meanwhile.
    ///
    /// # Errors
    /// [`ResolveError`]: there was no such key, or that version does not serve here (any more).
    pub fn entry(&self, keys: &KeyTable) -> Result<(Arc<KeyEntry>, u64), ResolveError> {
        let generation = keys.generation();
        // What has come to be since is not what the policy was asked about.
        let found = self.found.as_ref().ok_or_else(|| keys.absent(&self.key))?;
        let unchanged = (keys.id(), generation) == self.seen;
        let entry = match found.entry.upgrade().filter(|_| unchanged) {
            Some(entry) => keys.serving(entry)?,
            None => {
                let exactly = KeyRef { name: self.key.name.clone(), version: Some(found.version) };
                keys.resolve(&exactly, None)?
            }
        };
        Ok((entry, generation))
    }

    /// What is kept of it while an instance answers: key, statement and seed.
    #[must_use]
    pub fn into_parts(self) -> (KeyRef, ParsedStatement, Option<Seed>) {
        (self.key, self.statement, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_header_never_become_a_request() {
        let (keys, noise) = (KeyTable::default(), Bytes::from_static(b"noise"));
        let ask = |asked| Request::new(&keys, "files@2".parse().unwrap(), asked);
        for asked in [KeyRequest::Decapsulate(noise.clone()), KeyRequest::Decrypt(noise.clone())] {
            assert!(matches!(ask(asked), Err(RequestError::Header(_))));
        }
        let request = ask(KeyRequest::Sign(noise.clone())).unwrap().at(Some(7));
        assert_eq!((request.operation(), request.slot()), (Operation::Sign, Some(7)));
        assert_eq!(request.key().version, Version::new(2));
        assert_eq!(request.statement(), &ParsedStatement::Message(noise));
        // That the key is not there is known, and kept for those who may hear it.
        assert!(matches!(request.entry(&keys), Err(ResolveError::Unknown { .. })));
    }
}
