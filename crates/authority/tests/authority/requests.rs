//! What a request looks up once, and what it keeps.

use std::sync::Arc;

use bytes::Bytes;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_authority::{Gate, KeyRequest, Presented, Refusal, Request};
use theta_custody::{KeyTable, ResolveError};
use theta_names::{NodeId, Operation};
use theta_payload::{Aead, Encrypt as _, split_ciphertext};
use theta_policy::{MemorySlots, Policy};
use theta_schemes::{
    Statement, Suite,
    ciphers::HeaderBytes,
    keys::{AnyPublicKey, deal_any},
};
use theta_sharing::Threshold;
use theta_statements::UnixTime;

const CERTIFICATE: [u8; 32] = [0xaa; 32];

fn table() -> (AnyPublicKey, KeyTable) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let (public, mut shares) = deal_any(Suite::Sg02Ristretto255, Threshold::new(2, 3).unwrap(), &mut rng);
    let keys = KeyTable::new([("files".parse().unwrap(), public.clone(), shares.remove(0))]).unwrap();
    (public, keys)
}

fn header(public: &AnyPublicKey, label: &[u8]) -> Bytes {
    let ciphertext = public.encrypt(b"text", label, Aead::default(), &mut ChaCha20Rng::seed_from_u64(2)).unwrap();
    Bytes::copy_from_slice(split_ciphertext(&ciphertext).unwrap().0)
}

#[test]
fn a_key_is_found_once_and_its_share_is_not_kept() {
    let (public, keys) = table();
    let asked = KeyRequest::Decapsulate(header(&public, b"l"));
    let request = Request::new(&keys, "files".parse().unwrap(), asked).unwrap();
    let (found, generation) = request.entry(&keys).unwrap();
    assert!(Arc::ptr_eq(&found, &keys.get("files").unwrap()) && generation == keys.generation());
    assert_eq!(request.statement().key_id(), Some(public.key_id()));
    assert!(matches!(request.statement().as_statement(), Statement::Header(_)));
    public.check_request(request.statement().as_statement()).unwrap();
    // A share that has left the table is freed, however long the request waits.
    let share = Arc::downgrade(&found);
    drop((found, keys));
    assert!(share.upgrade().is_none());
    assert!(matches!(request.entry(&KeyTable::default()), Err(ResolveError::Unknown { .. })));
}

/// A caller is unknown when its request is made: no text about the node's keys is made for it.
#[test]
fn a_name_that_stands_for_nothing_stays_so_and_words_are_made_for_those_alone_who_may_hear_them() {
    let (public, keys) = table();
    let ask = |table: &KeyTable, key: &str| {
        Request::new(table, key.parse().unwrap(), KeyRequest::Decapsulate(header(&public, b"l"))).unwrap()
    };
    let absent = ask(&keys, "nokey");
    // The error would contain the names of all keys; a request that waits for the gate contains none of them.
    assert!(!format!("{absent:?}").contains("files"), "{absent:?}");
    let Err(ResolveError::Unknown { known, .. }) = absent.entry(&keys) else { panic!("there is no such key") };
    assert_eq!(known, "files");
    let Err(ResolveError::NoVersion { known, .. }) = ask(&keys, "files@3").entry(&keys) else { panic!("one version") };
    assert_eq!(known, "1");
    // A key that was absent when the request was made stays absent for it.
    let early = ask(&KeyTable::default(), "files");
    assert!(matches!(early.entry(&keys), Err(ResolveError::Unknown { .. })));
}

#[test]
fn a_seed_is_not_shown() {
    let seed = Arc::new(theta_groups::Secret::new(b"0123456789abcdef0123456789abcdef".to_vec()));
    let asked = KeyRequest::SignRandomized { message: Bytes::new(), seed };
    let request = Request::new(&KeyTable::default(), "files".parse().unwrap(), asked).unwrap();
    for shown in [format!("{:?}", theta_authority::Asks::asked(&request)), format!("{request:?}")] {
        assert!(shown.contains("files") && !shown.contains("0123456789abcdef") && !shown.contains("48, 49"), "{shown}");
    }
}

/// Nodes that share a process may have tables of the same generation.
#[test]
fn another_tables_entry_is_never_taken_for_ones_own() {
    let ((public, keys), (_, others)) = (table(), table());
    assert_eq!(keys.generation(), others.generation());
    let asked = KeyRequest::Decapsulate(header(&public, b"l"));
    let request = Request::new(&keys, "files".parse().unwrap(), asked).unwrap();
    let (entry, _) = request.entry(&others).unwrap();
    assert!(Arc::ptr_eq(&entry, &others.get("files").unwrap()), "its own share, not another node's");
}

#[test]
fn the_gate_sees_the_label_and_the_name_and_says_nothing_of_the_key() {
    let (public, keys) = table();
    let certificate = CERTIFICATE.map(|byte| format!("{byte:02x}")).concat();
    let policy = format!(
        "format = 1\n[[client]]\nname = \"c\"\ncertificates = [\"{certificate}\"]\n[[rule]]\nname = \"r\"\neffect = \"allow\"\n\
         clients = [\"c\"]\nkeys = [\"files\"]\noperations = [\"decapsulate\"]\n"
    );
    let gate = Gate::new(
        "g",
        NodeId::try_from(3).unwrap(),
        Policy::parse(&policy, "policy.toml").unwrap(),
        MemorySlots::default(),
    );
    let decide = |key: &str, asked| {
        let request = Request::new(&keys, key.parse().unwrap(), asked).unwrap();
        gate.decide(&Presented::new(Some(CERTIFICATE), None), request, UnixTime(7)).unwrap()
    };
    let header = header(&public, b"for whom");
    let judged = decide("files@1", KeyRequest::Decapsulate(header.clone()));
    let granted = judged.answer.unwrap();
    assert_eq!((granted.terms().key(), granted.terms().label().view().bytes()), (Some("files"), &b"for whom"[..]));
    assert!(judged.first && judged.record.allowed && granted.claims().is_empty());
    assert_eq!(judged.record.operation, Operation::Decapsulate.name());
    // Opening the payload at the node is another operation.
    let refused = decide("files", KeyRequest::Decrypt(HeaderBytes::parse(header).unwrap())).answer.unwrap_err();
    assert_eq!((refused.code(), refused.rule()), (Some("no-rule"), None));
    // Callers that may not use a key must not learn whether it exists: they get the same refusal in both cases.
    let [there, absent] = ["files", "nokey"].map(|key| decide(key, KeyRequest::Sign(Bytes::new())).answer.unwrap_err());
    let said = |refusal: &Refusal| refusal.to_string().replace("files", "nokey");
    assert_eq!(said(&there), absent.to_string());
}
