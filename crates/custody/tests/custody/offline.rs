//! Keys that a dealer made, in stores and in memory.

use std::sync::Arc;

use theta_custody::{
    Custodian, CustodyError, DealtKey, KeyTable, KeyTableError, ResolveError, import_dealt, read_keys,
};
use theta_groups::Secret;
use theta_keyfiles::{KeyShareText as _, PublicKeyText as _};
use theta_names::{Delivery, Epoch, Holders, NodeId, Purpose, Version};
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, PublicBytesError, ShareBytesError, deal_any, import_any};
use theta_sharing::Threshold;
use theta_statements::KeyChange;
use theta_store::{EpochRecord, KeyError, Options, Store, disk::SimulatedDisk};

use crate::net::{Net, name, party, roster, sealing_key, seeded};
use crate::use_keys::check_signature;

fn deal(suite: Suite, seed: u64) -> (AnyPublicKey, Vec<AnyKeyShare>) {
    deal_any(suite, Threshold::new(2, 4).unwrap(), &mut seeded(seed))
}

fn store() -> Store {
    let options = Options::default().with_rng(seeded(1));
    Store::create_on(SimulatedDisk::default().backend(), &sealing_key(), options).unwrap()
}

fn import(
    store: &Store,
    key: &str,
    public: &AnyPublicKey,
    share: Option<&AnyKeyShare>,
    holders: &[NodeId],
) -> Result<Version, CustodyError> {
    let holders = &Holders::new(holders.to_vec()).unwrap();
    import_dealt(
        store,
        &DealtKey { name: &name(key), public, share, delivery: Delivery::All, holders, created: 1_795_000_000 },
    )
}

#[test]
fn a_dealt_key_serves_and_is_renewed_by_its_holders() {
    let mut net = Net::new(2, 4, 1);
    let (public, shares) = deal(Suite::Bls04MinPk, 1);
    // Share 1 goes to node 4, and so on.
    let holders = [4, 3, 2, 1].map(party);
    for (share, node) in shares.iter().zip([4, 3, 2, 1]) {
        let store = Arc::clone(net.custodian(node).store());
        net.node(node).custodian = None;
        assert_eq!(import(&store, "zone", &public, Some(share), &holders).unwrap(), Version::FIRST);
        drop(store);
        net.start(node);
    }
    net.connect();
    check_signature(&net, &[1, 2], "zone", &public);
    let taken =
        |net: &Net| (1..=4).all(|node| net.custodian(node).ledger().unwrap().keys().contains_key(&name("zone")));
    assert!(net.until(60, taken), "the group takes it into its ledger");
    net.run(1..=4, KeyChange::Refresh { key: name("zone"), version: None });
    assert_eq!(net.entry(2, "zone").epoch, Epoch::new(1));
    check_signature(&net, &[3, 4], "zone", &public);
}

#[test]
fn a_dealt_ecdsa_key_takes_an_honest_majority() {
    let (store, holders) = (store(), [1, 2, 3, 4].map(party));
    let of = |k| deal_any(Suite::EcdsaP256, Threshold::new(k, 4).unwrap(), &mut seeded(1));
    for k in [1, 3, 4] {
        let (public, mut shares) = of(k);
        let error = import(&store, "gold", &public, Some(&shares[0]), &holders).unwrap_err();
        assert!(matches!(error, CustodyError::Table(KeyTableError::UnfitThreshold { .. })), "{error}");
        let in_memory = KeyTable::new([(name("gold"), public, shares.remove(0))]);
        assert!(matches!(in_memory, Err(KeyTableError::UnfitThreshold { .. })));
    }
    assert_eq!(store.keys().unwrap().len(), 0);
    let (public, mut shares) = of(2);
    import(&store, "gold", &public, Some(&shares[0]), &holders).unwrap();
    KeyTable::new([(name("gold"), public, shares.remove(0))]).unwrap();
}

/// Writes the key `files` as the store takes it, which takes any bytes.
fn write(store: &Store, public: Vec<u8>, share: Option<Secret<Vec<u8>>>) {
    let epoch = EpochRecord {
        number: Epoch::FIRST,
        k: 2,
        n: 4,
        holders: vec![1, 2, 3, 4],
        public,
        certificate: Vec::new(),
        created: 1_795_000_000,
    };
    let written: Result<_, KeyError> = store.write(|tx| {
        tx.create_key(&name("files"), Purpose::Decrypt)?;
        tx.import_version(&name("files"), ("sg02-p256", Delivery::All), epoch, share)
    });
    assert_eq!(written.unwrap(), Version::FIRST);
}

