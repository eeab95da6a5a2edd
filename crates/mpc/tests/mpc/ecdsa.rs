//! Keys, tuples and signatures on every black box, checked by other implementations.

use std::fs;
use std::process::Command;
use std::sync::{Arc, Mutex};

use aws_lc_rs::signature::{self, UnparsedPublicKey};
use sha2::{Digest, Sha256};
use theta_groups::{Group, P256, Secp256k1};
use theta_mpc::ecdsa::{Curve, KeyShare, Request, Signature, Tuple, bind, generate, prepare_nonces, sign};
use theta_mpc::{ActiveRep3, ActiveShamir};
use theta_names::Epoch;
use theta_rounds::Abort;

use crate::group::{GroupOf, Made, Recorder, Sent, same, with_each};

/// One party's key share and tuples.
pub(crate) type Material<B> = (Arc<KeyShare<B>>, Vec<Tuple<B>>);

/// Key and tuples of all parties, by position.
pub(crate) fn material<B: Made<Group: Curve>>(n: u16, t: u16, count: usize, seed: u64) -> Vec<Material<B>> {
    let report = GroupOf::new(n, t).seed(seed).run(same(move |party| async move {
        let black_box = B::make(&party).await?;
        let key = generate(&black_box, Epoch::FIRST).await?;
        let nonces = prepare_nonces(&black_box, Epoch::FIRST, count).await?;
        let tuples = bind(&black_box, nonces, &key).await?;
        Ok((Arc::new(key), tuples))
    }));
    report.agreed(|(key, _)| *key.public_key()).unwrap();
    report.parties.into_values().map(|party| party.result.unwrap().unwrap()).collect()
}

/// A request for a text, for a tuple that is named later.
pub(crate) fn request(text: &[u8]) -> Request {
    Request { tuple: [0; 32], digest: Sha256::digest(text).into(), session: Sha256::digest(b"session").into() }
}

/// Signs with the first tuple of each party, in the group given: the request names that of party 1.
pub(crate) fn sign_in<B: Made<Group: Curve>>(
    group: GroupOf,
    material: &mut [Material<B>],
    request: Request,
) -> theta_rounds::simulator::Report<Signature<B::Group>, theta_mpc::Misbehaviour> {
    let request = Request { tuple: material[0].1[0].id(), ..request };
    let parts: Vec<_> =
        material.iter_mut().map(|(key, tuples)| Mutex::new(Some((key.clone(), tuples.remove(0))))).collect();
    group.run(|number| {
        let (key, tuple) = parts[usize::from(number) - 1].lock().unwrap().take().unwrap();
        Box::new(move |party| async move {
            let black_box = B::make_for_openings(&party)?;
            sign(&black_box, &key, tuple, request).await
        })
    })
}

/// A curve, and others who know its signatures.
trait Checked: Curve {
    const SPKI: &'static str;
    fn check(public_key: &[u8], message: &[u8], signature: &Signature<Self>);
}

