//! The encodings of messages as integers, whose e-th roots are the signatures (RFC 8017, section 9).

use core::fmt::Debug;

use sha2::{Digest, Sha256};
use theta_groups::Transcript;

use crate::keys::KeyId;
use crate::{MessageDigest, Suite};

/// An encoding of messages. It is deterministic, because all parties must compute the same.
pub trait Encoding: Copy + Debug + Send + Sync + 'static {
    /// The suite's name.
    const SUITE: Suite;

    /// With what it hashes messages: it sees nothing of them but this digest.
    const DIGEST: MessageDigest;

    /// The message with this digest as an integer of `len` bytes, big-endian, below any modulus of that many bytes with the top
    /// bit set. `None` if `len` is too short for it.
    fn encode_digest(key_id: &KeyId, digest: &[u8], len: usize) -> Option<Vec<u8>>;

    /// Whether a standard verifier takes `encoded` for the message with this digest.
    fn accepts_digest(key_id: &KeyId, digest: &[u8], encoded: &[u8]) -> bool {
        Self::encode_digest(key_id, digest, encoded.len()).as_deref() == Some(encoded)
    }

    /// The digest of a message.
    fn digest(message: &[u8]) -> Vec<u8> {
        Self::DIGEST.of(message)
    }
}

/// EMSA-PKCS1-v1_5 with SHA-256 (RFC 8017, section 9.2).
#[derive(Clone, Copy, Debug)]
pub struct Pkcs1Sha256;

/// EMSA-PKCS1-v1_5 with SHA-512.
#[derive(Clone, Copy, Debug)]
pub struct Pkcs1Sha512;

/// EMSA-PSS with SHA-256, MGF1 with SHA-256 and a salt of 32 bytes (RFC 8017, section 9.1). The salt is a hash of the key's
/// id and the message's digest: all parties agree on it, and a deterministic salt keeps PSS as secure as full-domain
/// hashing.
#[derive(Clone, Copy, Debug)]
pub struct PssSha256;

/// The DER prefixes of section 9.2, note 1.
const SHA256_INFO: [u8; 19] =
    [0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04, 0x20];
const SHA512_INFO: [u8; 19] =
    [0x30, 0x51, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03, 0x05, 0x00, 0x04, 0x40];

/// 00 01 ff ... ff 00 info digest, with at least eight ff.
fn pkcs1(info: &[u8], digest: &[u8], len: usize) -> Option<Vec<u8>> {
    let padding = len.checked_sub(3 + info.len() + digest.len()).filter(|padding| *padding >= 8)?;
    Some([&[0x00, 0x01], &vec![0xff; padding][..], &[0x00], info, digest].concat())
}

impl Encoding for Pkcs1Sha256 {
    const SUITE: Suite = Suite::Sh00Pkcs1Sha256;
    const DIGEST: MessageDigest = MessageDigest::Sha256;

    fn encode_digest(_key_id: &KeyId, digest: &[u8], len: usize) -> Option<Vec<u8>> {
        pkcs1(&SHA256_INFO, digest, len)
    }
}

impl Encoding for Pkcs1Sha512 {
    const SUITE: Suite = Suite::Sh00Pkcs1Sha512;
    const DIGEST: MessageDigest = MessageDigest::Sha512;

    fn encode_digest(_key_id: &KeyId, digest: &[u8], len: usize) -> Option<Vec<u8>> {
        pkcs1(&SHA512_INFO, digest, len)
    }
}

/// Bytes of SHA-256, and of the salt.
const HASH: usize = 32;

/// The H of section 9.1: of eight zeros, the message's digest and the salt.
fn pss_hash(digest: &[u8], salt: &[u8]) -> [u8; HASH] {
    Sha256::new().chain_update([0; 8]).chain_update(digest).chain_update(salt).finalize().into()
}

/// Applies MGF1's mask (appendix B.2.1) and clears the top bit, since the modulus has a multiple of eight bits.
fn pss_mask(hash: &[u8], block: &mut [u8]) {
    for (counter, chunk) in (0_u32..).zip(block.chunks_mut(HASH)) {
        let mask = Sha256::new().chain_update(hash).chain_update(counter.to_be_bytes()).finalize();
        chunk.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
    }
    if let Some(first) = block.first_mut() {
        *first &= 0x7f;
    }
}

