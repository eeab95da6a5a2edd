//! The encodings of messages as integers, whose e-th roots are the signatures (RFC 8017, section 9).

use core::fmt::Debug;

use sha2::{Digest, Sha256, Sha512};
use theta_groups::Transcript;

use crate::Suite;
use crate::keys::KeyId;

/// An encoding of messages. It is deterministic, because all parties must compute the same.
pub trait Encoding: Copy + Debug + Send + Sync + 'static {
    /// The suite's name.
    const SUITE: Suite;

    /// The message as an integer of `len` bytes, big-endian, below any modulus of that many bytes with the top bit set.
    /// `None` if `len` is too short for it.
    fn encode(key_id: &KeyId, message: &[u8], len: usize) -> Option<Vec<u8>>;

    /// Whether a standard verifier takes `encoded` for the message.
    fn accepts(key_id: &KeyId, message: &[u8], encoded: &[u8]) -> bool {
        Self::encode(key_id, message, encoded.len()).as_deref() == Some(encoded)
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

    fn encode(_key_id: &KeyId, message: &[u8], len: usize) -> Option<Vec<u8>> {
        pkcs1(&SHA256_INFO, &Sha256::digest(message), len)
    }
}

impl Encoding for Pkcs1Sha512 {
    const SUITE: Suite = Suite::Sh00Pkcs1Sha512;

    fn encode(_key_id: &KeyId, message: &[u8], len: usize) -> Option<Vec<u8>> {
        pkcs1(&SHA512_INFO, &Sha512::digest(message), len)
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

    fn encode(key_id: &KeyId, message: &[u8], len: usize) -> Option<Vec<u8>> {
        let digest = Sha256::digest(message);
        let salt = Transcript::new("theta/sh00/pss-salt/v1")
            .with("key id", key_id.as_bytes())
            .with("digest", &digest)
            .finish32();
        let hash = pss_hash(&digest, &salt);
        let zeros = len.checked_sub(2 * HASH + 2)?;
        let mut block = [&vec![0; zeros][..], &[1], &salt].concat();
        pss_mask(&hash, &mut block);
        Some([&block[..], &hash, &[0xbc]].concat())
    }

    /// Section 9.1.2, for any salt.
    fn accepts(_key_id: &KeyId, message: &[u8], encoded: &[u8]) -> bool {
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
        zeros.iter().all(|byte| *byte == 0) && pss_hash(&Sha256::digest(message), salt) == *hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_have_their_form() {
        let id = KeyId::from_bytes([7; 32]);
        let encoded = Pkcs1Sha256::encode(&id, b"abc", 256).unwrap();
        assert_eq!(encoded.len(), 256);
        assert!(encoded.starts_with(&[0, 1, 0xff]) && encoded.ends_with(&Sha256::digest(b"abc")));
        assert_eq!(Pkcs1Sha256::encode(&id, b"abc", 61), None);
        assert_eq!(Pkcs1Sha512::encode(&id, b"abc", 93), None);
        assert_eq!(Pkcs1Sha512::encode(&id, b"abc", 94).unwrap().len(), 94);
        assert_eq!(PssSha256::encode(&id, b"abc", 65), None);
        assert_eq!(PssSha256::encode(&id, b"abc", 66).unwrap().len(), 66);
    }

    #[test]
    fn an_encoding_is_of_one_message_only() {
        fn check<E: Encoding>() {
            let (id, other) = (KeyId::from_bytes([7; 32]), KeyId::from_bytes([8; 32]));
            let encoded = E::encode(&id, b"message", 128).unwrap();
            assert!(E::accepts(&id, b"message", &encoded) && E::accepts(&other, b"message", &encoded));
            assert!(!E::accepts(&id, b"massage", &encoded));
            for position in 0..128 {
                let mut flipped = encoded.clone();
                flipped[position] ^= 0x80;
                assert!(!E::accepts(&id, b"message", &flipped), "{position}");
            }
            for len in [0, 1, 33, 65, 127] {
                assert!(!E::accepts(&id, b"message", &encoded[..len]));
            }
        }
        check::<Pkcs1Sha256>();
        check::<Pkcs1Sha512>();
        check::<PssSha256>();
    }

    #[test]
    fn salts_differ_by_key_and_message() {
        let (id, other) = (KeyId::from_bytes([7; 32]), KeyId::from_bytes([8; 32]));
        assert_ne!(PssSha256::encode(&id, b"m", 128), PssSha256::encode(&other, b"m", 128));
        assert_eq!(PssSha256::encode(&id, b"m", 128), PssSha256::encode(&id, b"m", 128));
    }
}