/// Checks both encodings with AWS-LC.
fn check_with_aws_lc<G: Curve>(
    [asn1, fixed]: [&'static signature::EcdsaVerificationAlgorithm; 2],
    public_key: &[u8],
    message: &[u8],
    signature: &Signature<G>,
) {
    UnparsedPublicKey::new(asn1, public_key).verify(message, &signature.to_der()).unwrap();
    UnparsedPublicKey::new(fixed, public_key).verify(message, &signature.to_raw()).unwrap();
    assert!(UnparsedPublicKey::new(fixed, public_key).verify(b"another", &signature.to_raw()).is_err());
}

impl Checked for P256 {
    /// RFC 5480, section 2, for a compressed point.
    const SPKI: &'static str = "3039301306072a8648ce3d020106082a8648ce3d030107032200";
    fn check(public_key: &[u8], message: &[u8], signature: &Signature<Self>) {
        let algorithms = [&signature::ECDSA_P256_SHA256_ASN1, &signature::ECDSA_P256_SHA256_FIXED];
        check_with_aws_lc(algorithms, public_key, message, signature);
    }
}

impl Checked for Secp256k1 {
    const SPKI: &'static str = "3036301006072a8648ce3d020106052b8104000a032200";
    fn check(public_key: &[u8], message: &[u8], signature: &Signature<Self>) {
        let algorithms = [&signature::ECDSA_P256K1_SHA256_ASN1, &signature::ECDSA_P256K1_SHA256_FIXED];
        check_with_aws_lc(algorithms, public_key, message, signature);
        // libsecp256k1 verifies low s only, and recovers the key.
        let low = signature.low_s();
        let digest: [u8; 32] = Sha256::digest(message).into();
        let message = secp256k1::Message::from_digest(digest);
        let key = secp256k1::PublicKey::from_slice(public_key).unwrap();
        let id = secp256k1::ecdsa::RecoveryId::try_from(i32::from(low.recovery_id())).unwrap();
        let recoverable = secp256k1::ecdsa::RecoverableSignature::from_compact(&low.to_raw(), id).unwrap();
        assert_eq!(recoverable.recover(message).unwrap(), key);
        secp256k1::ecdsa::verify(&recoverable.to_standard(), message, &key).unwrap();
    }
}

/// Checks with the OpenSSL command, which the tests need (`CONTRIBUTING.md`).
fn check_with_openssl<G: Checked>(public_key: &[u8], message: &[u8], signature: &Signature<G>) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, contents: &[u8]| {
        fs::write(folder.path().join(name), contents).unwrap();
    };
    file("key", &[hex::decode(G::SPKI).unwrap(), public_key.to_vec()].concat());
    file("message", message);
    file("signature", &signature.to_der());
    let arguments = ["dgst", "-sha256", "-keyform", "DER", "-verify", "key", "-signature", "signature", "message"];
    let output = Command::new("openssl").args(arguments).current_dir(folder.path()).output().expect("openssl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Products with the key are prepared with the nonces, so that what depends on the key is one opening, between two comparisons.
fn few_rounds_depend_on_the_key<B: Made<Group = P256>>(n: u16, t: u16, before: u16) {
    let rounds = |binds: bool| {
        let sent = Sent::default();
        let report = GroupOf::new(n, t).liar(1, Recorder(sent.clone())).run(same(move |party| async move {
            let black_box = B::make(&party).await?;
            let key = generate(&black_box, Epoch::FIRST).await?;
            let nonces = prepare_nonces(&black_box, Epoch::FIRST, 33).await?;
            if binds { bind(&black_box, nonces, &key).await.map(|tuples| tuples.len()) } else { Ok(33) }
        }));
        assert_eq!(report.agreed(|made| *made), Ok(33));
        let rounds = sent.lock().unwrap().iter().map(|(_, round, _)| *round).max();
        rounds.unwrap()
    };
    assert_eq!([rounds(false), rounds(true)], [before, before + 3]);
}

#[test]
fn what_depends_on_the_key_is_opened_in_three_rounds() {
    few_rounds_depend_on_the_key::<ActiveShamir<P256>>(3, 1, 35);
    few_rounds_depend_on_the_key::<ActiveShamir<P256>>(5, 2, 35);
    few_rounds_depend_on_the_key::<ActiveRep3<P256>>(3, 1, 26);
}

fn others_verify<B: Made<Group: Checked>>(n: u16, t: u16) {
    let mut material = material::<B>(n, t, 4, 7);
    let public_key = *material[0].0.public_key();
    let encoded = B::Group::encode(&public_key);
    for message in [&b"first"[..], b"second", b""] {
        let report = sign_in(GroupOf::new(n, t), &mut material, request(message));
        let signature = report.agreed(|signature| *signature).unwrap();
        assert!(signature.vartime_verifies(&public_key, &request(message).digest));
        B::Group::check(&encoded, message, &signature);
    }
    let report = sign_in(GroupOf::new(n, t), &mut material, request(b"last"));
    check_with_openssl(&encoded, b"last", &report.agreed(|signature| *signature).unwrap());
}

#[test]
fn signatures_on_p256_are_verified_by_others() {
    with_each!(P256, others_verify);
}

#[test]
fn signatures_on_secp256k1_are_verified_by_others() {
    with_each!(Secp256k1, others_verify);
}

#[test]
fn signing_takes_one_round_and_no_more_than_enough_parties() {
    fn test<B: Made<Group = P256>>(n: u16, t: u16) {
        let mut material = material::<B>(n, t, 1, 3);
        let sent = crate::group::Sent::default();
        let mut group = GroupOf::new(n, t).liar(1, crate::group::Recorder(sent.clone()));
        // As many as are not needed, of those who may be corrupt.
        group.silent = (2..2 + t.min(n - t - 1)).collect();
        let report = sign_in(group, &mut material, request(b"without some"));
        report.agreed(|signature| *signature).unwrap();
        let sent = sent.lock().unwrap();
        assert_eq!(sent.len(), usize::from(n) - 1);
        assert!(sent.iter().all(|(_, round, bytes)| *round == 1 && bytes.len() == 32));
    }
    with_each!(P256, test);
}

#[test]
fn a_tuple_serves_its_key_and_epoch_only() {
    fn test<B: Made<Group = P256>>(n: u16, t: u16) {
        let mut first = material::<B>(n, t, 1, 1);
        let second = material::<B>(n, t, 1, 2);
        for (mine, (key, _)) in first.iter_mut().zip(second) {
            mine.0 = key;
        }
        let report = sign_in(GroupOf::new(n, t), &mut first, request(b"other key"));
        for (_, party) in report.honest() {
            assert!(matches!(party.result, Some(Err(Abort::Input(_)))));
        }
    }
    with_each!(P256, test);
}

#[test]
fn r_depends_on_what_is_signed_and_for_whom() {
    type B = theta_mpc::Rep3<P256, theta_mpc::Passive>;
    let signature = |request: Request| {
        // The same seed makes the same tuple.
        let mut material = material::<B>(3, 1, 1, 11);
        sign_in(GroupOf::new(3, 1), &mut material, request).agreed(|signature| *signature).unwrap()
    };
    let one = request(b"one");
    let base = signature(one);
    assert_eq!(signature(one), base);
    let others = [request(b"two"), Request { session: [0; 32], ..one }];
    for other in others {
        assert_ne!(signature(other).to_raw()[..32], base.to_raw()[..32]);
    }
}
