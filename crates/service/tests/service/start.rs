//! Errors that keep a node from starting, each with its own message.

use std::{fs, net::TcpListener, num::NonZeroU16, os::unix::fs::PermissionsExt};

use crate::group::Prepared;
use theta_service::{Node, NodeConfig, StartError, config::Sealing};

/// Asserts that node 1 of a new group does not start after `change`, and that the error contains all of `expected`.
async fn refuses(change: impl FnOnce(&Prepared, &mut NodeConfig), expected: &[&str]) {
    let mut prepared = Prepared::new(2, 4);
    prepared.listeners.clear();
    let mut config = prepared.config(1);
    change(&prepared, &mut config);
    let message = match Node::start(config).await {
        Ok(_) => panic!("it started; expected {expected:?}"),
        Err(error) => error.to_string(),
    };
    assert!(!message.contains('\n'), "{message}");
    for part in expected {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

#[tokio::test]
async fn another_nodes_certificate() {
    let swap = |prepared: &Prepared, config: &mut NodeConfig| {
        config.certificate = prepared.folder.path().join("node-2/node.crt");
        config.private_key = prepared.folder.path().join("node-2/node.key");
    };
    refuses(swap, &["node-2/node.crt", "that of node 2", "group.toml", "set `id = 2` in node.toml"]).await;
}

#[tokio::test]
async fn a_certificate_of_nobody() {
    let swap = |prepared: &Prepared, config: &mut NodeConfig| {
        config.certificate = prepared.folder.path().join("client/client.crt");
        config.private_key = prepared.folder.path().join("client/client.key");
    };
    refuses(swap, &["client.crt", "not in the group", "made together"]).await;
}

#[tokio::test]
async fn a_number_that_the_group_does_not_have() {
    refuses(|_, config| config.id = NonZeroU16::new(9).unwrap(), &["nodes 1 to 4, not 9", "`id`"]).await;
}

#[tokio::test]
async fn ports_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let text = address.to_string();
    refuses(|_, config| config.listen.api = address, &[&text, "in use", "`listen.api` in node.toml"]).await;
    refuses(|_, config| config.listen.metrics = Some(address), &[&text, "in use", "`listen.metrics`"]).await;
    refuses(|_, config| config.listen.peer = address, &[&text, "in use", "peer"]).await;
}

#[tokio::test]
async fn secrets_that_others_can_read() {
    for (file, remedy) in [("node.key", "chmod 600"), ("store.key", "mode 644"), ("theta.redb", "mode 644")] {
        let expose = |prepared: &Prepared, _: &mut NodeConfig| {
            let path = prepared.folder.path().join("node-1").join(file);
            fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
        };
        refuses(expose, &[file, remedy]).await;
    }
}

#[tokio::test]
async fn missing_and_foreign_files() {
    refuses(|_, config| config.group = "/nowhere/group.toml".into(), &["cannot read", "/nowhere/group.toml"]).await;
    refuses(|_, config| config.certificate = "/nowhere/x.crt".into(), &["cannot read", "/nowhere/x.crt"]).await;
    refuses(|_, config| config.store.path = "/nowhere/theta.redb".into(), &["/nowhere/theta.redb"]).await;
    let absent =
        |_: &Prepared, config: &mut NodeConfig| config.store.sealing = Sealing::File("/nowhere/store.key".into());
    refuses(absent, &["/nowhere/store.key", "store.sealing"]).await;
    let other_key = |prepared: &Prepared, config: &mut NodeConfig| {
        config.store.sealing = Sealing::File(prepared.folder.path().join("node-3/store.key"));
    };
    refuses(other_key, &["node-1/theta.redb"]).await;
    let other_store = |prepared: &Prepared, config: &mut NodeConfig| {
        config.store.path = prepared.folder.path().join("node-3/theta.redb");
        config.store.sealing = Sealing::File(prepared.folder.path().join("node-3/store.key"));
    };
    refuses(other_store, &["node 1"]).await;
}

#[tokio::test]
async fn a_policy_that_is_wrong() {
    let broken = |prepared: &Prepared, _: &mut NodeConfig| {
        prepared.write_policy(&format!("{}\n[[rule]]\nname = \"all\"\n", prepared.open_policy()));
    };
    refuses(broken, &["policy.toml:", "missing field"]).await;
}

#[tokio::test]
async fn failing_to_start_leaves_nothing_behind() {
    let mut prepared = Prepared::new(2, 4);
    prepared.listeners.clear();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = prepared.config(1);
    let good = config.listen.metrics.replace(taken.local_addr().unwrap());
    assert!(matches!(Node::start(config.clone()).await, Err(StartError::AddressInUse { setting: "metrics", .. })));
    config.listen.metrics = good;
    Node::start(config).await.unwrap().shutdown().await;
}
