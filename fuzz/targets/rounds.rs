//! The messages between nodes in the rounds of FROST, of threshold ECDSA and of one-round suites: whoever sent it, whatever decodes encodes to the same bytes and
//! belongs to the slot in which it came.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{SAMPLES, choose, plant, rng};
use theta_groups::{Group, P256, Scalar, Secp256k1};
use theta_mpc::ecdsa::Curve;
use theta_protocols::ecdsa::{self, EcdsaMessage};
use theta_protocols::frost::{self, FrostMessage};
use theta_protocols::one_round::{self, ShareMessage};
use theta_rounds::{PartyId, ProtocolMessage, Slot};
use theta_schemes::keys::deal;
use theta_schemes::signatures::frost::{
    Ed448Shake256, Ed25519Sha512, Frost, FrostSuite, P256Sha256, Ristretto255Sha512, Secp256k1Sha256, Secp256k1Taproot,
    commit,
};
use theta_schemes::with_scheme;
use theta_sharing::{ShareIndex, Threshold};

macro_rules! for_every_suite {
    ($then:ident $(, $argument:expr)*) => {
        $then::<Ristretto255Sha512>($($argument),*);
        $then::<Ed25519Sha512>($($argument),*);
        $then::<Ed448Shake256>($($argument),*);
        $then::<P256Sha256>($($argument),*);
        $then::<Secp256k1Sha256>($($argument),*);
        $then::<Secp256k1Taproot>($($argument),*);
    };
}

fuzz_target!(init: plant("rounds", seeds()), |input: &[u8]| {
    let Some((kind, payload)) = input.split_first() else { return };
    for slot in [frost::COMMITMENTS, frost::PACKAGE, frost::SHARE, frost::SIGNATURE, frost::REQUEST]
        .map(|kind| Slot { kind, number: 7 })
    {
        if slot.kind == u16::from(*kind) {
            for_every_suite!(check_frost, slot, payload);
        }
    }
    // Of ECDSA's kinds all from PROGRAM on are messages of programs.
    let slot = Slot { kind: u16::from(*kind), number: 7 };
    check_ecdsa::<P256>(slot, payload);
    check_ecdsa::<Secp256k1>(slot, payload);
    let Some((sample, payload)) = choose(input) else { return };
    for slot in [one_round::SHARE, one_round::PROOF_REQUEST, one_round::PROVEN_SHARE] {
        with_scheme!(sample.public.suite(), |S| if one_round { check_share::<S>(slot, payload) } else {});
    }
});

fn sender() -> PartyId {
    PartyId::of_share(ShareIndex::try_from(2).expect("not zero"))
}

fn check_frost<C: FrostSuite>(slot: Slot, payload: &[u8]) {
    if let Ok(message) = FrostMessage::<C>::decode(sender(), slot, payload) {
        assert_eq!(message.slot(), slot);
        assert!(FrostMessage::<C>::channel(slot).is_some());
        assert_eq!(message.encode(), payload);
    }
}

fn check_ecdsa<G: Curve>(slot: Slot, payload: &[u8]) {
    if let Ok(message) = EcdsaMessage::<G>::decode(sender(), slot, payload) {
        assert_eq!(message.slot(), slot);
        assert!(EcdsaMessage::<G>::channel(slot).is_some());
        assert_eq!(message.encode(), payload);
    }
}

fn check_share<S: theta_schemes::ThresholdScheme>(slot: Slot, payload: &[u8]) {
    let Ok(message) = ShareMessage::decode(sender(), slot, payload) else { return };
    assert_eq!(message.slot(), slot);
    assert_eq!(message.encode(), payload);
    // A message that is no share is kept, because its sender is blamed for it.
    if let ShareMessage::Share(share) | ShareMessage::ProvenShare(share) = message
        && let Ok(decoded) = S::decode_share(sender().share(), &share)
    {
        assert_eq!(S::encode_share(&decoded), payload);
    }
}

/// Each message of FROST and of ECDSA, encoded as `spec/frost.md` and `spec/ecdsa.md` say, and the shares of every sample.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for_every_suite!(seed, &mut seeds);
    seed_ecdsa::<P256>(&mut seeds);
    seed_ecdsa::<Secp256k1>(&mut seeds);
    for (number, sample) in (0_u8..).zip(SAMPLES.iter()) {
        seeds.extend(sample.shares.iter().take(2).map(|share| [&[number], &**share].concat()));
    }
    seeds
}

fn seed<C: FrostSuite>(seeds: &mut Vec<Vec<u8>>) {
    let mut rng = rng();
    let dealt = deal::<Frost<C>>(Threshold::new(2, 2).expect("2 of 2"), &mut rng);
    let commitments: Vec<_> = dealt.shares.iter().map(|key| commit::<C>(key, &mut rng).1.encode().to_vec()).collect();
    let number = 7_u64.to_be_bytes();
    let offer = [&[1], &number[..], &commitments[0]].concat();
    let share = <C::Group as Group>::Scalar::from_u64(7).encode();
    let package = [&[3], &number[..], &[0, 1], &commitments[0], &[0, 2], &commitments[1]].concat();
    let signature = vec![7; C::STANDARD_LEN + <C::Group as Group>::Scalar::ENCODED_LEN];
    let contents = [
        (frost::COMMITMENTS, offer.clone()),
        (frost::PACKAGE, package),
        (frost::SHARE, [share.as_ref(), &offer].concat()),
        (frost::SIGNATURE, [&signature[..], &[0, 2, 0, 1, 0, 2]].concat()),
        (frost::REQUEST, vec![5]),
    ];
    for (kind, payload) in contents {
        seeds.push([&[u8::try_from(kind).expect("few kinds")], &*payload].concat());
    }
}

fn seed_ecdsa<G: Curve>(seeds: &mut Vec<Vec<u8>>) {
    let scalar = G::Scalar::from_u64(7);
    let (element, holders) = (G::encode(&G::mul_base(&scalar)), [0, 2, 0, 1, 0, 3]);
    let contents = [
        (ecdsa::SHARE, [&[5; 32], element.as_ref(), scalar.encode().as_ref()].concat()),
        (ecdsa::SIGNATURE, [&[6; 64], &holders[..]].concat()),
        (ecdsa::PREPARE, [&[0, 1, 0, 3], &holders[..]].concat()),
        (ecdsa::GAVE_UP, [&[0, 1, 1][..], &[7; 32]].concat()),
        (ecdsa::VIEW, [&[0, 1], &[7; 32][..], &[0, 2, 0b110], &[8; 64], &[0]].concat()),
        (ecdsa::PROGRAM, vec![0, 1, 0, 2, 9, 9, 9]),
        (ecdsa::PROGRAM + 100, vec![0, 1, 0, 2]),
    ];
    for (kind, payload) in contents {
        // All of these decode, or they start the fuzzer nowhere.
        let slot = Slot { kind, number: 7 };
        assert!(EcdsaMessage::<G>::decode(sender(), slot, &payload).is_ok());
        seeds.push([&[u8::try_from(kind).expect("few kinds")], &*payload].concat());
    }
}
