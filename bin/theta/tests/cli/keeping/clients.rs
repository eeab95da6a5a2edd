//! Clients follow what the group decides: real nodes, and clients that were not there when it changed.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use crate::harness::Group;

/// A second client with the same rights, that knows what the first one knows now.
fn second(group: &Group) {
    let (from, to) = (group.path().join("theta-group/client"), group.path().join("second"));
    fs::create_dir_all(to.join("keys")).unwrap();
    for name in ["group.toml", "client.crt", "client.key", "request.key"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
    for file in fs::read_dir(from.join("keys")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join("keys").join(file.file_name())).unwrap();
    }
}

/// Waits until the ledger has this version of a key at this epoch.
#[track_caller]
fn certified(group: &Group, key: &str, version: u64, epoch: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let ledger = group.theta(&["ledger", "show", "--json"]).ok().json();
        let keys = ledger["keys"].as_array().unwrap();
        if keys.iter().any(|it| it["key"] == key && it["version"] == version && it["epoch"] == epoch) {
            return;
        }
        assert!(Instant::now() < deadline, "the ledger does not have {key}@{version} at epoch {epoch}: {ledger}");
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_client_that_was_away_takes_nobody_for_a_liar() {
    let mut group = Group::made();
    group.start_all();
    group.file("m", "a message");
    group.theta(&["sign", "m"]).ok();
    let drawn = group.theta(&["coin", "lottery", "--proof", "lottery.proof"]).ok().text().trim().to_owned();
    certified(&group, "sign", 1, 0);
    certified(&group, "coin", 1, 0);
    second(&group);
    group.theta(&["keys", "rotate", "sign"]).ok();
    group.theta(&["keys", "refresh", "coin"]).ok();
    group.theta(&["keys", "reshare", "files", "--threshold", "3", "--holders", "1,2,3,4"]).ok();

    // At once, before the ledger has it, and again when it has.
    for round in ["early", "late"] {
        let signed = group.theta(&["sign", "m", "--client", "second", "-o", round, "--json"]).ok();
        assert_eq!(signed.json()["culprits"].as_array().unwrap().len(), 0, "{signed:?}");
        assert!(!signed.stderr.contains("misbehaved"), "{signed:?}");
        group.theta(&["verify", "m", round, "--client", "second"]).ok();
        let proof = format!("{round}.proof");
        let again = group.theta(&["coin", "lottery", "--client", "second", "--proof", &proof, "--json"]).ok().json();
        assert_eq!((&again["value"], again["culprits"].as_array().unwrap().len()), (&drawn.as_str().into(), 0));
        let sealed = format!("{round}.theta");
        group.theta(&["encrypt", "m", "--client", "second", "-o", &sealed]).ok();
        let opened = group.theta(&["decrypt", &sealed, "--client", "second", "-o", "-"]).ok();
        assert!(!opened.stderr.contains("misbehaved"), "{opened:?}");
        certified(&group, "sign", 2, 0);
        certified(&group, "coin", 1, 1);
        certified(&group, "files", 1, 1);
    }

    // What was made before verifies after, by every client, and it is said by which version.
    for client in ["theta-group/client", "second"] {
        let told = group.theta(&["verify", "m", "m.sig", "--client", client]).ok().text();
        assert!(told.contains("good signature of the key sign@1, which is retired"), "{told}");
        let told = group.theta(&["verify", "m", "late", "--client", client, "--json"]).ok().json();
        assert_eq!((&told["key"], &told["version"]), (&"sign".into(), &2.into()));
        group.theta(&["verify", "m", "m.sig", "--key", "sign@2", "--client", client]).fails(1, &["sign@2"]);
        for proof in ["lottery.proof", "late.proof"] {
            let told = group.theta(&["verify-coin", "lottery", &drawn, "--proof", proof, "--client", client]);
            assert!(told.ok().text().contains("by the key coin@1"));
        }
    }
    // Without any node, since what was checked is kept.
    for node in 1..=4 {
        group.kill(node);
    }
    group.theta(&["verify", "m", "m.sig", "--client", "second"]).ok();
    group.theta(&["verify-coin", "lottery", &drawn, "--proof", "lottery.proof", "--client", "second"]).ok();
    group.theta(&["encrypt", "m", "--client", "second", "-o", "offline.theta"]).ok();
}

#[test]
fn versions_have_names() {
    let mut group = Group::made();
    group.start_all();
    group.file("m", "a message");
    let old = group.theta(&["keys", "export", "sign-ed25519"]).ok().text();
    group.theta(&["keys", "rotate", "sign-ed25519"]).ok();
    group.theta(&["keys", "rotate", "files"]).ok();
    certified(&group, "sign-ed25519", 2, 0);
    certified(&group, "files", 2, 0);

    group.theta(&["sign", "m", "--key", "sign-ed25519@2"]).ok();
    group.theta(&["sign", "m", "--key", "sign-ed25519@1", "-o", "x"]).fails(1, &["rotated out", "use sign-ed25519"]);
    group
        .theta(&["sign", "m", "--key", "sign-ed25519@3", "-o", "x"])
        .fails(2, &["there is no sign-ed25519@3", "the versions 1, 2"]);
    group.theta(&["verify", "m", "m.sig", "--key", "sign-ed25519@2"]).ok();
    assert_eq!(group.theta(&["keys", "export", "sign-ed25519@1"]).ok().text(), old);
    assert_ne!(group.theta(&["keys", "export", "sign-ed25519"]).ok().text(), old);
    let shown = group.theta(&["keys", "show", "sign-ed25519@1"]).ok().text();
    assert!(shown.contains("version     1 (retired)"), "{shown}");
    let live = group.theta(&["keys", "show", "sign-ed25519@1", "--live", "--json"]).ok().json();
    let versions: Vec<_> = live.as_array().unwrap().iter().map(|key| (&key["name"], &key["version"])).collect();
    assert_eq!(versions, [(&"sign-ed25519".into(), &1.into())]);
    group.theta(&["keys", "show", "sign-ed25519@3", "--live"]).fails(2, &["no sign-ed25519@3", "the versions 1, 2"]);
    group.theta(&["keys", "show", "none", "--live"]).fails(2, &["no key \"none\"; they have: ", "sign-ed25519"]);
    let shown = group.theta(&["keys", "show", "sign-ed25519", "--json"]).ok().json();
    assert_eq!((&shown["version"], &shown["state"]), (&2.into(), &"active".into()));

    group.theta(&["encrypt", "m", "--key", "files@2", "-o", "two.theta"]).ok();
    group.theta(&["decrypt", "two.theta", "-o", "two"]).ok();
    group
        .theta(&["encrypt", "m", "--key", "files@1", "-o", "x"])
        .fails(2, &["files@1 was rotated out", "encrypt to files"]);
    let warned = group.theta(&["keys", "disable", "files-bls"]).ok();
    assert!(warned.text().contains("disabled"));
    let warned = group.theta(&["encrypt", "m", "--key", "files-bls", "-o", "asleep.theta"]).ok();
    assert!(
        warned.stderr.contains("files-bls is disabled") && warned.stderr.contains("theta keys enable"),
        "{warned:?}"
    );
    second(&group);
    // Until its time has come it can be taken back, and nothing is encrypted to it.
    let doomed = group.theta(&["keys", "destroy", "files-bls", "--yes"]).ok().text();
    assert!(
        doomed.contains("files-bls is disabled, and destroyed at 20") && doomed.contains("takes it back"),
        "{doomed}"
    );
    let shown = group.theta(&["keys", "show", "files-bls"]).ok().text();
    assert!(shown.contains("(disabled, destroyed at 20"), "{shown}");
    // Asked again, it is as it is: the time does not begin anew, unless another one is given.
    let told = group.theta(&["keys", "destroy", "files-bls", "--yes", "--json"]).ok().json();
    let again = group.theta(&["keys", "destroy", "files-bls", "--yes", "--json"]).ok().json();
    assert_eq!((&again, again["decided"].as_bool()), (&told, Some(true)));
    assert_eq!(group.theta(&["keys", "destroy", "files-bls", "--yes"]).ok().text(), doomed);
    let later = group.theta(&["keys", "destroy", "files-bls", "--yes", "--after", "8d", "--json"]).ok().json();
    assert!(later["not_before"].as_u64() > told["not_before"].as_u64(), "{later}");
    group.theta(&["encrypt", "m", "--key", "files-bls", "-o", "x"]).fails(2, &["files-bls will be destroyed at 20"]);
    group.theta(&["keys", "enable", "files-bls"]).ok();
    group.theta(&["encrypt", "m", "--key", "files-bls", "-o", "back.theta"]).ok();
    group.theta(&["keys", "destroy", "files-bls", "--now", "--yes"]).ok();
    let again = group.theta(&["keys", "destroy", "files-bls", "--yes"]).ok().text();
    assert!(again.contains("files-bls is destroyed") && !again.contains("takes it back"), "{again}");
    let enable = ["keys", "enable", "files-bls", "--generation", "90"];
    assert_ne!(group.theta(&enable).code, 0, "nothing brings it back");
    let refused = ["encrypt", "m", "--key", "files-bls", "-o", "x", "--client", "second"];
    group.theta(&refused).fails(2, &["files-bls is destroyed", "theta keys create"]);
    assert!(!group.path().join("x").exists());
}

/// Other software reads certificate and key of a client file as it is.
fn read_by_openssl(folder: &std::path::Path) {
    let openssl = |arguments: &[&str]| {
        let run = Command::new("openssl").args(arguments).args(["-in", "ann.client"]).current_dir(folder).output();
        let run = run.unwrap();
        assert!(run.status.success() && run.stdout.starts_with(b"-----BEGIN PUBLIC KEY"), "{run:?}");
        run.stdout
    };
    assert_eq!(openssl(&["x509", "-noout", "-pubkey"]), openssl(&["pkey", "-pubout"]));
}

#[test]
fn one_file_is_all_that_a_client_needs() {
    let mut group = Group::made();
    let made =
        group.theta(&["client", "new", "--name", "ann", "--group", "theta-group/group.toml", "--json"]).ok().json();
    let file = group.path().join("ann.client");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let fingerprint = made["fingerprint"].as_str().unwrap();
    for node in 1..=4 {
        let policy = group.node_dir(node).join("policy.toml");
        let rule = "[[rule]]\nname = \"ann\"\neffect = \"allow\"\nclients = [\"ann\"]\nkeys = [\"*\"]\noperations = [\"sign\", \"keys.list\", \"keys.create\"]\n";
        let text = fs::read_to_string(&policy).unwrap();
        fs::write(&policy, [&text, "\n", made["policy"].as_str().unwrap(), "\n", rule].concat()).unwrap();
        group.theta(&["policy", "check", policy.to_str().unwrap()]).ok();
    }
    group.start_all();
    certified(&group, "sign", 1, 0);
    // Somewhere else, with nothing but the file.
    let elsewhere = tempfile::tempdir().unwrap();
    fs::copy(&file, elsewhere.path().join("ann.client")).unwrap();
    fs::write(elsewhere.path().join("m"), "a message").unwrap();
    let theta = |arguments: &[&str]| {
        crate::harness::theta_in(elsewhere.path(), &[arguments, &["--client", "ann.client"]].concat())
    };
    theta(&["sign", "m"]).ok();
    theta(&["verify", "m", "m.sig"]).ok();
    theta(&["sign", "m", "--sign-request", "-o", "signed"]).ok();
    theta(&["ledger", "verify"]).ok();
    assert!(elsewhere.path().join("ann.client.ledger").is_file());

    read_by_openssl(elsewhere.path());

    // The group is what the fingerprint says, or nothing is made.
    let new = |told: &str, group_file: &str| {
        group.theta(&["client", "new", "--name", "ben", "--group", group_file, "--fingerprint", told])
    };
    let other = format!("{}{}", if fingerprint.starts_with('0') { "1" } else { "0" }, &fingerprint[1..]);
    new(&other, "theta-group/group.toml").fails(1, &["of another group", "nothing was written"]);
    let text = String::from_utf8(group.read("theta-group/group.toml")).unwrap();
    let at = text.find("ceremony_key = \"").unwrap() + "ceremony_key = \"".len();
    let changed = [&text[..at], &"11".repeat(32), &text[at + 64..]].concat();
    group.file("group.toml", &changed);
    // Members change: what a file says of one counts as far as the ledger says so.
    let told = new(fingerprint, "group.toml").ok();
    assert!(told.stderr.contains("has node 1 otherwise than the group was founded"), "{told:?}");
    fs::remove_file(group.path().join("ben.client")).unwrap();
    group.file("group.toml", text.replacen("threshold = 2", "threshold = 3", 1));
    new(fingerprint, "group.toml").fails(1, &["do not fit", "any 2 of 4"]);
    // One from before foundings were in group files has no fingerprint of its own.
    let (from, to) = (text.find("founding = ").unwrap(), text.find("END THETA FOUNDING-----").unwrap());
    let to = to + text[to..].find('\n').unwrap();
    let to = to + text[to..].find("\"\"\"").map_or(0, |at| at + 3);
    group.file("group.toml", [&text[..from], &text[to..]].concat());
    new(fingerprint, "group.toml").fails(2, &["group.founding"]);
    fs::copy(group.path().join("theta-group/group.founding"), group.path().join("group.founding")).unwrap();
    assert!(!group.path().join("ben.client").exists());
    new(fingerprint, "theta-group/group.founding").ok();
    group.theta(&["client", "new", "--name", "ben", "--group", "group.founding"]).fails(2, &["exists already"]);

    // Whatever is exchanged in the file is seen.
    let whole = fs::read_to_string(&file).unwrap();
    let reads = |text: &str| {
        fs::write(&file, text).unwrap();
        group.theta(&["keys", "list", "--client", "ann.client"])
    };
    reads(&whole).ok();
    reads(&whole.replace(fingerprint, &other)).fails(2, &["ann.client", "fingerprint"]);
    let key = &text[at..at + 64];
    reads(&whole.replace(key, &"11".repeat(32))).ok();
    reads(&whole.replace("threshold = 2", "threshold = 3")).fails(2, &["any 2 of 4"]);
    reads(&whole.replace("format = 1", "format = 2")).fails(2, &["format 2"]);
    reads(&whole.replace("private_key = ", "private_kez = ")).fails(2, &["private_kez"]);
    reads(&whole).ok();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    reads(&whole).fails(2, &["can be read by others", "chmod 600"]);
}

#[test]
fn a_directory_becomes_a_file() {
    let mut group = Group::made();
    let convert = ["client", "convert", "theta-group/client", "-o", "gate.client"];
    group.theta(&convert).ok();
    // A client that is there is somebody's, and nothing is advised that would replace it.
    let again = group.theta(&convert).fails(2, &["gate.client exists already, and is left as it is"]);
    assert!(!again.stderr.contains("-o"), "{again:?}");
    group.start_all();
    group.file("m", "a message");
    let keys = |client: &str| group.theta(&["keys", "list", "--client", client, "--json"]).ok().json();
    let names = |list: serde_json::Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|key| key["name"].to_string()).collect()
    };
    assert_eq!(names(keys("gate.client")), names(keys("theta-group/client")));
    // An approver has the group from it.
    group.theta(&["approver", "new", "--name", "ben"]).ok();
    let approve = ["approve", "--as", "ben.key", "--operation", "sign", "--key", "sign", "--message", "m", "--yes"];
    let shown = group.theta(&[&approve[..], &["-o", "a", "--client", "gate.client"]].concat()).ok();
    assert!(shown.stderr.contains("group      theta-group"), "{shown:?}");
    // It signs ceremonies, which takes the request key, and needs no directory for what comes of them.
    group.theta(&["keys", "create", "release=frost-ed25519", "--client", "gate.client"]).ok();
    group.theta(&["sign", "m", "--key", "release", "--client", "gate.client"]).ok();
    group.theta(&["verify", "m", "m.sig", "--key", "release", "--client", "gate.client"]).ok();
}
