//! `expand_message_xmd` and `expand_message_xof` of RFC 9380, section 5.3.

use sha2::digest::block_api::{BlockSizeUser, OutputSizeUser};
use sha2::digest::typenum::Unsigned;
use sha2::digest::{Digest, ExtendableOutput, Output, Update};

const OVERSIZE_TAG: &[u8] = b"H2C-OVERSIZE-DST-";

/// The hash that replaces a domain separation tag of more than 255 bytes (section 5.3.3).
pub(crate) fn hash_oversize_tag<H: Digest>(dst: &[u8]) -> Output<H> {
    H::new().chain_update(OVERSIZE_TAG).chain_update(dst).finalize()
}

/// Stretches a message to `N` uniform bytes under a domain separation tag. `message` parts are concatenated.
///
/// A tag longer than 255 bytes is hashed first, as section 5.3.3 says. `N` is checked when compiled: at most 255
/// blocks of the hash.
pub(crate) fn expand_message_xmd<H: Digest + BlockSizeUser, const N: usize>(dst: &[u8], message: &[&[u8]]) -> [u8; N] {
    const { assert!(N <= 255 * <H as OutputSizeUser>::OutputSize::USIZE && N <= 65_535, "more than XMD can give") };
    let oversize;
    let dst = if dst.len() <= 255 {
        dst
    } else {
        oversize = hash_oversize_tag::<H>(dst);
        oversize.as_slice()
    };
    // Both conversions are exact: the tag has at most 255 bytes, N at most 65,535.
    let dst_len = [u8::try_from(dst.len()).unwrap_or(u8::MAX)];
    let out_len = u16::try_from(N).unwrap_or(u16::MAX).to_be_bytes();

    let mut hash = H::new().chain_update(sha2::digest::block_api::Block::<H>::default());
    for part in message {
        Digest::update(&mut hash, part);
    }
    let b0 = hash.chain_update(out_len).chain_update([0]).chain_update(dst).chain_update(dst_len).finalize();

    let block_len = <H as OutputSizeUser>::OutputSize::USIZE;
    let mut out = [0; N];
    let mut previous = Output::<H>::default();
    for (counter, chunk) in (1_u8..=255).zip(out.chunks_mut(block_len)) {
        for (byte, first) in previous.iter_mut().zip(&b0) {
            *byte ^= first;
        }
        previous =
            H::new().chain_update(&previous).chain_update([counter]).chain_update(dst).chain_update(dst_len).finalize();
        for (byte, hashed) in chunk.iter_mut().zip(&previous) {
            *byte = *hashed;
        }
    }
    out
}

/// The same with an extendable-output function: `expand_message_xof` (section 5.3.2). `BITS` is the suite's target security
/// level; a tag longer than 255 bytes is hashed to `BITS` / 4 bytes, rounded up.
pub(crate) fn expand_message_xof<X: Default + Update + ExtendableOutput, const BITS: usize, const N: usize>(
    dst: &[u8],
    message: &[&[u8]],
) -> [u8; N] {
    const { assert!(BITS <= 1020 && N <= 65_535, "more than the length fields can say") };
    let mut oversize;
    let dst = if dst.len() <= 255 {
        dst
    } else {
        oversize = vec![0; BITS.div_ceil(4)];
        X::default().chain(OVERSIZE_TAG).chain(dst).finalize_xof_into(&mut oversize);
        &oversize
    };
    // Both conversions are exact: the tag has at most 255 bytes, N at most 65,535.
    let dst_len = [u8::try_from(dst.len()).unwrap_or(u8::MAX)];
    let out_len = u16::try_from(N).unwrap_or(u16::MAX).to_be_bytes();
    let hash = message.iter().fold(X::default(), |hash, part| hash.chain(part));
    let mut out = [0; N];
    hash.chain(out_len).chain(dst).chain(dst_len).finalize_xof_into(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use sha2::{Sha256, Sha512};
    use shake::{Shake128, Shake256};

    fn check_xof<X: Default + Update + ExtendableOutput, const BITS: usize>(file: &str) {
        let file: Value = serde_json::from_str(file).unwrap();
        let dst = file["dst"].as_str().unwrap().as_bytes();
        let vectors = file["vectors"].as_array().unwrap();
        assert_eq!(vectors.len(), 10);
        for vector in vectors {
            let message = vector["msg"].as_str().unwrap().as_bytes();
            let expected = hex::decode(vector["uniform_bytes"].as_str().unwrap()).unwrap();
            let (left, right) = message.split_at(message.len() / 3);
            match expected.len() {
                32 => assert_eq!(expand_message_xof::<X, BITS, 32>(dst, &[left, right]).as_slice(), expected),
                _ => assert_eq!(expand_message_xof::<X, BITS, 128>(dst, &[message]).as_slice(), expected),
            }
        }
    }

    fn check<H: Digest + BlockSizeUser>(file: &str) {
        let file: Value = serde_json::from_str(file).unwrap();
        let dst = file["dst"].as_str().unwrap().as_bytes();
        let vectors = file["vectors"].as_array().unwrap();
        assert_eq!(vectors.len(), 10);
        for vector in vectors {
            let message = vector["msg"].as_str().unwrap().as_bytes();
            let expected = hex::decode(vector["uniform_bytes"].as_str().unwrap()).unwrap();
            let (left, right) = message.split_at(message.len() / 3);
            match expected.len() {
                32 => assert_eq!(expand_message_xmd::<H, 32>(dst, &[left, right]).as_slice(), expected),
                _ => assert_eq!(expand_message_xmd::<H, 128>(dst, &[message]).as_slice(), expected),
            }
        }
    }

    #[test]
    fn sha256_matches_rfc_9380() {
        check::<Sha256>(include_str!("../../../vectors/rfc9380/expand_message_xmd_sha256.json"));
    }

    #[test]
    fn sha256_with_oversize_tag_matches_rfc_9380() {
        check::<Sha256>(include_str!("../../../vectors/rfc9380/expand_message_xmd_sha256_long_dst.json"));
    }

    #[test]
    fn sha512_matches_rfc_9380() {
        check::<Sha512>(include_str!("../../../vectors/rfc9380/expand_message_xmd_sha512.json"));
    }

    #[test]
    fn shake256_matches_rfc_9380() {
        check_xof::<Shake256, 256>(include_str!("../../../vectors/rfc9380/expand_message_xof_shake256.json"));
    }

    #[test]
    fn shake128_with_oversize_tag_matches_rfc_9380() {
        check_xof::<Shake128, 128>(include_str!("../../../vectors/rfc9380/expand_message_xof_shake128_long_dst.json"));
    }
}
