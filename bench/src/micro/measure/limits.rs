//! What no implementation of a scheme can go below: for each operation the raw group operations that its definition
//! names, in the form in which batching makes them cheapest.
//!
//! Not counted are hashing (except hashing a message to the group), arithmetic of scalars (except the dealer's), encoding
//! of scalars, and memory: these are the overhead that should be small. Multiplications by the Lagrange coefficients of
//! parties 1 to k are measured with these short numbers, those of parties spread over 1 to n with full scalars.

use theta_groups::Group;
use theta_schemes::{
    ciphers::{
        bz03::{Bz03, CipherPairing},
        sg02::{CipherGroup, Sg02},
    },
    coins::{
        cks05::{Cks05, CoinGroup},
        cks05_bls::Cks05Bls,
        cks05_rsa::Cks05Sh00,
    },
    signatures::{
        bls04::{Bls04, Form},
        ecdsa::{Ecdsa, EcdsaCurve},
        frost::{Frost, FrostSuite},
        sh00::{Encoding, Sh00},
    },
};

use super::{
    super::operation::Operation,
    raw::{Raw, RawOperation as R},
};

/// The sizes on which an operation's cost depends.
#[derive(Clone, Copy, Debug)]
pub(in crate::micro) struct Sizes {
    /// The number of parties that act, k.
    pub(in crate::micro) k: usize,
    /// The number of all parties, n.
    pub(in crate::micro) n: usize,
    /// The bits of an RSA modulus, otherwise 0.
    pub(in crate::micro) bits: u32,
    /// The bytes of the message, or 0 if there is none.
    pub(in crate::micro) message: usize,
}

/// A scheme whose unavoidable operations are known.
pub(in crate::micro) trait Limits {
    /// The sum of their times in microseconds; `None` if none is unavoidable.
    fn limit(raw: &mut Raw, operation: Operation, sizes: Sizes) -> Option<f64>;
}

fn times(count: usize, cost: f64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) * cost
}

/// n + 1 multiplications of the generator and their encodings; k - 1 additions for each point of a polynomial of degree k -
/// 1.
fn dealt<G: Group>(raw: &mut Raw, Sizes { k, n, .. }: Sizes) -> f64 {
    times(n + 1, raw.of::<G>(R::MulBase))
        + raw.of_many::<G>(R::Encode, n + 1)
        + times(n, raw.of_many::<G>(R::AddScalars, k - 1))
}

/// The Diffie-Hellman share with its proof, shared by SG02 and CKS05.
fn dleq<G: Group>(raw: &mut Raw, operation: Operation, sizes: Sizes) -> Option<f64> {
    let k = sizes.k;
    Some(match operation {
        Operation::KeyGeneration => dealt::<G>(raw, sizes),
        Operation::BareShare => raw.of::<G>(R::Mul) + raw.of::<G>(R::Encode),
        Operation::CreateShare => raw.of::<G>(R::MulBase) + 2.0 * raw.of::<G>(R::Mul) + raw.of_many::<G>(R::Encode, 3),
        Operation::DecodeShare => raw.of::<G>(R::DecodeUnchecked),
        Operation::VerifyShare => {
            raw.of::<G>(R::DoubleMul)
                + raw.of_many::<G>(R::Msm, 2)
                + raw.of_many::<G>(R::Encode, 2)
                + raw.of::<G>(R::SubgroupCheck)
        }
        Operation::VerifyShares if k == 1 => dleq::<G>(raw, Operation::VerifyShare, sizes)?,
        Operation::VerifyShares => {
            times(k, raw.of::<G>(R::SubgroupCheck))
                + times(2 * k, raw.of::<G>(R::Decode))
                + raw.of_many::<G>(R::Msm, 2 * k + 2)
                + raw.of_many::<G>(R::MsmShort, 2 * k)
        }
        Operation::Combine => raw.of_many::<G>(R::MsmBinomials, k) + raw.of::<G>(R::Encode),
        Operation::CombineSpread => raw.of_many::<G>(R::Msm, k) + raw.of::<G>(R::Encode),
        _ => return None,
    })
}

