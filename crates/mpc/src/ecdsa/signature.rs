//! Signatures: FIPS 186-5, section 6.4.

use theta_groups::{Group, Scalar};

use super::curve::{Curve, abscissa, hash_to_scalar};

/// A signature (r, s), neither of them zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature<G: Group> {
    r: G::Scalar,
    s: G::Scalar,
    recovery: u8,
}

impl<G: Curve> Signature<G> {
    /// The signature of s for R. `None` if r or s is zero.
    pub(super) fn new(element: &G::Element, s: G::Scalar) -> Option<Self> {
        let abscissa = abscissa::<G>(element)?;
        if abscissa.r == G::Scalar::ZERO || s == G::Scalar::ZERO {
            return None;
        }
        let recovery = u8::from(abscissa.is_odd) | u8::from(abscissa.overflows) << 1;
        Some(Self { r: abscissa.r, s, recovery })
    }

    /// The same signature with s or q - s, whichever is at most q / 2, as Bitcoin and Ethereum demand. (r, q - s) is valid
    /// whenever (r, s) is, and belongs to -R.
    #[must_use]
    pub fn low_s(self) -> Self {
        let negative = -self.s;
        // Both are big-endian and equally long.
        if negative.encode().as_ref() < self.s.encode().as_ref() {
            Self { s: negative, recovery: self.recovery ^ 1, ..self }
        } else {
            self
        }
    }

    /// Which of up to four points with this r the signature was made with, so that the public key follows from signature and
    /// message (SEC1, section 4.1.6): bit 0 says that y is odd, bit 1 that x is q or more.
    #[must_use]
    pub const fn recovery_id(&self) -> u8 {
        self.recovery
    }

    /// r and s, 32 bytes each, big-endian.
    #[must_use]
    pub fn to_raw(&self) -> [u8; 64] {
        let mut bytes = [0; 64];
        let (r, s) = bytes.split_at_mut(32);
        r.copy_from_slice(self.r.encode().as_ref());
        s.copy_from_slice(self.s.encode().as_ref());
        bytes
    }

    /// `SEQUENCE { r INTEGER, s INTEGER }` in DER (RFC 3279, section 2.2.3), 8 to 72 bytes.
    #[must_use]
    pub fn to_der(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(70);
        for number in [&self.r, &self.s] {
            let encoded = number.encode();
            let mut digits = encoded.as_ref();
            while let [0, rest @ ..] = digits {
                digits = rest;
            }
            // A leading bit of one would be a sign.
            let padding = digits.first().is_some_and(|first| *first >= 0x80);
            let len = digits.len() + usize::from(padding);
            body.extend_from_slice(&[0x02, u8::try_from(len).unwrap_or(0)]);
            body.extend(padding.then_some(0));
            body.extend_from_slice(digits);
        }
        // At most 2 (2 + 33) bytes: every length fits its short form.
        let mut der = vec![0x30, u8::try_from(body.len()).unwrap_or(0)];
        der.append(&mut body);
        der
    }

    /// (e G + r X) / s, which is R or -R if the signature is right: FIPS 186-5, section 6.4.2, steps 3 to 5.
    pub(super) fn vartime_element(&self, public_key: &G::Element, digest: &[u8; 32]) -> G::Element {
        let (of_generator, of_key) = self.factors(digest);
        G::vartime_double_mul(&of_generator, public_key, &of_key)
    }

    /// e / s and r / s.
    pub(super) fn factors(&self, digest: &[u8; 32]) -> (G::Scalar, G::Scalar) {
        let inverse = self.s.invert();
        let e: G::Scalar = hash_to_scalar(digest);
        (e * inverse, self.r * inverse)
    }

    /// Whether it is the key's signature on a digest: FIPS 186-5, section 6.4.2.
    #[must_use]
    pub fn vartime_verifies(&self, public_key: &G::Element, digest: &[u8; 32]) -> bool {
        let element = self.vartime_element(public_key, digest);
        abscissa::<G>(&element).is_some_and(|abscissa| abscissa.r == self.r)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use theta_groups::{P256, P256Scalar as S};

    #[test]
    fn der_is_minimal() {
        let signature = |r, s| Signature::<P256> { r, s, recovery: 0 };
        let small = signature(S::from_u64(1), S::from_u64(0x80));
        assert_eq!(small.to_der(), [0x30, 7, 2, 1, 1, 2, 2, 0, 0x80]);
        let large = signature(-S::from_u64(1), -S::from_u64(2));
        assert_eq!(large.to_der().len(), 72);
    }

    #[test]
    fn low_s_is_one_of_two() {
        let low = Signature::<P256> { r: S::ONE, s: S::from_u64(5), recovery: 2 };
        let high = Signature::<P256> { s: -S::from_u64(5), recovery: 3, ..low };
        assert_eq!((low.low_s(), high.low_s()), (low, low));
    }
}
