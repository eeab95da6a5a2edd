//! The keys that come out are keys: the real schemes sign, decrypt and flip coins with them, before and after a reshare.

use std::sync::Arc;

use theta_groups::Ristretto255;
use theta_keyfiles::PublicKeyText as _;
use theta_payload::{Aead, Encrypt as _, PayloadKey, open_bytes, split_ciphertext};
use theta_schemes::ciphers::sg02::Sg02;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, CurveScheme, KeyShare, PublicKeySet};
use theta_schemes::signatures::bls04::{Bls04, MinPk};
use theta_schemes::signatures::frost::{Ed25519Sha512, Frost, SigningPackage, aggregate, commit, sign};
use theta_schemes::{SignatureScheme, Statement};

use crate::ceremony::support::{Setting, parties, patient, test_rng};

type Public<S> = Arc<PublicKeySet<<S as CurveScheme>::KeyGroup>>;
type Holders<S> = Vec<Arc<KeyShare<<S as CurveScheme>::KeyGroup>>>;

/// The key with k shares of it, fresh, and with k' shares after a reshare.
fn keys<S: CurveScheme>() -> [(Public<S>, Holders<S>); 2] {
    let setting = Setting::<S>::generate(2, 4, 50);
    let (public, shares) = setting.check(setting.simulate(1, patient()).run()).unwrap();
    let moved = Setting::<S>::reshare(Arc::clone(&public), shares.clone(), parties(1..=4), (3, parties(4..=8)), 51);
    let (reshared, new_shares) = moved.check(moved.simulate(2, patient()).run()).unwrap();
    let some = |shares: Vec<(_, Arc<_>)>, k| shares.into_iter().rev().take(k).map(|(_, share)| share).collect();
    [(public, some(shares, 2)), (reshared, some(new_shares, 3))]
}

fn combine(public: &AnyPublicKey, shares: &[AnyKeyShare], statement: Statement<'_>) -> Vec<u8> {
    let mut rng = test_rng(1);
    let answers: Vec<_> =
        shares.iter().map(|share| (share.index(), public.create_share(share, statement, &mut rng).unwrap())).collect();
    let answers: Vec<_> = answers.iter().map(|(index, bytes)| (*index, &bytes[..])).collect();
    public.combine(statement, &answers, &mut rng).unwrap().result.expose().clone()
}

#[test]
fn bls_signatures() {
    let [(first, _), _] = &keys::<Bls04<MinPk>>();
    for (public, shares) in keys::<Bls04<MinPk>>() {
        let any = AnyPublicKey::of::<Bls04<MinPk>>(public);
        let shares: Vec<_> = shares.into_iter().map(AnyKeyShare::of::<Bls04<MinPk>>).collect();
        let signature = combine(&any, &shares, Statement::Sign(b"message"));
        assert_eq!(<Bls04<MinPk> as SignatureScheme>::verify(first, b"message", &signature), Ok(()));
        // The file with its proof of possession is one that everybody reads.
        let text = any.to_text(&"ours".parse().unwrap());
        assert_eq!(AnyPublicKey::from_text(&text).unwrap().1, any);
    }
}

#[test]
fn sg02_decryption() {
    let both = keys::<Sg02<Ristretto255>>();
    let public = AnyPublicKey::of::<Sg02<Ristretto255>>(Arc::clone(&both[0].0));
    let ciphertext = public.encrypt(b"the contents", b"label", Aead::default(), &mut test_rng(2)).unwrap();
    let (header, _) = split_ciphertext(&ciphertext).unwrap();
    for (public, shares) in both {
        // What was encrypted before the reshare is opened by the new holders.
        let shares: Vec<_> = shares.into_iter().map(AnyKeyShare::of::<Sg02<Ristretto255>>).collect();
        let key = combine(&AnyPublicKey::of::<Sg02<Ristretto255>>(public), &shares, Statement::Decapsulate(header));
        let key = PayloadKey::from_bytes(&key).unwrap();
        assert_eq!(open_bytes(&key, &ciphertext).unwrap().expose(), b"the contents");
    }
}

#[test]
fn frost_signatures() {
    let mut rng = test_rng(3);
    for (public, shares) in keys::<Frost<Ed25519Sha512>>() {
        let (nonces, commitments): (Vec<_>, Vec<_>) =
            shares.iter().map(|share| commit::<Ed25519Sha512>(share, &mut rng)).unzip();
        let package = SigningPackage::new(&public, commitments, b"message").unwrap();
        let signed: Vec<_> =
            nonces.into_iter().zip(&shares).map(|(nonces, share)| sign(&package, nonces, share).unwrap()).collect();
        let signature = aggregate(&public, &package, &signed, &mut rng).unwrap();
        let verified = <Frost<Ed25519Sha512> as SignatureScheme>::verify(&public, b"message", &signature.encode());
        assert_eq!(verified, Ok(()));
    }
}