impl Encoding for PssSha256 {
    const SUITE: Suite = Suite::Sh00PssSha256;
    const DIGEST: MessageDigest = MessageDigest::Sha256;

    fn encode_digest(key_id: &KeyId, digest: &[u8], len: usize) -> Option<Vec<u8>> {
        let salt = Transcript::new("theta/sh00/pss-salt/v1")
            .with("key id", key_id.as_bytes())
            .with("digest", digest)
            .finish32();
        let hash = pss_hash(digest, &salt);
        let zeros = len.checked_sub(2 * HASH + 2)?;
        let mut block = [&vec![0; zeros][..], &[1], &salt].concat();
        pss_mask(&hash, &mut block);
        Some([&block[..], &hash, &[0xbc]].concat())
    }

    /// Section 9.1.2: whatever the salt.
    fn accepts_digest(_key_id: &KeyId, digest: &[u8], encoded: &[u8]) -> bool {
        let Some((&[0xbc], rest)) = encoded.split_last_chunk::<1>().map(|(rest, last)| (last, rest)) else {
            return false;
        };
        let Some((block, hash)) = rest.split_last_chunk::<HASH>() else { return false };
        if block.first().is_none_or(|first| first & 0x80 != 0) {
            return false;
        }
        let mut block = block.to_vec();
        pss_mask(hash, &mut block);
        let Some((padding, salt)) = block.split_last_chunk::<HASH>() else { return false };
        let Some((1, zeros)) = padding.split_last().map(|(last, zeros)| (*last, zeros)) else { return false };
        zeros.iter().all(|byte| *byte == 0) && pss_hash(digest, salt) == *hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode<E: Encoding>(id: &KeyId, message: &[u8], len: usize) -> Option<Vec<u8>> {
        E::encode_digest(id, &E::digest(message), len)
    }

    fn accepts<E: Encoding>(id: &KeyId, message: &[u8], encoded: &[u8]) -> bool {
        E::accepts_digest(id, &E::digest(message), encoded)
    }

    #[test]
    fn encodings_have_their_form() {
        let id = KeyId::from_bytes([7; 32]);
        let encoded = encode::<Pkcs1Sha256>(&id, b"abc", 256).unwrap();
        assert_eq!(encoded.len(), 256);
        assert!(encoded.starts_with(&[0, 1, 0xff]) && encoded.ends_with(&Sha256::digest(b"abc")));
        assert_eq!(encode::<Pkcs1Sha256>(&id, b"abc", 61), None);
        assert_eq!(encode::<Pkcs1Sha512>(&id, b"abc", 93), None);
        assert_eq!(encode::<Pkcs1Sha512>(&id, b"abc", 94).unwrap().len(), 94);
        assert_eq!(encode::<PssSha256>(&id, b"abc", 65), None);
        assert_eq!(encode::<PssSha256>(&id, b"abc", 66).unwrap().len(), 66);
    }

    #[test]
    fn an_encoding_is_of_one_message_only() {
        fn check<E: Encoding>() {
            let (id, other) = (KeyId::from_bytes([7; 32]), KeyId::from_bytes([8; 32]));
            let encoded = encode::<E>(&id, b"message", 128).unwrap();
            assert!(accepts::<E>(&id, b"message", &encoded) && accepts::<E>(&other, b"message", &encoded));
            assert!(!accepts::<E>(&id, b"massage", &encoded));
            for position in 0..128 {
                let mut flipped = encoded.clone();
                flipped[position] ^= 0x80;
                assert!(!accepts::<E>(&id, b"message", &flipped), "{position}");
            }
            for len in [0, 1, 33, 65, 127] {
                assert!(!accepts::<E>(&id, b"message", &encoded[..len]));
            }
        }
        check::<Pkcs1Sha256>();
        check::<Pkcs1Sha512>();
        check::<PssSha256>();
    }

    #[test]
    fn salts_differ_by_key_and_message() {
        let (id, other) = (KeyId::from_bytes([7; 32]), KeyId::from_bytes([8; 32]));
        assert_ne!(encode::<PssSha256>(&id, b"m", 128), encode::<PssSha256>(&other, b"m", 128));
        assert_eq!(encode::<PssSha256>(&id, b"m", 128), encode::<PssSha256>(&id, b"m", 128));
    }
}
