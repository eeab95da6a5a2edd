//! Bits, blocks of 128 bits and scalars in constant time.

use rand_core::CryptoRng;
use subtle::Choice;
use theta_groups::Scalar;

/// A random block.
pub(crate) fn random(rng: &mut (impl CryptoRng + ?Sized)) -> u128 {
    let mut bytes = zeroize::Zeroizing::new([0; 16]);
    rng.fill_bytes(bytes.as_mut());
    u128::from_le_bytes(*bytes)
}

/// Bit `index` of a block, 0 to 127.
pub(crate) fn bit(block: u128, index: u32) -> Choice {
    // The mask leaves one bit.
    Choice::from(u8::from(block >> index & 1 == 1))
}

/// All ones if the bit is set.
pub(crate) fn mask(choice: Choice) -> u128 {
    u128::from(choice.unwrap_u8()).wrapping_neg()
}

/// All ones if the bit is set.
pub(crate) fn mask64(choice: Choice) -> u64 {
    u64::from(choice.unwrap_u8()).wrapping_neg()
}

/// A block of two words, the lower first.
pub(crate) fn join(low: u64, high: u64) -> u128 {
    u128::from(low) | u128::from(high) << 64
}

/// The two words of a block, the lower first.
pub(crate) fn split(block: u128) -> [u64; 2] {
    let low = u64::try_from(block & u128::from(u64::MAX)).unwrap_or(0);
    [low, u64::try_from(block >> 64).unwrap_or(0)]
}

/// Reads blocks, little-endian.
pub(crate) fn blocks(bytes: &[u8]) -> impl Iterator<Item = u128> + '_ {
    bytes.as_chunks().0.iter().map(|bytes| u128::from_le_bytes(*bytes))
}

/// Writes blocks, little-endian.
pub(crate) fn put<'a>(blocks: impl IntoIterator<Item = &'a u128>, bytes: &mut Vec<u8>) {
    blocks.into_iter().for_each(|block| bytes.extend_from_slice(&block.to_le_bytes()));
}

/// Whether the group writes its scalars with the lowest byte first.
pub(crate) fn is_little_endian<S: Scalar>() -> bool {
    S::ONE.encode().as_ref().first() == Some(&1)
}

/// The integer of a scalar as words, the lowest first.
pub(crate) fn of_scalar<S: Scalar>(scalar: &S) -> [u64; 4] {
    const { assert!(S::ENCODED_LEN == 32, "products are made of scalars of 256 bits") };
    let encoding = zeroize::Zeroizing::new(scalar.encode());
    read(encoding.as_ref(), is_little_endian::<S>())
}

/// The words of an encoding in either byte order, the lowest first.
pub(crate) fn read(encoding: &[u8], is_little_endian: bool) -> [u64; 4] {
    let chunks = encoding.as_chunks().0;
    let mut words = [0; 4];
    if is_little_endian {
        words.iter_mut().zip(chunks).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
    } else {
        words.iter_mut().zip(chunks.iter().rev()).for_each(|(word, bytes)| *word = u64::from_be_bytes(*bytes));
    }
    words
}

/// The order q of the scalars.
pub(crate) fn order<S: Scalar>() -> [u64; 4] {
    let mut words = of_scalar(&-S::ONE);
    let mut carry = true;
    for word in &mut words {
        (*word, carry) = word.carrying_add(0, carry);
    }
    words
}
