//! Groups of organisations that do not trust each other: `theta node init`, `theta group assemble`, `theta node join`; and the ends
//! of certificates.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use crate::harness::{Group, let_in, theta_in};

/// Four names whose order is that of the nodes' directories.
const NAMES: [&str; 4] = ["Alpha Trust", "beta bank, Oslo", "Gamma (backup)", "Zulu & Sons"];

fn dir(node: u16) -> String {
    format!("theta-group/node-{node}")
}

fn card(node: u16) -> String {
    format!("{}/node.card", dir(node))
}

/// Four organisations with a node each, and nothing in common yet.
fn strangers() -> Group {
    let group = Group::unmade();
    for (node, name) in (1..).zip(NAMES) {
        let (peer, clients) = group.ports(node);
        // One has a name of its own, looked up when somebody connects.
        let host = if node == 2 { "localhost" } else { "127.0.0.1" };
        let (peer, clients) = (format!("{host}:{peer}"), format!("{host}:{clients}"));
        let init = ["node", "init", "--dir", &dir(node), "--name", name, "--peer", &peer, "--clients", &clients];
        group.theta(&init).ok();
    }
    group
}

fn assemble(group: &Group, out: &str, nodes: [u16; 4]) -> serde_json::Value {
    let cards = nodes.map(card);
    let mut arguments = vec!["group", "assemble", "--name", "payments", "--threshold", "2", "--out", out, "--json"];
    arguments.extend(cards.iter().map(String::as_str));
    group.theta(&arguments).ok().json()
}

fn join(group: &Group, node: u16, file: &str, fingerprint: &str) -> crate::run::Run {
    group.theta(&["node", "join", "--dir", &dir(node), file, "--fingerprint", fingerprint])
}

/// A client of its own, let in by the policy of every node.
fn let_ann_in(group: &Group) {
    let new =
        ["client", "new", "--name", "ann", "-o", "theta-group/client", "--group", "theta-group/node-1/group.toml"];
    let lines = group.theta(&[&new[..], &["--json"]].concat()).ok().json()["policy"].as_str().unwrap().to_owned();
    for node in 1..=4 {
        let file = group.node_dir(node).join("policy.toml");
        let_in(&file, &lines);
        group.theta(&["policy", "check", file.to_str().unwrap()]).ok();
    }
}

#[test]
fn organisations_found_a_group_make_a_key_and_sign() {
    let mut group = strangers();
    group.theta(&["node", "run", "--dir", &dir(1)]).fails(2, &["in no group yet", "node.card", "theta node join"]);
    let made = assemble(&group, "one.founding", [1, 2, 3, 4]);
    let other = assemble(&group, "two.founding", [3, 1, 4, 2]);
    assert_eq!(made["fingerprint"], other["fingerprint"]);
    assert_eq!(group.read("one.founding"), group.read("two.founding"));
    let named: Vec<_> = made["members"].as_array().unwrap().iter().map(|member| member["name"].clone()).collect();
    assert_eq!(named, NAMES);
    let fingerprint = made["fingerprint"].as_str().unwrap();
    let shown = group.theta(&["group", "show", "one.founding"]).ok().text();
    assert!(shown.contains(fingerprint) && NAMES.iter().all(|name| shown.contains(name)), "{shown}");

    // As it is said on the telephone.
    let said = fingerprint.to_lowercase().replace('-', " ");
    for node in 1..=4 {
        let joined = join(&group, node, "two.founding", &said).ok().text();
        assert!(joined.contains(&format!("this is node {node} of the group payments")), "{joined}");
    }
    for name in ["group.toml", "group.founding"] {
        let files = (1..=4).map(|node| fs::read(group.node_dir(node).join(name)).unwrap());
        assert_eq!(files.collect::<BTreeSet<_>>().len(), 1, "{name} is the same at all");
    }
    let_ann_in(&group);
    group.start_all();
    let status = group.theta(&["status", "--json"]).ok().json();
    assert_eq!((&status["group"], &status["up"]), (&"payments".into(), &4.into()));
    group.theta(&["keys", "create", "release=frost-ed25519"]).ok();
    group.file("letter", "nobody dealt the key of this signature");
    group.theta(&["sign", "letter", "--key", "release"]).ok();
    group.theta(&["verify", "letter", "letter.sig", "--key", "release"]).ok();
    join(&group, 1, "one.founding", fingerprint).fails(2, &["in a group already"]);
}

