//! Verification by somebody else: `blst`'s own BLS verifier, which shares no code with our schemes.

use blst::{
    BLST_ERROR,
    min_pk::{PublicKey, Signature},
};

/// The ciphersuite of draft-irtf-cfrg-bls-signature, section 4.2.3, as any verifier is told.
const CIPHERSUITE: &[u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";

/// Whether this is an IETF BLS signature (minimal public key) of the message.
pub(crate) fn verifies(public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let (Ok(key), Ok(signature)) = (PublicKey::from_bytes(public_key), Signature::from_bytes(signature)) else {
        return false;
    };
    signature.verify(true, message, CIPHERSUITE, &[], &key, true) == BLST_ERROR::BLST_SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_no_as_well() {
        let secret = blst::min_pk::SecretKey::key_gen(&[7; 32], &[]).unwrap();
        let (key, signature) = (secret.sk_to_pk().to_bytes(), secret.sign(b"yes", CIPHERSUITE, &[]).to_bytes());
        assert!(verifies(&key, b"yes", &signature));
        assert!(!verifies(&key, b"no", &signature));
        assert!(!verifies(&key, b"yes", &[0; 96]));
        assert!(!verifies(&[], b"yes", &signature));
    }
}
