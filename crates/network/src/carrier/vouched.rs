//! Messages with their author's signature, for carriers in which others than the author pass a message on, and want to know before that whose it is.

use bytes::{BufMut, Bytes, BytesMut};
use sha2::{Digest, Sha256};

use super::{
    frame::Signed,
    handshake::{is_right, sign},
};
use crate::{Fingerprint, Identity};

/// A message that claims to be of the owner of a key, with the signature that proves it.
///
/// Format: `length (2) | SubjectPublicKeyInfo | scheme (2) | length (2) | signature | body`, big-endian; schemes as in TLS 1.3 (RFC 8446, 4.2.3).
/// The signature is over a context and the body.
#[derive(Clone, Debug)]
pub struct Vouched {
    author: Fingerprint,
    signed: Signed,
    body: Bytes,
}

impl Vouched {
    /// Signs a body with the key of this node's certificate. `None`: the key can do none of the schemes.
    ///
    /// `context` says what the signature is for. No context may begin another one's, nor anything else that the key signs.
    #[must_use]
    pub fn sign(identity: &Identity, context: &[u8], body: &[u8]) -> Option<Bytes> {
        let signed = sign(identity, &[context, body].concat())?;
        let mut message = BytesMut::with_capacity(body.len().saturating_add(512));
        signed.put(&mut message);
        message.put_slice(body);
        Some(message.freeze())
    }

    /// Reads a message, without checking the signature. `None`: it is none.
    #[must_use]
    pub fn read(mut message: Bytes) -> Option<Self> {
        let signed = Signed::take(&mut message)?;
        let author = Fingerprint::from(<[u8; 32]>::from(Sha256::digest(&signed.key)));
        Some(Self { author, signed, body: message })
    }

    /// The key in whose name it is.
    #[must_use]
    pub const fn author(&self) -> Fingerprint {
        self.author
    }

    /// What the author says. Believe it only if the signature [is right](Self::is_right).
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// Whether the author has signed it, for this context. Takes some 50 us with a key on P-256 or Ed25519.
    #[must_use]
    pub fn is_right(&self, context: &[u8]) -> bool {
        is_right(&self.author, &[context, &self.body].concat(), &self.signed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn identity() -> Identity {
        let made = Identity::generate("node").unwrap();
        Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap()
    }

    #[test]
    fn a_message_is_its_authors_for_one_context() {
        let (one, other) = (identity(), identity());
        let message = Vouched::sign(&one, b"context", b"body").unwrap();
        let read = Vouched::read(message.clone()).unwrap();
        assert_eq!((read.author(), &read.body()[..]), (one.fingerprint(), &b"body"[..]));
        assert!(read.is_right(b"context"));
        assert!(!read.is_right(b"another"));
        let mut bent = message.to_vec();
        *bent.last_mut().unwrap() ^= 1;
        assert!(!Vouched::read(bent.into()).unwrap().is_right(b"context"));
        // Another's signature over the same, with the first one's key.
        let theirs = Vouched::read(Vouched::sign(&other, b"context", b"body").unwrap()).unwrap();
        let mixed = Vouched { signed: Signed { key: read.signed.key.clone(), ..theirs.signed }, ..read };
        assert!(!mixed.is_right(b"context"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Some(read) = Vouched::read(bytes.into()) {
                prop_assert!(!read.is_right(b"context"));
            }
        }
    }
}
