//! What never changes: the chain's name, the key that orders are encrypted to, the validators.

use serde::{Deserialize, Serialize};
use theta_keyfiles::PublicKeyText as _;
use theta_schemes::{Purpose, keys::AnyPublicKey};

use super::{MOST_MESSAGES, MOST_MESSAGES_OF_ONE, Pool};

/// The longest genesis, in bytes, and the longest name of a chain: the state has both, and is read within these bounds.
pub(super) const MOST_GENESIS: usize = 1 << 20;
pub(super) const MOST_NAME: usize = 256;

/// An account of the genesis.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenesisAccount {
    /// The trader's Ed25519 public key, in hexadecimal digits.
    pub trader: String,
    /// What he has of the first good.
    pub coin: u64,
    /// What he has of the second.
    pub gold: u64,
}

/// What the chain begins with: `app_state` in CometBFT's genesis file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Genesis {
    /// The `.pub` file of the group's key.
    pub key: String,
    /// The Ed25519 public keys with which validators say what cannot be opened, in hexadecimal digits, in the order of their numbers.
    pub validators: Vec<String>,
    /// Whether orders that everybody can read are taken, too: to show what happens to them.
    pub plain_orders: bool,
    /// Who has what.
    pub accounts: Vec<GenesisAccount>,
    /// What the exchange has.
    pub pool: Pool,
}

impl Genesis {
    /// As the state has it.
    pub(super) fn encode(&self) -> Vec<u8> {
        // It is a struct of texts and numbers, which JSON has.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Why a genesis makes no sense.
#[derive(Debug, thiserror::Error)]
pub enum TermsError {
    /// The key.
    #[error("the key of the genesis: {0}")]
    Key(String),
    /// A public key of somebody.
    #[error("{0:?} is no Ed25519 public key in 64 hexadecimal digits")]
    PublicKey(String),
    /// The genesis as a whole.
    #[error("the genesis has {0} bytes, of which a state has room for {MOST_GENESIS}: give it fewer accounts")]
    TooLong(usize),
    /// The chain's name.
    #[error(
        "{0:?} is no name of a chain here: labels of orders are CHAIN/TRADER/NUMBER, and names with `/` would be the beginning of others'"
    )]
    Chain(String),
    /// The validators.
    #[error("{validators} validators cannot outvote those that may lie: the key takes {k} of {n} shares")]
    Validators {
        /// How many there are.
        validators: usize,
        /// The key's threshold.
        k: u16,
        /// The key's shares.
        n: u16,
    },
}

/// The genesis, parsed, without what changes.
#[derive(Debug)]
pub struct Terms {
    chain: String,
    key: AnyPublicKey,
    key_name: String,
    validators: Vec<[u8; 32]>,
    plain_orders: bool,
    genesis: Genesis,
}

impl Terms {
    pub(super) fn new(chain: &str, genesis: &Genesis) -> Result<Self, TermsError> {
        if chain.is_empty() || chain.contains('/') || chain.len() > MOST_NAME {
            return Err(TermsError::Chain(chain.to_owned()));
        }
        // A chain whose state could not be read again would stop at the first restart.
        let bytes = genesis.encode().len();
        if bytes > MOST_GENESIS {
            return Err(TermsError::TooLong(bytes));
        }
        let (name, key) = AnyPublicKey::from_text(&genesis.key).map_err(|error| TermsError::Key(error.to_string()))?;
        if key.suite().purpose() != Purpose::Decrypt {
            return Err(TermsError::Key(format!("{} is not for encryption", key.suite())));
        }
        let validators: Vec<_> = genesis.validators.iter().map(|key| key_of(key)).collect::<Result<_, _>>()?;
        let threshold = key.threshold();
        if validators.len() < usize::from(threshold.k()) || validators.len() > usize::from(u16::MAX) {
            let (k, n) = (threshold.k(), threshold.n());
            return Err(TermsError::Validators { validators: validators.len(), k, n });
        }
        Ok(Self {
            chain: chain.to_owned(),
            key,
            key_name: name.to_string(),
            validators,
            plain_orders: genesis.plain_orders,
            genesis: genesis.clone(),
        })
    }

    /// The chain's name.
    #[must_use]
    pub fn chain(&self) -> &str {
        &self.chain
    }

    /// The key that orders are encrypted to.
    #[must_use]
    pub const fn key(&self) -> &AnyPublicKey {
        &self.key
    }

    /// What the nodes call it.
    #[must_use]
    pub fn key_name(&self) -> &str {
        &self.key_name
    }

    /// The public key of a validator, by its place.
    #[must_use]
    pub fn validator(&self, place: u16) -> Option<&[u8; 32]> {
        self.validators.get(usize::from(place))
    }

    /// How many messages of nodes one validator may have in a block: less where there are many, so that none of them takes the others' room.
    #[must_use]
    pub fn most_messages_of_one(&self) -> usize {
        let part = MOST_MESSAGES.checked_div(self.validators.len()).unwrap_or(MOST_MESSAGES);
        part.clamp(1, MOST_MESSAGES_OF_ONE)
    }

    /// How many validators have to say that an order cannot be opened: one more than may lie.
    #[must_use]
    pub fn words(&self) -> usize {
        usize::from(self.key.threshold().k())
    }

    /// Whether orders that everybody can read are taken.
    #[must_use]
    pub const fn takes_plain(&self) -> bool {
        self.plain_orders
    }

    /// What the chain began with.
    #[must_use]
    pub const fn genesis(&self) -> &Genesis {
        &self.genesis
    }
}

pub(super) fn key_of(text: &str) -> Result<[u8; 32], TermsError> {
    let mut key = [0; 32];
    hex::decode_to_slice(text, &mut key).map_err(|_| TermsError::PublicKey(text.to_owned()))?;
    Ok(key)
}
