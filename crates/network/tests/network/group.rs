//! The group file: what is accepted, and how mistakes are reported.

use std::{fs, path::Path};

use proptest::prelude::*;
use theta_names::NodeId;
use theta_network::{
    Fingerprint,
    group::{CeremonyKey, GroupClient, GroupFile, GroupFileError, GroupNode, GroupProblem},
};

/// Three nodes and a client. Each value is written so that a test can replace it; the tests depend on the line numbers.
const GOOD: &str = r#"name = "demo"
threshold = 2

[[node]]
id = 1
peer_address = "127.0.0.1:7001"
api_address = "127.0.0.1:7101"
certificate = "0000000000000000000000000000000000000000000000000000000000000001"

[[node]]
id = 3
peer_address = "node-3.example:7001"
api_address = "[::1]:7103"
certificate = "0000000000000000000000000000000000000000000000000000000000000003"

[[node]]
id = 2
peer_address = "127.0.0.1:7002"
api_address = "127.0.0.1:7102"
certificate = "0000000000000000000000000000000000000000000000000000000000000002"

[[client]]
name = "alice"
certificate = "00000000000000000000000000000000000000000000000000000000000000aa"
"#;

fn parse(text: &str) -> Result<GroupFile, GroupFileError> {
    GroupFile::parse(text, Path::new("group.toml"))
}

fn print(last: u8) -> Fingerprint {
    let mut digest = [0; 32];
    digest[31] = last;
    digest.into()
}

#[test]
fn a_good_file_is_read_and_written_back() {
    let group = parse(GOOD).unwrap();
    assert_eq!((group.name(), group.threshold()), ("demo", 2));
    let ids: Vec<u16> = group.nodes().iter().map(|node| node.id.get()).collect();
    assert_eq!(ids, [1, 2, 3], "sorted, whatever the file's order");
    let third = NodeId::try_from(3).unwrap();
    assert_eq!(group.node(third).unwrap().api_address, "[::1]:7103");
    assert_eq!(group.node(NodeId::try_from(4).unwrap()), None);
    assert_eq!(group.node_by_certificate(&print(3)).unwrap().id, third);
    assert_eq!(group.mesh_peers(third).len(), 2);
    let client = &group.clients()[0];
    assert_eq!((client.name.as_str(), client.certificate), ("alice", print(0xaa)));
    assert_eq!(parse(&group.to_text()).unwrap(), group);

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("group.toml");
    fs::write(&path, group.to_text()).unwrap();
    assert_eq!(GroupFile::load(&path).unwrap(), group);
}