/// Who reads a key in the bytes of a store names the key.
#[test]
fn a_public_part_in_text_is_refused() {
    let store = store();
    let (public, _) = deal(Suite::Sg02P256, 2);
    write(&store, public.to_text(&name("files")).into_bytes(), None);
    let problem = |error| match error {
        CustodyError::Public { error, .. } => *error,
        other => panic!("{other}"),
    };
    let error = read_keys(&store, party(1)).unwrap_err();
    assert!(error.to_string().starts_with("key files@1 in the store: its public part: it is in format 35"), "{error}");
    assert_eq!(problem(error), PublicBytesError::Format(b'#'));
    let error = import(&store, "other", &public, None, &[1, 2, 3, 4].map(party)).unwrap_err();
    assert_eq!(problem(error), PublicBytesError::Format(b'#'));
}

/// Stores of before had the text of the `.share` file there.
#[test]
fn a_share_in_text_is_refused() {
    let (store, (public, shares)) = (store(), deal(Suite::Sg02P256, 2));
    let text = shares[0].to_text(&name("files"));
    write(&store, public.to_bytes(), Some(Secret::new(text.expose().as_bytes().to_vec())));
    let error = read_keys(&store, party(1)).unwrap_err();
    assert!(error.to_string().starts_with("key files@1 in the store: its share: it is in format 35"), "{error}");
    match error {
        CustodyError::Share { error, .. } => assert_eq!(*error, ShareBytesError::Format(b'#')),
        other => panic!("{other}"),
    }
}

#[test]
fn a_share_is_stored_in_its_binary_form() {
    let (store, (public, shares)) = (store(), deal(Suite::Sg02P256, 2));
    import(&store, "files", &public, Some(&shares[0]), &[1, 2, 3, 4].map(party)).unwrap();
    let stored = store.share(&name("files"), Version::FIRST, Epoch::FIRST).unwrap().unwrap();
    assert_eq!(stored.expose(), shares[0].to_bytes().expose());
}

#[test]
fn what_does_not_belong_together_is_not_imported() {
    let (store, holders) = (store(), [1, 2, 3, 4].map(party));
    let (public, shares) = deal(Suite::Sg02P256, 2);
    let (other, _) = deal(Suite::Sg02P256, 3);
    let (of_other_suite, _) = deal(Suite::Cks05P256, 3);
    for wrong in [&other, &of_other_suite] {
        let error = import(&store, "files", wrong, Some(&shares[0]), &holders).unwrap_err();
        assert!(matches!(error, CustodyError::Share { .. }), "{error}");
    }
    for wrong in [&holders[..3], &[1, 2, 3, 4, 5].map(party)] {
        let error = import(&store, "files", &public, Some(&shares[0]), wrong).unwrap_err();
        assert!(matches!(error, CustodyError::Key(KeyError::Holders { .. })), "{error}");
    }
    assert_eq!(store.keys().unwrap().len(), 0);
    assert_eq!(import(&store, "files", &public, Some(&shares[0]), &holders).unwrap().get(), 1);
    assert_eq!(import(&store, "files", &other, None, &holders).unwrap().get(), 2);
    let table = read_keys(&store, party(1)).unwrap();
    assert_eq!((table.len(), table.iter().count(), table.get("files").unwrap().version.get()), (1, 2, 2));
    let lost = table.resolve(&"files".parse().unwrap(), None).unwrap_err();
    assert!(
        matches!(lost, ResolveError::ShareLost { .. })
            && lost.to_string().contains("theta keys recover files --node 1")
    );
    assert!(table.resolve(&"files@1".parse().unwrap(), None).is_ok());
    // Node 2 does not hold share 1.
    let error = Custodian::open(Arc::new(store), party(2), roster(2, 4)).unwrap_err();
    assert!(matches!(error, CustodyError::OtherNode { .. }), "{error}");
}

#[test]
fn a_node_that_holds_no_share_says_who_does() {
    let (store, (public, _)) = (store(), deal(Suite::Sg02P256, 4));
    import(&store, "files", &public, None, &[2, 3, 4, 5].map(party)).unwrap();
    let refused = read_keys(&store, party(1)).unwrap().resolve(&"files".parse().unwrap(), None).unwrap_err();
    assert_eq!(refused.to_string(), "node 1 holds no share of key files: ask one of the nodes 2, 3, 4, 5");
}

fn table(keys: Vec<(&str, &AnyPublicKey, AnyKeyShare)>) -> Result<KeyTable, KeyTableError> {
    KeyTable::new(keys.into_iter().map(|(key, public, share)| (name(key), public.clone(), share)))
}

fn take(shares: &mut Vec<AnyKeyShare>, place: usize) -> AnyKeyShare {
    shares.swap_remove(place)
}

