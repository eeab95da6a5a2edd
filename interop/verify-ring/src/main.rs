//! Verifies signatures of ECDSA with ring, as people who have nothing of ours would: P-256, SHA-256, in DER or as r and s of 32 bytes each.
//!
//! ```text
//! verify-ring public.der message.der message
//! ```
//!
//! `public.der` ends with the public key's point, uncompressed. The exit code is 0 if the signature is one of the message, 1 if it is not, and 2
//! if something cannot be read.

use std::{env, error::Error, fs, process::ExitCode};

use ring::signature::{ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

/// An uncompressed point.
const POINT: usize = 65;
/// r and s.
const FIXED: usize = 64;

fn verify(files: &[String]) -> Result<bool, Box<dyn Error>> {
    let [key, signature, message] = files else {
        return Err("usage: verify-ring public.der message.der message".into());
    };
    let (key, signature, message) = (fs::read(key)?, fs::read(signature)?, fs::read(message)?);
    let (_, point) = key.split_last_chunk::<POINT>().ok_or("the key is too short")?;
    let algorithm = if signature.len() == FIXED { &ECDSA_P256_SHA256_FIXED } else { &ECDSA_P256_SHA256_ASN1 };
    Ok(UnparsedPublicKey::new(algorithm, point).verify(&message, &signature).is_ok())
}

fn main() -> ExitCode {
    match verify(&env::args().skip(1).collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
