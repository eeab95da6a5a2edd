//! Signatures of ECDSA on secp256k1, as the machine's own contract at address 1 takes them (yellow paper, appendix E.1).

use std::collections::VecDeque;
use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use revm::primitives::{Address, keccak256};
use theta_protocols::{AnyMachine, Ask, Supply, ecdsa, start};
use theta_rounds::{Effect, Input, PartyId, Recipient};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, deal_any};
use theta_schemes::signatures::ecdsa::{uncompressed_key, vartime_recovery_id};
use theta_schemes::{Statement, Suite};
use theta_sharing::{ShareIndex, Threshold};

use crate::machine::precompiled;

/// The address of the contract.
const ECRECOVER: Address = Address::with_last_byte(1);

fn party(place: usize) -> PartyId {
    PartyId::of_share(ShareIndex::at(place).unwrap())
}

/// Three holders make a signature of a digest among themselves, each with what the service runs; messages come one after the other.
fn signed(public: &AnyPublicKey, shares: &[Arc<AnyKeyShare>], digest: &[u8; 32], seed: u64) -> Vec<u8> {
    let machine = |share| start(public, share, Statement::SignDigest(digest)).unwrap();
    let mut machines: Vec<AnyMachine> = shares.iter().map(machine).collect();
    let mut rngs: Vec<_> = (0..3).map(|place| ChaCha20Rng::seed_from_u64(10 * seed + place)).collect();
    let mut queue: VecDeque<(usize, Input<Supply>)> = (0..3).map(|place| (place, Input::Start)).collect();
    let mut results = Vec::new();
    while let Some((at, input)) = queue.pop_front() {
        for effect in machines[at].handle(input, &mut rngs[at]) {
            match effect {
                Effect::Send { to, slot, channel, payload } => {
                    for peer in (0..3).filter(|peer| *peer != at) {
                        if to == Recipient::All || to == Recipient::Party(party(peer)) {
                            let (from, payload) = (party(at), payload.clone());
                            queue.push_back((peer, Input::Message { from, slot, channel, payload }));
                        }
                    }
                }
                Effect::Finished(outcome) => results.push(outcome.unwrap().result.expose().clone()),
                // They have no stock, so they note who took part and ask for nothing.
                Effect::Ask(Ask::Presignatures(ecdsa::Ask::Trust(_) | ecdsa::Ask::Keep { .. })) => {}
                Effect::Ask(ask) => panic!("without a stock nothing is asked of it: {ask:?}"),
                Effect::Blame(blame) => panic!("blame of an honest party: {blame:?}"),
            }
        }
    }
    assert!(!results.is_empty() && results.iter().all(|result| *result == results[0]), "all have the same");
    results.swap_remove(0)
}

#[test]
fn the_virtual_machine_finds_the_address_of_the_key_that_signed() {
    let mut seen = [false; 2];
    for seed in 0..12 {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let (public, shares) = deal_any(Suite::EcdsaSecp256k1, Threshold::new(2, 3).unwrap(), &mut rng);
        let shares: Vec<_> = shares.into_iter().map(Arc::new).collect();
        let digest = keccak256(format!("a transaction {seed}")).0;
        let signature = signed(&public, &shares, &digest, seed);
        let id = vartime_recovery_id(&public, &digest, &signature).unwrap();
        seen[usize::from(id)] = true;
        let asked = |v: u8| [&digest[..], &[0; 31], &[v], &signature].concat();
        // An address is the end of the key's hash.
        let key = uncompressed_key(&public).unwrap();
        let address = [&[0; 12][..], &keccak256(&key[1..])[12..]].concat();
        assert_eq!(precompiled(ECRECOVER, &asked(27 + id)), address, "seed {seed}");
        assert_ne!(precompiled(ECRECOVER, &asked(28 - id)), address, "another v, another key");
    }
    assert_eq!(seen, [true; 2]);
}
