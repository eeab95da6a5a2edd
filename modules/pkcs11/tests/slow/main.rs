//! The module with nodes that are slow, silent or few: what it waits for, and how long.
//!
//! The nodes are those of the client's tests, which say what a test wants. A program of its own: there is one module in a process.

#![allow(unsafe_code, reason = "hosts call functions of C")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "the helpers of tests are test code, too"
)]

#[path = "../../../../crates/client/tests/client/connection.rs"]
mod connection;
#[path = "../../../../crates/client/tests/client/fake/mod.rs"]
#[allow(dead_code, reason = "the client's tests use the rest")]
mod fake;
mod group;
mod host;

use std::{
    fs,
    path::PathBuf,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use cryptoki_sys::{CKR_DEVICE_ERROR, CKR_OK, CKR_SESSION_HANDLE_INVALID};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng as _};
use theta_client::Token;
use theta_schemes::{Suite, keys::AnyPublicKey};
use theta_wire::v1;
use tokio::runtime::Runtime;

use crate::{
    fake::{FakeGroup, Rest, adopt, key},
    host::Host,
};

/// There is one module for all tests of this program, and its configuration is at one place.
fn turn() -> (MutexGuard<'static, ()>, PathBuf) {
    static TURN: Mutex<()> = Mutex::new(());
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        // SAFETY: the other tests wait for their turn, and no runtime has begun.
        unsafe { std::env::set_var("THETA_PKCS11_CONFIG", folder.path().join("pkcs11.toml")) };
        folder
    });
    (turn, folder.path().to_owned())
}

/// A group, and what has to stay while it is there.
struct Played {
    group: FakeGroup,
    folder: PathBuf,
    _inside: Runtime,
    _turn: MutexGuard<'static, ()>,
}

impl Played {
    /// A group with a configuration of the module that has these lines for its token.
    fn new(lines: &str) -> Self {
        let (turn, folder) = turn();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let group = {
            let _inside = runtime.enter();
            FakeGroup::new()
        };
        let client = group.prepared.folder.path().join("client");
        let config = format!("log = \"log\"\n[[token]]\nclient = \"{}\"\n{lines}", client.display());
        fs::write(folder.join("pkcs11.toml"), config).unwrap();
        for name in ["log", "bindings.toml"] {
            let _ = fs::remove_file(folder.join(name));
        }
        Self { group, folder, _inside: runtime, _turn: turn }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// All nodes list these keys.
    fn list(&self, keys: &[v1::KeyInfo]) {
        (1..=4).for_each(|number| self.group.node(number).keys = keys.to_vec());
    }
}

fn listed(name: &str, public: &AnyPublicKey) -> v1::KeyInfo {
    v1::KeyInfo {
        name: name.to_owned(),
        suite: public.suite().name().to_owned(),
        version: 1,
        key_id: public.key_id().as_bytes().to_vec().into(),
        state: "active".to_owned(),
        primary: true,
        threshold: 2,
        holders: vec![1, 2, 3, 4],
        delivery: "all".to_owned(),
        ..Default::default()
    }
}

/// A history of more than a node says at once, with twenty keys for hosts at its end. Node 1 answers first, and tells the rest never.
#[test]
fn one_node_that_stalls_hides_no_key() {
    let mut played = Played::new("");
    let seal = key(Suite::Bls04MinPk, 1).0;
    for version in 1..=300 {
        played.group.decide(adopt("seal", version, 0, &seal));
    }
    let mut keys = Vec::new();
    for number in 0..20 {
        let (name, public) = (format!("key-{number}"), key(Suite::FrostEd25519, number + 10).0);
        played.group.decide(adopt(&name, 1, 0, &public));
        keys.push(listed(&name, &public));
    }
    played.list(&keys);
    played.group.node(1).rest = Rest::Never;
    (2..=4).for_each(|number| played.group.node(number).ledger_delay = Duration::from_millis(50));
    // A look learns for 5 s at most: it has both objects of each key, or it has waited for node 1.
    assert_eq!(Host::begin().look(), 40, "{}", played.log());
    assert!(played.group.asked() <= 20, "nodes were asked {} times", played.group.asked());
}

/// Of many keys that the nodes list and do not tell, one line is said, and the ledger is asked for once.
#[test]
fn keys_that_nobody_tells_are_one_line() {
    let played = Played::new("timeout_ms = 1500\n");
    let known: Vec<_> = (0..30).map(|number| key(Suite::FrostEd25519, number).0).collect();
    let keys: Vec<_> =
        known.iter().enumerate().map(|(number, public)| listed(&format!("key-{number}"), public)).collect();
    played.list(&keys);
    // They answer nothing about keys but their lists.
    (1..=4).for_each(|number| played.group.node(number).tells_no_keys = true);
    let host = Host::begin();
    assert_eq!(host.look(), 0);
    let said = played.log();
    assert!(said.contains("29 keys are left out") && said.lines().count() <= 3, "{said}");
    assert!(played.group.asked() <= 8, "nodes were asked {} times", played.group.asked());
}

/// Keys that PKCS#11 does not serve are no contradiction.
#[test]
fn a_group_without_keys_for_hosts_is_not_told_of() {
    let played = Played::new("");
    played.list(&[listed("seal", &key(Suite::Bls04MinPk, 1).0)]);
    assert_eq!((Host::begin().look(), played.log()), (0, String::new()));
}

/// One node says nothing: a call takes what it may take, and not what reading lists usually may.
#[test]
fn a_call_ends_with_its_time() {
    let mut played = Played::new("timeout_ms = 500\npool = \"zone\"\n");
    let (name, public) = ("zone-frost-ed25519-1", key(Suite::FrostEd25519, 1).0);
    played.group.decide(adopt(name, 1, 0, &public));
    played.list(&[listed(name, &public)]);
    played.group.node(4).silent_about_keys = true;
    let host = Host::begin();
    let took = |rv| {
        let began = Instant::now();
        assert_eq!(host.make(), rv, "{}", played.log());
        began.elapsed()
    };
    let found = took(CKR_OK);
    // There is no other, and the nodes make none.
    let refused = took(CKR_DEVICE_ERROR);
    assert!(found.max(refused) < Duration::from_millis(1_500), "{found:?} and {refused:?}");
}

/// The nodes take their time for a token, and the host closes its last session meanwhile: nobody is logged in then.
#[test]
fn who_has_left_is_not_logged_in() {
    let played = Played::new("pin = \"token\"\n");
    (1..=4).for_each(|number| played.group.node(number).list_delay = Duration::from_millis(600));
    let token = Token::generate(&mut ChaCha20Rng::seed_from_u64(1)).unwrap();
    let (host, pin) = (Host::begin(), token.to_text().expose().clone());
    std::thread::scope(|scope| {
        let login = scope.spawn(|| host.log_in(&pin));
        std::thread::sleep(Duration::from_millis(200));
        host.close();
        assert_eq!(login.join().unwrap(), CKR_SESSION_HANDLE_INVALID);
    });
    assert!(!host.is_logged_in(host.open()));
}
