//! Who signs: the nodes of the group, each of which asks its registry's agent first.

use std::{
    cell::Cell,
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

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

    /// The same for several things at once: what came of each, in their order.
    fn sign_all(&self, wanted: &[Wanted]) -> Vec<Result<Vec<u8>, Unsigned>> {
        wanted.iter().map(|Wanted { key, bytes }| self.sign(key, bytes)).collect()
    }
}

/// What is to be signed, with the name of the key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// The key's name at the nodes.
    pub key: String,
    /// What the signature covers.
    pub bytes: Vec<u8>,
}

impl Hands for Client {
    fn sign(&self, key: &str, bytes: &[u8]) -> Result<Vec<u8>, Unsigned> {
        let answer = self.sign(key, bytes.to_vec().into());
        answer.map(|answer| answer.result.to_vec()).map_err(|error| Unsigned(error.to_string()))
    }

    fn sign_all(&self, wanted: &[Wanted]) -> Vec<Result<Vec<u8>, Unsigned>> {
        let asks: Vec<_> = wanted.iter().map(|one| (one.key.as_str(), one.bytes.clone().into())).collect();
        match self.sign_each(&asks) {
            Ok(answers) => {
                let signed = answers.into_iter().map(|answer| answer.map(|answer| answer.result.to_vec()));
                signed.map(|signed| signed.map_err(|error| Unsigned(error.to_string()))).collect()
            }
            Err(error) => wanted.iter().map(|_| Err(Unsigned(error.to_string()))).collect(),
        }
    }
}

/// What is made takes so many signatures at most, one after the other: an object's own key signs first, and then the authority.
const MOST_ROUNDS: usize = 2;

/// Makes several things together: what each of them wants to have signed next is signed in one call. The library signs while it makes something, so each thing is
/// made again for each signature that it takes, of the same bytes, and finds those that are there.
pub(crate) fn together<I, T>(hands: &dyn Hands, of: &[I], make: impl Fn(&dyn Hands, &I) -> T) -> Vec<T> {
    let mut ahead = Ahead::default();
    let all = |ahead: &Ahead| of.iter().map(|one| make(ahead, one)).collect::<Vec<T>>();
    for _ in 0..MOST_ROUNDS {
        let made = all(&ahead);
        let wanted = std::mem::take(ahead.wanted.get_mut().unwrap_or_else(PoisonError::into_inner));
        if wanted.is_empty() {
            return made;
        }
        let signed = hands.sign_all(&wanted);
        ahead.signed.extend(wanted.into_iter().zip(signed));
    }
    all(&ahead)
}

/// What was signed, or not, and what is still wanted.
#[derive(Default)]
struct Ahead {
    signed: HashMap<Wanted, Result<Vec<u8>, Unsigned>>,
    wanted: Mutex<Vec<Wanted>>,
}

impl Hands for Ahead {
    fn sign(&self, key: &str, bytes: &[u8]) -> Result<Vec<u8>, Unsigned> {
        let wanted = Wanted { key: key.to_owned(), bytes: bytes.to_vec() };
        let signed = self.signed.get(&wanted).cloned();
        signed.unwrap_or_else(|| {
            let mut all = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
            if !all.contains(&wanted) {
                all.push(wanted);
            }
            Err(Unsigned("it was not asked for yet".to_owned()))
        })
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
