//! Attacks with the primes, with a share, and with false values.

use theta_groups::Transcript;
use theta_groups::modular::{Integer, Modulus, Residue};
use theta_keyfiles::{KeyShareText as _, PublicKeyText as _};
use theta_schemes::keys::{PublicMaterial, SchemeError, SecretMaterial};
use theta_schemes::signatures::sh00::{PUBLIC_EXPONENT, RsaDealt, RsaPrimes, RsaPublicKey};
use theta_schemes::{RequestError, Statement, StatementBytes, Suite, ThresholdScheme};

use crate::sh00::fixture::{
    Rsa, SUITES, index, key, primes, request, rng, shares, short_key, statement, subsets, typed_shares,
};
use crate::suites::fixture::assert_refused;

fn number(value: u64) -> Integer {
    Integer::from_u64(value)
}

fn minus(modulus: &Modulus, residue: &Residue) -> Residue {
    modulus.reduce(&modulus.value().sub(residue.value()).unwrap())
}

/// The square root of one that is 1 modulo p and -1 modulo q, which only those have who know the factors.
fn root_of_one(modulus: &Modulus) -> Residue {
    let [p, q] = primes(1024).expose();
    let modulo_q = Modulus::new(q.clone()).unwrap();
    let inverse = modulo_q.vartime_inverse(&modulo_q.reduce(p)).unwrap();
    let minus_two = modulo_q.reduce(&q.sub(&number(2)).unwrap());
    let mut root = modulo_q.mul(&inverse, &minus_two).value().mul(p);
    root.add_u64(1);
    modulus.reduce(&root)
}

/// A proof as `spec/sh00.md` has it, for any value with any commitments' factor.
fn prove(dealt: &RsaDealt, x: &Residue, party: usize, value: &Residue, factor: &Residue) -> Vec<u8> {
    let (public, secret) = (&dealt.public, dealt.shares[party].secret().expose());
    let modulus = public.modulus();
    let nonce = vec![0x5a; modulus.encoded_len() + 32];
    let commit = |base: &Residue| modulus.encode(&modulus.mul(&modulus.pow(base, &nonce), factor));
    let base = commit(public.verification_base());
    let message = commit(&modulus.square(&modulus.square(x)));
    let value = modulus.encode(value);
    let challenge = Transcript::new("theta/sh00/proof/v1")
        .with("key id", public.key_id().as_bytes())
        .with("index", &dealt.shares[party].index().get().to_le_bytes())
        .with("verification base", &modulus.encode(public.verification_base()))
        .with("verification key", &modulus.encode(&public.verification_keys()[party]))
        .with("message", &modulus.encode(x))
        .with("share", &value)
        .with("commitment to the base", &base)
        .with("commitment to the message", &message)
        .finish();
    let masked = Integer::from_be_bytes(secret).mul(&Integer::from_be_bytes(&challenge[..16]));
    let response = Integer::from_be_bytes(&nonce).add(&masked).to_be_bytes(nonce.len()).unwrap();
    [value, base, message, response].concat()
}

/// The encoding of a message, which is public: a signature to the power e.
fn encoded(public: &RsaPublicKey, signature: &[u8]) -> Residue {
    let signature = public.modulus().decode(signature).unwrap();
    public.modulus().pow(&signature, &PUBLIC_EXPONENT.to_be_bytes())
}

#[test]
fn elements_of_small_order_change_nothing() {
    let dealt = short_key::<Rsa>(2, 3, 20);
    let (public, modulus) = (&dealt.public, dealt.public.modulus());
    let request = request::<Rsa>(public, b"message");
    let bare = typed_shares(&dealt, b"message", false);
    let signature = Rsa::combine(public, &request, &bare).unwrap();
    let x = encoded(public, signature.bytes());
    let one = modulus.reduce(&number(1));
    let root = root_of_one(modulus);
    assert_eq!(modulus.square(&root), one);
    // There are no other elements of small order: the rest of the group has order p' q'.
    for twist in [&one, &minus(modulus, &one), &root, &minus(modulus, &root)] {
        let value = modulus.decode(&Rsa::encode_share(&bare[0])).unwrap();
        let twisted = modulus.mul(&value, twist);
        let bare_twisted = Rsa::decode_share(index(1), &modulus.encode(&twisted)).unwrap();
        let combined = Rsa::combine(public, &request, &[bare_twisted, bare[1].clone()]).unwrap();
        assert_eq!(combined, signature);
        for factor in [&one, &minus(modulus, &one), &root] {
            let proven = Rsa::decode_share(index(1), &prove(&dealt, &x, 0, &twisted, factor)).unwrap();
            assert_eq!(Rsa::verify_shares(public, &request, &[proven], &mut rng(1)), []);
        }
    }
    // A factor that is not a root of one makes the share false, with any proof.
    for twist in [public.verification_base(), &modulus.reduce(&number(4)), &modulus.reduce(&number(3))] {
        let value = modulus.decode(&Rsa::encode_share(&bare[0])).unwrap();
        for (value, factor) in [(modulus.mul(&value, twist), &one), (value, twist)] {
            let proven = Rsa::decode_share(index(1), &prove(&dealt, &x, 0, &value, factor)).unwrap();
            assert_eq!(Rsa::verify_shares(public, &request, &[proven], &mut rng(1)), [index(1)]);
        }
    }
}

