//! Operators who do not trust the name server: their nodes sign what is in their own copies of the zone.

pub(crate) mod named;
pub(super) mod program;

use std::{collections::BTreeMap, fs, ops::RangeInclusive, path::Path};

use theta_dnssec::{
    agent::Agent,
    consent::Terms,
    denial::hashed::Parameters,
    digests::Guesses,
    sources::{CopyFrom, Sources},
};
use theta_knot::{places::Places, server::Knot};
use tokio::runtime::Runtime;

use self::named::{await_named, named};
use super::{PATIENCE, RECORDS, start_in};
use crate::{
    generation::{RSA, pooled, pooled_rsa},
    group::{log, until},
    harness::Group,
};

/// Serves a zone's agent with threads of its own, until this is dropped.
pub(crate) struct ZoneAgent(Option<Runtime>);

impl Drop for ZoneAgent {
    fn drop(&mut self) {
        self.0.take().unwrap().shutdown_background();
    }
}

/// What an agent knows that has the copy of the zone in this folder.
pub(crate) fn sources(group: &Group, folder: &Path, nsec3: Option<Parameters>) -> Sources {
    Sources {
        origin: "example.".to_owned(),
        zone: CopyFrom::File(folder.join("example.zone")),
        keys: group.path().join("zone.keys"),
        nsec3,
        terms: Terms::lasting(35 * 86_400),
        guesses: Guesses::of_days(&[14]),
        key_request: None,
    }
}

/// An agent with a copy of the zone in this folder.
pub(super) fn open_agent(group: &Group, folder: &Path, records: &str, nsec3: Option<Parameters>) -> Agent {
    fs::write(folder.join("example.zone"), records).unwrap();
    Agent::open(sources(group, folder, nsec3)).unwrap()
}

/// Has this agent asked by its operator's node, whose policy names it.
pub(super) fn serve(group: &Group, node: u16, agent: Agent) -> ZoneAgent {
    let socket = group.node_dir(node).join("zone.sock");
    let runtime = Runtime::new().unwrap();
    let path = socket.clone();
    runtime.spawn(async move { theta_agent::serve(agent, &path).await.unwrap() });
    until("the agent serves", PATIENCE, || socket.exists());
    let_ask(group, node, &socket);
    ZoneAgent(Some(runtime))
}

/// Has an operator's node ask the agent at this socket.
fn let_ask(group: &Group, node: u16, socket: &Path) {
    let rule = format!(
        "\n[[agent]]\nname = \"zone\"\nsocket = \"{}\"\ntimeout_ms = 20000\n\n[[rule]]\nname = \"zone\"\neffect = \"allow\"\nclients = [\"client\"]\n\
         keys = [\"zone-*\"]\noperations = [\"sign\", \"sign-digest\"]\nagent = \"zone\"\n\n",
        socket.display()
    );
    let policy = group.node_dir(node).join("policy.toml");
    let text = fs::read_to_string(&policy).unwrap();
    // Before the rule that allows everything.
    let place = text.find("[[rule]]").unwrap();
    fs::write(&policy, [&text[..place], &rule, &text[place..]].concat()).unwrap();
}

/// A name without records of its own above others, and a delegation without keys: what NSEC3 has records for besides.
const MORE: &str = "a.deep A 192.0.2.3\nb.deep A 192.0.2.4\nsub NS ns.sub\nns.sub A 192.0.2.9\n";

/// What an algorithm is called by those who take part, and what agents say of a record that is in no copy.
pub(super) struct Algorithm<'a> {
    number: &'static str,
    /// After which other lines of Knot's policy may come.
    pub(super) knot: &'a str,
    pub(super) suite: &'static str,
    pub(super) operation: &'static str,
    objection: &'static str,
}

/// A zone that is signed, its name server, and the agents of some nodes. Others let everything pass.
struct Zone {
    knot: Knot,
    agents: Vec<ZoneAgent>,
    group: Group,
}