#[test]
fn a_start_says_in_what_the_group_file_was_edited() {
    let mut group = Group::made();
    let file = group.node_dir(1).join("group.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("name = \"node 2\""), "{text}");
    fs::write(&file, text.replace("name = \"node 2\"", "name = \"node two\"")).unwrap();
    group.start_all();
    let said = "node 2 has another name than when it was founded";
    assert!(group.log(1).contains(said), "{}", group.log(1));
    assert!(!group.log(2).contains("founded"), "{}", group.log(2));
    // A founding that was damaged is none.
    group.kill(1);
    fs::write(&file, text.replacen("-----BEGIN THETA FOUNDING-----\n", "-----BEGIN THETA FOUNDING-----\nAAAA", 1))
        .unwrap();
    group
        .theta(&["node", "run", "--dir", "theta-group/node-1"])
        .fails(2, &["the founding in the group file cannot be read"]);
}

/// What is at a node that joined nothing.
fn untouched(group: &Group, node: u16) -> bool {
    let dir = group.node_dir(node);
    let text = fs::read_to_string(dir.join("node.toml")).unwrap();
    !dir.join("group.toml").exists() && !dir.join("group.founding").exists() && !text.contains("\nid = ")
}

#[test]
fn a_founding_with_another_fingerprint_is_not_installed() {
    let group = strangers();
    // The operator's key is beside the node's directory, for its operator alone, and not in it.
    let operator = group.path().join("theta-group/node-1.operator");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&operator).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let key = fs::read_to_string(&operator).unwrap();
    assert!(key.starts_with("# An operator's key"), "{key}");
    let made = assemble(&group, "good.founding", [1, 2, 3, 4]);
    let agreed = made["fingerprint"].as_str().unwrap();
    // Whoever carries the cards puts a node of its own in the place of the third.
    let (peer, clients) = group.ports(3);
    let (peer, clients) = (format!("127.0.0.1:{peer}"), format!("127.0.0.1:{clients}"));
    let mallory =
        ["node", "init", "--dir", "mallory", "--name", NAMES[2], "--peer", &peer, "--clients", &clients, "--json"];
    assert_eq!(group.theta(&mallory).ok().json()["card"], "mallory/node.card");
    let cards = [card(1), card(2), "mallory/node.card".to_owned(), card(4)];
    let name = ["group", "assemble", "--name", "payments", "--threshold", "2", "--out", "bad.founding", "--json"];
    let bad = group.theta(&[&name[..], &cards.each_ref().map(String::as_str)].concat()).ok().json();
    assert_ne!(bad["fingerprint"], made["fingerprint"]);
    join(&group, 1, "bad.founding", agreed).fails(1, &["not what the members agreed on", "nothing was changed"]);
    // Even with its fingerprint: whose card was exchanged is not in it.
    let its_own = bad["fingerprint"].as_str().unwrap();
    join(&group, 3, "bad.founding", its_own).fails(1, &["this node's card is not in bad.founding"]);
    join(&group, 1, "good.founding", &agreed[5..]).fails(2, &["13 groups of 4"]);
    join(&group, 1, "good.founding", &agreed.replacen(|digit: char| digit != '-', "U", 1)).fails(2, &["'U'"]);
    assert!((1..=4).all(|node| untouched(&group, node)));

    // A card that was written anew is another one.
    group.theta(&["node", "card", "--dir", &dir(2)]).ok();
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    group.theta(&["node", "card", "--dir", &dir(2)]).ok();
    join(&group, 2, "good.founding", agreed).fails(1, &["another card of this node"]);
    // And so is one whose keys are elsewhere.
    fs::copy(group.node_dir(4).join("node.key"), group.node_dir(1).join("node.key")).unwrap();
    fs::copy(group.node_dir(4).join("node.crt"), group.node_dir(1).join("node.crt")).unwrap();
    join(&group, 1, "good.founding", agreed).fails(1, &["node.key is not the key of this node's card"]);
    assert!((1..=4).all(|node| untouched(&group, node)));
}