#[test]
fn a_sign_that_was_added_to_an_honest_proof_breaks_it() {
    let dealt = short_key::<Rsa>(2, 3, 21);
    let modulus = dealt.public.modulus();
    let request = request::<Rsa>(&dealt.public, b"message");
    let share = Rsa::encode_share(&typed_shares(&dealt, b"message", true)[0]);
    let len = modulus.encoded_len();
    for part in 0..3 {
        let mut changed = share.clone();
        let range = part * len..(part + 1) * len;
        let negative = minus(modulus, &modulus.decode(&share[range.clone()]).unwrap());
        changed[range].copy_from_slice(&modulus.encode(&negative));
        let changed = Rsa::decode_share(index(1), &changed).unwrap();
        assert_eq!(Rsa::verify_shares(&dealt.public, &request, &[changed], &mut rng(1)), [index(1)]);
    }
}

#[test]
fn errors_of_two_cheaters_do_not_cancel() {
    // One multiplies its share by a value that the other divides by: each is false, but a plain product would hide both.
    let dealt = short_key::<Rsa>(3, 4, 22);
    let (public, modulus) = (&dealt.public, dealt.public.modulus());
    let request = request::<Rsa>(public, b"message");
    let bare = typed_shares(&dealt, b"message", false);
    let x = encoded(public, Rsa::combine(public, &request, &bare).unwrap().bytes());
    let one = modulus.reduce(&number(1));
    let twist = public.verification_base();
    let inverse = modulus.vartime_inverse(twist).unwrap();
    let forged = |party: usize, value_twist: &Residue, factor: &Residue| {
        let value = modulus.decode(&Rsa::encode_share(&bare[party])).unwrap();
        let share = prove(&dealt, &x, party, &modulus.mul(&value, value_twist), factor);
        Rsa::decode_share(dealt.shares[party].index(), &share).unwrap()
    };
    for (a, b) in
        [(forged(0, twist, &one), forged(2, &inverse, &one)), (forged(0, &one, twist), forged(2, &one, &inverse))]
    {
        let shares = [a, forged(1, &one, &one), b, forged(3, &one, &one)];
        assert_eq!(Rsa::verify_shares(public, &request, &shares, &mut rng(1)), [index(1), index(3)]);
    }
}

/// Sums of the secrets in the files that a thief may try: each alone, and any two with small factors, such as Lagrange's.
fn sums(secrets: &[Integer]) -> Vec<Integer> {
    let mut sums = secrets.to_vec();
    if let [a, b] = secrets {
        for (i, j) in [(1, 1), (2, 1), (3, 1), (3, 2), (1, 2), (1, 3), (2, 3)] {
            let (mut a, mut b) = (a.clone(), b.clone());
            a.mul_u64(i);
            b.mul_u64(j);
            sums.push(a.add(&b));
            sums.extend(a.sub(&b).or_else(|| b.sub(&a)));
        }
    }
    sums
}

/// Whether, for such a sum s, one of s, e s - 1, e s - Delta, e Delta s - 1 and similar values is a multiple of the order of the
/// squares modulo N or of one of its factors. Such a multiple factors N and gives d.
fn some_combination_breaks(dealt: &RsaDealt, secrets: &[Integer], delta: u64) -> bool {
    let modulus = dealt.public.modulus();
    let base = modulus.reduce(&number(4));
    let power = |base: &Residue, exponent: u64| modulus.vartime_product(&[(base, &number(exponent))]);
    let factors = [1, 2, 4, delta, delta * delta];
    let expected: Vec<Residue> = factors
        .into_iter()
        .chain([0, delta * delta * delta, 4 * delta])
        .map(|exponent| power(&base, exponent))
        .collect();
    let mut differences = Vec::new();
    for sum in sums(secrets) {
        let of_sum = modulus.vartime_product(&[(&base, &sum)]);
        for exponent in factors.into_iter().flat_map(|factor| [factor, factor * PUBLIC_EXPONENT]) {
            let reached = power(&of_sum, exponent);
            differences.extend(expected.iter().map(|expected| {
                // The difference may be negative; its sign does not matter.
                let (a, b) = (reached.value(), expected.value());
                modulus.reduce(&a.sub(b).or_else(|| b.sub(a)).unwrap())
            }));
        }
    }
    !modulus.vartime_are_units(&differences)
}