#[test]
fn keys_that_must_not_be_together_are_refused() {
    let (public, mut shares) = deal(Suite::Sg02P256, 5);
    let (other, mut other_shares) = deal(Suite::Sg02P256, 6);
    let mixed = table(vec![("a", &public, take(&mut shares, 0)), ("b", &other, take(&mut other_shares, 1))]);
    let text = "key b has the share of node 2, key a that of node 1: a node holds its own shares only";
    assert_eq!(mixed.unwrap_err().to_string(), text);
    let foreign = table(vec![("a", &public, take(&mut other_shares, 1))]);
    let text = foreign.unwrap_err().to_string();
    assert!(text.starts_with("key a: the share does not belong to the public key"), "{text}");
    let mut again = deal(Suite::Sg02P256, 5).1;
    let same = table(vec![("a", &public, take(&mut again, 1)), ("b", &public, take(&mut shares, 1))]);
    assert_eq!(same.unwrap_err().to_string(), "keys a and b are the same key: remove one of them (theta keys remove)");
    let (public, mut first) = deal(Suite::Sg02P256, 7);
    let (other, mut second) = deal(Suite::Sg02P256, 8);
    let same = table(vec![("a", &public, take(&mut first, 0)), ("a", &other, take(&mut second, 0))]);
    assert_eq!(same.unwrap_err().to_string(), "two keys are named a: rename one of them");
    // The same secret as a decryption key and as a coin's key.
    let secret = theta_groups::Secret::new([&[0; 31][..], &[9]].concat());
    let threshold = Threshold::new(2, 4).unwrap();
    let (cipher, mut first) = import_any(Suite::Sg02P256, threshold, &secret, &mut seeded(9)).unwrap();
    let (coin, mut second) = import_any(Suite::Cks05P256, threshold, &secret, &mut seeded(9)).unwrap();
    let abused = table(vec![("a", &cipher, take(&mut first, 0)), ("b", &coin, take(&mut second, 0))]);
    let text = abused.unwrap_err().to_string();
    assert!(text.starts_with("keys a and b are one secret for two purposes"), "{text}");
    // Two kinds of signatures are the same purpose.
    let [(plain, mut first), (taproot, mut second)] = [Suite::FrostSecp256k1, Suite::FrostSecp256k1Tr]
        .map(|suite| import_any(suite, threshold, &secret, &mut seeded(9)).unwrap());
    table(vec![("a", &plain, take(&mut first, 0)), ("b", &taproot, take(&mut second, 0))]).unwrap();
}

/// Whose holders may learn it by one key has it by the other as well.
#[test]
fn a_secret_is_not_both_of_a_key_with_passive_security_and_of_one_without() {
    let secret = theta_groups::Secret::new([&[0; 31][..], &[9]].concat());
    let threshold = Threshold::new(2, 4).unwrap();
    for (delivery, is_refused) in [(Delivery::All, false), (Delivery::Passive, true)] {
        let keys = [("a", Suite::FrostP256, Delivery::All), ("b", Suite::EcdsaP256, delivery)];
        let keys = keys.map(|(key, suite, delivery)| {
            let (public, mut shares) = import_any(suite, threshold, &secret, &mut seeded(9)).unwrap();
            (name(key), public, take(&mut shares, 0), delivery)
        });
        match KeyTable::delivered(keys) {
            Ok(_) => assert!(!is_refused),
            Err(error) => {
                let said = error.to_string();
                assert!(is_refused && said.starts_with("keys a and b are one secret, the one with passive"), "{said}");
            }
        }
    }
}

#[test]
fn names_lead_to_versions() {
    let (public, mut shares) = deal(Suite::Sg02P256, 10);
    let keys = table(vec![("files", &public, take(&mut shares, 0))]).unwrap();
    assert_eq!((keys.known(), keys.local(), keys.generation()), ("files".to_owned(), Some(party(1)), 0));
    for good in ["files", "files@1"] {
        assert_eq!(keys.resolve(&good.parse().unwrap(), None).unwrap().qualified_name(), "files");
    }
    for bad in ["", "file", "files@", "files@0", "files@01", "files@+1", "files@2", "files@1@1", "@1", "FILES"] {
        assert!(keys.get(bad).is_none() && !bad.parse().is_ok_and(|bad| keys.resolve(&bad, None).is_ok()), "{bad:?}");
    }
    let unknown = keys.resolve(&"file".parse().unwrap(), None).unwrap_err().to_string();
    assert_eq!(unknown, "there is no key \"file\" here; the known ones are: files");
    assert!(KeyTable::default().is_empty());
    assert_eq!(KeyTable::default().known(), "none");
}
