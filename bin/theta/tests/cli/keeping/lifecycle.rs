//! The life of keys at real nodes: made without a dealer, renewed, moved, recovered, disabled, destroyed.

use std::{fs, thread, time::Duration};

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_custody::{DealtKey, import_dealt};
use theta_keyfiles::PublicKeyText as _;
use theta_names::{Delivery, Holders};
use theta_schemes::{
    Suite,
    keys::{KeyName, deal_any},
};
use theta_sharing::Threshold;
use theta_store::{SealingKey, Store};

use crate::harness::{Group, theta_with_stdin};
use crate::keys::verifiers::all_take;

const TEXT: &[u8] = b"The secret of a key that nobody ever held.\n";

fn sealed(group: &Group, key: &str) -> Vec<u8> {
    theta_with_stdin(group.path(), &["encrypt", "-", "--key", key], TEXT).ok().stdout
}

#[track_caller]
fn opens(group: &Group, sealed: &[u8]) {
    assert_eq!(theta_with_stdin(group.path(), &["decrypt", "-"], sealed).ok().stdout, TEXT);
}

/// Whoever holds no share of it says that it has been made, too: fewer hold it than the group takes for what all nodes can do.
#[test]
fn a_key_of_fewer_holders_than_the_group_takes_is_made_at_once() {
    let mut group = Group::made_with(&["--no-keys", "--nodes", "5", "--threshold", "4"]);
    group.start_all();
    let create = ["keys", "create", "vault=sg02-ristretto255", "--threshold", "2", "--holders", "1,2,3"];
    let made = group.theta(&[&create[..], &["--patience", "30s", "--json"]].concat()).ok().json();
    assert!(made[0]["agreed"].as_array().unwrap().len() >= 4, "{made}");
    let moved = ["keys", "reshare", "vault", "--threshold", "2", "--holders", "3,4,5", "--patience", "30s", "--json"];
    let moved = group.theta(&moved).ok().json();
    assert!(moved[0]["agreed"].as_array().unwrap().len() >= 4, "{moved}");
}

#[test]
fn a_key_lives_and_dies() {
    let mut group = Group::made_with(&["--no-keys"]);
    group.start_all();
    group.theta(&["encrypt", "x", "--key", "vault"]).fails(2, &["no key named \"vault\""]);
    let made = group.theta(&["keys", "create", "vault=sg02-ristretto255", "seal=frost-ed25519", "--json"]).ok().json();
    assert_eq!((&made[0]["aim"], &made[0]["version"], &made[0]["epoch"]), (&"create".into(), &1.into(), &0.into()));
    assert!(made[0]["agreed"].as_array().unwrap().len() >= 2 && made[1]["key"] == "seal", "{made}");
    group.theta(&["keys", "create", "vault=sg02-ristretto255"]).fails(1, &["vault", "exist"]);

    let old = sealed(&group, "vault");
    opens(&group, &old);
    let public = group.read("theta-group/client/keys/vault.pub");
    let refreshed = group.theta(&["keys", "refresh", "vault", "--json"]).ok().json();
    assert_eq!((&refreshed[0]["aim"], &refreshed[0]["epoch"]), (&"refresh".into(), &1.into()));
    opens(&group, &old);
    let text = group.theta(&["keys", "list", "--live"]).ok().text();
    assert!(text.contains("vault") && text.contains("active") && text.contains("1, 2, 3, 4"), "{text}");

    let rotated = group.theta(&["keys", "rotate", "vault", "--json"]).ok().json();
    assert_eq!((&rotated[0]["version"], &rotated[0]["epoch"]), (&2.into(), &0.into()));
    assert_ne!(group.read("theta-group/client/keys/vault.pub"), public, "a new version is a new public key");
    let new = sealed(&group, "vault");
    opens(&group, &new);
    opens(&group, &old);

    let moved =
        group.theta(&["keys", "reshare", "vault", "--threshold", "3", "--holders", "2,3,4", "--json"]).ok().json();
    assert_eq!((&moved[0]["aim"], &moved[0]["version"]), (&"reshare".into(), &2.into()));
    group.kill(1);
    opens(&group, &new);
    group.start(1);
    group.await_up(1);

    group.theta(&["keys", "disable", "vault"]).ok();
    let file = group.file("new.theta", &new);
    group.theta(&["decrypt", &file, "-o", "-"]).fails(1, &["disabled", "enable"]);
    group.theta(&["keys", "enable", "vault"]).ok();
    opens(&group, &new);
    group.theta(&["keys", "destroy", "vault"]).fails(2, &["for ever", "--yes"]);
    let gone = group.theta(&["keys", "destroy", "vault", "--now", "--yes", "--json"]).ok().json();
    assert_eq!((&gone["state"], gone["nodes"].as_array().unwrap().len()), (&"destroyed".into(), 4));
    group.theta(&["decrypt", &file, "-o", "-"]).fails(1, &["destroyed"]);
    group.theta(&["keys", "create", "vault=sg02-ristretto255"]).fails(1, &["vault", "exist"]);
    let name = group.file("message", "the other key lives");
    group.theta(&["sign", &name, "--key", "seal"]).ok();
    group.theta(&["verify", &name, "message.sig", "--key", "seal"]).ok();
}

