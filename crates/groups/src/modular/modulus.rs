//! Arithmetic modulo an odd public number.

use core::fmt;
use std::borrow::Cow;

use super::ffi::{Montgomery, Scratch};
use super::inverse::vartime_inverse;
use super::{Integer, product};
use crate::{DecodeError, Secret};

/// The longest modulus in bits.
pub const MAX_MODULUS_BITS: u32 = 8192;

/// The lengths of a modulus, in bits, for which two exponentiations go together.
const PAIRED_BITS: [u32; 3] = [1024, 1536, 2048];

/// Whether the processor has the instructions that multiply eight words of 52 bits at once, as aws-lc asks for them.
fn has_multi_buffer() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512vl")
            && std::arch::is_x86_feature_detected!("avx512dq")
            && std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512ifma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// An odd public modulus N of 3 to [`MAX_MODULUS_BITS`] bits, ready for Montgomery's multiplication.
pub struct Modulus {
    value: Integer,
    montgomery: Montgomery,
    len: usize,
}

/// An integer from 0 to N - 1 for the modulus N that made it. Another modulus reduces it first.
#[derive(Clone, PartialEq, Eq)]
pub struct Residue(pub(super) Integer);

impl Modulus {
    /// Prepares a modulus; `None` unless it is odd and has 3 to [`MAX_MODULUS_BITS`] bits.
    #[must_use]
    pub fn new(value: Integer) -> Option<Self> {
        if !value.is_odd() || !(3..=MAX_MODULUS_BITS).contains(&value.bits()) {
            return None;
        }
        let len = usize::try_from(value.bits().div_ceil(8)).ok()?;
        Some(Self { montgomery: Montgomery::new(&value.0), value, len })
    }

    /// N.
    #[must_use]
    pub const fn value(&self) -> &Integer {
        &self.value
    }

    /// Bytes of an encoded residue: as many as N has.
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        self.len
    }

    /// The residue of any integer.
    #[must_use]
    pub fn reduce(&self, value: &Integer) -> Residue {
        Residue(value.rem(&self.value))
    }

    /// Reads a residue: big-endian, of exactly N's length, below N.
    ///
    /// # Errors
    /// [`DecodeError::Length`], [`DecodeError::NotCanonical`].
    pub fn decode(&self, bytes: &[u8]) -> Result<Residue, DecodeError> {
        if bytes.len() != self.len {
            return Err(DecodeError::Length { expected: self.len, got: bytes.len() });
        }
        let value = Integer::from_be_bytes(bytes);
        if value < self.value { Ok(Residue(value)) } else { Err(DecodeError::NotCanonical) }
    }

    /// Big-endian, of N's length.
    #[must_use]
    pub fn encode(&self, residue: &Residue) -> Vec<u8> {
        // A residue of this modulus always fits.
        residue.0.to_be_bytes(self.len).unwrap_or_default()
    }

    /// The residue's integer; reduced if the residue is of another modulus.
    pub(super) fn own<'a>(&self, residue: &'a Residue) -> Cow<'a, Integer> {
        if residue.0 < self.value { Cow::Borrowed(&residue.0) } else { Cow::Owned(residue.0.rem(&self.value)) }
    }

    /// The product. Constant-time.
    #[must_use]
    pub fn mul(&self, a: &Residue, b: &Residue) -> Residue {
        let mut scratch = Scratch::new();
        let entered = self.montgomery.enter(&self.own(a).0, &mut scratch);
        Residue(Integer(self.montgomery.mul(&entered, &self.own(b).0, &mut scratch)))
    }

    /// The square. Constant-time.
    #[must_use]
    pub fn square(&self, a: &Residue) -> Residue {
        self.mul(a, a)
    }

    /// `base^exponent`, the exponent secret and big-endian: the time depends on its length and on N alone.
    #[must_use]
    pub fn pow(&self, base: &Residue, exponent: &[u8]) -> Residue {
        let exponent = Integer::from_be_bytes(exponent);
        Residue(Integer(self.montgomery.pow(&self.own(base).0, &exponent.0, &self.value.0)))
    }

    /// Whether [`pow_pair`](Self::pow_pair) takes less than two calls of [`pow`](Self::pow): on processors with AVX-512 IFMA, at the
    /// sizes for which aws-lc has it. Debug builds, which tests are, say so of every processor, so that what follows from it is tested.
    #[must_use]
    pub fn prefers_pairs(&self) -> bool {
        PAIRED_BITS.contains(&self.value.bits()) && (cfg!(debug_assertions) || has_multi_buffer())
    }

    /// Two powers, each as by [`pow`](Self::pow), computed in one another's waiting times where the processor can (Gueron and Krasnov,
    /// "Software implementation of modular exponentiation, using advanced vector instructions architectures", WAIFI 2012, section 5).
    #[must_use]
    pub fn pow_pair(&self, powers: [(&Residue, &[u8]); 2]) -> [Residue; 2] {
        let [(first, first_exponent), (second, second_exponent)] = powers.map(|(base, exponent)| {
            let base = self.own(base).to_be_bytes(self.len).unwrap_or_default();
            (Integer::from_be_bytes(&base), self.as_long(exponent))
        });
        let powers = [(&first.0, &first_exponent.0), (&second.0, &second_exponent.0)];
        self.montgomery.pow_pair(powers, &self.value.0).map(|power| Residue(Integer(power)))
    }

    /// A number, which may be secret, in as many words as N has, or more where its bytes are longer.
    fn as_long(&self, bytes: &[u8]) -> Integer {
        let mut padded = Secret::new(vec![0; self.len.max(bytes.len())]);
        for (to, byte) in padded.expose_mut().iter_mut().rev().zip(bytes.iter().rev()) {
            *to = *byte;
        }
        Integer::from_be_bytes(padded.expose())
    }

    /// The product of all `base^exponent`, everything public; one for no factors. Straus's algorithm: the squarings
    /// are shared.
    #[must_use]
    pub fn vartime_product(&self, factors: &[(&Residue, &Integer)]) -> Residue {
        product::vartime_product(self, &self.montgomery, factors)
    }

    /// The inverse, unless the residue has a factor in common with N. Public data only.
    #[must_use]
    pub fn vartime_inverse(&self, a: &Residue) -> Option<Residue> {
        vartime_inverse(&a.0, &self.value).map(Residue)
    }

    /// Whether all residues are coprime to N, by one inversion. Public data only.
    #[must_use]
    pub fn vartime_are_units<'a>(&self, residues: impl IntoIterator<Item = &'a Residue>) -> bool {
        let product = residues.into_iter().fold(None, |product: Option<Residue>, residue| {
            Some(product.map_or_else(|| residue.clone(), |product| self.mul(&product, residue)))
        });
        product.is_none_or(|product| self.vartime_inverse(&product).is_some())
    }
}

impl Residue {
    /// The integer.
    #[must_use]
    pub const fn value(&self) -> &Integer {
        &self.0
    }
}

impl Clone for Modulus {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), montgomery: Montgomery::new(&self.value.0), len: self.len }
    }
}

impl PartialEq for Modulus {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Modulus {}

impl fmt::Debug for Modulus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::hex_debug(f, "Modulus", &self.value.to_be_bytes(self.len).unwrap_or_default())
    }
}

impl fmt::Debug for Residue {
    /// Shows the size alone: the value may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Residue({} bits)", self.0.bits())
    }
}
