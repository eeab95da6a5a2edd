//! Imported keys: what is refused, and the remedy when a node has two keys that it must not have together.

use theta_names::Version;
use theta_service::NodeConfig;
use theta_store::{EpochRecord, Store};

use crate::harness::{Group, Run};

/// Imports a bare scalar.
fn import(group: &Group, name: &str, suite: &str, file: &str) -> Run {
    group.theta(&["keys", "import", "--name", name, "--suite", suite, "--format", "raw", file])
}

#[test]
fn a_secret_that_the_group_has_already_is_not_imported() {
    let group = Group::made();
    group.file("one", format!("{}\n", "17".repeat(32)));
    import(&group, "vault", "sg02-p256", "one").ok();
    let same = import(&group, "copy", "sg02-p256", "one");
    same.fails(2, &["the group has this key already: it is vault"]);
    // The same point, and the same scalar in other groups of the same order.
    import(&group, "dice", "cks05-p256", "one").fails(2, &["another purpose", "the key vault", "make a new key"]);
    group.file("two", format!("{}\n", "19".repeat(32)));
    import(&group, "signer", "bls04-bls12381-min-pk", "two").ok();
    for (suite, other) in [("cks05-bls04-min-sig", "signer"), ("sg02-bls12381", "signer")] {
        import(&group, "x", suite, "two").fails(2, &["another purpose", other]);
    }
    let names: Vec<String> = group
        .theta(&["keys", "list", "--json"])
        .ok()
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|key| key["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names.iter().filter(|name| ["copy", "dice", "x"].contains(&name.as_str())).count(), 0, "{names:?}");
}

#[test]
fn a_key_that_cannot_be_put_everywhere_is_put_nowhere() {
    let group = Group::made();
    let keys = group.path().join("theta-group/client/keys");
    let aside = group.path().join("aside");
    // The client's copy comes last, and its folder is missing.
    std::fs::rename(&keys, &aside).unwrap();
    std::fs::write(&keys, "no folder").unwrap();
    group.theta(&["keys", "deal", "more=sg02-p256"]).fails(1, &["cannot write theta-group/client/keys/more.pub"]);
    assert!(stores(&group).iter().all(|store| store.key(&"more".parse().unwrap()).unwrap().is_none()));
    std::fs::remove_file(&keys).unwrap();
    std::fs::rename(&aside, &keys).unwrap();
    // Of several the last fails, where a link leads nowhere.
    std::os::unix::fs::symlink("nowhere", keys.join("last.pub")).unwrap();
    group.theta(&["keys", "deal", "more=sg02-p256", "last=sg02-p256"]).fails(2, &["last.pub exists already"]);
    assert!(stores(&group).iter().all(|store| store.key(&"more".parse().unwrap()).unwrap().is_none()));
    assert!(!keys.join("more.pub").exists() && keys.join("last.pub").is_symlink());
    group.theta(&["keys", "deal", "more=sg02-p256"]).ok();
}

fn stores(group: &Group) -> Vec<Store> {
    let open = |node| NodeConfig::load(&group.node_dir(node).join("node.toml")).unwrap().store.open().unwrap();
    (1..=4).map(open).collect()
}

/// Puts the key `sign` into the stores under a second name, as an import without the check would.
fn duplicate(group: &Group) {
    for store in stores(group) {
        let (name, copy) = ("sign".parse().unwrap(), "copy".parse().unwrap());
        let record = store.key(&name).unwrap().unwrap();
        let version = &record.versions()[0];
        let epoch: EpochRecord = version.serving.clone().unwrap();
        let share = store.share(&name, Version::FIRST, epoch.number).unwrap();
        store
            .write(|transaction| -> Result<(), theta_store::KeyError> {
                transaction.create_key(&copy, record.purpose)?;
                transaction.import_version(&copy, (&version.suite, version.delivery), epoch, share).map(|_| ())
            })
            .unwrap();
    }
}

#[test]
fn a_key_that_keeps_nodes_from_starting_is_removed_offline() {
    let mut group = Group::made();
    duplicate(&group);
    let node = |node: u16| format!("theta-group/node-{node}");
    let run = group.theta(&["node", "run", "--dir", &node(1)]);
    run.fails(2, &["keys copy and sign are the same key", "theta keys remove"]);

    let dirs: Vec<String> = (1..=4).map(node).collect();
    let remove_in = |group: &Group, name: &str, more: &[&str]| {
        let dirs = dirs.iter().map(String::as_str);
        let command: Vec<&str> =
            ["keys", "remove", name, "--dir"].into_iter().chain(dirs).chain(more.iter().copied()).collect();
        group.theta(&command)
    };
    let remove = |name: &str, more: &[&str]| remove_in(&group, name, more);
    remove("kopy", &["--yes"]).fails(2, &["no key kopy", "copy, files, files-bls"]);
    remove("copy", &[]).fails(2, &["would be removed from nodes 1, 2, 3 and 4", "add --yes"]);
    assert!(stores(&group).iter().all(|store| store.key(&"copy".parse().unwrap()).unwrap().is_some()));
    let removed = remove("copy", &["--yes", "--json"]).ok().json();
    assert_eq!(removed, serde_json::json!({ "key": "copy", "nodes": [1, 2, 3, 4], "without": [] }));
    remove("copy", &["--yes"]).fails(2, &["no key copy"]);
    let log = group.theta(&["audit", "show", "--dir", &node(2), "--json"]).ok().text();
    assert!(log.contains("keys.remove") && log.contains("the command theta keys remove"), "{log}");

    group.start_all();
    group.file("message", "the message");
    group.theta(&["sign", "message", "--key", "sign"]).ok();
    remove_in(&group, "sign", &["--yes"]).fails(2, &["in use", "stop the node"]);
}
