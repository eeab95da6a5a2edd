//! Who signs: the nodes of the group, each of which asks its registry's agent first.

use std::cell::Cell;

use rpki::crypto::{PublicKey, PublicKeyFormat, Signature, SignatureAlgorithm, Signer, SigningError, signer::KeyError};
use theta_client::blocking::Client;

/// Why something was not signed, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsigned(pub String);

/// Signs with keys that it knows by their names at the nodes.
pub trait Hands: Sync {
    /// A signature of RSA by PKCS #1 v1.5 with SHA-256 under these bytes.
    ///
    /// # Errors
    /// [`Unsigned`]: who refused, and why.
    fn sign(&self, key: &str, bytes: &[u8]) -> Result<Vec<u8>, Unsigned>;
}

impl Hands for Client {
    fn sign(&self, key: &str, bytes: &[u8]) -> Result<Vec<u8>, Unsigned> {
        let answer = self.sign(key, bytes.to_vec().into());
        answer.map(|answer| answer.result.to_vec()).map_err(|error| Unsigned(error.to_string()))
    }
}

/// A key: its name at the nodes, and its public key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'a> {
    pub(crate) name: &'a str,
    pub(crate) public: &'a PublicKey,
}

/// The library's signer for one thing that an authority signs, which may be an object with a key of its own.
pub(crate) struct Pair<'a> {
    hands: &'a dyn Hands,
    authority: Key<'a>,
    object: Option<Key<'a>>,
    is_asked: Cell<bool>,
}

impl<'a> Pair<'a> {
    pub(crate) fn new(hands: &'a dyn Hands, authority: Key<'a>, object: Option<Key<'a>>) -> Self {
        Self { hands, authority, object, is_asked: Cell::new(false) }
    }

    /// Whether the authority was asked.
    pub(crate) fn is_authority_asked(&self) -> bool {
        self.is_asked.get()
    }

    fn signature<A: SignatureAlgorithm>(&self, key: &str, algorithm: A, data: &[u8]) -> Result<Signature<A>, Unsigned> {
        let signed = self.hands.sign(key, data).map_err(|Unsigned(reason)| Unsigned(format!("{key}: {reason}")))?;
        Ok(Signature::new(algorithm, signed.into()))
    }
}

impl Signer for Pair<'_> {
    /// There is one: the authority's.
    type KeyId = ();
    type Error = Unsigned;

    fn create_key(&self, _: PublicKeyFormat) -> Result<(), Unsigned> {
        Err(Unsigned("keys are made by the nodes".to_owned()))
    }

    fn get_key_info(&self, (): &()) -> Result<PublicKey, KeyError<Unsigned>> {
        Ok(self.authority.public.clone())
    }

    fn destroy_key(&self, (): &()) -> Result<(), KeyError<Unsigned>> {
        Err(KeyError::Signer(Unsigned("keys are destroyed by the nodes".to_owned())))
    }

    fn sign<A: SignatureAlgorithm, D: AsRef<[u8]> + ?Sized>(
        &self,
        (): &(),
        algorithm: A,
        data: &D,
    ) -> Result<Signature<A>, SigningError<Unsigned>> {
        self.is_asked.set(true);
        Ok(self.signature(self.authority.name, algorithm, data.as_ref())?)
    }

    fn sign_one_off<A: SignatureAlgorithm, D: AsRef<[u8]> + ?Sized>(
        &self,
        algorithm: A,
        data: &D,
    ) -> Result<(Signature<A>, PublicKey), Unsigned> {
        let key = self.object.ok_or_else(|| Unsigned("no key was chosen for the object".to_owned()))?;
        Ok((self.signature(key.name, algorithm, data.as_ref())?, key.public.clone()))
    }

    fn rand(&self, target: &mut [u8]) -> Result<(), Unsigned> {
        getrandom::fill(target).map_err(|error| Unsigned(error.to_string()))
    }
}
