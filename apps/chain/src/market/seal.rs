//! Sealed orders: how a trader makes one, and what everybody checks before it gets a place.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use bytes::Bytes;
use rand_core::CryptoRng;
use theta_payload::{Aead, HeaderBytes, encrypt_bytes, split_ciphertext};
use theta_schemes::{Statement, keys::AnyPublicKey};

use super::{AccountId, ORDER_LEN, Order, Plain, Refusal, Sealed, Terms, Transaction};

/// What a sealed order's ciphertext is bound to: chain, trader, number. The proof in its header covers it, so that nobody sends a copy
/// as his own. Readable text, so that nodes' policies can name its beginning.
#[must_use]
pub fn label_of(chain: &str, trader: &AccountId, number: u64) -> String {
    format!("theta-chain/{chain}/{}/{number}", hex::encode(trader))
}

/// Checks that a ciphertext is a valid one for this chain, trader and number.
pub(super) fn check(terms: &Terms, sealed: &Sealed) -> Result<(), Refusal> {
    let wrong = |what: &str| Refusal::Ciphertext(what.to_owned());
    let split = split_ciphertext(&sealed.ciphertext).map_err(|error| Refusal::Ciphertext(error.to_string()))?;
    let parsed = HeaderBytes::parse(sealed.ciphertext.slice_ref(split.0));
    let parsed = parsed.map_err(|error| Refusal::Ciphertext(error.to_string()))?;
    let header = parsed.header();
    if header.key_id() != terms.key().key_id() {
        return Err(wrong("it is encrypted to another key"));
    }
    if header.label().bytes() != label_of(terms.chain(), &sealed.trader, sealed.number).as_bytes() {
        return Err(wrong("its label is of another chain, trader or number"));
    }
    if header.payload().plaintext_len() != ORDER_LEN as u64 {
        return Err(wrong("its contents are longer or shorter than an order"));
    }
    let checked = terms.key().check_request(Statement::Header(&parsed));
    checked.map_err(|error| Refusal::Ciphertext(error.to_string()))
}

/// A trader's key, with which orders are made.
pub struct Trader {
    pair: Ed25519KeyPair,
    id: AccountId,
}

impl core::fmt::Debug for Trader {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Trader").field(&hex::encode(self.id)).finish()
    }
}

impl Trader {
    /// A trader with this secret; `None` if the system's cryptography refuses it.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Option<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).ok()?;
        let id = pair.public_key().as_ref().try_into().ok()?;
        Some(Self { pair, id })
    }

    /// The account's name.
    #[must_use]
    pub const fn id(&self) -> &AccountId {
        &self.id
    }

    /// Signs with the trader's key.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        let signature = self.pair.sign(message);
        // An Ed25519 signature has 64 bytes.
        signature.as_ref().try_into().unwrap_or([0; 64])
    }

    /// An order that nobody can read until it has its place.
    ///
    /// # Errors
    /// [`Refusal::Ciphertext`] if the key is not for encryption.
    pub fn sealed(
        &self,
        chain: &str,
        key: &AnyPublicKey,
        number: u64,
        order: &Order,
        rng: &mut impl CryptoRng,
    ) -> Result<Bytes, Refusal> {
        let label = label_of(chain, &self.id, number);
        let ciphertext = encrypt_bytes(key, &order.encode(), label.as_bytes(), Aead::default(), rng);
        let ciphertext = ciphertext.map_err(|error| Refusal::Ciphertext(error.to_string()))?;
        Ok(self.sealed_as(chain, number, ciphertext.into()))
    }

    /// A transaction with this ciphertext, whatever it is.
    #[must_use]
    pub fn sealed_as(&self, chain: &str, number: u64, ciphertext: Bytes) -> Bytes {
        let signature = self.sign(&Sealed::signed(chain, &self.id, number, &ciphertext));
        Transaction::Sealed(Sealed { trader: self.id, number, ciphertext, signature }).encode()
    }

    /// An order that everybody can read.
    #[must_use]
    pub fn plain(&self, chain: &str, number: u64, order: Order) -> Bytes {
        let signature = self.sign(&Plain::signed(chain, &self.id, number, &order));
        Transaction::Plain(Plain { trader: self.id, number, order, signature }).encode()
    }
}