impl<G: CipherGroup> Limits for Sg02<G> {
    fn limit(raw: &mut Raw, operation: Operation, sizes: Sizes) -> Option<f64> {
        match operation {
            Operation::Encrypt => Some(
                2.0 * raw.of::<G>(R::MulBase)
                    + 3.0 * raw.of::<G>(R::MulTable)
                    + raw.of_many::<G>(R::Encode, 4)
                    + raw.of::<G>(R::Encode),
            ),
            Operation::CheckRequest if G::HAS_COFACTOR => Some(
                2.0 * raw.of::<G>(R::Decode)
                    + raw.of::<G>(R::DoubleMul)
                    + raw.of_many::<G>(R::Msm, 2)
                    + raw.of_many::<G>(R::Encode, 2),
            ),
            Operation::CheckRequest => Some(4.0 * raw.of::<G>(R::Decode) + raw.of_many::<G>(R::Msm, 6)),
            other => dleq::<G>(raw, other, sizes),
        }
    }
}

impl<G: CoinGroup> Limits for Cks05<G> {
    fn limit(raw: &mut Raw, operation: Operation, sizes: Sizes) -> Option<f64> {
        match operation {
            Operation::CheckRequest => Some(raw.of::<G>(R::Hash) + raw.of::<G>(R::Encode)),
            Operation::VerifyResult => Some(
                Self::limit(raw, Operation::CheckRequest, sizes)?
                    + times(sizes.k, raw.of::<G>(R::DecodeUnchecked))
                    + dleq::<G>(raw, Operation::VerifyShares, sizes)?
                    + dleq::<G>(raw, Operation::Combine, sizes)?,
            ),
            other => dleq::<G>(raw, other, sizes),
        }
    }
}

impl<P: CipherPairing> Limits for Bz03<P> {
    fn limit(raw: &mut Raw, operation: Operation, sizes: Sizes) -> Option<f64> {
        let encode = raw.of::<P::G1>(R::Encode);
        let check = raw.pairing_check::<P>();
        Some(match operation {
            Operation::KeyGeneration => dealt::<P::G1>(raw, sizes),
            Operation::Encrypt => {
                raw.of::<P::G1>(R::MulBase)
                    + raw.of::<P::G1>(R::MulTable)
                    + raw.of::<P::G1>(R::Mul)
                    + raw.of::<P::G1>(R::Hash)
                    + raw.of_many::<P::G1>(R::Encode, 3)
                    + raw.of::<P::G2>(R::MulBase)
                    + raw.of::<P::G2>(R::Encode)
            }
            Operation::CheckRequest => {
                2.0 * raw.of::<P::G1>(R::Decode)
                    + raw.of::<P::G2>(R::Decode)
                    + raw.of::<P::G1>(R::Hash)
                    + 2.0 * raw.of_many::<P::G1>(R::MsmShort, 1)
                    + check
            }
            Operation::CreateShare => raw.of::<P::G1>(R::Mul) + encode,
            Operation::DecodeShare => raw.of::<P::G1>(R::DecodeUnchecked),
            Operation::VerifyShare => raw.of::<P::G1>(R::SubgroupCheck) + check,
            Operation::VerifyShares => {
                times(sizes.k, raw.of::<P::G1>(R::SubgroupCheck))
                    + 2.0 * raw.of_many::<P::G1>(R::MsmShort, sizes.k)
                    + check
            }
            Operation::Combine => raw.of_many::<P::G1>(R::MsmBinomials, sizes.k) + 2.0 * encode,
            Operation::CombineSpread => raw.of_many::<P::G1>(R::Msm, sizes.k) + 2.0 * encode,
            _ => return None,
        })
    }
}

