//! Results that are checked together.

use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_groups::{Group, bls12_381::G1};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, Combined, deal_any};
use theta_schemes::{Answer, Claim, Purpose, Statement, Suite, check_together};
use theta_sharing::Threshold;

const TOGETHER: [Suite; 11] = [
    Suite::Bls04MinPk,
    Suite::Bls04MinSig,
    Suite::Bls04Bn254,
    Suite::Cks05Bls04MinPk,
    Suite::Cks05Bls04MinSig,
    Suite::Cks05Ristretto255,
    Suite::Cks05Bls12381,
    Suite::Cks05Bn254,
    Suite::Cks05P256,
    Suite::Cks05Secp256k1,
    Suite::Cks05Ed448,
];

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(7)
}

struct Key {
    public: AnyPublicKey,
    shares: Vec<AnyKeyShare>,
}

impl Key {
    fn deal(suite: Suite) -> Self {
        let (public, shares) = deal_any(suite, Threshold::new(2, 3).unwrap(), &mut rng());
        Self { public, shares }
    }

    fn answer(&self, share: usize, text: &str) -> Arc<dyn Answer> {
        let statement = match self.public.suite().purpose() {
            Purpose::Coin => Statement::FlipCoin(text.as_bytes()),
            _ => Statement::Sign(text.as_bytes()),
        };
        self.public.answer(&self.shares[share], statement).unwrap()
    }

    /// What two shares combine to, the second for a statement that may be another.
    fn claim(&self, text: &str, second: &str) -> Claim {
        let other = self.answer(1, second).proven_share(&mut rng()).unwrap();
        let mut gathered = self.answer(0, text).gather(false, &mut rng());
        assert!(gathered.shares.put(self.shares[1].index(), &other).unwrap());
        let (claim, contributors) = gathered.shares.claim().unwrap().unwrap();
        assert_eq!(contributors.len(), 2);
        claim
    }
}

#[test]
fn exactly_the_false_ones_are_found_whatever_their_keys() {
    let keys: Vec<Key> = TOGETHER.into_iter().map(Key::deal).collect();
    for false_ones in [&[][..], &[0], &[3, 4, 5], &[7, 19, 35], &[0, 12, 24, 6], &(0..36).collect::<Vec<_>>()] {
        let claim = |place: usize| {
            let text = format!("text {place}");
            let second = if false_ones.contains(&place) { "another".to_owned() } else { text.clone() };
            keys[place % keys.len()].claim(&text, &second)
        };
        let claims: Vec<Claim> = (0..36).map(claim).collect();
        let expected: Vec<bool> = (0..36).map(|place| !false_ones.contains(&place)).collect();
        assert_eq!(check_together(&claims, &mut rng()), expected, "{false_ones:?}");
    }
}

#[test]
fn what_is_claimed_is_the_result() {
    for suite in TOGETHER {
        let key = Key::deal(suite);
        let combined = key.claim("text", "text").combined();
        key.public.verify(b"text", combined.result.expose(), &combined.proof).unwrap();
    }
    assert!(check_together(&[], &mut rng()).is_empty());
}

/// The signatures of two messages, one made larger and the other smaller by the same element: their sum is right.
#[test]
fn errors_that_cancel_are_found() {
    let key = Key::deal(Suite::Bls04MinSig);
    let signature = |text: &str| G1::decode(key.claim(text, text).combined().result.expose()).unwrap();
    let error = G1::hash_to_group(b"error", &[b"1"]);
    let claim =
        |text: &str, element| key.answer(2, text).accept_claim(G1::encode(&element).as_ref()).unwrap().unwrap().0;
    let (first, second) = (signature("first"), signature("second"));
    let claims = [claim("first", first + error), claim("second", second - error), claim("first", first)];
    assert_eq!(check_together(&claims, &mut rng()), [false, false, true]);
}

#[test]
fn what_is_no_signature_at_all_is_refused_at_once() {
    let key = Key::deal(Suite::Bls04MinSig);
    let accept = |bytes: &[u8]| key.answer(0, "text").accept_claim(bytes).unwrap().is_ok();
    let right = key.claim("text", "text").combined();
    assert!(accept(right.result.expose()));
    // The identity; a point that is on the curve and not in the subgroup (x = 4); too short; nothing.
    let mut identity = [0; 48];
    identity[0] = 0xc0;
    let mut outside = [0; 48];
    (outside[0], outside[47]) = (0x80, 4);
    for bytes in [&identity[..], &outside, &right.result.expose()[..47], &[]] {
        assert!(!accept(bytes), "{bytes:02x?}");
    }
}