#[test]
fn mistakes_are_named_with_their_line_and_the_remedy() {
    let zeros = "0".repeat(63);
    let cases: &[(&str, &str, &str)] = &[
        (
            "threshold = 2",
            "threshold = 0",
            "group.toml:2: threshold = 0 is not possible with 3 nodes; it is between 1 and 3",
        ),
        ("threshold = 2", "threshold = 4", "group.toml:2: threshold = 4 is not possible"),
        ("threshold = 2", "threshold = -1", "group.toml:2: threshold = -1 is not possible"),
        ("threshold = 2", "threshold = \"2\"", "group.toml:2: invalid type: string"),
        (
            "threshold = 2",
            "treshold = 2",
            "group.toml:2: unknown field `treshold`, expected one of `name`, `threshold`",
        ),
        ("threshold = 2", "threshold = 2 2", "group.toml:2: "),
        ("threshold = 2\n", "", "missing field `threshold`"),
        ("id = 3", "id = 2", "group.toml:17: two nodes have id = 2; number the nodes 1 to n, each once"),
        ("id = 3", "id = 4", "group.toml:11: id = 4 is not between 1 and 3; number the 3 nodes 1 to 3, each once"),
        ("id = 3", "id = 0", "group.toml:11: id = 0 is not between 1 and 3"),
        ("id = 3", "id = 70000", "group.toml:11: id = 70000 is not between 1 and 3"),
        ("127.0.0.1:7002", "127.0.0.1:7001", "group.toml:18: the address 127.0.0.1:7001 appears twice"),
        ("127.0.0.1:7102", "127.0.0.1:7002", "group.toml:19: the address 127.0.0.1:7002 appears twice"),
        ("127.0.0.1:7102", "NODE-3.example:7001", "group.toml:19: the address NODE-3.example:7001 appears twice"),
        (
            "127.0.0.1:7002",
            "127.0.0.1",
            "group.toml:18: \"127.0.0.1\" is not an address: it has no port; write it as host:port",
        ),
        ("127.0.0.1:7002", "127.0.0.1:0", "its port is not between 1 and 65535"),
        ("127.0.0.1:7002", "127.0.0.1:70000", "its port is not between 1 and 65535"),
        ("127.0.0.1:7002", "127.0.0.1:+1", "its port is not between 1 and 65535"),
        ("127.0.0.1:7002", "0.0.0.0:7002", "others cannot connect to the unspecified address"),
        ("[::1]:7103", "[::]:7103", "others cannot connect to the unspecified address"),
        ("[::1]:7103", "::1:7103", "an IPv6 address needs brackets"),
        ("[::1]:7103", "[::1:7103", "its bracket does not close"),
        ("[::1]:7103", "[x]:7103", "no IPv6 address is in its brackets"),
        ("127.0.0.1:7002", ":7002", "it has no host"),
        ("127.0.0.1:7002", "a b:7002", "its host is no name or IP address"),
        ("000002\"", "000001\"", &format!("group.toml:20: the certificate {zeros}1 appears twice")),
        ("0000aa\"", "000001\"", &format!("group.toml:24: the certificate {zeros}1 appears twice")),
        ("000002\"", "00000\"", "group.toml:20: certificate = \"000"),
        (
            "000002\"",
            "00000g\"",
            "is not a fingerprint; it is the SHA-256 of the certificate's public key, written as 64 hexadecimal digits",
        ),
        ("\"demo\"", "\"\"", "group.toml:1: the name \"\" is not allowed; use 1 to 64 characters"),
        ("\"demo\"", "\"a\\nb\"", "group.toml:1: the name \"a\\nb\" is not allowed"),
        ("\"alice\"", "\"-alice\"", "group.toml:23: the name \"-alice\" is not allowed"),
    ];
    for (right, wrong, expected) in cases {
        let text = GOOD.replacen(right, wrong, 1);
        assert_ne!(text, GOOD);
        let message = parse(&text).unwrap_err().to_string();
        assert!(message.contains(expected), "{message:?} lacks {expected:?}");
        assert_eq!(message.lines().count(), 1, "{message:?}");
    }
}

#[test]
fn a_group_needs_nodes_and_clients_need_names_of_their_own() {
    let message = parse("name = \"demo\"\nthreshold = 1\n").unwrap_err().to_string();
    assert_eq!(message, "group.toml: the group has no nodes; add a [[node]] table for each");
    let twice = format!("{GOOD}\n[[client]]\nname = \"alice\"\ncertificate = \"{}\"\n", print(0xbb));
    let message = parse(&twice).unwrap_err().to_string();
    assert_eq!(message, "group.toml:27: two clients are named \"alice\"; give each a name of its own");
    let absent = GroupFile::load(Path::new("/nonexistent/group.toml")).unwrap_err().to_string();
    assert!(absent.starts_with("cannot read the group file /nonexistent/group.toml: "), "{absent}");
}

#[test]
fn a_founding_stays_with_the_group() {
    let plain = parse(GOOD).unwrap();
    assert_eq!(plain.founding(), None);
    let founded = plain.clone().with_founding("-----BEGIN\nA\\\"'''\"\"\"\n-----END\n".to_owned());
    assert_ne!(founded, plain);
    let read = parse(&founded.to_text()).unwrap();
    assert_eq!((read.founding(), &read), (founded.founding(), &founded));
}

