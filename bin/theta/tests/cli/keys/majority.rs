//! ECDSA keys by --security and --majority among processes: as few as two holders, of which each may cheat, or all of which follow the protocol.

use crate::harness::Group;
use crate::keys::verifiers::all_take;

fn made(nodes: u16, threshold: u16) -> Group {
    let mut group =
        Group::made_with(&["--nodes", &nodes.to_string(), "--threshold", &threshold.to_string(), "--no-keys"]);
    group.start_all();
    group
}

#[test]
fn two_of_two_sign_and_go_through_a_keys_life() {
    let mut group = made(2, 2);
    group.theta(&["keys", "create", "vault=ecdsa-p256", "--majority", "dishonest"]).ok();
    let live = group.theta(&["keys", "show", "vault", "--live", "--json"]).ok().json();
    assert_eq!(live[0]["delivery"], "dishonest-majority", "{live}");
    all_take(&group, "vault", "ecdsa-p256", "on demand");
    group.kill(2);
    group.start(2);
    group.await_up(2);
    all_take(&group, "vault", "ecdsa-p256", "after a restart");
    group.theta(&["keys", "refresh", "vault"]).ok();
    all_take(&group, "vault", "ecdsa-p256", "with new shares");
    group.theta(&["keys", "rotate", "vault"]).ok();
    let rotated = group.theta(&["keys", "show", "vault@2", "--json"]).ok().json();
    assert_eq!((&rotated["version"], &rotated["delivery"]), (&2.into(), &"dishonest-majority".into()));
    let shown = group.theta(&["keys", "show", "vault@2"]).ok().text();
    assert!(shown.contains("protocol    MASCOT among 2 of the holders"), "{shown}");
    all_take(&group, "vault", "ecdsa-p256", "rotated");
    let status = group.theta(&["status", "--json"]).ok().json();
    assert!(status["quarantined"].is_null() && status["culprits"].as_array().is_none_or(Vec::is_empty), "{status}");
}

/// One that is down has cheated nobody: the others sign without it, and with it when it is back.
#[test]
fn two_of_three_sign_without_the_third() {
    let mut group = made(3, 2);
    group.theta(&["keys", "create", "vault=ecdsa-secp256k1", "--majority", "dishonest"]).ok();
    for turn in 0..3 {
        all_take(&group, "vault", "ecdsa-secp256k1", &format!("all are there, {turn}"));
    }
    group.kill(3);
    for turn in 0..3 {
        all_take(&group, "vault", "ecdsa-secp256k1", &format!("two are there, {turn}"));
    }
    group.start(3);
    group.await_up(3);
    all_take(&group, "vault", "ecdsa-secp256k1", "all are there again");
    let status = group.theta(&["status", "--json"]).ok().json();
    assert!(status["quarantined"].is_null(), "{status}");
}

#[test]
fn three_of_five_and_four_of_seven_sign() {
    for (n, k) in [(5, 3), (7, 4)] {
        let group = made(n, k);
        for majority in ["dishonest", "honest"] {
            group.theta(&["keys", "create", &format!("{majority}=ecdsa-p256"), "--majority", majority]).ok();
            all_take(&group, majority, "ecdsa-p256", &format!("{k} of {n}, {majority} majority"));
        }
    }
}

#[test]
fn refusals_say_what_would_do() {
    let group = made(3, 3);
    let create = |words: &[&str]| group.theta(&[&["keys", "create"][..], words].concat());
    let honest = create(&["vault=ecdsa-p256", "--majority", "honest"]);
    honest.fails(2, &["ecdsa-p256 cannot be 3 of 3", "--majority dishonest"]);
    let alone = create(&["vault=ecdsa-p256", "--majority", "dishonest", "--threshold", "1"]);
    alone.fails(2, &["cannot be 1 of 3", "with 3 holders take k from 2 to 3"]);
    create(&["sign=frost-ed25519", "--majority", "dishonest"])
        .fails(2, &["need no choice of a majority", "ecdsa-p256"]);
    create(&["vault=ecdsa-p256", "--majority", "dishonest", "--delivery", "quorum"]).fails(2, &["cannot be used with"]);
    create(&["vault=ecdsa-p256", "--delivery", "dishonest-majority"]).fails(2, &["all or quorum"]);
    let passive = ["vault=ecdsa-p256", "--security", "passive"];
    create(&[&passive[..], &["--majority", "honest"]].concat()).fails(2, &["ecdsa-p256 cannot be 3 of 3"]);
    create(&[&passive[..], &["--threshold", "1"]].concat()).fails(2, &["ecdsa-p256 cannot be 1 of 3"]);
    create(&[&passive[..], &["--delivery", "quorum"]].concat()).fails(2, &["cannot be used with"]);
    create(&["sign=frost-ed25519", "--security", "passive"]).fails(2, &["have no passive security", "ecdsa-p256"]);
    create(&["vault=ecdsa-p256", "--security", "some"]).fails(2, &["active", "passive"]);
    create(&["vault=ecdsa-p256", "--majority", "dishonest"]).ok();
    // The nodes say so.
    let reshare = ["keys", "reshare", "vault", "--threshold", "1", "--holders", "1,2"];
    group.theta(&reshare).fails(1, &["ecdsa-p256 cannot be 1 of 2"]);
    // An honest majority would be needed of a key that asks for one: this one needs none.
    group.theta(&["keys", "reshare", "vault", "--threshold", "2", "--holders", "1,2"]).ok();
    all_take(&group, "vault", "ecdsa-p256", "moved to two of two");
}