const COINS: [Suite; 7] = [
    Suite::Cks05Ristretto255,
    Suite::Cks05Bls12381,
    Suite::Cks05Ed25519,
    Suite::Cks05Bn254,
    Suite::Cks05P256,
    Suite::Cks05Secp256k1,
    Suite::Cks05Ed448,
];

/// The coin that whoever is told this value takes, and whose shares are in it; `None` if it is false.
fn told(key: &Key, value: &[u8]) -> Option<(Combined, Vec<u16>)> {
    let answer = key.answer(2, "text");
    let (combined, parties) = match Arc::clone(&answer).accept_claim(value) {
        Some(claimed) => {
            let (claim, parties) = claimed.ok()?;
            let combined = claim.combined();
            check_together(&[claim], &mut rng())[0].then_some((combined, parties))?
        }
        None => answer.accept_combined(value).ok()?,
    };
    Some((combined, parties.into_iter().map(|index| index.get()).collect()))
}

/// What holders tell each other of a coin is the proof that its clients get, its shares in order.
#[test]
fn a_coin_is_taken_from_others_with_the_shares_that_prove_it() {
    for suite in COINS {
        let key = Key::deal(suite);
        let of = |text: &str, holders: [usize; 2]| {
            let statement = Statement::FlipCoin(text.as_bytes());
            let share = |holder: usize| key.public.create_share(&key.shares[holder], statement, &mut rng()).unwrap();
            let (one, other) = (share(holders[0]), share(holders[1]));
            let shares = [(key.shares[holders[0]].index(), &one[..]), (key.shares[holders[1]].index(), &other[..])];
            key.public.combine(statement, &shares, &mut rng()).unwrap()
        };
        let value = |combined: &Combined| key.answer(2, "text").combined_value(combined).unwrap().expose().clone();
        let (coin, reverse) = (of("text", [0, 1]), of("text", [1, 0]));
        assert!(coin.proof == value(&coin) && coin.proof == value(&reverse) && coin.proof != reverse.proof, "{suite}");
        for holders in [[0, 1], [2, 0]] {
            let coin = of("text", holders);
            let (combined, mut parties) = told(&key, &value(&coin)).unwrap();
            assert_eq!(combined.result.expose(), coin.result.expose());
            key.public.verify(b"text", combined.result.expose(), &combined.proof).unwrap();
            assert_eq!(value(&combined), combined.proof, "who was told it tells the same");
            parties.sort_unstable();
            let mut expected = holders.map(|holder| key.shares[holder].index().get());
            expected.sort_unstable();
            assert_eq!(parties, expected);
        }
        let (right, entry) = (coin.proof.clone(), coin.proof.len() / 2);
        let last = |bit: u8| [&right[..2 * entry - 1], &[right[2 * entry - 1] ^ bit]].concat();
        let renamed = [&[0, 3], &right[2..]].concat();
        let lies: [Vec<u8>; 9] = [
            Vec::new(),
            right[..entry].to_vec(),
            [&right[..], &right[entry..]].concat(),
            [&right[entry..], &right[..entry]].concat(),
            [&right[..entry], &right[..entry]].concat(),
            [&right[..2], &right[entry + 2..], &right[entry..entry + 2], &right[2..entry]].concat(),
            renamed,
            if suite == Suite::Cks05Ed448 { last(0x80) } else { last(1) },
            of("another", [0, 1]).proof,
        ];
        for (number, lie) in lies.iter().enumerate() {
            assert!(told(&key, lie).is_none(), "{suite}: lie {number}");
        }
        assert!(told(&key, coin.result.expose()).is_none(), "{suite}: a value tells nothing about itself");
        assert_eq!(key.answer(0, "text").combined_len(), Some(right.len()));
    }
}

/// On Ed25519 each proof is cheaper to check by itself.
#[test]
fn what_is_cheaper_alone_is_not_claimed() {
    let key = Key::deal(Suite::Cks05Ed25519);
    let answer = key.answer(0, "text");
    assert!(!answer.checks_together());
    assert!(answer.gather(true, &mut rng()).shares.claim().is_none());
}

/// A coin's own share needs no check; the proof that others get has it nevertheless, and it holds.
#[test]
fn a_lone_coin_is_checked_by_itself() {
    for suite in [Suite::Cks05Ristretto255, Suite::Cks05Ed448] {
        let key = Key::deal(suite);
        assert_eq!(check_together(&[key.claim("text", "text")], &mut rng()), [true]);
        assert_eq!(check_together(&[key.claim("text", "another")], &mut rng()), [false]);
    }
}
