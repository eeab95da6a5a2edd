//! The `.pub` and `.share` files of RSA keys: readable TOML, the same head as for other keys.

use core::fmt::Write as _;

use serde::Deserialize;
use theta_groups::DecodeError;
use theta_groups::modular::{Integer, Modulus, Residue};
use theta_sharing::Threshold;

use super::{PUBLIC_EXPONENT, RsaKeyShare, RsaPublicKey, RsaScheme};
use crate::Suite;
use crate::keys::share_file::{ShareFile, secret_error};
use crate::keys::{KeyFileError, KeyName, public_file};

/// The fields as they stand in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RsaPublicFile<'a> {
    format: u64,
    #[serde(borrow)]
    name: &'a str,
    suite: &'a str,
    key_id: &'a str,
    k: u16,
    n: u16,
    modulus: &'a str,
    exponent: u64,
    verification_base: &'a str,
    #[serde(borrow)]
    verification_keys: Vec<&'a str>,
}

/// Reads the file of a key of suite `S` and checks everything in it.
pub(crate) fn read_public<S: RsaScheme>(text: &str) -> Result<(KeyName, RsaPublicKey), KeyFileError> {
    let file: RsaPublicFile<'_> = public_file::fields(text)?;
    public_file::check_format(file.format)?;
    let (name, suite): (KeyName, Suite) = (file.name.parse()?, file.suite.parse()?);
    // The caller has chosen S by this very field.
    if suite != S::SUITE {
        return Err(KeyFileError::Suite(crate::UnknownSuite(file.suite.to_owned())));
    }
    let threshold = Threshold::new(file.k, file.n).map_err(|error| KeyFileError::Threshold(error.to_string()))?;
    if file.exponent != PUBLIC_EXPONENT {
        return Err(encoding_error("exponent", DecodeError::NotCanonical));
    }
    let modulus = decode_modulus(file.modulus)?;
    let base = residue(&modulus, "verification_base", file.verification_base)?;
    let verification_keys = (1..)
        .zip(&file.verification_keys)
        .map(|(i, text)| residue(&modulus, &format!("verification_keys, entry {i}"), text))
        .collect::<Result<_, _>>()?;
    let key = RsaPublicKey::new::<S>(threshold, modulus, base, verification_keys)?;
    let expected = key.key_id().to_string();
    if file.key_id != expected {
        return Err(KeyFileError::KeyId { found: public_file::one_line(file.key_id), expected });
    }
    Ok((name, key))
}

/// The share in a file, checked against the verification key.
pub(crate) fn read_share(file: &ShareFile<'_>, public: &RsaPublicKey) -> Result<RsaKeyShare, KeyFileError> {
    let index = file.index(public)?;
    let secret = file.secret_bytes(public.modulus().encoded_len())?;
    // Exponents are below N / 4.
    if secret.expose().first().is_none_or(|first| *first >= 0x40) {
        return Err(secret_error(DecodeError::NotCanonical));
    }
    let share = RsaKeyShare::new(*public.key_id(), index, secret);
    if public.matches(&share) { Ok(share) } else { Err(KeyFileError::ShareMismatch(index)) }
}

/// N, whose size is checked before anything is computed with it.
fn decode_modulus(text: &str) -> Result<Modulus, KeyFileError> {
    let bytes = public_file::unhex("modulus", text)?;
    let sized = super::MODULUS_BITS.iter().any(|bits| usize::try_from(bits / 8) == Ok(bytes.len()));
    if !sized {
        return Err(encoding_error("modulus", DecodeError::Length { expected: 256, got: bytes.len() }));
    }
    Modulus::new(Integer::from_be_bytes(&bytes)).ok_or_else(|| encoding_error("modulus", DecodeError::NotCanonical))
}

fn residue(modulus: &Modulus, field: &str, text: &str) -> Result<Residue, KeyFileError> {
    modulus.decode(&public_file::unhex(field, text)?).map_err(|error| encoding_error(field, error))
}

fn encoding_error(field: &str, error: DecodeError) -> KeyFileError {
    KeyFileError::Encoding { field: field.to_owned(), error }
}

/// The file of a key.
pub(super) fn write_public(name: &KeyName, key: &RsaPublicKey) -> String {
    let modulus = key.modulus();
    let mut text = public_file::head(name, key);
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "modulus = \"{}\"\nexponent = {PUBLIC_EXPONENT}\nverification_base = \"{}\"\n",
        hex::encode(modulus.value().to_be_bytes(modulus.encoded_len()).unwrap_or_default()),
        hex::encode(modulus.encode(key.verification_base())),
    );
    text.push_str("verification_keys = [\n");
    for key in key.verification_keys() {
        let _ = writeln!(text, "  \"{}\",", hex::encode(modulus.encode(key)));
    }
    text.push_str("]\n");
    text
}
