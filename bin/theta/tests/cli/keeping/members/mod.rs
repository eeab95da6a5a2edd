//! Members of a running group who come, move, go and are replaced, as their people do it. No file is edited at another node.

mod operators;
mod rejoin;

use std::{
    fs,
    time::{Duration, Instant},
};

use crate::harness::Group;
use crate::run::Run;

fn fingerprint(group: &Group) -> String {
    let shown = group.theta(&["group", "show", "theta-group/group.founding", "--json"]).ok().json();
    shown["fingerprint"].as_str().unwrap().to_owned()
}

fn dir(node: u16) -> String {
    format!("theta-group/node-{node}")
}

fn card(node: u16) -> String {
    format!("{}/node.card", dir(node))
}

/// Repeats a command until it succeeds: nodes that have just started, or heard of a change, take a moment.
#[track_caller]
fn until_ok(group: &Group, arguments: &[&str]) -> Run {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        let run = group.theta(arguments);
        if run.code == 0 {
            return run;
        }
        assert!(Instant::now() < deadline, "{run:?}");
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// Starts a new machine, and waits until it has what the group has decided.
fn starts(group: &mut Group, node: u16) {
    group.start(node);
    group.await_up(node);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !group.ready(node).starts_with("HTTP/1.1 200") {
        assert!(Instant::now() < deadline, "{}: {}", group.ready(node), group.log(node));
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Makes the group's ledger known to a new machine, and the machine a member.
fn join(group: &Group, node: u16, options: &[&str]) -> Run {
    let (print, dir) = (fingerprint(group), dir(node));
    let file = format!("for-{node}.ledger");
    group.theta(&["ledger", "export", "-o", &file]).ok();
    let join = ["node", "join", "--dir", &dir, &file, "--fingerprint", &print, "--json"];
    group.theta(&[&join[..], options].concat())
}

/// Where a node is reached by others, and by clients, as its group file has it.
fn address(group: &Group, node: u16, what: &str) -> String {
    let text = fs::read_to_string(group.node_dir(1).join("group.toml")).unwrap();
    let (_, of_node) = text.split_once(&format!("id = {node}\n")).unwrap();
    let (_, address) = of_node.split_once(&format!("{what} = \"")).unwrap();
    address.split('"').next().unwrap().to_owned()
}

fn peer_address(group: &Group, node: u16) -> String {
    address(group, node, "peer_address")
}

fn clients_address(group: &Group, node: u16) -> String {
    address(group, node, "api_address")
}

/// A key that these nodes hold, all of which it takes, and a signature with it.
fn signs(group: &Group, key: &str, holders: &str) {
    let k = holders.split(',').count().to_string();
    let suite = format!("{key}=frost-ed25519");
    until_ok(group, &["keys", "create", &suite, "--holders", holders, "--threshold", &k]);
    group.file("m", "a message");
    let out = format!("{key}.sig");
    until_ok(group, &["sign", "m", "--key", key, "-o", &out]);
    group.theta(&["verify", "m", &out, "--key", key]).ok();
}

/// Gives every node an approver, and the rule that the generated policy has as an example.
fn let_members_change(group: &Group, nodes: &[u16]) {
    let approver = group.theta(&["approver", "new", "--name", "ann"]).ok().text();
    for node in nodes {
        let file = group.node_dir(*node).join("policy.toml");
        let policy = fs::read_to_string(&file).unwrap();
        let (head, rest) = policy.split_once("# [[rule]]\n# name = \"members-take-an-approval\"").unwrap();
        let (rule, tail) = rest.split_once("\n\n").unwrap_or((rest, ""));
        let rule = rule.replace("\n# ", "\n");
        let text = format!("{head}[[rule]]\nname = \"members-take-an-approval\"{rule}\n\n{tail}\n{approver}");
        fs::write(&file, text).unwrap();
        group.theta(&["policy", "check", file.to_str().unwrap()]).ok();
    }
}

/// A change with an approval for it, of which the words are the same but for the command's own.
fn approved(group: &Group, command: &[&str], about: &[&str]) -> Run {
    let approve = ["approve", "--as", "ann.key", "--operation", "group.change", "--yes", "-o", "a.approval"];
    group.theta(&[&approve[..], about].concat()).ok();
    until_ok(group, &[command, &["--approval", "a.approval", "--json"]].concat())
}

#[test]
fn a_member_comes_and_goes() {
    let mut group = Group::made_with(&["--no-keys"]);
    group.start_all();
    let (peer, clients) = group.ports(5);
    let (peer, clients) = (format!("127.0.0.1:{peer}"), format!("127.0.0.1:{clients}"));
    let init = ["node", "init", "--dir", &dir(5), "--name", "Echo", "--peer", &peer, "--clients", &clients];
    group.theta(&init).ok();
    let (at, print) = (peer_address(&group, 1), fingerprint(&group));
    let early = ["node", "join", "--dir", &dir(5), "--from", &at, "--fingerprint", &print];
    group.theta(&early).fails(3, &["was not read", "theta group add"]);
    // By the generated policy one client's word is not enough.
    let add = ["group", "add", &card(5)];
    group.theta(&add).fails(1, &["theta approve --as ann.key --operation group.change --card CARD", "group.change"]);
    let_members_change(&group, &[1, 2, 3, 4]);
    let added = approved(&group, &add, &["--card", &card(5)]).json();
    assert_eq!((&added["node"], &added["name"], &added["quorum"]), (&5.into(), &"Echo".into(), &4.into()));
    group.theta(&add).fails(1, &["was a member's before", "theta node init"]);
    group.grow();
    // Any node gives it all that it takes, and is believed in nothing.
    let at = peer_address(&group, 2);
    let print = fingerprint(&group);
    let from = |address: &str, print: &str| {
        group.theta(&["node", "join", "--dir", &dir(5), "--from", address, "--fingerprint", print, "--json"])
    };
    let first = if print.starts_with('0') { "1" } else { "0" };
    from(&at, &format!("{first}{}", &print[1..])).fails(1, &["not the one with the fingerprint given"]);
    from(&clients_address(&group, 2), &print).fails(3, &["was not read", "the address for nodes"]);
    assert_eq!(from(&at, &print).ok().json()["node"], 5);
    fs::copy(group.node_dir(1).join("policy.toml"), group.node_dir(5).join("policy.toml")).unwrap();
    starts(&mut group, 5);
    // The client's file is the one of before: it has the fifth from the ledger, and so do all nodes.
    signs(&group, "together", "1,2,5");
    let status = group.theta(&["status", "--json"]).ok().json();
    assert_eq!((&status["up"], &status["nodes"][4]["address"]), (&5.into(), &clients.as_str().into()));
    let told = group.theta(&["ledger", "show", "--entries"]).ok().text();
    assert!(told.contains("\"Echo\" is a member"), "{told}");
    assert!(told.contains("approved by ed25519:") && told.contains("consent"), "{told}");

    // Who holds a share does not go.
    group.theta(&["group", "remove", "5"]).fails(1, &["node 5 holds a share of together", "reshare first"]);
    until_ok(&group, &["keys", "reshare", "together", "--threshold", "2", "--holders", "1,2,3"]);
    let removed = approved(&group, &["group", "remove", "5"], &["--node", "5"]).json();
    assert_eq!(removed["members"], serde_json::json!([1, 2, 3, 4]));
    assert_eq!(group.theta(&["status", "--json"]).ok().json()["nodes"].as_array().unwrap().len(), 4);
    // What was signed with it verifies.
    group.theta(&["verify", "m", "together.sig", "--key", "together"]).ok();
}

/// Two of the three that it takes have agreed: what they said counts for days, unless it is taken back.
#[test]
fn a_change_to_which_too_few_agreed_is_taken_back() {
    let mut group = Group::made_with(&["--no-keys"]);
    let_members_change(&group, &[1, 2]);
    group.start_all();
    let (peer, clients) = group.ports(5);
    let (peer, clients) = (format!("127.0.0.1:{peer}"), format!("127.0.0.1:{clients}"));
    let init = ["node", "init", "--dir", &dir(5), "--name", "Echo", "--peer", &peer, "--clients", &clients];
    group.theta(&init).ok();
    let (card, add) = (card(5), ["group", "add", &card(5)]);
    let approve = ["approve", "--as", "ann.key", "--operation", "group.change", "--yes", "--card", &card];
    group.theta(&[&approve[..], &["-o", "add.approval"]].concat()).ok();
    let asked = [&add[..], &["--approval", "add.approval", "--patience", "4s"]].concat();
    let waits = group.theta(&asked);
    assert!(waits.code != 0, "{waits:?}");
    // The others' policies allow it as well from now on.
    for node in [3, 4] {
        fs::copy(group.node_dir(1).join("policy.toml"), group.node_dir(node).join("policy.toml")).unwrap();
    }
    group.theta(&["group", "cancel", &card]).fails(1, &["--take-back", "theta group cancel"]);
    group.theta(&[&approve[..], &["--take-back", "-o", "back.approval"]].concat()).ok();
    let back = ["group", "cancel", &card, "--approval", "back.approval", "--json"];
    let taken = until_ok(&group, &back).json();
    assert!(taken["cancelled"] == true && taken["nodes"].as_array().unwrap().len() >= 3, "{taken}");
    group.theta(&asked).fails(1, &["taken back"]);
    let told = group.theta(&["ledger", "show", "--entries"]).ok().text();
    assert!(!told.contains("Echo"), "{told}");
    // With a new card it is another change, to which nobody has said anything.
    group.theta(&["node", "card", "--dir", &dir(5)]).ok();
    let added = approved(&group, &add, &["--card", &card]).json();
    assert_eq!((&added["node"], &added["name"]), (&5.into(), &"Echo".into()));
    group.theta(&["group", "cancel", &card]).fails(1, &["too late", "was decided"]);
}

#[test]
fn a_machine_that_lost_everything_comes_back_and_another_moves() {
    let mut group = Group::made_with(&["--no-keys"]);
    group.start_all();
    signs(&group, "before", "1,2,3");
    group.kill(2);
    // Of the machine nothing is left but the card, which is public.
    fs::copy(group.node_dir(2).join("node.card"), group.path().join("two.card")).unwrap();
    fs::remove_dir_all(group.node_dir(2)).unwrap();
    let made = group.theta(&["node", "init", "--dir", &dir(2), "--replaces", "two.card", "--json"]).ok().json();
    let key = "theta-group/operators/node-2.operator";
    join(&group, 2, &[]).fails(1, &["has not taken this node in", "theta group replace"]);
    let replace = ["group", "replace", "2", &card(2), "--operator", key, "--first-use", "--json"];
    group.theta(&replace).fails(2, &["add --yes"]);
    let replaced = group.theta(&[&replace[..], &["--yes"]].concat()).ok();
    assert!(replaced.stderr.contains(made["key"].as_str().unwrap()), "{replaced:?}");
    assert_eq!((&replaced.json()["node"], &replaced.json()["change"]), (&2.into(), &"replace".into()));
    assert_eq!(join(&group, 2, &[]).ok().json()["node"], 2);
    fs::copy(group.node_dir(1).join("policy.toml"), group.node_dir(2).join("policy.toml")).unwrap();
    starts(&mut group, 2);
    signs(&group, "after", "1,2");

    // Node 3 moves. A client that was not there, with the old addresses in its file, finds it.
    group.theta(&["client", "convert", "theta-group/client", "-o", "late.client"]).ok();
    group.kill(3);
    let (peer, clients) = group.ports(7);
    let (peer, clients) = (format!("127.0.0.1:{peer}"), format!("127.0.0.1:{clients}"));
    group.theta(&["node", "card", "--dir", &dir(3), "--peer", &peer, "--clients", &clients]).ok();
    group.start(3);
    let renewed = until_ok(&group, &["group", "readdress", &card(3), "--json"]).json();
    assert_eq!((&renewed["node"], &renewed["change"]), (&3.into(), &"renew".into()));
    let views = group.theta(&["ledger", "show", "--entries", "--json"]).ok().json();
    let proofs: Vec<&str> = views.as_array().unwrap().iter().filter_map(|view| view["proof"].as_str()).collect();
    assert_eq!(proofs, ["operator", "card"], "{views}");
    signs(&group, "moved", "1,3");
    group.kill(4);
    let status = || group.theta(&["status", "--json", "--client", "late.client"]).json();
    let deadline = Instant::now() + Duration::from_secs(60);
    while status()["up"] != 3 {
        assert!(Instant::now() < deadline, "{}", status());
    }
    assert_eq!(status()["nodes"][2]["address"], clients.as_str());
    group.theta(&["sign", "m", "--key", "moved", "--client", "late.client", "-o", "late.sig"]).ok();
    knows_members_by_the_ledger(&group, &clients);
}

/// A client that is made of an exported ledger has the addresses of its last entry. Node 4 is down, and the third is elsewhere than it was.
fn knows_members_by_the_ledger(group: &Group, third: &str) {
    group.theta(&["ledger", "export", "-o", "g.ledger"]).ok();
    let print = fingerprint(group);
    let new = |name: &str, print: &str| {
        group.theta(&["client", "new", "--name", name, "--group", "g.ledger", "--fingerprint", print, "--json"])
    };
    let first = if print.starts_with('0') { "1" } else { "0" };
    new("eve", &format!("{first}{}", &print[1..])).fails(1, &["g.ledger is of ledger"]);
    let made = new("eve", &print).ok().json();
    let file = String::from_utf8(group.read("eve.client")).unwrap();
    assert!(file.contains(third) && file.contains("BEGIN THETA FOUNDING"), "{file}");
    // It takes no other history than this one.
    assert!(file.contains("[checkpoint]") && made["checkpoint"].as_u64().is_some_and(|height| height > 1), "{made}");
    let (policy, fingerprint) = (made["policy"].as_str().unwrap(), made["fingerprint"].as_str().unwrap());
    assert_eq!(fingerprint.replace(' ', ""), print.replace(' ', ""));
    let rule = "[[rule]]\nname = \"eve-looks\"\neffect = \"allow\"\nclients = [\"eve\"]\nkeys = [\"*\"]\noperations = [\"status\", \"keys.list\"]\n";
    for node in 1..=3 {
        let file = group.node_dir(node).join("policy.toml");
        let policy = format!("{}\n{policy}\n{rule}", fs::read_to_string(&file).unwrap());
        fs::write(&file, policy).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let status = group.theta(&["status", "--json", "--client", "eve.client"]).json();
        if status["up"] == 3 {
            assert_eq!(status["nodes"][2]["address"], third);
            return;
        }
        assert!(Instant::now() < deadline, "{status}");
    }
}

#[test]
fn of_two_of_three_a_dead_machine_is_replaced() {
    let mut group = Group::made_with(&["--nodes", "3", "--threshold", "2", "--no-keys"]);
    group.start_all();
    signs(&group, "early", "1,2");
    group.kill(3);
    fs::rename(group.node_dir(3), group.path().join("dead")).unwrap();
    // Its rules are still there.
    group.theta(&["node", "init", "--dir", &dir(3), "--replaces", "dead"]).ok();
    let rules = |dir: std::path::PathBuf| fs::read(dir.join("policy.toml")).unwrap();
    assert_eq!(rules(group.node_dir(3)), rules(group.path().join("dead")));
    let key = |node: u16| format!("theta-group/operators/node-{node}.operator");
    group.theta(&["group", "warrant", "new", &format!("3={}", card(3)), "-o", "w"]).ok();
    group.theta(&["group", "bring", "w"]).fails(1, &["0 operators have signed, and it takes 3"]);
    for node in [1, 2] {
        group.theta(&["group", "warrant", "sign", "w", "--as", &key(node), "--first-use", "--yes"]).ok();
    }
    group.theta(&["group", "warrant", "sign", "w", "--as", &key(3), "--first-use", "--yes"]).ok();
    join(&group, 3, &["--warrant", "w"]).ok();
    // The others take it, and wait for the machine.
    group.theta(&["group", "bring", "w", "--patience", "1s"]).fails(3, &["waits for node 3"]);
    group.start(3);
    group.await_up(3);
    let brought = until_ok(&group, &["group", "bring", "w", "--json"]).json();
    assert_eq!((&brought["node"], &brought["change"]), (&3.into(), &"replace".into()));
    let told = group.theta(&["ledger", "show", "--entries"]).ok().text();
    assert!(told.contains("by a warrant of 3 operators"), "{told}");
    // Brought again, it is done.
    assert_eq!(group.theta(&["group", "bring", "w", "--json"]).ok().json()["height"], brought["height"]);
    let next = group.theta(&["group", "bring", "w"]).ok().text();
    assert!(next.contains("theta keys recover --all --node 3"), "{next}");
    signs(&group, "later", "1,3");
}
