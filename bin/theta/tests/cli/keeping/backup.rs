//! Backups of nodes that run.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use crate::harness::{Group, theta_in};

const MAY_BACK_UP: &str = "
[[rule]]
name = \"client-backs-up\"
effect = \"allow\"
clients = [\"client\"]
keys = [\"*\"]
operations = [\"keys.backup\"]
";

fn key_file(path: &Path, byte: &str) {
    fs::write(path, byte.repeat(32)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_running_node_is_backed_up_under_its_operators_seal_and_comes_back_from_it() {
    let mut group = Group::made();
    let sealing = "\n[backup.sealing]\nfile = \"backup.key\"\n";
    for node in [1, 3, 4] {
        group.append(node, "node.toml", sealing);
    }
    key_file(&group.node_dir(1).join("backup.key"), "5a");
    for node in [1, 2, 4] {
        group.append(node, "policy.toml", MAY_BACK_UP);
    }
    group.start_all();
    let backup =
        |node: &str, more: &[&str]| group.theta(&[&["keys", "backup", "--node", node, "-o", "backup"], more].concat());
    // It takes leave, and something of the operator's to seal it with; who asks names nothing.
    backup("3", &[]).fails(1, &["keys.backup", "no rule"]);
    backup("2", &[]).fails(1, &["[backup.sealing]", "node.toml"]);
    backup("4", &[]).fails(1, &["what seals this node's backups cannot be read", "backup.sealing"]);
    backup("1", &["--seal", "file:mine.key"]).fails(2, &["--seal", "--node"]);
    assert!(!group.path().join("backup").exists(), "nothing is left of what was refused");
    group.file("letter", "before");
    group.theta(&["sign", "letter"]).ok();
    let made = backup("1", &["--json"]).ok();
    let (keys, bytes) = (made.json()["keys"].as_u64().unwrap(), made.json()["bytes"].as_u64().unwrap());
    assert_eq!((keys, bytes), (7, fs::metadata(group.path().join("backup")).unwrap().len()));
    let mode = fs::metadata(group.path().join("backup")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let shown = group.theta(&["audit", "show", "--node", "1", "--operation", "keys.backup", "--json"]).ok();
    assert!(shown.text().contains("client-backs-up"), "{}", shown.text());
    // The node's own seal opens it, and neither another nor that of its store does.
    let check = |key: &Path| {
        let seal = format!("file:{}", key.display());
        theta_in(group.path(), &["keys", "check-backup", "backup", "--seal", &seal])
    };
    check(&group.node_dir(1).join("backup.key")).ok();
    key_file(&group.path().join("other.key"), "5b");
    check(&group.path().join("other.key")).fails(2, &["does not open"]);
    check(&group.node_dir(1).join("store.key")).fails(2, &["does not open"]);
    // It is what restoring takes.
    group.kill(1);
    fs::rename(group.node_dir(1).join("theta.redb"), group.path().join("lost.redb")).unwrap();
    let seal = format!("file:{}", group.node_dir(1).join("backup.key").display());
    let floors = ["--refuse-days-before", "tomorrow", "--refuse-other-slots", "0"];
    let restore = ["keys", "restore", "backup", "--dir", "theta-group/node-1", "--seal", &seal];
    group.theta(&[&restore[..], &floors].concat()).ok();
    let log = group.theta(&["audit", "verify", "--dir", "theta-group/node-1"]).ok();
    assert!(log.text().contains("the log is whole"), "{}", log.text());
    group.start(1);
    group.await_up(1);
    group.theta(&["status"]).ok();
}