/// How many records are tried beside the one that is looked at closely.
pub(super) const MOST_FOREIGN: usize = 16;
/// All nodes but the first.
const OTHERS: RangeInclusive<u16> = 2..=4;

/// Keys of a pool, and agents that these nodes ask, with the zone of these records; with NSEC3, if there are parameters for it. The module's
/// configuration has these lines besides.
pub(crate) fn prepared(
    keys: (&str, &str),
    nodes: RangeInclusive<u16>,
    records: &str,
    nsec3: Option<&Parameters>,
    lines: &str,
) -> (Group, Vec<ZoneAgent>) {
    prepared_with(keys, nodes, records, lines, |group, folder| sources(group, folder, nsec3.cloned()))
}

/// The same, with agents that know what `sources` says.
pub(crate) fn prepared_with(
    (suite, operation): (&str, &str),
    nodes: RangeInclusive<u16>,
    records: &str,
    lines: &str,
    sources: impl Fn(&Group, &Path) -> Sources,
) -> (Group, Vec<ZoneAgent>) {
    // Primes of RSA are there for one key; it signs everything.
    let (group, names) = if suite.starts_with("sh00") {
        (pooled_rsa(lines), vec![RSA.to_owned()])
    } else {
        let names = [1, 2].map(|number| format!("zone-{suite}-{number}"));
        let keys = names.each_ref().map(|name| format!("{name}={suite}")).join(",");
        (pooled(&keys, lines), names.to_vec())
    };
    let agents = attached(&group, &names, operation, nodes, records, sources);
    (group, agents)
}

/// Lets the nodes of a running group ask agents about keys of these names, on which the operators have agreed.
pub(super) fn attached(
    group: &Group,
    names: &[String],
    operation: &str,
    nodes: RangeInclusive<u16>,
    records: &str,
    sources: impl Fn(&Group, &Path) -> Sources,
) -> Vec<ZoneAgent> {
    export_keys(group, names);
    let agents = nodes.clone().map(|node| {
        let folder = group.node_dir(node);
        fs::write(folder.join("example.zone"), records).unwrap();
        serve(group, node, Agent::open(sources(group, &folder)).unwrap())
    });
    let agents: Vec<ZoneAgent> = agents.collect();
    in_force(group, nodes, &names[0], operation);
    agents
}

/// Writes down the keys of these names, on which the operators have agreed.
fn export_keys(group: &Group, names: &[String]) {
    let key = |name: &String| group.theta(&["keys", "export", name, "--format", "dnskey"]).ok().text();
    group.file("zone.keys", names.iter().map(key).collect::<String>());
}

/// Waits until these nodes ask their agents about a key.
pub(super) fn in_force(group: &Group, nodes: RangeInclusive<u16>, key: &str, operation: &str) {
    for node in nodes {
        let explain = format!("policy explain --ask {node} --client client --key {key} --operation {operation}");
        let explain: Vec<&str> = explain.split(' ').collect();
        until("the policies are in force", PATIENCE, || group.theta(&explain).ok().text().contains("agent zone"));
    }
}

/// Has the zone of these records signed where these nodes ask agents.
fn signed_zone(
    places: &Places,
    algorithm: &Algorithm<'_>,
    nodes: RangeInclusive<u16>,
    records: &str,
    nsec3: Option<&Parameters>,
) -> Zone {
    let (group, agents) = prepared((algorithm.suite, algorithm.operation), nodes, records, nsec3, "");
    let knot = start_in(places, &group, algorithm.knot, records);
    until("nobody objects, and the zone is signed", PATIENCE, || {
        assert!(!log(&group).contains("agent zone"), "{}", log(&group));
        knot.is_signed()
    });
    Zone { knot, agents, group }
}

/// Adds a record to the zone; whether the server could sign that.
pub(super) fn set(knot: &Knot, record: &[&str]) -> bool {
    let add = [&["zone-set", "example."][..], record].concat();
    assert!(knot.tell(&["zone-begin", "example."]) && knot.tell(&add), "{}", knot.said());
    // A transaction that cannot be signed is over.
    knot.tell(&["zone-commit", "example."])
}

