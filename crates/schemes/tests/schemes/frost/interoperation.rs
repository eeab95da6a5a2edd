//! Our signers and those of the `frost-*` crates in one session, with our aggregator and theirs, under keys of our dealer
//! and theirs.

use std::collections::BTreeMap;

use frost_core::{SigningPackage as TheirPackage, round1, round2};
use frost_rerandomized::{RandomizedParams, sign_with_randomizer_seed};
use theta_groups::Secret;
use theta_schemes::SignatureScheme;
use theta_schemes::keys::Dealt;
use theta_schemes::signatures::frost::{
    Frost, SignatureShare, SigningPackage, VerifyingKey, commit, randomizer_seed, sign, verify_share,
};
use theta_sharing::ShareIndex;

use crate::frost::fixture::{aggregated, key, rng};
use crate::frost::peers::{
    Peer, TheirKey, dealt_by_them, identifier, old_rng, our_commitments, our_share, their_commitments, their_share,
    to_ours, to_theirs,
};

for_every_frost_suite!(their_keys_split_for_us, our_keys_split_for_them, randomised_sessions);

fn their_keys_split_for_us<C: Peer>() {
    for seed in 0..6 {
        let theirs = dealt_by_them::<C>(3, 5, seed);
        let ours = to_ours(&theirs, 3, 5);
        mixed_session(&ours, &theirs, seed, None);
    }
}

fn our_keys_split_for_them<C: Peer>() {
    for seed in 0..6 {
        let ours = key::<C>(3, 5, seed);
        let theirs = to_theirs::<C>(&ours);
        mixed_session(&ours, &theirs, seed, None);
    }
}

fn randomised_sessions<C: Peer>() {
    for seed in 0..6 {
        let ours = key::<C>(3, 5, seed);
        let theirs = to_theirs::<C>(&ours);
        let randomizer = randomizer_seed::<C>(&mut rng(seed));
        mixed_session(&ours, &theirs, seed, Some(&randomizer));
    }
}

/// Parties 1 and 4 use our code, parties 2 and 5 theirs, and each side uses the other's results.
fn mixed_session<C: Peer>(
    ours: &Dealt<C::Group>,
    theirs: &TheirKey<C>,
    seed: u64,
    randomizer: Option<&Secret<Vec<u8>>>,
) {
    let message = format!("message {seed}");
    let party = |i| ShareIndex::try_from(i).unwrap();

    // Round one.
    let (mut our_nonces, mut their_nonces) = (Vec::new(), Vec::new());
    let mut our_list = Vec::new();
    let mut their_list = BTreeMap::new();
    for i in [party(1), party(4)] {
        let (nonces, commitments) = commit::<C>(&ours.shares[i.position()], &mut rng(seed));
        their_list.insert(identifier::<C>(i), their_commitments(&commitments));
        our_list.push(commitments);
        our_nonces.push(nonces);
    }
    for i in [party(5), party(2)] {
        let signing_share = theirs.shares[&identifier::<C>(i)].signing_share();
        let (nonces, commitments) = round1::commit::<C::Theirs, _>(signing_share, &mut old_rng(seed));
        our_list.push(our_commitments(i, &commitments));
        their_list.insert(identifier::<C>(i), commitments);
        their_nonces.push((i, nonces));
    }

    // Round two.
    let package = match randomizer {
        None => SigningPackage::new(&ours.public, our_list, message.as_bytes()).unwrap(),
        Some(seed) => SigningPackage::randomized(&ours.public, seed, our_list, message.as_bytes()).unwrap(),
    };
    let their_package = TheirPackage::<C::Theirs>::new(their_list.clone(), message.as_bytes());
    let mut shares: Vec<SignatureShare<C>> = Vec::new();
    for nonces in our_nonces {
        let key = &ours.shares[nonces.index().position()];
        shares.push(sign(&package, nonces, key).unwrap());
    }
    for (i, nonces) in &their_nonces {
        let key = &theirs.shares[&identifier::<C>(*i)];
        let share = match randomizer {
            None => round2::sign(&their_package, nonces, key),
            Some(seed) => sign_with_randomizer_seed(&their_package, nonces, key, seed.expose()),
        };
        shares.push(our_share(*i, &share.unwrap()));
    }
    assert!(shares.iter().all(|share| verify_share(&ours.public, &package, share)));

    // Both aggregate.
    let signature = aggregated(ours, &package, &shares).unwrap().encode();
    let their_shares = shares.iter().map(|share| (identifier::<C>(share.index()), their_share(share))).collect();
    let (their_signature, their_key) = match randomizer {
        None => {
            let signature = frost_core::aggregate(&their_package, &their_shares, &theirs.public).unwrap();
            (signature, *theirs.public.verifying_key())
        }
        Some(seed) => {
            let params = RandomizedParams::<C::Theirs>::regenerate_from_seed_and_commitments(
                theirs.public.verifying_key(),
                seed.expose(),
                &their_list,
            )
            .unwrap();
            let signature =
                frost_rerandomized::aggregate(&their_package, &their_shares, &theirs.public, &params).unwrap();
            (signature, *params.randomized_verifying_key())
        }
    };
    assert_eq!(signature, their_signature.serialize().unwrap());

    // Both verify.
    their_key.verify(message.as_bytes(), &their_signature).unwrap();
    let key_bytes = their_key.serialize().unwrap();
    let key_bytes = &key_bytes[key_bytes.len() - C::STANDARD_LEN..];
    assert_eq!(package.key().verifying_key().bytes(), key_bytes);
    VerifyingKey::<C>::decode(key_bytes).unwrap().verify(message.as_bytes(), &signature).unwrap();
    let plain = Frost::<C>::verify(&ours.public, message.as_bytes(), &signature);
    assert_eq!(plain.is_ok(), randomizer.is_none());
}