#[test]
fn damaged_and_foreign_cards_are_refused() {
    let group = strangers();
    let assemble = |cards: &[&str]| {
        group.theta(&[&["group", "assemble", "--name", "g", "--threshold", "2", "--out", "g.founding"], cards].concat())
    };
    let good = [card(1), card(2), card(3)];
    let [one, two, three] = &good;
    let text = fs::read_to_string(group.path().join(one)).unwrap();
    // A byte in the middle of the base64, which is somewhere among keys and addresses.
    let at = text.len() / 2;
    let other = if text.as_bytes()[at] == b'A' { "B" } else { "A" };
    group.file("changed.card", format!("{}{other}{}", &text[..at], &text[at + 1..]));
    assemble(&["changed.card", two, three]).fails(2, &["changed.card"]);
    group.file("cut.card", &text[..text.len() - 30]);
    assemble(&["cut.card", two, three]).fails(2, &["cut.card", "its last line is missing"]);
    // The third card's words over the first one's signature: nobody has signed that.
    let decode = |text: &str| {
        let digits: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
        let mut child = Command::new("base64")
            .arg("-d")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), digits.as_bytes()).unwrap();
        child.wait_with_output().unwrap().stdout
    };
    let (first, third) = (decode(&text), decode(&fs::read_to_string(group.path().join(three)).unwrap()));
    let forged = [&third[..third.len() - 64], &first[first.len() - 64..]].concat();
    group.file("forged", forged);
    let base64 = Command::new("base64").args(["-w", "64", "forged"]).current_dir(group.path()).output().unwrap();
    let digits = String::from_utf8(base64.stdout).unwrap();
    group.file("forged.card", format!("-----BEGIN THETA CARD-----\n{digits}-----END THETA CARD-----\n"));
    assemble(&[one, two, "forged.card"]).fails(2, &["forged.card", "was changed after it was made"]);
    assemble(&[one, two, one]).fails(2, &["Alpha Trust", "gives one card"]);
    assemble(&[one, two, "theta-group/node-3/node.toml"]).fails(2, &["no card in it"]);
    assemble(&[one]).fails(2, &["threshold of 2", "1 members"]);
    // All in one mail.
    let mail: String = [one, two, three]
        .iter()
        .flat_map(|name| fs::read_to_string(group.path().join(name)).unwrap().lines().map(quoted).collect::<Vec<_>>())
        .collect();
    group.file("mail", format!("Dear all,\r\n{mail}\r\nYours"));
    assert!(!group.path().join("g.founding").exists());
    let text = assemble(&["mail"]).ok().text();
    assert!(text.contains("any 2 of 3, one machine that is away stops all change"), "{text}");
    assemble(&["mail"]).fails(2, &["g.founding exists already", "--out"]);
}

fn quoted(line: &str) -> String {
    format!("> {line}\r\n")
}