/// Without a word of a majority it is the one that k and n imply; without one of security it is active.
#[test]
fn the_protocol_follows_from_two_words() {
    let shown = |group: &Group, key: &str| {
        let shown = group.theta(&["keys", "show", key, "--json"]).ok().json();
        let word = |name: &str| shown[name].as_str().unwrap_or_default().to_owned();
        [word("delivery"), word("security"), word("majority"), word("protocol")]
    };
    let begins = |shown: [String; 4], words: [&str; 4]| {
        assert!(shown.iter().zip(words).all(|(shown, word)| shown.starts_with(word)), "{shown:?}, {words:?}");
    };
    let group = made(3, 2);
    group.theta(&["keys", "create", "a=ecdsa-p256", "--security", "active", "--majority", "honest"]).ok();
    begins(shown(&group, "a"), ["all", "active", "honest", "malicious Shamir among 3 of the holders"]);
    let create = ["keys", "create", "b=ecdsa-p256", "--threshold", "2", "--holders", "1,3"];
    let made = group.theta(&create).ok();
    assert!(made.stderr.contains("key b: k and n leave no honest majority"), "{made:?}");
    begins(shown(&group, "b"), ["dishonest-majority", "active", "dishonest", "MASCOT among 2 of the holders"]);

    let made = group.theta(&["keys", "create", "c=ecdsa-p256", "--security", "passive"]).ok();
    assert!(made.stderr.contains("key c has passive security") && made.stderr.contains("may learn"), "{made:?}");
    begins(shown(&group, "c"), ["passive", "passive", "honest", "Shamir among 3 of the holders"]);
    let text = group.theta(&["keys", "show", "c"]).ok().text();
    assert!(text.contains("all of which must follow the protocol (security passive, majority honest)"), "{text}");
    let create = ["keys", "create", "d=ecdsa-secp256k1", "--security", "passive", "--majority", "dishonest"];
    group.theta(&create).ok();
    begins(
        shown(&group, "d"),
        ["passive-dishonest-majority", "passive", "dishonest", "Semi-OT among 2 of the holders"],
    );
    group.theta(&["keys", "create", "e=frost-ed25519"]).ok();
    begins(shown(&group, "e"), ["all", "", "", ""]);
    assert_eq!(shown(&group, "e")[3], "");
}

#[test]
fn keys_with_passive_security_sign_through_their_life() {
    for (n, suite, delivery) in [(3, "ecdsa-p256", "passive"), (2, "ecdsa-secp256k1", "passive-dishonest-majority")] {
        let mut group = made(n, 2);
        group.theta(&["keys", "create", &format!("vault={suite}"), "--security", "passive"]).ok();
        let live = group.theta(&["keys", "show", "vault", "--live", "--json"]).ok().json();
        assert_eq!(live[0]["delivery"], delivery, "{live}");
        for turn in 0..3 {
            all_take(&group, "vault", suite, &format!("{delivery}, {turn}"));
        }
        group.kill(2);
        group.start(2);
        group.await_up(2);
        all_take(&group, "vault", suite, "after a restart");
        group.theta(&["keys", "refresh", "vault"]).ok();
        all_take(&group, "vault", suite, "with new shares");
        let rotated = group.theta(&["keys", "rotate", "vault"]).ok();
        assert!(rotated.stderr.contains("key vault has passive security"), "{rotated:?}");
        let rotated = group.theta(&["keys", "show", "vault@2", "--json"]).ok().json();
        assert_eq!(rotated["delivery"], delivery, "{rotated}");
        all_take(&group, "vault", suite, "rotated");
        let status = group.theta(&["status", "--json"]).ok().json();
        assert!(status["quarantined"].is_null() && status["culprits"].as_array().is_none_or(Vec::is_empty), "{status}");
    }
}

