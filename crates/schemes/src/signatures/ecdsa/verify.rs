//! Verification: FIPS 186-5, section 6.4.2. Of public data only.

use theta_groups::{DecodeError, FixedBase, Group, Scalar};

use super::{EcdsaCurve, SIGNATURE_LEN};
use crate::VerifyError;

type ScalarOf<C> = <<C as EcdsaCurve>::Group as Group>::Scalar;
type ElementOf<C> = <<C as EcdsaCurve>::Group as Group>::Element;

/// Length of digests in bytes.
const DIGEST_LEN: usize = 32;

/// Verifies a signature of the message with this digest. r and s must be between 1 and q - 1 and, where the lower s counts alone, s
/// at most q / 2.
pub(super) fn vartime_verify<C: EcdsaCurve>(
    public_key: &FixedBase<C::Group>,
    digest: &[u8],
    signature: &[u8],
) -> Result<(), VerifyError> {
    let wrong_length = DecodeError::Length { expected: SIGNATURE_LEN, got: signature.len() };
    let signature: &[u8; SIGNATURE_LEN] = signature.try_into().map_err(|_| wrong_length)?;
    let (r, s) = signature.split_at(SIGNATURE_LEN / 2);
    let (r, s) = (ScalarOf::<C>::decode(r)?, ScalarOf::<C>::decode(s)?);
    if r == Scalar::ZERO || s == Scalar::ZERO || digest.len() != DIGEST_LEN {
        return Err(VerifyError::Invalid);
    }
    if C::LOW_S && is_high::<C>(&s) {
        return Err(VerifyError::HighS);
    }
    let element = vartime_element::<C>(public_key, digest, (r, s));
    if abscissa::<C>(&element) == Some(r) { Ok(()) } else { Err(VerifyError::Invalid) }
}

/// (e G + r X) / s, which is R or -R if the signature is right: FIPS 186-5, section 6.4.2, steps 3 to 5.
fn vartime_element<C: EcdsaCurve>(
    public_key: &FixedBase<C::Group>,
    digest: &[u8],
    (r, s): (ScalarOf<C>, ScalarOf<C>),
) -> ElementOf<C> {
    // As long as q, so that no bit is cut.
    let e = ScalarOf::<C>::from_uniform_bytes(digest);
    let inverse = s.invert();
    public_key.vartime_double_mul(&(e * inverse), &(r * inverse))
}

/// Which of up to four points with this r the signature belongs to (SEC1, section 4.1.6): bit 0 says that its y is odd, bit 1 that its x is q or
/// more. `None` if it is no signature of the digest.
pub(super) fn vartime_recovery_id<C: EcdsaCurve>(
    public_key: &FixedBase<C::Group>,
    digest: &[u8],
    signature: &[u8],
) -> Option<u8> {
    vartime_verify::<C>(public_key, digest, signature).ok()?;
    let (r, s) = signature.split_at_checked(SIGNATURE_LEN / 2)?;
    let scalars = (ScalarOf::<C>::decode(r).ok()?, ScalarOf::<C>::decode(s).ok()?);
    let encoded = C::Group::encode(&vartime_element::<C>(public_key, digest, scalars));
    // SEC1 compresses an element to 2 or 3, which tells whether y is odd, and x.
    let (sign, x) = encoded.split_first()?;
    Some((sign & 1) | (u8::from(x != r) << 1))
}

/// Whether q - s is lower.
fn is_high<C: EcdsaCurve>(s: &ScalarOf<C>) -> bool {
    // Both are big-endian and equally long.
    (-*s).encode().as_ref() < s.encode().as_ref()
}

/// The x-coordinate modulo q; `None` for the identity.
fn abscissa<C: EcdsaCurve>(element: &ElementOf<C>) -> Option<ScalarOf<C>> {
    if C::Group::is_identity(element) {
        return None;
    }
    let encoded = C::Group::encode(element);
    let (_sign, x) = encoded.split_first()?;
    Some(ScalarOf::<C>::from_uniform_bytes(x))
}
