//! Signing, against the answers of the second implementation (`vectors/ecdsa`); zero denominators.

mod forgeries;
mod wrong_r;

use core::future::Future;

use theta_groups::{Group, P256, Scalar as _, Secp256k1};
use theta_names::Epoch;

use super::key::{KeyIdentity, Sharing};
use super::nonces::nonces_from;
use super::{Curve, KeyShare, Request, Tuple, bind, sign};
use crate::blackbox::{Masks, inverses_from};
use crate::program::among;
use crate::{ActiveRep3, ActiveShamir, BlackBox, Party, PassiveRep3, PassiveShamir, Stop};

fn field<const N: usize>(case: &serde_json::Value, name: &str) -> [u8; N] {
    hex::decode(case[name].as_str().unwrap()).unwrap().try_into().unwrap()
}

/// What all of three parties get.
fn agreed<O, F>(program: impl Fn(Party) -> F + Copy + Send + 'static) -> O
where
    O: Clone + PartialEq + Send + 'static,
    F: Future<Output = Result<O, Stop>> + Send + 'static,
{
    among((2, 3), 1, program).agreed(Clone::clone).unwrap()
}

/// A party's share of a key that is in the clear: constants are sharings, too.
fn key_share<B: BlackBox>(black_box: &B, x: crate::Scalar<B>) -> KeyShare<B> {
    let identity = KeyIdentity { public: B::Group::mul_base(&x), sharing: Sharing::of(black_box, Epoch::FIRST) };
    KeyShare::of(black_box.constants(&[x]), identity)
}

/// All parties sign with key and nonce in the clear.
macro_rules! check_with {
    ($name:ident, $black_box:ident) => {
        fn $name<G: Curve>(file: &str) {
            let file: serde_json::Value = serde_json::from_str(file).unwrap();
            assert_eq!(file["group"], G::NAME);
            let cases = file["cases"].as_array().unwrap();
            assert!(!cases.is_empty());
            for case in cases {
                let [x, k] = ["x", "k"].map(|name| G::Scalar::decode(&field::<32>(case, name)).unwrap());
                let request =
                    Request { tuple: [9; 32], digest: field(case, "digest"), session: field(case, "session") };
                let signature = agreed(move |party| async move {
                    let black_box = $black_box::<G>::openings_only(&party)?;
                    let key = key_share(&black_box, x);
                    let tuple = Tuple {
                        element: G::mul_base(&k),
                        inverse: black_box.constants(&[k.invert()]),
                        product: black_box.constants(&[x * k.invert()]),
                        key: key.identity,
                        id: [9; 32],
                    };
                    sign(&black_box, &key, tuple, request).await
                });
                assert_eq!(G::encode(&G::mul_base(&x)), field::<33>(case, "public_key"));
                assert_eq!(G::encode(&G::mul_base(&k)), field::<33>(case, "R"));
                assert_eq!(signature.to_raw(), field::<64>(case, "raw"));
                assert_eq!(hex::encode(signature.to_der()), case["der"].as_str().unwrap());
                assert_eq!(u64::from(signature.recovery_id()), case["recovery_id"].as_u64().unwrap());
                assert_eq!(signature.low_s().to_raw(), field::<64>(case, "low_s"));
                let low = signature.low_s().recovery_id();
                assert_eq!(u64::from(low), case["low_s_recovery_id"].as_u64().unwrap());
            }
        }
    };
}
check_with!(check_with_shamir, ActiveShamir);
check_with!(check_with_rep3, PassiveRep3);

#[test]
fn known_answers_on_p256() {
    let file = include_str!("../../../../vectors/ecdsa/p256.json");
    check_with_shamir::<P256>(file);
    check_with_rep3::<P256>(file);
}

#[test]
fn known_answers_on_secp256k1() {
    let file = include_str!("../../../../vectors/ecdsa/secp256k1.json");
    check_with_shamir::<Secp256k1>(file);
    check_with_rep3::<Secp256k1>(file);
}

/// The second of three nonces has b = 0, so c = 0. The two others make tuples and valid signatures.
macro_rules! zero_denominators {
    ($($name:ident: $black_box:ident),*) => { $(
        #[test]
        fn $name() {
            type G = P256;
            let x = <G as Group>::Scalar::from_u64(1234);
            let signed = agreed(move |party| async move {
                let black_box = $black_box::<G>::new(&party).await?;
                let key = key_share(&black_box, x);
                let numbers = |list: [u64; 3]| black_box.constants(&list.map(<G as Group>::Scalar::from_u64));
                let (a, b) = (numbers([5, 6, 7]), numbers([3, 0, 9]));
                let c = black_box.multiply(&a, &b).await?;
                let mut made = inverses_from(&black_box, (numbers([5, 6, 7]), b, c)).await?;
                if $black_box::<G>::ACTIVE {
                    let masks = numbers([11, 12, 13]);
                    made.masks = Some(Masks { record: None, products: black_box.multiply(&a, &masks).await?, masks });
                }
                let nonces = nonces_from(&black_box, Epoch::FIRST, made).await?;
                let mut tuples = bind(&black_box, nonces, &key).await?;
                let (count, last) = (tuples.len(), tuples.pop().ok_or(Stop::Lost)?);
                let request = Request { tuple: last.id(), digest: [7; 32], session: [8; 32] };
                let signature = sign(&black_box, &key, last, request).await?;
                Ok((count, signature.vartime_verifies(key.public_key(), &request.digest)))
            });
            assert_eq!(signed, (2, true));
        }
    )* };
}
zero_denominators!(
    a_zero_denominator_with_shamir: PassiveShamir,
    a_zero_denominator_with_malicious_shamir: ActiveShamir,
    a_zero_denominator_with_rep3: PassiveRep3,
    a_zero_denominator_with_malicious_rep3: ActiveRep3
);