/// A dealer's key has the same words, and says the same.
#[test]
fn dealt_keys_have_the_same_words() {
    let group = Group::made_with(&["--nodes", "3", "--threshold", "2", "--no-keys"]);
    let dealt = group.theta(&["keys", "deal", "vault=ecdsa-p256", "--security", "passive", "--json"]).ok();
    assert_eq!(dealt.json()[0]["delivery"], "passive");
    assert!(dealt.stderr.contains("key vault has passive security"), "{dealt:?}");

    // One secret is not both.
    group.file("secret", format!("{}\n", "17".repeat(32)));
    let import = |name: &str, words: &[&str]| {
        let all = ["keys", "import", "--name", name, "--format", "raw", "secret"];
        group.theta(&[&all[..], words].concat())
    };
    import("old", &["--suite", "frost-p256"]).ok();
    let weaker = import("new", &["--suite", "ecdsa-p256", "--security", "passive"]);
    weaker.fails(2, &["that of the key old", "only one of the two would have passive security"]);
    import("new", &["--suite", "ecdsa-p256"]).ok();
}

/// As keys that nodes make, those of a new group have the majority that k and n imply.
#[test]
fn keys_of_a_new_group_have_the_implied_majority() {
    let mut group = Group::made_with(&["--nodes", "2", "--threshold", "2", "--keys", "vault=ecdsa-p256"]);
    group.start_all();
    let shown = group.theta(&["keys", "show", "vault", "--live", "--json"]).ok().json();
    assert_eq!(shown[0]["delivery"], "dishonest-majority", "{shown}");
    all_take(&group, "vault", "ecdsa-p256", "dealt");
    let again = ["group", "init", "--dir", "second", "--nodes", "2", "--threshold", "2", "--keys", "safe=ecdsa-p256"];
    let made = group.theta(&again).ok();
    assert!(made.stderr.contains("key safe: k and n leave no honest majority"), "{made:?}");
    let made = group.theta(&["group", "init", "--dir", "third", "--nodes", "3", "--keys", "safe=ecdsa-p256"]).ok();
    assert!(!made.stderr.contains("majority"), "{made:?}");
}

/// A rotation or a new set of holders says nothing of the key's security: approvers are told what whoever made it was.
#[test]
fn approvers_are_told_of_passive_security() {
    let group = made(3, 2);
    group.theta(&["keys", "create", "vault=ecdsa-p256", "--security", "passive"]).ok();
    group.theta(&["keys", "create", "safe=ecdsa-p256"]).ok();
    group.theta(&["approver", "new", "--name", "ann"]).ok();
    let told = |operation: &str, key: &str, more: &[&str]| {
        let approve = ["approve", "--as", "ann.key", "--operation", operation, "--key", key, "--yes"];
        group.theta(&[&approve[..], more].concat()).ok().stderr
    };
    let warning = "key vault has passive security";
    assert!(told("keys.rotate", "vault", &[]).contains(warning));
    let holders = ["--threshold", "2", "--holders", "1,2,3"];
    assert!(told("keys.reshare", "vault", &holders).contains(warning));
    assert!(!told("keys.refresh", "vault", &[]).contains(warning), "the same holders have them");
    assert!(!told("keys.rotate", "safe", &[]).contains("key safe has passive security"));
    let elsewhere = told("keys.rotate", "vault", &["--group", "theta-group", "--client", "nowhere"]);
    assert!(elsewhere.contains("does not know the key vault"), "{elsewhere}");
}

/// Nodes that do not hold a key say that they do not know it, and may say so first. The others are waited for, however few.
#[test]
fn a_key_that_half_of_the_nodes_hold_signs_whoever_answers_first() {
    let group = made(4, 2);
    group.theta(&["keys", "create", "few=frost-ed25519", "--threshold", "2", "--holders", "3,4"]).ok();
    group.file("message", "text");
    for _ in 0..20 {
        group.theta(&["sign", "message", "--key", "few", "-o", "message.sig"]).ok();
    }
    group.theta(&["sign", "message", "--key", "none", "-o", "none.sig"]).fails(2, &["none"]);
}
