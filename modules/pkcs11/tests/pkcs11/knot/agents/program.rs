//! The agent as operators run it: the program `theta-dnssec agent`, a process of its own, with the options of its command line.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command},
};

use theta_knot::{
    places::Places,
    server::{Knot, Setup, tied},
};

use super::{export_keys, in_force, let_ask, set};
use crate::{
    generation::ready,
    group::{command, log, module, succeeds, until},
    harness::{EXE, Group},
    knot::{PATIENCE, RECORDS, ZONE, start_with, transfers},
};

/// A running agent. It ends when this is dropped, and with this process.
pub(in crate::knot) struct Program(Child);

impl Program {
    /// Starts it with these options beside those that all have, and has the operator's node ask it.
    pub(in crate::knot) fn start(group: &Group, node: u16, options: &str) -> Self {
        let built = Path::new(EXE).with_file_name("theta-dnssec");
        assert!(built.is_file(), "{} is missing: cargo build --workspace --bins makes it", built.display());
        let (folder, keys) = (group.node_dir(node), group.path().join("zone.keys"));
        let socket = folder.join("zone.sock");
        let mut agent = Command::new(built);
        agent.current_dir(&folder).args(["agent", "--origin", ZONE]).args(options.split_whitespace());
        agent.arg("--keys").arg(keys).arg("--socket").arg(&socket);
        let mut child = tied(&agent, &folder.join("agent.log")).unwrap();
        until("the agent serves", PATIENCE, || {
            assert_eq!(child.try_wait().unwrap(), None, "{}", said(group, node));
            socket.exists()
        });
        let_ask(group, node, &socket);
        Self(child)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Closes its standard input first. Nothing can be done about one that has ended by itself.
        let _ = self.0.wait();
    }
}

/// What an operator's agent has written to its log so far.
fn said(group: &Group, node: u16) -> String {
    fs::read_to_string(group.node_dir(node).join("agent.log")).unwrap_or_default()
}

/// What a node has refused.
fn refused(group: &Group, node: &str) -> String {
    group.theta(&["audit", "show", "--node", node, "--refused", "--last", "1000"]).ok().text()
}

/// How Knot signs, and what the operators say of it. With other iterations, or another lifetime of signatures, no digest would be recognised.
const POLICY: &str =
    "ecdsap256sha256\n    rrsig-lifetime: 7d\n    nsec3: on\n    nsec3-salt-length: 0\n    nsec3-iterations: 5";
const AGREED: &str = "--nsec3 5 --lifetime 7 --most-days 8 --previous-seconds 0";

/// The operator's own name server, which tells at this port that the zone has changed.
fn primary(folder: &Path, port: u16) -> Knot {
    let remote = format!("remote:\n  - id: agent\n    address: 127.0.0.1@{port}\n    key: transfer.\nzone:\n");
    let config = transfers::config().replace("zone:\n", &remote).replace("acl: out\n", "acl: out\n    notify: agent\n");
    let setup = Setup { folder, zone: ZONE, records: RECORDS, config: &config };
    Knot::start(&Places::of_this_machine(), setup).unwrap()
}

/// Three operators run the program. Operator 2 has its copy from a name server of its own, which is asked once an hour, and tells when the zone changes; the
/// others have files, which stay as they are. Any two sign, and node 1 lets everything pass: so a change is signed when operator 2's program has heard of it.
#[test]
fn a_zone_is_signed_by_the_program_with_its_options() {
    let names = [1, 2].map(|number| format!("zone-ecdsa-p256-{number}"));
    let keys = names.each_ref().map(|name| format!("{name}=ecdsa-p256")).join(",");
    let mut group = Group::made_with(&["--keys", &keys]);
    // Whoever refuses signs with no presignature, and then makes no more either: there are to be enough of nodes 1 and 2 alone.
    for node in group.numbers() {
        let file = group.node_dir(node).join("node.toml");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("nonces_per_peer = 32\n"), "{text}");
        fs::write(&file, text.replace("nonces_per_peer = 32\n", "nonces_per_peer = 256\n")).unwrap();
    }
    group.start_all();
    ready(&group, "look_ahead = \"ahead.sock\"\n");
    export_keys(&group, &names);
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let notify = listener.local_addr().unwrap();
    drop(listener);
    let primary = primary(folder.path(), notify.port());
    let secret = group.node_dir(2).join("transfer.key");
    fs::write(&secret, format!("hmac-sha256 transfer. {}\n", transfers::SECRET)).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    [3, 4].iter().for_each(|node| fs::write(group.node_dir(*node).join("example.zone"), RECORDS).unwrap());
    let transferred =
        format!("--primary 127.0.0.1:{} --tsig transfer.key --refresh 3600 --notify {notify}", primary.port());
    let ahead = group.path().join("ahead.sock");
    let agents = [
        Program::start(&group, 2, &format!("{AGREED} {transferred}")),
        Program::start(&group, 3, &format!("{AGREED} --zone-file example.zone --look-ahead {}", ahead.display())),
        Program::start(&group, 4, &format!("{AGREED} --zone-file example.zone")),
    ];
    in_force(&group, 2..=4, &names[0], "sign-digest");
    until("the zone is transferred", PATIENCE, || said(&group, 2).contains("the zone is transferred"));
    let knot = start_with(&group, POLICY, RECORDS);
    knot.await_signed(PATIENCE).unwrap();
    knot.verify().unwrap();
    let answer = knot.ask("www.example.").unwrap();
    assert!(answer.contains("192.0.2.1") && answer.contains("A 13 2 "), "{answer}");
    assert!(fs::read_to_string(knot.zone_file()).unwrap().contains("NSEC3PARAM\t1 0 5 -"));
    assert!(!log(&group).contains("agent zone refuses"), "{}", log(&group));
    let mut check = command(&group, EXE);
    check.args(["pkcs11", "check", "--module"]).arg(module());
    let checked = succeeds(check);
    assert!(checked.contains(&format!("look-ahead: somebody answers at {}", ahead.display())), "{checked}");

    let record = ["mail", "1", "A", "192.0.2.7"];
    let objection = "agent zone refuses it: no record set of the zone has this digest with times of now";
    let before = fs::read_to_string(knot.zone_file()).unwrap();
    assert!(!set(&knot, &record), "{}", knot.said());
    for node in ["2", "3", "4"] {
        assert!(refused(&group, node).contains(objection), "{}", refused(&group, node));
    }
    assert_eq!(fs::read_to_string(knot.zone_file()).unwrap(), before, "the old zone is served");
    assert!(set(&primary, &record), "{}", primary.said());
    until("the change is signed", PATIENCE, || set(&knot, &record));
    let answer = knot.ask("mail.example.").unwrap();
    assert!(answer.contains("192.0.2.7") && answer.contains("A 13 2 "), "{answer}");
    knot.verify().unwrap();
    drop(agents);
}
