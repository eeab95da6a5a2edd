//! Products of a secret of the sender and a secret of the receiver, as two summands (Gilboa, CRYPTO 1999; the first steps of Multiply in
//! MASCOT, Keller, Orsini, Scholl, CCS 2016).
//!
//! The receiver chooses with the 256 bits b_h of its factor b. For bit h the sender has pads t_0, t_1 and sends d = t_0 - t_1 + a, so
//! that the receiver has t_0 + b_h a. The summands are those times 2^h, added up.
//!
//! This is secure against parties that follow the protocol. A sender that uses different a for different bits goes unseen here and
//! makes the product wrong in a way that depends on b: what is made of products, such as MASCOT's triples, has to combine and check
//! them.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use receiver::receive;
pub use sender::send;
pub(crate) use sender::send_after;

use crate::Misuse;
use crate::extension::MOST;
use crate::wide::Wide;

/// How many transfers a product takes.
pub const TRANSFERS: usize = 256;
/// The most products in one call.
pub const MOST_PRODUCTS: usize = MOST / TRANSFERS;

/// The sender's message: 256 scalars for each product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corrections(pub Vec<u8>);

impl AsRef<[u8]> for Corrections {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Corrections {
    /// Its length in bytes.
    #[must_use]
    pub const fn length(products: usize) -> usize {
        32 * TRANSFERS * products
    }
}

/// The sum of what a product's transfers give, each times its power of two: 257 bits at most, times 2^256.
type Sum = Wide<9>;

/// What each transfer of a product gives: integers of five words, the lowest bit's first.
type Parts = zeroize::Zeroizing<[[u64; 5]; TRANSFERS]>;

/// The sum of the parts, each times 2^h. Parts whose places are whole words apart are doubled together.
fn sum(parts: &Parts) -> Sum {
    let mut sum = Sum::ZERO;
    for bit in (0..64).rev() {
        sum.double(1);
        for (offset, word) in parts.chunks_exact(64).enumerate() {
            if let Some(part) = word.get(bit) {
                sum.add_at(offset, part);
            }
        }
    }
    sum
}

const fn expect(products: usize, transfers: usize) -> Result<(), Misuse> {
    if products == 0 || products > MOST_PRODUCTS {
        return Err(Misuse::Count { got: products, most: MOST_PRODUCTS });
    }
    let needed = TRANSFERS * products;
    if transfers == needed { Ok(()) } else { Err(Misuse::Transfers { got: transfers, needed }) }
}
