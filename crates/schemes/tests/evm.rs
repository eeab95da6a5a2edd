//! Threshold signatures on BN254 before the judge they are made for: a contract in an Ethereum virtual machine that
//! asks the precompiled pairing check of EIP-197.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use revm::bytecode::Bytecode;
use revm::context::TxEnv;
use revm::database::{CacheDB, EmptyDB};
use revm::primitives::{Address, Bytes, TxKind};
use revm::state::AccountInfo;
use revm::{Context, ExecuteEvm, MainBuilder, MainContext};
use theta_groups::Group;
use theta_groups::bn254::{G1, G2};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, deal_any};
use theta_schemes::signatures::bls04::evm;
use theta_schemes::{Statement, Suite};
use theta_sharing::Threshold;

/// A contract that hands its call data to the contract at address 8 and returns the 32 bytes that come back; it reverts
/// if there are none.
const CONTRACT: [u8; 32] = [
    0x36, 0x60, 0x00, 0x60, 0x00, 0x37, // CALLDATACOPY(0, 0, CALLDATASIZE)
    0x60, 0x20, 0x60, 0x00, 0x36, 0x60, 0x00, 0x60, 0x08, 0x5a, 0xfa, // STATICCALL(GAS, 8, 0, CALLDATASIZE, 0, 32)
    0x15, 0x60, 0x1a, 0x57, // if it failed, go to 0x1a
    0x60, 0x20, 0x60, 0x00, 0xf3, // RETURN(0, 32)
    0x5b, 0x60, 0x00, 0x60, 0x00, 0xfd, // 0x1a: REVERT(0, 0)
];

/// Sends the call data to the contract in a transaction; `None` if it reverts.
fn ask(call_data: &[u8]) -> Option<bool> {
    let contract = Address::repeat_byte(0xcc);
    let mut database = CacheDB::<EmptyDB>::default();
    let code = Bytecode::new_raw(Bytes::from_static(&CONTRACT));
    database.insert_account_info(contract, AccountInfo::from_bytecode(code));
    let transaction = TxEnv::builder()
        .caller(Address::repeat_byte(0xaa))
        .kind(TxKind::Call(contract))
        .gas_limit(1_000_000)
        .data(Bytes::copy_from_slice(call_data))
        .build()
        .unwrap();
    let result = Context::mainnet().with_db(database).build_mainnet().transact(transaction).unwrap().result;
    if !result.is_success() {
        return None;
    }
    let output = result.output().unwrap();
    assert_eq!(output.len(), 32);
    assert!(output[..31].iter().all(|byte| *byte == 0) && output[31] <= 1);
    Some(output[31] == 1)
}

fn key() -> (AnyPublicKey, Vec<AnyKeyShare>) {
    deal_any(Suite::Bls04Bn254, Threshold::new(3, 5).unwrap(), &mut ChaCha20Rng::seed_from_u64(1))
}

fn sign(public: &AnyPublicKey, keys: &[AnyKeyShare], message: &[u8]) -> Vec<u8> {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let statement = Statement::Sign(message);
    let shares: Vec<_> =
        keys.iter().map(|key| (key.index(), public.create_share(key, statement, &mut rng).unwrap())).collect();
    let shares: Vec<_> = shares[1..4].iter().map(|(index, share)| (*index, share.as_slice())).collect();
    public.combine(statement, &shares, &mut rng).unwrap().result.expose().clone()
}

#[test]
fn a_contract_accepts_the_signature_and_nothing_else() {
    let (public, keys) = key();
    let AnyPublicKey::Bls04Bn254(set) = &public else { panic!("{public:?}") };
    for message in [&b""[..], b"message", &[7; 1000]] {
        let signature = sign(&public, &keys, message);
        public.verify(message, &signature, b"").unwrap();
        assert_eq!(signature.len(), 32);
        let input = evm::pairing_input(set, message, &signature).unwrap();
        assert_eq!(input.len(), 384);
        assert_eq!(ask(&input), Some(true));

        let wrong_message = evm::pairing_input(set, b"another", &signature).unwrap();
        assert_eq!(ask(&wrong_message), Some(false));
        let wrong_signature = evm::pairing_input(set, message, &sign(&public, &keys, b"another")).unwrap();
        assert_eq!(ask(&wrong_signature), Some(false));
        let negated = G1::encode(&-G1::decode(&signature).unwrap());
        assert_eq!(ask(&evm::pairing_input(set, message, &negated).unwrap()), Some(false));
        // No point at all.
        let mut off_curve = input.clone();
        off_curve[63] ^= 1;
        assert_eq!(ask(&off_curve), None);
    }
    evm::pairing_input(set, b"message", &[0; 32]).unwrap_err();
    evm::pairing_input(set, b"message", &[]).unwrap_err();
}

/// The contract must take the parts apart as this crate puts them together.
#[test]
fn the_parts_are_where_a_contract_expects_them() {
    let (public, keys) = key();
    let AnyPublicKey::Bls04Bn254(set) = &public else { panic!("{public:?}") };
    let signature = sign(&public, &keys, b"message");
    let input = evm::pairing_input(set, b"message", &signature).unwrap();
    assert_eq!(input[..64], evm::signature(&signature).unwrap());
    assert_eq!(input[64..192], G2::encode_uncompressed_evm(&-G2::generator()));
    assert_eq!(input[192..256], evm::message_point(b"message"));
    assert_eq!(input[256..], evm::public_key(set));
    // A pair of the group's own elements, to see that the contract answers at all.
    assert_eq!(ask(&[]), Some(true));
    assert_eq!(ask(&input[..192]), Some(false));
    assert_eq!(ask(&input[..191]), None);
}