#[test]
fn impossible_nodes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let init = |name: &str, peer: &str, clients: &str| {
        theta_in(dir.path(), &["node", "init", "--dir", "n", "--name", name, "--peer", peer, "--clients", clients])
    };
    init("a\u{e4}", "a.example:1", "a.example:2").fails(2, &["printable ASCII"]);
    init("a", "a.example", "a.example:2").fails(2, &["it has no port", "host:port"]);
    init("a", "a.example:1", "0.0.0.0:2").fails(2, &["unspecified"]);
    init("a", "a.example:1", "A.example:1").fails(2, &["one address for nodes and for clients"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
    init("a", "a.example:1", "a.example:2").ok();
    init("a", "a.example:1", "a.example:2").fails(2, &["exists already"]);
    let text = fs::read_to_string(dir.path().join("n/node.toml")).unwrap();
    assert!(text.contains("peer = \"0.0.0.0:1\"") && text.contains("metrics = \"127.0.0.1:3\""), "{text}");
}

#[test]
fn one_machine_founds_as_many_do() {
    let group = Group::made();
    let founding = fs::read_to_string(group.node_dir(2).join("group.founding")).unwrap();
    group.file("copy", &founding);
    let shown = group.theta(&["group", "show", "copy", "--json"]).ok().json();
    assert_eq!((&shown["members"][2]["name"], &shown["threshold"]), (&"node 3".into(), &2.into()));
    let toml = fs::read_to_string(group.node_dir(3).join("group.toml")).unwrap();
    assert!(toml.contains("name = \"node 3\"") && shown["members"][2]["node"] == 3, "{toml}");
    let dir = tempfile::tempdir().unwrap();
    let twelve = ["group", "init", "--nodes", "12", "--threshold", "5", "--no-keys", "--base-port", "20000"];
    theta_in(dir.path(), &twelve).ok();
    let toml = fs::read_to_string(dir.path().join("theta-group/group.toml")).unwrap();
    let (_, tenth) = toml.split_once("id = 10\n").unwrap();
    assert!(tenth.starts_with("name = \"node 10\"\npeer_address = \"127.0.0.1:20100\""), "{tenth}");
}

/// Runs openssl in a directory.
#[track_caller]
fn openssl(dir: &Path, arguments: &str) -> String {
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The days until the certificate in a directory ends, by openssl's account: whether it has more than these.
fn lasts(dir: &Path, days: u64) -> bool {
    let seconds = (days * 86_400).to_string();
    let check = ["x509", "-in", "node.crt", "-noout", "-checkend", &seconds];
    Command::new("openssl").args(check).current_dir(dir).output().unwrap().status.success()
}

fn metric(group: &Group, node: u16) -> i64 {
    let told = group.told(node, "/metrics");
    let line = told.lines().find(|line| line.starts_with("theta_certificate_end_seconds ")).expect("the metric");
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn certificates_are_renewed_by_themselves_and_nobody_else_has_to_know() {
    let mut group = Group::made();
    let dirs = [1, 2, 3].map(|node| group.node_dir(node));
    for dir in &dirs {
        assert!(lasts(dir, 364) && !lasts(dir, 366), "a year");
    }
    // What others pin is what every tool computes.
    let pinned = openssl(&dirs[0], "x509 -in node.crt -noout -pubkey");
    fs::write(dirs[0].join("public.pem"), pinned).unwrap();
    openssl(&dirs[0], "pkey -pubin -in public.pem -outform DER -out public.der");
    let digest = openssl(&dirs[0], "dgst -sha256 -r public.der");
    let group_file = fs::read_to_string(dirs[0].join("group.toml")).unwrap();
    assert!(group_file.contains(digest.split(' ').next().unwrap()), "{digest}");

    // Node 1 was away until its certificate had ten days left. Node 2 has one of a company's authority.
    openssl(&dirs[0], "req -x509 -key node.key -days 10 -subj /CN=old -out node.crt");
    openssl(&dirs[1], "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -days 300 -subj /CN=authority -out ca.crt");
    openssl(&dirs[1], "req -new -key node.key -subj /CN=two -out node.csr");
    fs::write(dirs[1].join("ext"), "subjectAltName = DNS:node-2\n").unwrap();
    openssl(
        &dirs[1],
        "x509 -req -in node.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile ext -days 10 -out node.crt",
    );
    let theirs = fs::read(dirs[1].join("node.crt")).unwrap();
    group.start_all();
    assert!(lasts(&dirs[0], 364) && group.log(1).contains("the certificate was renewed"), "{}", group.log(1));
    let names = openssl(&dirs[0], "x509 -in node.crt -noout -ext subjectAltName");
    assert!(names.contains("DNS:node-1") && names.contains("IP Address:127.0.0.1"), "{names}");
    assert_eq!(fs::read(dirs[1].join("node.crt")).unwrap(), theirs, "not ours to renew");
    assert!(group.log(2).contains("days: whoever issued it has to renew it"), "{}", group.log(2));
    assert!(metric(&group, 1) > metric(&group, 2) + 300 * 86_400);

    let status = group.theta(&["status"]).ok().text();
    // Ten days in the second that it was made in, and less after it.
    let soon = ["ends in 9 days", "ends in 10 days"].iter().any(|end| status.contains(end));
    assert!(status.contains("node 2: the certificate ") && soon, "{status}");
    assert!(!status.contains("node 1: the certificate"), "{status}");
    group.file("letter", "pins are of keys");
    group.theta(&["encrypt", "letter"]).ok();
    for pair in ["1,2", "1,3"] {
        let away: Vec<u16> = (1..=4).filter(|node| !pair.contains(&node.to_string())).collect();
        away.iter().for_each(|node| group.kill(*node));
        group.theta(&["decrypt", "letter.theta", "-o", "-"]).ok();
        away.iter().for_each(|node| group.start(*node));
        away.iter().for_each(|node| group.await_up(*node));
    }
}
