//! The raw operations of groups, each measured when it is first needed and then remembered.

use std::{collections::BTreeMap, fmt};

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use theta_groups::{
    Group, Pairing, Scalar,
    modular::{Integer, Modulus, Residue},
};

use super::clock::{Clock, Timing};

/// The basic operations of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::micro) enum RawOperation {
    /// g * scalar.
    MulBase,
    /// element * scalar.
    Mul,
    /// element * scalar, from the element's table.
    MulTable,
    /// g * scalar + element * scalar, for public data.
    DoubleMul,
    /// The sum of `size` products with full scalars.
    Msm,
    /// The sum of `size` products with 128-bit scalars.
    MsmShort,
    /// The sum of `size` products with the Lagrange coefficients at zero of 1, 2, 3 ...: binomials, up to sign.
    MsmBinomials,
    /// The sum of `size` elements.
    Sum,
    /// Encoding `size` elements at once.
    Encode,
    /// Decoding with all checks.
    Decode,
    /// Decoding without the check of membership in the subgroup, where that is expensive.
    DecodeUnchecked,
    /// The check of membership in the subgroup alone.
    SubgroupCheck,
    /// Hashing a message of `size` bytes, at least 32, to the group.
    Hash,
    /// The sum of `size` scalars.
    AddScalars,
    /// Whether a product of two pairings is one.
    PairingCheck,
    /// A power modulo N with a secret exponent of `size` bits.
    Power,
    /// A power modulo N with a public exponent of `size` bits.
    PublicPower,
    /// A product modulo N of 4 `size` powers with public exponents of 256 bits.
    Products,
}

impl RawOperation {
    const fn name(self) -> &'static str {
        match self {
            Self::MulBase => "mul base",
            Self::Mul => "mul",
            Self::MulTable => "mul table",
            Self::DoubleMul => "double mul",
            Self::Msm => "msm",
            Self::MsmShort => "msm 128-bit",
            Self::MsmBinomials => "msm binomials",
            Self::Sum => "sum",
            Self::Encode => "encode",
            Self::Decode => "decode",
            Self::DecodeUnchecked => "decode unchecked",
            Self::SubgroupCheck => "subgroup check",
            Self::Hash => "hash to group",
            Self::AddScalars => "sum of scalars",
            Self::PairingCheck => "two pairings",
            Self::Power => "secret power",
            Self::PublicPower => "public power",
            Self::Products => "product of powers",
        }
    }
}

impl fmt::Display for RawOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The group, the operation and its size.
pub(in crate::micro) type RawKey = (String, RawOperation, usize);

/// The measurements so far.
pub(in crate::micro) struct Raw {
    clock: Clock,
    rng: ChaCha20Rng,
    known: BTreeMap<RawKey, Timing>,
}

impl Raw {
    /// No measurements yet.
    pub(in crate::micro) const fn new(clock: Clock, rng: ChaCha20Rng) -> Self {
        Self { clock, rng, known: BTreeMap::new() }
    }

    /// All measurements so far.
    pub(in crate::micro) const fn known(&self) -> &BTreeMap<RawKey, Timing> {
        &self.known
    }

    /// The time of an operation on single elements, in microseconds.
    pub(in crate::micro) fn of<G: Group>(&mut self, operation: RawOperation) -> f64 {
        self.of_many::<G>(operation, 1)
    }

    /// The time of an operation on `size` elements, in microseconds.
    pub(in crate::micro) fn of_many<G: Group>(&mut self, operation: RawOperation, size: usize) -> f64 {
        let key = (G::NAME.to_owned(), operation, size);
        if let Some(known) = self.known.get(&key) {
            return known.min_us;
        }
        let timing = time::<G>(self.clock, &mut self.rng, operation, size);
        self.known.insert(key, timing);
        timing.min_us
    }

    /// The time to check a product of two pairings, in microseconds.
    pub(in crate::micro) fn pairing_check<P: Pairing>(&mut self) -> f64 {
        let name = P::G1::NAME.strip_suffix("-g1").unwrap_or(P::G1::NAME);
        let key = (name.to_owned(), RawOperation::PairingCheck, 2);
        let scalar = P::Scalar::random(&mut self.rng);
        let (g1, g2) = (P::G1::mul_base(&scalar), P::G2::mul_base(&scalar));
        let pairs = [(g1, P::G2::generator()), (-P::G1::generator(), g2)];
        let clock = self.clock;
        self.known.entry(key).or_insert_with(|| clock.repeat(|| P::vartime_product_is_one(&pairs))).min_us
    }

    /// The time of an operation modulo an odd number of `bits` bits, in microseconds.
    pub(in crate::micro) fn modular(&mut self, bits: u32, operation: RawOperation, size: usize) -> f64 {
        let key = (format!("modulo {bits} bits"), operation, size);
        if let Some(known) = self.known.get(&key) {
            return known.min_us;
        }
        let Some(timing) = time_modular(self.clock, &mut self.rng, bits, operation, size) else { return 0.0 };
        self.known.insert(key, timing);
        timing.min_us
    }
}