/// The name server is one of the operators', or has been taken over: what is not in the others' copies of the zone is not signed. Node 1
/// lets everything pass, and is named for that.
fn nobody_signs_foreign_records(places: &Places, algorithm: &Algorithm<'_>) {
    let Algorithm { number, .. } = algorithm;
    let Zone { group, knot, agents } = signed_zone(places, algorithm, OTHERS, RECORDS, None);
    let version = Knot::version(places).unwrap();
    assert!(knot.said().contains(&format!("Knot DNS {version} starting")), "{version}: {}", knot.said());
    knot.verify().unwrap();
    let signed = format!("A {number} 2 ");
    assert!(knot.ask("www.example.").unwrap().contains(&signed), "{}", knot.said());
    assert_eq!(named(&group), BTreeMap::new(), "all go by the same");
    let before = fs::read_to_string(knot.zone_file()).unwrap();
    assert!(!set(&knot, &["victim", "1", "A", "192.0.2.66"]), "{}", knot.said());
    assert_eq!(fs::read_to_string(knot.zone_file()).unwrap(), before, "the old zone is served");
    assert_eq!(knot.ask("victim.example.").unwrap(), "");
    assert!(log(&group).contains("agent zone refuses it"), "{}", log(&group));
    for node in ["2", "3", "4"] {
        let said = group.theta(&["audit", "show", "--node", node, "--refused", "--last", "100"]).ok().text();
        assert!(said.contains(&format!("agent zone refuses it: {}", algorithm.objection)), "{said}");
    }
    let mut more = (1..=MOST_FOREIGN).map(|number| format!("more{number}"));
    await_named(&group, 1, &[2, 3, 4], || {
        if let Some(name) = more.next() {
            assert!(!set(&knot, &[&name, "1", "A", "192.0.2.66"]), "{}", knot.said());
        }
    });

    // When the operators have it in their copies, it is signed.
    for node in 2..=4 {
        fs::write(group.node_dir(node).join("example.zone"), format!("{RECORDS}mail 1 A 192.0.2.7\n")).unwrap();
    }
    until("the new record is signed", PATIENCE, || set(&knot, &["mail", "1", "A", "192.0.2.7"]));
    assert!(knot.ask("mail.example.").unwrap().contains(&signed), "{}", knot.said());
    knot.verify().unwrap();
    drop(agents);
}

pub(super) const ED25519: Algorithm<'static> = Algorithm {
    number: "15",
    knot: "ed25519",
    suite: "frost-ed25519",
    operation: "sign",
    objection: "there is no victim.example. A in the zone",
};

const P256: Algorithm<'static> = Algorithm {
    number: "13",
    knot: "ecdsap256sha256",
    suite: "ecdsa-p256",
    operation: "sign-digest",
    objection: "no record set of the zone has this digest with times of now",
};

#[test]
fn nobody_signs_what_is_not_in_the_operators_copies_of_the_zone() {
    nobody_signs_foreign_records(&Places::of_this_machine(), &ED25519);
}

/// Nobody lets everything pass. Knot has the denials of before signed once more, which are in no copy any more: that of the top, since the new name
/// is the first after it, and that of a name that gets another type of records.
#[test]
fn first_names_and_new_types_are_signed_where_all_nodes_ask_agents() {
    let Zone { group, knot, agents } = signed_zone(&Places::of_this_machine(), &ED25519, 1..=4, RECORDS, None);
    knot.verify().unwrap();
    let mut records = RECORDS.to_owned();
    for record in [["b", "1", "A", "192.0.2.7"], ["www", "1", "TXT", "new"], ["a", "1", "A", "192.0.2.8"]] {
        records = format!("{records}{}\n", record.join(" "));
        for node in 1..=4 {
            fs::write(group.node_dir(node).join("example.zone"), &records).unwrap();
        }
        until("the change is signed", PATIENCE, || set(&knot, &record));
        knot.verify().unwrap();
    }
    for name in ["a.example.", "b.example.", "www.example."] {
        assert!(knot.ask(name).unwrap().contains("A 15 2 "), "{name}: {}", knot.said());
    }
    // What is in no copy, and was in none, is refused by all.
    assert!(!set(&knot, &["c", "1", "A", "192.0.2.66"]), "{}", knot.said());
    assert_eq!(knot.ask("c.example.").unwrap(), "");
    drop(agents);
}

