//! A store key, wrapped by a sealing key.

use argon2::{Algorithm, Argon2, Params, Version};
use theta_groups::Secret;

use super::sealing_key::{Source, wrapping_key};
use super::{Argon2Cost, Chance, SALT_LEN, Sealer, SealingKey, TAG_LEN};
use crate::StoreError;
use crate::codec::{Decoder, Encoder, encoder};

const ARGON2_SALT_LEN: usize = 16;
/// Length of the wrapped key, in bytes: version, salt, key, tag.
const SEALED_LEN: usize = 1 + SALT_LEN + 32 + TAG_LEN;

/// How the wrapping key is derived.
#[derive(Clone, Copy, Debug)]
enum Method {
    Argon2id { cost: Argon2Cost, salt: [u8; ARGON2_SALT_LEN] },
    Key,
}

/// A store key under a sealing key, as it stands in clear at the head of a store or backup. The id of the store, the
/// method and its cost are authenticated, too.
#[derive(Clone, Debug)]
pub(crate) struct Wrapped {
    method: Method,
    sealed: Vec<u8>,
}

impl Wrapped {
    /// Wraps `store_key` for the store `id`.
    pub(crate) fn wrap(
        store_key: &Secret<[u8; 32]>,
        key: &SealingKey,
        table: &'static str,
        id: &[u8],
        chance: &Chance,
    ) -> Result<Self, StoreError> {
        let method = match &key.0 {
            Source::Passphrase { cost, .. } => Method::Argon2id { cost: *cost, salt: chance.array()? },
            Source::Key(_) => Method::Key,
        };
        let sealer = method.sealer(key)?.ok_or(StoreError::WrongKey(String::new()))?;
        let copy = Secret::new(store_key.expose().to_vec());
        let sealed = sealer.seal(table, &method.associated_data(id), copy, chance)?;
        Ok(Self { method, sealed })
    }

    /// Unwraps the store key. `place` is for errors.
    pub(crate) fn unwrap(
        &self,
        key: &SealingKey,
        table: &'static str,
        id: &[u8],
        place: &str,
    ) -> Result<Secret<[u8; 32]>, StoreError> {
        let other_kind = || StoreError::OtherKind { place: place.to_owned(), kind: self.method.kind() };
        let sealer = self.method.sealer(key)?.ok_or_else(other_kind)?;
        let opened = sealer.open(table, &self.method.associated_data(id), &self.sealed).ok();
        let mut store_key = Secret::new([0; 32]);
        match opened.filter(|opened| opened.expose().len() == 32) {
            Some(opened) => store_key.expose_mut().copy_from_slice(opened.expose()),
            None => return Err(StoreError::WrongKey(place.to_owned())),
        }
        Ok(store_key)
    }

    pub(crate) fn encode(&self, encoder: Encoder) -> Encoder {
        self.method.encode(encoder).raw(&self.sealed)
    }

    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, StoreError> {
        let method = Method::decode(decoder)?;
        Ok(Self { method, sealed: decoder.take(SEALED_LEN)?.to_vec() })
    }
}

impl Method {
    const fn kind(self) -> &'static str {
        match self {
            Self::Argon2id { .. } => "a passphrase",
            Self::Key => "a key",
        }
    }

    /// The sealer of this sealing key; `None` if the key is of the other kind.
    fn sealer(self, key: &SealingKey) -> Result<Option<Sealer>, StoreError> {
        let wrapping = match (self, &key.0) {
            (Self::Argon2id { cost, salt }, Source::Passphrase { passphrase, .. }) => {
                wrapping_key(b"argon2id", &stretch(passphrase, cost, &salt)?)
            }
            (Self::Key, Source::Key(key)) => wrapping_key(b"key", key),
            (Self::Argon2id { .. }, Source::Key(_)) | (Self::Key, Source::Passphrase { .. }) => return Ok(None),
        };
        Ok(Some(Sealer::new(wrapping)))
    }

    fn encode(self, encoder: Encoder) -> Encoder {
        match self {
            Self::Argon2id { cost, salt } => encoder.u8(1).u32(cost.memory).u32(cost.passes).u32(cost.lanes).raw(&salt),
            Self::Key => encoder.u8(2),
        }
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, StoreError> {
        match decoder.u8()? {
            1 => {
                let cost = Argon2Cost { memory: decoder.u32()?, passes: decoder.u32()?, lanes: decoder.u32()? };
                if !cost.is_sane() {
                    return Err(decoder.error("the cost of Argon2id is out of range"));
                }
                Ok(Self::Argon2id { cost, salt: decoder.array()? })
            }
            2 => Ok(Self::Key),
            _ => Err(decoder.error("the way the store key is wrapped is not known")),
        }
    }

    fn associated_data(self, id: &[u8]) -> Vec<u8> {
        self.encode(encoder(64).bytes(id)).finish().expose().clone()
    }
}

/// Argon2id, version 1.3 (RFC 9106).
fn stretch(
    passphrase: &Secret<String>,
    cost: Argon2Cost,
    salt: &[u8; ARGON2_SALT_LEN],
) -> Result<Secret<[u8; 32]>, StoreError> {
    let failed = |error: argon2::Error| StoreError::Argon2(error.to_string());
    let params = Params::new(cost.memory, cost.passes, cost.lanes, Some(32)).map_err(failed)?;
    let mut stretched = Secret::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.expose().as_bytes(), salt, stretched.expose_mut())
        .map_err(failed)?;
    Ok(stretched)
}
