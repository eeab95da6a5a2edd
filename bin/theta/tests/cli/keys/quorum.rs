//! Keys in quorum mode, as people make and use them.

use crate::harness::{Group, theta_with_stdin};

fn works(group: &Group, tag: &str) {
    let name = group.file(&format!("{tag}.txt"), format!("contents of {tag}"));
    group.theta(&["sign", &name, "--key", "names"]).ok();
    group.theta(&["verify", &name, &format!("{name}.sig"), "--key", "names"]).ok();
    let sealed = theta_with_stdin(group.path(), &["encrypt", "-", "--key", "vault"], tag.as_bytes()).ok().stdout;
    assert_eq!(
        theta_with_stdin(group.path(), &["decrypt", "-", "--key", "vault"], &sealed).ok().stdout,
        tag.as_bytes()
    );
}

/// Draws a coin at each node in turn; each of them says whose shares prove it.
fn draws(group: &Group, name: &str) {
    let coin = group.theta(&["coin", name, "--key", "dice", "--proof", "coin.proof", "--json"]).ok().json();
    let value = coin["value"].as_str().unwrap();
    group.theta(&["verify-coin", name, value, "--proof", "coin.proof", "--key", "dice"]).ok();
    assert_eq!(coin["contributors"].as_array().unwrap().len(), 2, "{coin}");
}

fn delivery_of(group: &Group, name: &str) -> String {
    let shown = group.theta(&["keys", "show", name, "--json"]).ok().json();
    shown["delivery"].as_str().unwrap_or("unknown").to_owned()
}

#[test]
fn a_key_in_quorum_mode_is_made_shown_renewed_and_used_without_one_node() {
    let mut group = Group::made_with(&["--nodes", "5", "--threshold", "2"]);
    group.theta(&["keys", "deal", "vault=sg02-ristretto255", "--delivery", "quorum"]).ok();
    let refused = group.theta(&["keys", "deal", "dice=frost-p256", "--delivery", "quorum"]);
    refused.fails(2, &["frost-p256 have no quorum mode", "dice", "or take an sg02, bz03, bls04, sh00 or cks05 suite"]);
    group.start_all();
    let create = |key: &str, delivery: &str| group.theta(&["keys", "create", key, "--delivery", delivery]);
    create("release=frost-ed25519", "quorum").fails(2, &["frost-ed25519 have no quorum mode"]);
    create("names=bls04-bls12381-min-pk", "some").fails(2, &["--delivery", "all or quorum"]);
    create("names=bls04-bls12381-min-pk", "quorum").ok();
    create("dice=cks05-ristretto255", "quorum").ok();
    group.theta(&["keys", "create", "plain=bls04-bls12381-min-sig"]).ok();
    works(&group, "made");
    draws(&group, "made");
    group.theta(&["keys", "refresh", "names"]).ok();
    group.theta(&["keys", "refresh", "dice"]).ok();
    group.theta(&["keys", "rotate", "names"]).ok();
    draws(&group, "refreshed");

    assert_eq!([delivery_of(&group, "names@2"), delivery_of(&group, "names@1")], ["quorum", "quorum"]);
    assert_eq!(delivery_of(&group, "plain"), "all");
    let shown = group.theta(&["keys", "show", "names"]).ok().text();
    assert!(shown.contains("delivery    quorum: the request draws 3 nodes that make shares"), "{shown}");
    let listed = group.theta(&["keys", "list", "--json"]).ok().json();
    let found = listed.as_array().unwrap().iter().find(|key| key["name"] == "names").unwrap();
    assert_eq!(found["delivery"], "quorum");
    let live = group.theta(&["keys", "list", "--live", "--json"]).ok().json();
    let of = |name: &str| {
        let of = live.as_array().unwrap().iter().filter(|key| key["name"] == name);
        of.map(|key| key["delivery"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((of("names"), of("plain")), (vec!["quorum".to_owned(); 2], vec!["all".to_owned()]));
    assert_eq!(of("vault"), ["quorum"], "of a dealt key the nodes tell");
    let entries = group.theta(&["ledger", "show", "--entries"]).ok().text();
    assert!(
        entries.contains("begin to make key names (bls04-bls12381-min-pk, any 2 of 5, in quorum mode)"),
        "{entries}"
    );

    group.kill(4);
    for number in 0..6 {
        works(&group, &format!("without-4-{number}"));
        draws(&group, &format!("without-4-{number}"));
    }
}