fn time<G: Group>(clock: Clock, rng: &mut ChaCha20Rng, operation: RawOperation, size: usize) -> Timing {
    // The size of a hash is in bytes, not elements.
    let elements = if operation == RawOperation::Hash { 1 } else { size.max(1) };
    let scalars: Vec<G::Scalar> = (0..elements).map(|_| G::Scalar::random(rng)).collect();
    let elements: Vec<G::Element> = scalars.iter().map(G::mul_base).collect();
    let scalar = scalars.first().copied().unwrap_or(G::Scalar::ONE);
    let element = elements.first().copied().unwrap_or_else(G::generator) + G::generator();
    let encoding = G::encode(&element);
    match operation {
        RawOperation::MulBase => clock.repeat(|| G::mul_base(&scalar)),
        RawOperation::Mul => clock.repeat(|| element * scalar),
        RawOperation::MulTable => {
            let table = G::table(&element);
            clock.repeat(|| table(&scalar))
        }
        RawOperation::DoubleMul => clock.repeat(|| G::vartime_double_mul(&scalar, &element, &scalar)),
        RawOperation::Msm => clock.repeat(|| G::vartime_msm(&scalars, &elements)),
        RawOperation::MsmShort => {
            let short: Vec<u128> =
                (0..size).map(|_| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())).collect();
            clock.repeat(|| G::vartime_msm_short(&short, &elements))
        }
        RawOperation::MsmBinomials => match binomials(size) {
            Some(short) => clock.repeat(|| G::vartime_msm_short(&short, &elements)),
            None => clock.repeat(|| G::vartime_msm(&scalars, &elements)),
        },
        RawOperation::Sum => clock.repeat(|| elements.iter().copied().sum::<G::Element>()),
        RawOperation::Encode if size == 1 => clock.repeat(|| G::encode(&element)),
        RawOperation::Encode => clock.repeat(|| G::encode_batch(&elements)),
        RawOperation::Decode => clock.repeat(|| G::decode(encoding.as_ref())),
        RawOperation::DecodeUnchecked => clock.repeat(|| G::decode_unchecked_subgroup(encoding.as_ref())),
        RawOperation::SubgroupCheck => clock.repeat(|| G::is_in_subgroup(&element)),
        RawOperation::Hash => {
            let message = vec![7; size.max(32)];
            clock.repeat(|| G::hash_to_group(b"theta-bench micro", &[&message]))
        }
        // The other operations are not those of such a group.
        _ => clock.repeat(|| scalars.iter().copied().sum::<G::Scalar>()),
    }
}

/// The Lagrange coefficients at zero of the points 1 to k, up to sign (k over 1, k over 2 ...), if all fit 128 bits.
fn binomials(k: usize) -> Option<Vec<u128>> {
    let k = u128::try_from(k).ok()?;
    let mut binomial = 1_u128;
    (1..=k)
        .map(|i| {
            binomial = binomial.checked_mul(k + 1 - i)? / i;
            Some(binomial)
        })
        .collect()
}

fn time_modular(
    clock: Clock,
    rng: &mut ChaCha20Rng,
    bits: u32,
    operation: RawOperation,
    size: usize,
) -> Option<Timing> {
    let mut bytes = |bits: usize| {
        let mut bytes = vec![0; bits.div_ceil(8)];
        rng.fill_bytes(&mut bytes);
        if let Some(first) = bytes.first_mut() {
            *first |= 0x80;
        }
        if let Some(last) = bytes.last_mut() {
            *last |= 1;
        }
        bytes
    };
    let bits = usize::try_from(bits).ok()?;
    let modulus = Modulus::new(Integer::from_be_bytes(&bytes(bits)))?;
    let mut residue = || modulus.reduce(&Integer::from_be_bytes(&bytes(bits)));
    let base = residue();
    Some(match operation {
        RawOperation::Power => {
            let exponent = bytes(size);
            clock.repeat(|| modulus.pow(&base, &exponent))
        }
        RawOperation::PublicPower => {
            let exponent = Integer::from_be_bytes(&bytes(size));
            clock.repeat(|| modulus.vartime_product(&[(&base, &exponent)]))
        }
        _ => {
            let bases: Vec<Residue> = (0..4 * size).map(|_| residue()).collect();
            let exponents: Vec<Integer> = bases.iter().map(|_| Integer::from_be_bytes(&bytes(256))).collect();
            let factors: Vec<_> = bases.iter().zip(&exponents).collect();
            clock.repeat(|| modulus.vartime_product(&factors))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_are_binomials() {
        assert_eq!(binomials(4), Some(vec![4, 6, 4, 1]));
        assert_eq!(binomials(43).unwrap().len(), 43);
        assert_eq!(binomials(200), None);
    }
}