#[test]
fn a_group_made_in_memory_is_checked_alike() {
    let node = |number: u8| GroupNode {
        id: NodeId::try_from(u16::from(number)).unwrap(),
        name: Some(format!("Node {number}").parse().unwrap()),
        peer_address: format!("127.0.0.1:{}", 7000 + u16::from(number)),
        api_address: format!("127.0.0.1:{}", 7100 + u16::from(number)),
        certificate: print(number),
        ceremony_key: None,
    };
    let clients = vec![GroupClient { name: "alice".to_owned(), certificate: print(0xaa) }];
    let group = GroupFile::new("demo", 2, vec![node(2), node(1)], clients.clone()).unwrap();
    let text = group.to_text();
    assert_eq!(parse(&text).unwrap(), group);
    let twice = parse(&text.replace("Node 2", "NODE 1")).unwrap_err().to_string();
    assert_eq!(twice, "group.toml:13: two nodes are named \"NODE 1\"; give each a name of its own");
    assert!(parse(&text.replace("Node 2", "No\u{202e}de")).unwrap_err().to_string().contains("printable ASCII"));
    let error = GroupFile::new("demo", 3, vec![node(1), node(2)], clients).unwrap_err();
    let GroupFileError::Invalid { line: None, problem, .. } = error else { panic!("{error}") };
    assert_eq!(*problem, GroupProblem::Threshold { k: 3, n: 2 });
}

#[test]
fn ceremony_keys_are_read_written_and_nobodys_twice() {
    let digits = "0a".repeat(32);
    let with = |digits: &str| {
        GOOD.replacen("\n\n[[node]]\nid = 3", &format!("\nceremony_key = \"{digits}\"\n\n[[node]]\nid = 3"), 1)
    };
    let group = parse(&with(&digits)).unwrap();
    assert_eq!(group.nodes()[0].ceremony_key, Some(CeremonyKey::from([10; 32])));
    assert_eq!(group.nodes()[1].ceremony_key, None);
    assert_eq!(parse(&group.to_text()).unwrap(), group);
    for bad in ["", "0a", &"0a".repeat(31), &"0a".repeat(33), &"zz".repeat(32)] {
        let message = parse(&with(bad)).unwrap_err().to_string();
        assert!(message.starts_with("group.toml:9: ceremony_key = ") && message.contains("64"), "{message}");
    }
    let again = format!("\nceremony_key = \"{digits}\"\n\n[[client]]");
    let twice = with(&digits).replacen("\n\n[[client]]", &again, 1);
    let message = parse(&twice).unwrap_err().to_string();
    assert!(message.contains("appears twice; every node"), "{message}");
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_damage_to_a_good_file_panics_or_takes_two_lines(
        at in 0..GOOD.len(), length in 0..40_usize, insert in "[ -~\\n\u{e9}]{0,8}",
    ) {
        let end = (at + length).min(GOOD.len());
        let text = format!("{}{insert}{}", &GOOD[..at], &GOOD[end..]);
        match parse(&text) {
            Ok(group) => prop_assert_eq!(parse(&group.to_text()).unwrap(), group),
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }
}

/// Who has left leaves a gap, and a file that nodes have written says as of when it is.
#[test]
fn members_that_left_leave_gaps() {
    let group = parse(GOOD).unwrap();
    let mut nodes = group.nodes().to_vec();
    nodes.remove(1);
    let left = |number: u16| NodeId::try_from(number).unwrap();
    assert!(GroupFile::new(group.name(), group.threshold(), nodes.clone(), Vec::new()).is_err(), "a typing error");
    let later = group.with_members(nodes, 17).unwrap();
    let read = parse(&later.to_text()).unwrap();
    assert_eq!((&read, read.members_at()), (&later, Some(17)));
    assert_eq!((read.node(left(2)), read.node(left(3)).map(|node| node.id)), (None, Some(left(3))));
    assert_eq!(read.mesh_peers(left(3)).len(), 1);
}
