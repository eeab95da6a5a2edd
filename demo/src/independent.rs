//! Verification by somebody else: libraries and programs that share no code with our schemes.

use std::{fs, path::Path, process::Command};

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use blst::{BLST_ERROR, min_pk, min_sig};
use theta::{exit::Failure, keys::pem};
use theta_schemes::{Suite, keys::AnyPublicKey, signatures::ecdsa::to_der};

/// The ciphersuites of draft-irtf-cfrg-bls-signature, section 4.2.3, as any verifier is told.
const MIN_PK: &[u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";
const MIN_SIG: &[u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";

/// What others say of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is good, says this one.
    Accepted(&'static str),
    /// It is not, says this one.
    Refused(&'static str),
    /// Nobody else here knows the scheme.
    NoOneElse,
}

/// Asks whoever knows the scheme: blst, aws-lc, or the `openssl` on this machine.
pub(crate) fn verify(public: &AnyPublicKey, message: &[u8], signature: &[u8]) -> Result<Verdict, Failure> {
    let key = public.public_key_bytes();
    Ok(match public.suite() {
        Suite::Bls04MinPk => verdict("blst", bls_min_pk(key, message, signature)),
        Suite::Bls04MinSig => verdict("blst", bls_min_sig(key, message, signature)),
        Suite::FrostEd25519 => {
            verdict("aws-lc", UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok())
        }
        Suite::FrostEd448 => by_openssl(
            public,
            message,
            signature,
            &["pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", "key", "-in", "message", "-sigfile", "signature"],
        )?,
        Suite::Sh00Pkcs1Sha256 => by_openssl(public, message, signature, &digest("-sha256", &[]))?,
        Suite::Sh00Pkcs1Sha512 => by_openssl(public, message, signature, &digest("-sha512", &[]))?,
        Suite::Sh00PssSha256 => {
            let padding = ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:32"];
            by_openssl(public, message, signature, &digest("-sha256", &padding))?
        }
        Suite::EcdsaP256 | Suite::EcdsaSecp256k1 => match to_der(signature) {
            Some(der) => by_openssl(public, message, &der, &digest("-sha256", &[]))?,
            None => Verdict::Refused("openssl"),
        },
        _ => Verdict::NoOneElse,
    })
}

const fn verdict(who: &'static str, accepted: bool) -> Verdict {
    if accepted { Verdict::Accepted(who) } else { Verdict::Refused(who) }
}

fn bls_min_pk(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let (Ok(key), Ok(signature)) = (min_pk::PublicKey::from_bytes(key), min_pk::Signature::from_bytes(signature))
    else {
        return false;
    };
    signature.verify(true, message, MIN_PK, &[], &key, true) == BLST_ERROR::BLST_SUCCESS
}

fn bls_min_sig(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let (Ok(key), Ok(signature)) = (min_sig::PublicKey::from_bytes(key), min_sig::Signature::from_bytes(signature))
    else {
        return false;
    };
    signature.verify(true, message, MIN_SIG, &[], &key, true) == BLST_ERROR::BLST_SUCCESS
}

fn digest<'a>(hash: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    [&["dgst", hash, "-verify", "key", "-signature", "signature"], options, &["message"]].concat()
}

/// The command, if there is one on this machine.
fn by_openssl(public: &AnyPublicKey, message: &[u8], signature: &[u8], arguments: &[&str]) -> Result<Verdict, Failure> {
    let Some(pem) = pem(public) else { return Ok(Verdict::NoOneElse) };
    let dir = tempfile::tempdir().map_err(|error| Failure::writing(&std::env::temp_dir(), &error))?;
    let put = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).map_err(|error| Failure::writing(&path, &error))
    };
    put("key", pem.as_bytes())?;
    put("message", message)?;
    put("signature", signature)?;
    Ok(run_openssl(dir.path(), arguments).map_or(Verdict::NoOneElse, |accepted| verdict("openssl", accepted)))
}

fn run_openssl(dir: &Path, arguments: &[&str]) -> Option<bool> {
    Some(Command::new("openssl").args(arguments).current_dir(dir).output().ok()?.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_no_as_well() {
        let secret = min_pk::SecretKey::key_gen(&[7; 32], &[]).unwrap();
        let (key, signature) = (secret.sk_to_pk().to_bytes(), secret.sign(b"yes", MIN_PK, &[]).to_bytes());
        assert!(bls_min_pk(&key, b"yes", &signature));
        assert!(!bls_min_pk(&key, b"no", &signature));
        assert!(!bls_min_pk(&key, b"yes", &[0; 96]));
        assert!(!bls_min_pk(&[], b"yes", &signature));
        let secret = min_sig::SecretKey::key_gen(&[7; 32], &[]).unwrap();
        let (key, signature) = (secret.sk_to_pk().to_bytes(), secret.sign(b"yes", MIN_SIG, &[]).to_bytes());
        assert!(bls_min_sig(&key, b"yes", &signature) && !bls_min_sig(&key, b"no", &signature));
    }
}
