//! Big integers against arithmetic on machine words and against the laws of modular arithmetic.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use theta_groups::DecodeError;
use theta_groups::modular::{Integer, MAX_MODULUS_BITS, Modulus, Residue};

fn number(value: u128) -> Integer {
    Integer::from_u128(value)
}

fn value(integer: &Integer) -> u128 {
    u128::from_be_bytes(integer.to_be_bytes(16).unwrap().try_into().unwrap())
}

fn random(bytes: usize, rng: &mut ChaCha20Rng) -> Integer {
    let mut out = vec![0; bytes];
    rng.fill_bytes(&mut out);
    Integer::from_be_bytes(&out)
}

fn random_modulus(bytes: usize, rng: &mut ChaCha20Rng) -> Modulus {
    let mut out = vec![0; bytes];
    rng.fill_bytes(&mut out);
    out[0] |= 0x80;
    out[bytes - 1] |= 1;
    Modulus::new(Integer::from_be_bytes(&out)).unwrap()
}

#[test]
fn integers_agree_with_machine_words() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    for _ in 0..200 {
        let (a, b) = (u128::from(rng.next_u64()), u128::from(rng.next_u64() >> (rng.next_u32() % 64)));
        let small = rng.next_u32();
        let (x, y) = (number(a), number(b));
        assert_eq!(value(&x.add(&y)), a + b);
        assert_eq!(value(&x.mul(&y)), a * b);
        assert_eq!(x.sub(&y).map(|d| value(&d)), a.checked_sub(b));
        assert_eq!(value(&x.rem(&y)), a.checked_rem(b).unwrap_or(0));
        assert_eq!(x.rem_u64(small.into()), u64::try_from(a % u128::from(small)).unwrap());
        assert_eq!(x.cmp(&y), a.cmp(&b));
        assert_eq!(y.bits(), 128 - b.leading_zeros());
        assert_eq!((0..130).filter(|i| y.bit(*i)).count(), b.count_ones() as usize);
        let mut changed = x.clone();
        changed.mul_u64(small.into());
        changed.add_u64(77);
        changed.add_assign(&y);
        assert_eq!(value(&changed), a * u128::from(small) + 77 + b);
        assert_eq!(u128::from(changed.div_u64(1000)), (a * u128::from(small) + 77 + b) % 1000);
        assert_eq!(value(&changed), (a * u128::from(small) + 77 + b) / 1000);
    }
}

#[test]
fn zero_and_sizes() {
    let zero = Integer::from_be_bytes(&[]);
    assert!(zero.is_zero() && !zero.is_odd() && zero == Integer::from_be_bytes(&[0; 9]));
    assert_eq!(zero.to_be_bytes(0), Some(vec![]));
    assert_eq!(number(256).to_be_bytes(1), None);
    assert_eq!(number(256).to_be_bytes(3), Some(vec![0, 1, 0]));
    let mut five = number(5);
    assert_eq!((number(5).rem(&zero), number(5).rem_u64(0), five.div_u64(0)), (number(0), 0, 0));
    assert!(five.is_zero());
    assert!(!number(5).bit(u32::MAX));
    assert_eq!(format!("{:?}", number(5)), "Integer(3 bits)");
}

#[test]
fn primes_are_told_from_composites() {
    for prime in [2, 3, 65_537, (1 << 61) - 1, (1 << 107) - 1, (1 << 127) - 1] {
        assert!(number(prime).is_prime(), "{prime}");
    }
    // Carmichael numbers, a strong pseudoprime to the bases 2, 3, 5, 7, and a product of two primes.
    for composite in [0, 1, 4, 561, 41_041, 3_215_031_751, 65_537 * ((1 << 61) - 1)] {
        assert!(!number(composite).is_prime(), "{composite}");
    }
    // 2^9689 - 1, a prime longer than any that is asked for: no answer, and no abort either.
    assert!(!Integer::from_be_bytes(&[&[1][..], &[0xff; 1211]].concat()).is_prime());
    assert!(!Integer::from_be_bytes(&[0xff; 20_000]).is_prime());
}

#[test]
fn moduli_are_odd_and_bounded() {
    for bad in [0, 1, 2, 3, 6, 1 << 100] {
        assert!(Modulus::new(number(bad)).is_none(), "{bad}");
    }
    assert!(Modulus::new(number(5)).is_some());
    let mut largest = vec![0xff; MAX_MODULUS_BITS as usize / 8];
    assert!(Modulus::new(Integer::from_be_bytes(&largest)).is_some());
    largest.insert(0, 1);
    assert!(Modulus::new(Integer::from_be_bytes(&largest)).is_none());
}

#[test]
fn residues_have_one_encoding() {
    let modulus = Modulus::new(number(0x1_0001)).unwrap();
    assert_eq!(modulus.encoded_len(), 3);
    let residue = modulus.decode(&[1, 0, 0]).unwrap();
    assert_eq!(modulus.encode(&residue), [1, 0, 0]);
    assert_eq!(modulus.decode(&[1, 0, 1]), Err(DecodeError::NotCanonical));
    assert_eq!(modulus.decode(&[0xff; 3]), Err(DecodeError::NotCanonical));
    for bytes in [&[][..], &[1, 0], &[0, 1, 0, 0]] {
        assert_eq!(modulus.decode(bytes), Err(DecodeError::Length { expected: 3, got: bytes.len() }));
    }
}