/// Deals a key, of which one node has lost its share, into the stores of nodes that do not run.
fn deal_with_a_loss(group: &Group, name: &str, (suite, delivery): (Suite, Delivery), lost: u16) {
    let name: KeyName = name.parse().unwrap();
    // No two keys have one secret.
    let mut rng = ChaCha20Rng::from_seed([7 + delivery.code(); 32]);
    let (public, shares) = deal_any(suite, Threshold::new(2, 4).unwrap(), &mut rng);
    let holders = Holders::first(4);
    for (node, share) in (1..).zip(&shares) {
        let dir = group.node_dir(node);
        let key = SealingKey::from_file(&dir.join("store.key")).unwrap();
        let store = Store::open(&dir.join("theta.redb"), &key).unwrap();
        let share = Some(share).filter(|_| node != lost);
        import_dealt(
            &store,
            &DealtKey { name: &name, public: &public, share, delivery, holders: &holders, created: 0 },
        )
        .unwrap();
    }
    let file = group.path().join(format!("theta-group/client/keys/{name}.pub"));
    fs::write(file, public.to_text(&name)).unwrap();
}

/// Does what the generated policy says: adds the approver's lines, and uncomments the rule.
fn with_the_rule_for_recoveries(policy: &str, approver: &str) -> String {
    let from = policy.find("# [[rule]]\n# name = \"recovering-takes-an-approval\"").unwrap();
    let to = from + policy[from..].find("\n#\n").unwrap();
    let rule = policy[from..to].replace("# ", "");
    format!("{}{rule}{}\n{approver}", &policy[..from], &policy[to..])
}

/// Makes an approver, whose word all nodes take.
pub(super) fn ann_may_approve_recoveries(group: &Group) {
    let approver = group.theta(&["approver", "new", "--name", "ann"]).ok().text();
    for node in 1..=4 {
        let file = group.node_dir(node).join("policy.toml");
        let policy = fs::read_to_string(&file).unwrap();
        fs::write(&file, with_the_rule_for_recoveries(&policy, &approver)).unwrap();
    }
    (1..=4).for_each(|node| group.await_changed_policy(node));
}

#[test]
fn a_lost_share_is_recovered() {
    let mut group = Group::made_with(&["--no-keys"]);
    deal_with_a_loss(&group, "vault", (Suite::Sg02Ristretto255, Delivery::All), 3);
    group.start_all();
    let sealed = sealed(&group, "vault");
    opens(&group, &sealed);
    // A recovery takes an approval; the refusal says what to do.
    let recover = ["keys", "recover", "vault", "--node", "3", "--json"];
    group.theta(&recover).fails(1, &["theta approver new --name ann", "recovering-takes-an-approval", "--approval"]);
    ann_may_approve_recoveries(&group);
    let approve = ["approve", "--as", "ann.key", "--operation", "keys.recover", "--key", "vault", "--node", "3"];
    group.theta(&[&approve[..], &["--yes", "-o", "ann.approval"]].concat()).ok();
    group.theta(&recover).fails(1, &["recovering-takes-an-approval", "theta approve --as ann.key"]);
    // A pipe can be read only once, as with process substitution.
    let approval = fs::read(group.path().join("ann.approval")).unwrap();
    let arguments = [&recover[..], &["--approval", "/dev/stdin"]].concat();
    let recovered = theta_with_stdin(group.path(), &arguments, &approval).ok().json();
    assert_eq!((&recovered[0]["aim"], &recovered[0]["epoch"]), (&"recover".into(), &0.into()));
    // Now node 3 is one of two that are left.
    group.kill(1);
    group.kill(2);
    opens(&group, &sealed);
}

/// Whatever the holders of an ECDSA key compute with each other: a share that is found again signs.
#[test]
fn a_recovered_share_of_an_ecdsa_key_signs() {
    let mut group = Group::made_with(&["--no-keys"]);
    let keys = [
        ("honest", Delivery::All),
        ("mascot", Delivery::DishonestMajority),
        ("shamir", Delivery::Passive),
        ("semi-ot", Delivery::PassiveDishonestMajority),
    ];
    for (key, delivery) in keys {
        deal_with_a_loss(&group, key, (Suite::EcdsaP256, delivery), 3);
    }
    group.start_all();
    ann_may_approve_recoveries(&group);
    let approve = ["approve", "--as", "ann.key", "--operation", "keys.recover", "--all", "--node", "3", "--yes"];
    group.theta(&[&approve[..], &["-o", "ann.approval"]].concat()).ok();
    let recover = ["keys", "recover", "--all", "--node", "3", "--approval", "ann.approval", "--json"];
    let recovered = group.theta(&recover).ok().json();
    assert_eq!(recovered.as_array().unwrap().len(), keys.len(), "{recovered}");
    // Without node 1, programs of three take node 3; without node 2 as well, those of two do.
    group.kill(1);
    for (key, _) in [keys[0], keys[2]] {
        all_take(&group, key, "ecdsa-p256", &format!("three are left, {key}"));
    }
    group.kill(2);
    for (key, _) in [keys[1], keys[3]] {
        all_take(&group, key, "ecdsa-p256", &format!("two are left, {key}"));
    }
}

