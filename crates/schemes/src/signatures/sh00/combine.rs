//! From k shares to the signature (section 2.2 of the paper, "combining shares").

use theta_groups::modular::{Integer, Residue};
use theta_sharing::ShareIndex;

use super::dealer::inverse_modulo_exponent;
use super::interpolation::IntegerCoefficients;
use super::{PUBLIC_EXPONENT, RsaPublicKey, RsaRequest, RsaShare, RsaSignature};
use crate::{CombineError, selection};

/// Combines the first k shares and checks the signature.
///
/// With lambda_i the Lagrange coefficients and D their common denominator, the product w of all x_i^(2 D lambda_i) is
/// x^(e' / e) for e' = 4 D Delta. As e' and e are coprime, a e' - b e = 1 for some a and b, and y = w^a x^(-b) has
/// y^e = x. The paper has Delta in place of D, which gives the same result with longer exponents.
pub(crate) fn combine(
    public: &RsaPublicKey,
    request: &RsaRequest,
    shares: &[RsaShare],
) -> Result<RsaSignature, CombineError> {
    let (chosen, _) = selection::first_k(public.threshold(), shares, RsaShare::index)?;
    let modulus = public.modulus();
    let values: Vec<Residue> = chosen
        .iter()
        .map(|share| modulus.decode(share.value()))
        .collect::<Result<_, _>>()
        .map_err(|_| CombineError::ResultInvalid)?;
    let indices: Vec<ShareIndex> = chosen.iter().map(RsaShare::index).collect();
    let mut coefficients = IntegerCoefficients::at_zero(&indices);

    let mut total = coefficients.denominator.mul(public.delta());
    total.mul_u64(4);
    let a = inverse_modulo_exponent(total.rem_u64(PUBLIC_EXPONENT));
    for exponent in &mut coefficients.numerators {
        exponent.mul_u64(2 * a);
    }
    // b = (a e' - 1) / e: the division drops the remainder 1.
    let mut b = total;
    b.mul_u64(a);
    b.div_u64(PUBLIC_EXPONENT);

    // Negative exponents are gathered in a divisor, which is inverted once.
    let (mut above, mut below) = (Vec::new(), vec![(request.message(), &b)]);
    for ((value, exponent), negative) in values.iter().zip(&coefficients.numerators).zip(&coefficients.negative) {
        if *negative { below.push((value, exponent)) } else { above.push((value, exponent)) }
    }
    let inverse = modulus.vartime_inverse(&modulus.vartime_product(&below)).ok_or(CombineError::ResultInvalid)?;
    let signature = modulus.mul(&modulus.vartime_product(&above), &inverse);
    if opens_to(public, &signature) == *request.message() {
        Ok(RsaSignature::new(modulus.encode(&signature)))
    } else {
        Err(CombineError::ResultInvalid)
    }
}

/// The signature that these bytes are, if it is the one that the request asks for.
pub(crate) fn accept(public: &RsaPublicKey, request: &RsaRequest, bytes: &[u8]) -> Result<RsaSignature, CombineError> {
    let signature = public.modulus().decode(bytes).map_err(|_| CombineError::ResultInvalid)?;
    if opens_to(public, &signature) == *request.message() {
        Ok(RsaSignature::new(bytes.to_vec()))
    } else {
        Err(CombineError::ResultInvalid)
    }
}

/// signature^e, the value that a true signature opens to.
pub(super) fn opens_to(public: &RsaPublicKey, signature: &Residue) -> Residue {
    public.modulus().vartime_product(&[(signature, &Integer::from_u64(PUBLIC_EXPONENT))])
}