/// base^exponent by repeated squaring with a plain division after each product.
fn naive_pow(modulus: &Modulus, base: &Residue, exponent: &Integer) -> Integer {
    (0..exponent.bits()).rev().fold(number(1), |power, i| {
        let square = power.mul(&power).rem(modulus.value());
        if exponent.bit(i) { square.mul(base.value()).rem(modulus.value()) } else { square }
    })
}

#[test]
fn powers_and_products_agree_with_the_definition() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    for (bytes, lengths) in [(1, &[0, 1, 3][..]), (9, &[16, 0, 40]), (64, &[5, 64, 80, 1, 9, 28]), (256, &[256, 20])] {
        let modulus = random_modulus(bytes, &mut rng);
        let terms: Vec<(Residue, Integer)> =
            lengths.iter().map(|len| (modulus.reduce(&random(bytes + 8, &mut rng)), random(*len, &mut rng))).collect();
        let mut expected = number(1);
        for (base, exponent) in &terms {
            let power = naive_pow(&modulus, base, exponent);
            // Leading zeros change nothing.
            for len in [exponent.bits().div_ceil(8) as usize, 300] {
                assert_eq!(modulus.pow(base, &exponent.to_be_bytes(len).unwrap()).value(), &power);
            }
            assert_eq!(modulus.vartime_product(&[(base, exponent)]).value(), &power);
            expected = modulus.mul(&modulus.reduce(&expected), &modulus.reduce(&power)).value().clone();
        }
        let factors: Vec<_> = terms.iter().map(|(base, exponent)| (base, exponent)).collect();
        assert_eq!(modulus.vartime_product(&factors).value(), &expected);
        assert_eq!(modulus.vartime_product(&[]).value(), &number(1));
    }
}

#[test]
fn two_powers_at_once_are_those_of_each_by_itself() {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    // 1024, 1536 and 2048 bits go together where the processor can; the others one after the other everywhere.
    for bytes in [9, 128, 192, 256, 384] {
        let modulus = random_modulus(bytes, &mut rng);
        let below = modulus.value().sub(&number(1)).unwrap();
        let bases = [number(0), number(1), below.clone(), random(bytes + 8, &mut rng), random(bytes - 5, &mut rng)];
        let bases = bases.map(|base| modulus.reduce(&base));
        let exponents = [number(0), number(1), below, random(bytes, &mut rng), random(bytes + 9, &mut rng)];
        let exponents = exponents.map(|exponent| exponent.to_be_bytes(exponent.bits().div_ceil(8) as usize).unwrap());
        for (place, first) in bases.iter().enumerate() {
            for (step, exponent) in exponents.iter().enumerate() {
                let (second, other) = (&bases[(place + step) % 5], &exponents[(step + 1) % 5]);
                let expected = [modulus.pow(first, exponent), modulus.pow(second, other)];
                assert!(modulus.pow_pair([(first, exponent), (second, other)]) == expected, "{bytes} {place} {step}");
            }
        }
        let padded = [vec![0; 3], exponents[3].clone()].concat();
        let [power, _] = modulus.pow_pair([(&bases[3], &padded), (&bases[4], &exponents[0])]);
        assert!(power == modulus.pow(&bases[3], &exponents[3]), "leading zeros change nothing");
        assert_eq!(modulus.prefers_pairs(), [128, 192, 256].contains(&bytes), "in debug builds");
    }
}

#[test]
fn inverses_are_of_units_only() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let modulus = random_modulus(128, &mut rng);
    let one = modulus.reduce(&number(1));
    let units: Vec<_> = (0..200).map(|_| modulus.reduce(&random(130, &mut rng))).collect();
    let units: Vec<_> = units.into_iter().filter(|a| modulus.vartime_inverse(a).is_some()).collect();
    assert!(units.len() > 20);
    for a in &units {
        assert_eq!(modulus.mul(a, &modulus.vartime_inverse(a).unwrap()), one);
    }
    assert!(modulus.vartime_are_units(&units));
    assert!(modulus.vartime_are_units([]));
    let modulus = Modulus::new(number(3 * 65_537)).unwrap();
    for bad in [0, 3, 65_537, 2 * 65_537] {
        let bad = modulus.reduce(&number(bad));
        assert_eq!(modulus.vartime_inverse(&bad), None);
        assert!(!modulus.vartime_are_units([&modulus.reduce(&number(2)), &bad]));
    }
}

#[test]
fn a_residue_of_another_modulus_does_no_harm() {
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let (small, large) = (random_modulus(8, &mut rng), random_modulus(64, &mut rng));
    let foreign = large.reduce(&random(70, &mut rng));
    let exponent = random(8, &mut rng);
    let power = small.pow(&foreign, &exponent.to_be_bytes(8).unwrap());
    assert_eq!(power.value(), &naive_pow(&small, &small.reduce(foreign.value()), &exponent));
    let own = small.reduce(foreign.value());
    let bytes = exponent.to_be_bytes(8).unwrap();
    let pair = small.pow_pair([(&foreign, &bytes), (&own, &bytes)]);
    assert!(pair.iter().all(|paired| paired.value() == power.value()));
    assert_eq!(small.mul(&foreign, &foreign), small.square(&own));
    assert_eq!(small.vartime_product(&[(&foreign, &exponent)]).value(), power.value());
    assert_eq!(small.vartime_inverse(&foreign), small.vartime_inverse(&own));
    let _ = large.encode(&small.reduce(&number(1)));
}