/// BLS signatures, shared by BLS04 and the BLS coin.
fn bls<F: Form>(raw: &mut Raw, operation: Operation, sizes: Sizes) -> Option<f64> {
    let check = raw.pairing_check::<F::Curve>();
    let subgroup = raw.of::<F::Signatures>(R::SubgroupCheck);
    Some(match operation {
        Operation::KeyGeneration => {
            let possession =
                raw.of::<F::Signatures>(R::Hash) + raw.of::<F::Signatures>(R::Mul) + raw.of::<F::Signatures>(R::Encode);
            dealt::<F::Keys>(raw, sizes) + possession
        }
        Operation::CheckRequest => raw.of_many::<F::Signatures>(R::Hash, sizes.message),
        Operation::CreateShare => raw.of::<F::Signatures>(R::Mul) + raw.of::<F::Signatures>(R::Encode),
        Operation::DecodeShare => raw.of::<F::Signatures>(R::DecodeUnchecked),
        Operation::VerifyShare => subgroup + check,
        Operation::VerifyShares => {
            times(sizes.k, subgroup)
                + raw.of_many::<F::Keys>(R::MsmShort, sizes.k)
                + raw.of_many::<F::Signatures>(R::MsmShort, sizes.k)
                + check
        }
        Operation::Combine => raw.of_many::<F::Signatures>(R::MsmBinomials, sizes.k) + subgroup + check,
        Operation::CombineSpread => raw.of_many::<F::Signatures>(R::Msm, sizes.k) + subgroup + check,
        Operation::VerifyResult => {
            raw.of::<F::Signatures>(R::Decode) + raw.of_many::<F::Signatures>(R::Hash, sizes.message) + check
        }
        _ => return None,
    })
}

impl<F: Form> Limits for Bls04<F> {
    fn limit(raw: &mut Raw, operation: Operation, sizes: Sizes) -> Option<f64> {
        bls::<F>(raw, operation, sizes)
    }
}

impl<F: Form> Limits for Cks05Bls<F> {
    fn limit(raw: &mut Raw, operation: Operation, sizes: Sizes) -> Option<f64> {
        bls::<F>(raw, operation, sizes)
    }
}

/// RSA signatures. Nonces of proofs are 256 bits longer than N; batch weights add 128 bits to responses.
fn rsa(raw: &mut Raw, operation: Operation, Sizes { k, n, bits, .. }: Sizes) -> Option<f64> {
    let length = usize::try_from(bits).ok()?;
    let check = raw.modular(bits, R::PublicPower, 17);
    Some(match operation {
        Operation::KeyGeneration => times(n, raw.modular(bits, R::Power, length)),
        Operation::BareShare => raw.modular(bits, R::Power, length),
        Operation::CreateShare => raw.modular(bits, R::Power, length) + 2.0 * raw.modular(bits, R::Power, length + 256),
        Operation::VerifyShare | Operation::VerifyShares => {
            let claims = if operation == Operation::VerifyShare { 1 } else { k };
            2.0 * raw.modular(bits, R::PublicPower, length + 384) + raw.modular(bits, R::Products, claims)
        }
        Operation::VerifyResult => check,
        _ => return None,
    })
}

impl<E: Encoding> Limits for Sh00<E> {
    fn limit(raw: &mut Raw, operation: Operation, sizes: Sizes) -> Option<f64> {
        rsa(raw, operation, sizes)
    }
}

impl Limits for Cks05Sh00 {
    fn limit(raw: &mut Raw, operation: Operation, sizes: Sizes) -> Option<f64> {
        rsa(raw, operation, sizes)
    }
}

impl<C: FrostSuite> Limits for Frost<C> {
    fn limit(raw: &mut Raw, operation: Operation, sizes: Sizes) -> Option<f64> {
        let k = sizes.k;
        let commitment = |raw: &mut Raw| {
            raw.of_many::<C::Group>(R::Sum, k) + raw.of_many::<C::Group>(R::Msm, k) + raw.of::<C::Group>(R::Encode)
        };
        Some(match operation {
            Operation::KeyGeneration => dealt::<C::Group>(raw, sizes),
            Operation::RoundOne => 2.0 * raw.of::<C::Group>(R::MulBase) + raw.of_many::<C::Group>(R::Encode, 2),
            Operation::DecodeCommitments => times(2 * k, raw.of::<C::Group>(R::Decode)),
            Operation::RoundTwo => commitment(raw),
            Operation::Aggregate => commitment(raw) + raw.of::<C::Group>(R::DoubleMul),
            Operation::VerifyResult => raw.of::<C::Group>(R::DoubleMul) + raw.of::<C::Group>(R::Encode),
            _ => return None,
        })
    }
}

/// Signing takes a protocol, whose steps are not measured here.
impl<C: EcdsaCurve> Limits for Ecdsa<C> {
    fn limit(raw: &mut Raw, operation: Operation, sizes: Sizes) -> Option<f64> {
        (operation == Operation::KeyGeneration).then(|| dealt::<C::Group>(raw, sizes))
    }
}