/// Fewer than k shares do not give the private exponent, as shares of a careless implementation would.
#[test]
fn shares_of_fewer_than_k_do_not_reveal_the_exponent() {
    let secrets = |dealt: &RsaDealt| -> Vec<Integer> {
        dealt.shares.iter().map(|share| Integer::from_be_bytes(share.secret().expose())).collect()
    };
    for (k, n, delta) in [(2, 2, 2), (2, 3, 6), (3, 4, 24), (4, 5, 120)] {
        let dealt = short_key::<Rsa>(k, n, 23);
        let all = secrets(&dealt);
        for have in 1..=2.min(k - 1) {
            for subset in subsets(have.into(), n.into()) {
                let stolen: Vec<_> = subset.iter().map(|i| all[*i].clone()).collect();
                assert!(!some_combination_breaks(&dealt, &stolen, delta), "{subset:?} of {k} of {n}");
            }
        }
    }
    // The attack works where one share is the key, or two are.
    let whole = short_key::<Rsa>(1, 3, 24);
    assert!(some_combination_breaks(&whole, &secrets(&whole)[..1], 6));
    let two = short_key::<Rsa>(2, 3, 24);
    assert!(some_combination_breaks(&two, &secrets(&two)[..2], 6));
}

#[test]
fn a_share_file_holds_its_own_secret_and_nothing_else() {
    let (public, keys) = key(Suite::Sh00Pkcs1Sha256, 1024, 2, 3, 25);
    let name = "stolen".parse().unwrap();
    let text = keys[0].to_text(&name).expose().clone();
    let fields: Vec<&str> = text.lines().filter_map(|line| line.split_once(" = ")).map(|(field, _)| field).collect();
    assert_eq!(fields, ["format", "name", "suite", "key_id", "index", "secret"]);
    let digits = text.lines().find_map(|line| line.strip_prefix("secret = \"")).unwrap().trim_end_matches('"');
    assert_eq!(digits.len(), 256);
    let [p, q] = primes(1024).expose();
    for prime in [p, q] {
        let prime = hex::encode(prime.to_be_bytes(64).unwrap());
        assert!(!text.contains(&prime) && !public.to_text(&name).contains(&prime));
    }
    for debug in [format!("{:?}", keys[0]), format!("{:?}", primes(1024)), format!("{public:?}")] {
        assert!(debug.len() < 200 && !debug.contains(&digits[200..]), "{debug}");
    }
}

#[test]
fn shares_below_the_order_come_from_a_random_polynomial() {
    // The polynomial is new each time: the same primes give other shares, but the same signature.
    let sign = |seed| {
        let (public, keys) = key(Suite::Sh00PssSha256, 1024, 2, 3, seed);
        let statement: StatementBytes = statement(public.suite(), b"message");
        let all = shares(&public, &keys, &statement);
        let borrowed: Vec<_> = all.iter().map(|(index, share)| (*index, share.as_slice())).collect();
        let secret = keys[0].to_text(&"name".parse().unwrap()).expose().clone();
        (public.combine(&statement, &borrowed, &mut rng(1)).unwrap().result.expose().clone(), secret)
    };
    let (first, second) = (sign(26), sign(27));
    assert_eq!(first.0, second.0);
    assert_ne!(first.1, second.1);
    let order = |primes: &RsaPrimes| {
        let [p, q] = primes.expose().map(|prime| {
            let mut half = prime.clone();
            half.div_u64(2);
            half
        });
        p.mul(&q)
    };
    for share in &short_key::<Rsa>(5, 40, 28).shares {
        assert!(Integer::from_be_bytes(share.secret().expose()) < order(primes(1024)));
    }
    assert_eq!(short_key::<Rsa>(2, 3, 28).public.public_key_bytes().len(), 162);
}

#[test]
fn keys_answer_for_their_own_purpose_key_and_suite() {
    let statements = [Statement::Decapsulate(b"x"), Statement::Sign(b"x"), Statement::FlipCoin(b"x")];
    for suite in SUITES {
        let (public, keys) = key(suite, 1024, 2, 3, 29);
        for foreign in statements.into_iter().filter(|statement| statement.purpose() != suite.purpose()) {
            let refusal = RequestError::Purpose { key: suite.purpose(), asked: foreign.purpose() };
            assert_eq!(public.check_request(foreign), Err(refusal.clone()));
            assert_eq!(public.create_share(&keys[0], foreign, &mut rng(1)), Err(refusal.into()));
        }
        // The same primes in another suite, and the same suite dealt again: keys of their own.
        let own = statement(suite, b"message");
        let own_share = shares(&public, &keys, &own)[0].clone();
        for other in SUITES {
            let (other_public, other_keys) = key(other, 1024, 2, 3, 30);
            let statement = statement(other, b"message");
            let (party, share) = shares(&other_public, &other_keys, &statement)[0].clone();
            assert_refused(public.verify_share(&own, party, &share, &mut rng(1)), party);
            // Dealt again, the public key and hence its id are the same, but the shares are others.
            let created = public.create_share(&other_keys[0], &own, &mut rng(1));
            assert_eq!(created == Err(SchemeError::OtherKey), other != suite);
            assert_refused(other_public.verify_share(&statement, own_share.0, &own_share.1, &mut rng(1)), own_share.0);
        }
    }
}