/// The nodes see digests alone, and their agents find out what they are of.
#[test]
fn p256_digests_of_foreign_records_are_refused() {
    nobody_signs_foreign_records(&Places::of_this_machine(), &P256);
}

/// The Knot DNS of the system's own release, which is an older one where the newest was unpacked beside it.
#[test]
fn digests_of_the_releases_own_knot_are_recognised_and_foreign_ones_refused() {
    nobody_signs_foreign_records(&Places::of_the_release(), &P256);
}

/// One key signs everything, and its nodes see digests, too.
#[test]
fn rsa_digests_of_foreign_records_are_refused() {
    let algorithm =
        Algorithm { number: "8", knot: "rsasha256\n    single-type-signing: on", suite: "sh00-pkcs1-sha256", ..P256 };
    nobody_signs_foreign_records(&Places::of_this_machine(), &algorithm);
}

/// What Knot has in its policy for it.
const NSEC3: &str = "\n    nsec3: on\n    nsec3-salt-length: 0";

/// A zone that denies names by their hashes. These lines of Knot's policy make it another ring, with what the operators say of that.
fn hashes_are_those_of_the_copies(algorithm: &Algorithm<'_>, others: &[(&str, &str)]) {
    let records = format!("{RECORDS}{MORE}");
    let Zone { group, knot, agents } =
        signed_zone(&Places::of_this_machine(), algorithm, OTHERS, &records, Some(&Parameters::default()));
    knot.verify().unwrap();
    let before = fs::read_to_string(knot.zone_file()).unwrap();
    assert!(before.contains("NSEC3PARAM\t1 0 0 -") && !before.contains("\tNSEC\t"), "{before}");
    // The top, ns, www, a.deep, b.deep, what is above these two, and the delegation.
    let ring = before.lines().filter(|line| line.contains("\tNSEC3\t1 0 0 - ")).count();
    assert_eq!(ring, 7, "{before}");
    let config = fs::read_to_string(group.path().join("knot.conf")).unwrap();
    for (more, objection) in others {
        group.file("knot.conf", config.replace(NSEC3, &format!("{NSEC3}\n    {more}")));
        // The server signs again by itself; what it says to the command is about its configuration.
        knot.tell(&["reload"]);
        for node in ["2", "3", "4"] {
            let words = ["audit", "show", "--node", node, "--refused", "--last", "1000"];
            let refused = format!("agent zone refuses it: {objection}");
            until("the operators refuse another ring", PATIENCE, || group.theta(&words).ok().text().contains(&refused));
        }
        assert_eq!(fs::read_to_string(knot.zone_file()).unwrap(), before, "the old zone is served");
    }
    drop(agents);
}

#[test]
fn a_zone_with_nsec3_is_signed_from_the_operators_copies() {
    let algorithm = Algorithm { knot: &format!("ed25519{NSEC3}"), ..ED25519 };
    let opt_out = "the NSEC3 record has opt-out: delegations could be added that nobody has signed";
    let other =
        "the NSEC3 record has 5 iterations and no salt, and the operators have agreed on 0 iterations and no salt";
    hashes_are_those_of_the_copies(&algorithm, &[("nsec3-opt-out: on", opt_out), ("nsec3-iterations: 5", other)]);
}

#[test]
fn p256_digests_of_nsec3_are_recognised() {
    let algorithm = Algorithm { knot: &format!("{}{NSEC3}", P256.knot), ..P256 };
    hashes_are_those_of_the_copies(&algorithm, &[("nsec3-opt-out: on", P256.objection)]);
}
