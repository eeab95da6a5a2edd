//! What keeps a node from starting, each with a message of its own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test that fails panics"
)]

mod group;

use std::{fs, net::TcpListener, num::NonZeroU16, os::unix::fs::PermissionsExt};

use group::{Prepared, SIGNER};
use theta_service::{Node, NodeConfig, StartError};

/// Node 1 of a fresh group, changed, must refuse with a line that holds all of `expected`.
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
    for file in ["node.key".to_owned(), format!("keys/{SIGNER}.share")] {
        let expose = |prepared: &Prepared, _: &mut NodeConfig| {
            let path = prepared.folder.path().join("node-1").join(&file);
            fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
        };
        refuses(expose, &[&file, "chmod 600"]).await;
    }
}

#[tokio::test]
async fn missing_and_foreign_files() {
    refuses(|_, config| config.group = "/nowhere/group.toml".into(), &["cannot read", "/nowhere/group.toml"]).await;
    refuses(|_, config| config.certificate = "/nowhere/x.crt".into(), &["cannot read", "/nowhere/x.crt"]).await;
    refuses(|_, config| config.keys = "/nowhere/shares".into(), &["/nowhere/shares", "named `keys`"]).await;
    let foreign = |prepared: &Prepared, config: &mut NodeConfig| {
        config.keys = prepared.folder.path().join("node-3/keys");
    };
    refuses(foreign, &["node 3", "node 1"]).await;
    let half = |prepared: &Prepared, _: &mut NodeConfig| {
        fs::remove_file(prepared.folder.path().join(format!("node-1/keys/{SIGNER}.pub"))).unwrap();
    };
    refuses(half, &["missing", SIGNER]).await;
}

#[tokio::test]
async fn keys_of_another_threshold() {
    let raise = |prepared: &Prepared, config: &mut NodeConfig| {
        let text = fs::read_to_string(&config.group).unwrap().replace("threshold = 2", "threshold = 3");
        config.group = prepared.folder.path().join("node-1/other.toml");
        fs::write(&config.group, text).unwrap();
    };
    refuses(raise, &["2 of 4", "3 of 4", "other.toml"]).await;
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
