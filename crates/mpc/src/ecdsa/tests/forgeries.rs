//! What a caller makes of a nonce that it knows before it says what is signed (Groth and Shoup, "On the Security of ECDSA with Additive Key
//! Derivation and Presignatures", EUROCRYPT 2022, section 3). Without re-randomising, one signature that it may ask for is one that it may not; with it, r
//! is a hash of what is asked for, and nothing can be fitted to it.
//!
//! Each attack runs twice, on the same key and nonce: against delta = 1, which is computed here, where it must succeed, or the test shows nothing; and
//! against [`sign`].

use super::super::curve::{abscissa, hash_to_scalar};
use super::super::signature::Signature;
use super::*;
use crate::ecdsa::{generate, prepare_nonces};

type G = P256;
type S = <G as Group>::Scalar;
type B = ActiveShamir<G>;

/// The digest that the caller wants a signature of, and may not ask for.
pub(super) const WANTED: [u8; 32] = [0x77; 32];

/// r of an element.
pub(super) fn r(element: &<G as Group>::Element) -> S {
    abscissa::<G>(element).unwrap().r
}

/// r and s of a signature.
fn parts(signature: &Signature<G>) -> (S, S) {
    let bytes = signature.to_raw();
    (S::decode(&bytes[..32]).unwrap(), S::decode(&bytes[32..]).unwrap())
}

/// How a signature is made of a tuple.
#[derive(Clone, Copy)]
pub(super) enum Delta {
    /// R as it was known before.
    One,
    /// As shipped.
    Hashed,
}

/// A key, and a tuple whose R the caller knows.
pub(super) async fn prepare<B: BlackBox<Group = G>>(black_box: &B) -> Result<(KeyShare<B>, Tuple<B>), Stop> {
    let key = generate(black_box, Epoch::FIRST).await?;
    let nonces = prepare_nonces(black_box, Epoch::FIRST, 1).await?;
    let tuple = bind(black_box, nonces, &key).await?.pop().ok_or(Stop::Lost)?;
    Ok((key, tuple))
}

async fn signature(
    black_box: &B,
    key: &KeyShare<B>,
    tuple: Tuple<B>,
    digest: [u8; 32],
    delta: Delta,
) -> Result<Signature<G>, Stop> {
    let request = Request { tuple: tuple.id(), digest, session: [8; 32] };
    match delta {
        Delta::Hashed => sign(black_box, key, tuple, request).await,
        Delta::One => {
            let (e, r): (S, S) = (hash_to_scalar(&digest), r(&tuple.element));
            let s = black_box.open(&(&tuple.inverse.times(&e) + &tuple.product.times(&r))).await?;
            Signature::new(&tuple.element, s[0]).ok_or(Stop::Lost)
        }
    }
}

/// Whether what was asked for verifies, and whether the caller has a signature of what it wanted.
type Outcome = (bool, bool);

/// The caller asks for a raw hash e = e* r / r*, r* being that of R* = 2 R: s = (e + r x) / k makes s* = s r* / (2 r) = (e* + r* x) / (2 k).
async fn ask_for_a_raw_hash(party: Party, delta: Delta) -> Result<Outcome, Stop> {
    let black_box = B::new(&party).await?;
    let (key, tuple) = prepare(&black_box).await?;
    let (known, two) = (tuple.element, S::from_u64(2));
    let wanted: S = hash_to_scalar(&WANTED);
    let asked: [u8; 32] = (wanted * r(&known) * r(&(known * two)).invert()).encode();
    let made = signature(&black_box, &key, tuple, asked, delta).await?;

    // Of the R that the signature has, which the caller knows afterwards, and of the one that it knew.
    let (r_made, s) = parts(&made);
    let used = made.vartime_element(key.public_key(), &asked);
    let is_forged = [known, used].into_iter().any(|element| {
        let other = element * two;
        let fitted = s * r(&other) * (r_made * two).invert();
        Signature::<G>::new(&other, fitted).unwrap().vartime_verifies(key.public_key(), &WANTED)
    });
    Ok((made.vartime_verifies(key.public_key(), &asked), is_forged))
}

/// The caller asks for a message of its choice under X + d G, d = (e* - e) / r: e + r (x + d) = e* + r x.
async fn ask_for_a_derived_key(party: Party, delta: Delta) -> Result<Outcome, Stop> {
    let black_box = B::new(&party).await?;
    let (key, tuple) = prepare(&black_box).await?;
    let asked = [0x11; 32];
    let (e, wanted): (S, S) = (hash_to_scalar(&asked), hash_to_scalar(&WANTED));
    let d = (wanted - e) * r(&tuple.element).invert();
    // Shares of x + d and of (x + d) / k are local: what a service would do that derives keys and has presignatures.
    let identity = KeyIdentity { public: *key.public_key() + G::mul_base(&d), ..key.identity };
    let derived = KeyShare::of(&key.secret + &black_box.constants(&[d]), identity);
    let product = &tuple.product + &tuple.inverse.times(&d);
    let tuple = Tuple { product, key: identity, ..tuple };
    let made = signature(&black_box, &derived, tuple, asked, delta).await?;
    Ok((made.vartime_verifies(&identity.public, &asked), made.vartime_verifies(key.public_key(), &WANTED)))
}

#[test]
fn a_raw_hash_that_is_fitted_to_a_known_nonce_forges_only_without_re_randomising() {
    assert_eq!(agreed(|party| ask_for_a_raw_hash(party, Delta::One)), (true, true));
    assert_eq!(agreed(|party| ask_for_a_raw_hash(party, Delta::Hashed)), (true, false));
}

#[test]
fn a_derived_key_that_is_fitted_to_a_known_nonce_forges_only_without_re_randomising() {
    assert_eq!(agreed(|party| ask_for_a_derived_key(party, Delta::One)), (true, true));
    assert_eq!(agreed(|party| ask_for_a_derived_key(party, Delta::Hashed)), (true, false));
}
