//! The schemes sign, decrypt and flip coins with keys of ceremonies, before and after a reshare.

use std::collections::BTreeSet;
use std::sync::Arc;

use theta_ceremonies::{
    Aim, Ceremony, CeremonyPlan, EncodedKey, EncodedShare, JoinError, Memory, PlanError, PlanParts, Source,
};
use theta_groups::Ristretto255;
use theta_keyfiles::PublicKeyText as _;
use theta_names::Epoch;
use theta_payload::{Aead, Encrypt as _, PayloadKey, open_bytes, split_ciphertext};
use theta_schemes::ciphers::sg02::Sg02;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, CurveScheme, KeyShare, PublicKeySet, deal};
use theta_schemes::signatures::bls04::{Bls04, MinPk};
use theta_schemes::signatures::frost::{Ed25519Sha512, Frost, SigningPackage, aggregate, commit, sign};
use theta_schemes::{SignatureScheme, Statement, Suite};
use theta_sharing::Threshold;

use crate::support::{Setting, keys_of, parties, party, patient, secret_of, test_rng};

type Public<S> = Arc<PublicKeySet<<S as CurveScheme>::KeyGroup>>;
type Holders<S> = Vec<Arc<KeyShare<<S as CurveScheme>::KeyGroup>>>;

/// The key with k new shares, and with k' shares after a reshare.
fn keys<S: CurveScheme>() -> [(Public<S>, Holders<S>); 2] {
    let setting = Setting::<S>::generate(2, 4, 50);
    let (public, shares) = setting.check(setting.simulate(1, patient()).run()).unwrap();
    let moved = Setting::<S>::reshare(&public, shares.clone(), parties(1..=4), (3, parties(4..=8)), 51);
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
        // A ciphertext from before the reshare is opened by the new holders.
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

/// A suite on a new group needs a line in the table of groups; otherwise no keys of it can be made.
#[test]
fn the_group_of_every_suite_is_known() {
    let plan = |suite: Suite, group| {
        let members = parties(1..=2);
        CeremonyPlan::new(PlanParts {
            suite: suite.into(),
            group,
            proof_of_possession: suite.proof_of_possession(),
            nonce: [1; 32],
            epoch: Epoch::FIRST,
            aim: Aim::Generate,
            k: 2,
            roster: members.iter().map(|member| keys_of(*member).member().clone()).collect(),
            members,
            patience: 0,
        })
        .map(|plan| plan.suite().to_string())
    };
    let mut groups = BTreeSet::new();
    for suite in Suite::ALL {
        if let Some(group) = suite.key_group() {
            assert_eq!(plan(suite, group), Ok(suite.name().to_owned()));
            groups.insert(group);
        }
    }
    assert_eq!(groups.len(), 9, "{groups:?}");
    assert_eq!(plan(Suite::Sg02P256, "p-521"), Err(PlanError::Group("p-521")));
}

/// A plan begins with a key of its own group, each holder with its own share of it.
#[test]
fn a_key_of_another_group_is_refused() {
    let dealt = deal::<Sg02<Ristretto255>>(Threshold::new(2, 3).unwrap(), &mut test_rng(4));
    let begin = |group, change: fn(&mut EncodedKey)| {
        let (members, mut public) = (parties(1..=3), dealt.public.encoded());
        change(&mut public);
        CeremonyPlan::new(PlanParts {
            suite: Suite::Sg02Ristretto255.into(),
            group,
            proof_of_possession: None,
            nonce: [1; 32],
            epoch: Epoch::new(1),
            aim: Aim::Reshare(Source { public: Arc::new(public), holders: members.clone() }),
            k: 2,
            roster: members.iter().map(|member| keys_of(*member).member().clone()).collect(),
            members,
            patience: 0,
        })
        .map(Arc::new)
    };
    let join = |plan: &Arc<CeremonyPlan>, who, share: Option<EncodedShare>| {
        let (keys, secret) = (keys_of(party(who)), secret_of(party(who), 0));
        Ceremony::join(Arc::clone(plan), keys, secret, share.as_ref(), Memory::Kept).map(drop)
    };
    let plan = begin("ristretto255", |_| ()).unwrap();
    assert_eq!(join(&plan, 1, Some(dealt.shares[0].encoded())), Ok(()));
    assert_eq!(join(&plan, 1, Some(dealt.shares[1].encoded())), Err(JoinError::Share));
    // Elements of another length; of the same length, of which one is none.
    assert_eq!(begin("p256", |_| ()).map(drop), Err(PlanError::Source));
    let plan = begin("ristretto255", |key| key.verification_keys[2] = vec![0xff; 32]).unwrap();
    assert_eq!(join(&plan, 1, None), Err(JoinError::Plan));
}
