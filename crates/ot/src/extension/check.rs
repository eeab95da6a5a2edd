//! The check that the corrections come from one vector of choices (Roy 2022): a linear hash of the receiver's rows,
//! whose key depends on the corrections.

use polyval::Polyval;
use polyval::universal_hash::UniversalHash;

/// How many blocks are hashed in one call.
const CHUNK: usize = 32;

/// The hash R of a row: POLYVAL (RFC 8452) under a key of 128 bits, that is, a polynomial over the field of 2^128 elements whose
/// coefficients are the blocks, at a random place. Two rows of s blocks have one hash for s of 2^128 keys at most.
pub(super) struct RowHash(Polyval);

impl RowHash {
    /// The key is a hash of the set-up, the place of the batch and its corrections: the receiver cannot choose corrections after it has
    /// seen the key.
    pub(super) fn new(tag: &[u8; 32], batch: u64, corrections: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_keyed(tag);
        hasher.update(&batch.to_be_bytes()).update(corrections);
        let mut key = [0; 16];
        hasher.finalize_xof().fill(&mut key);
        Self(Polyval::new(&key.into()))
    }

    /// R row.
    pub(super) fn of(&self, row: &[u128]) -> u128 {
        let mut hash = self.0.clone();
        let mut buffer = [polyval::Block::default(); CHUNK];
        for chunk in row.chunks(CHUNK) {
            buffer.iter_mut().zip(chunk).for_each(|(to, from)| *to = from.to_le_bytes().into());
            hash.update(buffer.get(..chunk.len()).unwrap_or_default());
        }
        u128::from_le_bytes(hash.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_linear_and_hides_behind_the_last_block() {
        let hash = RowHash::new(&[7; 32], 3, b"corrections");
        let (a, b): (Vec<u128>, Vec<u128>) = (0..70_u128).map(|i| (i.pow(9) << 60 ^ i, 3 << i ^ i.pow(11))).unzip();
        let sum: Vec<u128> = a.iter().zip(&b).map(|(a, b)| a ^ b).collect();
        assert_eq!(hash.of(&sum), hash.of(&a) ^ hash.of(&b));
        assert_ne!(hash.of(&a), hash.of(&b));
        let mut other = a.clone();
        *other.last_mut().unwrap() ^= 1;
        assert_ne!(hash.of(&a), hash.of(&other));
        let key = |batch, bytes: &[u8]| RowHash::new(&[7; 32], batch, bytes).of(&a);
        assert_ne!(key(3, b"corrections"), key(4, b"corrections"));
        assert_ne!(key(3, b"corrections"), key(3, b"correctionr"));
    }
}
