//! Requests to keys, decoded once by the front end and read by every crate below.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use theta_custody::{KeyEntry, KeyTable, ResolveError};
use theta_groups::Secret;
use theta_names::{KeyRef, Operation, Version};
use theta_schemes::{RequestError, Statement, ciphers::HeaderBytes, keys::KeyId};

/// The seed of a re-randomised key; clones share it.
pub type Seed = Arc<Secret<Vec<u8>>>;

/// What a key is asked to do, as the client sent it.
#[derive(Clone, Debug)]
pub enum KeyRequest {
    /// Unwrap the payload key of the ciphertext with this header.
    Decapsulate(Bytes),
    /// The same; then the node also opens the payload, for which the front end has parsed the header.
    Decrypt(HeaderBytes),
    /// Sign this message.
    Sign(Bytes),
    /// Sign this message under a re-randomised key, which follows from the seed and from the commitments in the
    /// outcome's proof. For FROST keys.
    SignRandomized {
        /// The message.
        message: Bytes,
        /// 32 to 64 random bytes, known only to the nodes and to the client.
        seed: Seed,
    },
    /// Sign the message with this digest, by the hash function of the key's suite.
    SignDigest(Bytes),
    /// Draw the coin of this name.
    FlipCoin(Bytes),
}

/// The statement that a key answers, parsed; clones share its bytes.
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
    /// The statement in the schemes' type; they do not parse the header again.
    #[must_use]
    pub fn as_statement(&self) -> Statement<'_> {
        match self {
            Self::Header(header) => Statement::Header(header),
            Self::Message(message) => Statement::Sign(message),
            Self::Digest(digest) => Statement::SignDigest(digest),
            Self::CoinName(name) => Statement::FlipCoin(name),
        }
    }

    /// All of its bytes, of whatever kind it is.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        match self {
            Self::Header(header) => header.bytes(),
            Self::Message(bytes) | Self::Digest(bytes) | Self::CoinName(bytes) => bytes,
        }
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Whether it has no bytes, as an empty message has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// The key id in a ciphertext's header; `None` for other statements.
    #[must_use]
    pub const fn key_id(&self) -> Option<&KeyId> {
        match self {
            Self::Header(header) => Some(header.key_id()),
            Self::Message(_) | Self::Digest(_) | Self::CoinName(_) => None,
        }
    }

    /// A copy with a buffer of its own: bytes from the network are a view that keeps a whole message alive.
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

/// A request to a key. The same request at every node leads to the same instance.
///
/// The front end makes it: it decodes the request and looks up its key in the node's own table, once. The request alone
/// allows nothing: only the gate makes a [`Granted`](crate::Granted) of it.
#[derive(Clone, Debug)]
pub struct Request {
    key: KeyRef,
    operation: Operation,
    statement: ParsedStatement,
    seed: Option<Seed>,
    slot: Option<u64>,
    /// The key that was found; `None` if there was none. A client that may not use the key must not learn which, so no
    /// error is made yet.
    found: Option<Found>,
    /// The id of the key table, and its generation at the time.
    seen: (u64, u64),
}

/// What the key's name meant when the request was made.
#[derive(Clone, Debug)]
struct Found {
    /// The version that answers. No other one does, whatever the name means later.
    version: Version,
    /// Held weakly, so that a share that has left the key table is not kept because a request waits.
    entry: Weak<KeyEntry>,
}

impl Request {
    /// Decodes the request and looks its key up. That there is no such key is an error of [`Request::entry`], since
    /// only clients that the gate lets in may learn it.
    ///
    /// # Errors
    /// The bytes are not the header of a ciphertext.
    pub fn new(keys: &KeyTable, key: KeyRef, asked: KeyRequest) -> Result<Self, RequestError> {
        use Operation::{Decapsulate, Decrypt, FlipCoin, Sign, SignDigest};
        use ParsedStatement::{CoinName, Digest, Header, Message};
        let (operation, statement, seed) = match asked {
            KeyRequest::Decapsulate(header) => (Decapsulate, Header(HeaderBytes::parse(header)?), None),
            KeyRequest::Decrypt(header) => (Decrypt, Header(header), None),
            KeyRequest::Sign(message) => (Sign, Message(message), None),
            KeyRequest::SignRandomized { message, seed } => (Sign, Message(message), Some(seed)),
            KeyRequest::SignDigest(digest) => (SignDigest, Digest(digest), None),
            KeyRequest::FlipCoin(name) => (FlipCoin, CoinName(name), None),
        };
        // Read before the lookup, so that a table that changes afterwards is looked at again.
        let seen = (keys.id(), keys.generation());
        let found = keys.look_up(&key, statement.key_id());
        let found = found.map(|entry| Found { version: entry.version, entry: Arc::downgrade(&entry) });
        Ok(Self { key, operation, statement, seed, slot: None, found, seen })
    }

    /// Sets the slot, which signing rules decide about.
    #[must_use]
    pub fn at(mut self, slot: Option<u64>) -> Self {
        self.slot = slot;
        self
    }

    /// The key, as the request names it.
    #[must_use]
    pub const fn key(&self) -> &KeyRef {
        &self.key
    }

    /// The operation.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        self.operation
    }

    /// The statement that the key answers.
    #[must_use]
    pub const fn statement(&self) -> &ParsedStatement {
        &self.statement
    }

    /// The seed of the re-randomised key, if any.
    #[must_use]
    pub const fn seed(&self) -> Option<&Seed> {
        self.seed.as_ref()
    }

    /// The slot, if any.
    #[must_use]
    pub const fn slot(&self) -> Option<u64> {
        self.slot
    }

    /// The version of the key that answers, and the generation of the key table in which it was found. It is the
    /// version that the name meant when the request was made, before the policy was asked. `keys` is the table with
    /// which the request was made; the version is looked up again only if the table has changed since.
    ///
    /// # Errors
    /// [`ResolveError`]: there was no such key, or that version is not in use here (any more).
    pub fn entry(&self, keys: &KeyTable) -> Result<(Arc<KeyEntry>, u64), ResolveError> {
        let generation = keys.generation();
        // The policy was not asked about a key that came into being later.
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

    /// The parts that are kept while an instance answers: key, statement and seed.
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
        assert!(matches!(ask(KeyRequest::Decapsulate(noise.clone())), Err(RequestError::Header(_))));
        let request = ask(KeyRequest::Sign(noise.clone())).unwrap().at(Some(7));
        assert_eq!((request.operation(), request.slot()), (Operation::Sign, Some(7)));
        assert_eq!(request.key().version, Version::new(2));
        assert_eq!(request.statement(), &ParsedStatement::Message(noise));
        // The request knows that the key is absent, for callers that may learn it.
        assert!(matches!(request.entry(&keys), Err(ResolveError::Unknown { .. })));
    }
}