#[test]
fn a_node_that_is_killed_in_a_ceremony_comes_back_and_takes_part() {
    let mut group = Group::made_with(&["--no-keys", "--nodes", "5", "--threshold", "2"]);
    group.start_all();
    let path = group.path().to_owned();
    let ceremony = thread::spawn(move || {
        crate::harness::theta_in(&path, &["keys", "create", "vault=sg02-ristretto255", "--json", "--timeout", "60s"])
    });
    thread::sleep(Duration::from_millis(40));
    group.kill(2);
    thread::sleep(Duration::from_millis(300));
    group.start(2);
    group.await_up(2);
    ceremony.join().unwrap().ok();
    let sealed = sealed(&group, "vault");
    opens(&group, &sealed);
    // It learns from the others what it missed.
    for node in [1, 3, 4] {
        group.kill(node);
    }
    let file = group.file("x.theta", &sealed);
    let mut last = String::new();
    for _ in 0..60 {
        let run = group.theta(&["decrypt", &file, "-o", "x.out", "--timeout", "2s"]);
        if run.code == 0 {
            return assert_eq!(group.read("x.out"), TEXT);
        }
        last = run.stderr;
        if last.contains("theta keys recover") {
            // The node was away when shares were dealt: it has the key without a share, and says what helps.
            return;
        }
        thread::sleep(Duration::from_millis(500));
    }
    panic!("node 2 never heard how it ended: {last}\n{}", group.log(2));
}

/// Of three that all have to decide, one whose store was restored does not vote: nothing can be decided, and it is said why.
#[test]
fn who_does_not_vote_after_a_restore_says_so() {
    let mut group = Group::made_with(&["--no-keys", "--nodes", "3"]);
    group.file("backup.key", "0a".repeat(32));
    private(&group, "backup.key");
    let sealed = ["--dir", "theta-group/node-1", "--seal", "file:backup.key"];
    group.theta(&[&["keys", "backup", "-o", "b"], &sealed[..]].concat()).ok();
    fs::remove_file(group.node_dir(1).join("theta.redb")).unwrap();
    let floors = ["--refuse-days-before", "tomorrow", "--refuse-other-slots", "0"];
    group.theta(&[&["keys", "restore", "b"], &sealed[..], &floors].concat()).ok();
    group.start_all();
    let told = group.theta(&["doctor"]).fails(1, &[]).text();
    assert!(told.contains("node 1: it does not vote on changes") && told.contains("theta group warrant"), "{told}");
    assert!(!told.contains("node 2: it does not vote"), "{told}");
}

#[test]
fn a_backup_is_checked_restored_and_works() {
    let mut group = Group::made();
    group.file("backup.key", "0a".repeat(32));
    group
        .theta(&["keys", "backup", "--dir", "theta-group/node-1", "--seal", "file:backup.key", "-o", "b"])
        .fails(2, &["backup.key", "chmod 600"]);
    private(&group, "backup.key");
    let backup = ["keys", "backup", "--dir", "theta-group/node-1", "--seal", "file:backup.key", "-o", "b", "--json"];
    assert_eq!(group.theta(&backup).ok().json()["keys"], 7);
    let check = |file: &str, seal: &str| group.theta(&["keys", "check-backup", file, "--seal", seal]);
    let text = check("b", "file:backup.key").ok().text();
    assert!(text.contains("7 shares fit their keys") && text.contains("frost-ed25519"), "{text}");
    group.file("other.key", "0b".repeat(32));
    private(&group, "other.key");
    check("b", "file:other.key").fails(2, &["does not open"]);
    let mut bad = group.read("b");
    let middle = bad.len() / 2;
    bad[middle] ^= 1;
    group.file("bad", bad);
    check("bad", "file:backup.key").fails(1, &[]);

    let old = group.node_dir(1).join("theta.redb");
    let restore = |more: &[&str]| {
        let fixed = ["keys", "restore", "b", "--dir", "theta-group/node-1", "--seal", "file:backup.key"];
        group.theta(&[&fixed[..], more].concat())
    };
    restore(&[]).fails(2, &["--refuse-days-before", "--refuse-other-slots", "since the backup"]);
    let floors = ["--refuse-days-before", "tomorrow", "--refuse-slots", "sign/heights=7", "--refuse-other-slots", "0"];
    restore(&floors).fails(2, &["theta.redb", "exists already"]);
    fs::remove_file(&old).unwrap();
    let restored = restore(&[&floors[..], &["--json"]].concat()).ok().json();
    assert!(restored["keys"] == 7 && restored["restored_from"] != restored["id"], "{restored}");

    group.start_all();
    group.kill(3);
    group.kill(4);
    let file = group.file("message", "by node 2 and the restored node 1");
    group.theta(&["sign", &file]).ok();
    group.theta(&["verify", &file, "message.sig"]).ok();
}

fn private(group: &Group, name: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(group.path().join(name), fs::Permissions::from_mode(0o600)).unwrap();
}
