//! Nodes that reach each other through host platforms alone: four processes of the reference host (interop/p2p-host, in Go), which know each other by TCP.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use crate::harness::Group;

/// The reference host, built once. `None` where there is no Go and whoever runs the tests has said that it knows.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        if env::var_os("THETA_NO_GO").is_some() {
            return None;
        }
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("p2p-host");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/p2p-host");
        let built = Command::new("go").args(["build", "-o"]).arg(&program).arg(".").current_dir(source).status();
        let built = built.expect("go is installed; set THETA_NO_GO to go without what is tested with it");
        assert!(built.success(), "the reference host is built");
        Some(program)
    };
    PROGRAM.get_or_init(build).as_deref()
}

/// The hosts of all nodes. They end when this is dropped.
struct Hosts {
    program: &'static Path,
    dir: PathBuf,
    /// For each node: where it attaches, where other hosts connect, and its key.
    nodes: Vec<(u16, u16, String)>,
    children: Vec<Option<Child>>,
}

impl Hosts {
    fn beside(group: &Group, program: &'static Path) -> Self {
        let text = String::from_utf8(group.read("theta-group/node-1/group.toml")).unwrap();
        let keys = text.lines().filter_map(|line| line.strip_prefix("certificate = \"")?.strip_suffix('"'));
        let nodes = group.numbers().zip(keys).map(|(node, key)| {
            let (first, _) = group.ports(node);
            (first + 5, first + 6, key.to_owned())
        });
        let nodes: Vec<_> = nodes.collect();
        assert_eq!(nodes.len(), 4);
        Self { program, dir: group.path().to_owned(), nodes, children: (0..4).map(|_| None).collect() }
    }

    /// Starts the host of a node; returns its fingerprint.
    fn start(&mut self, node: u16) -> String {
        let place = usize::from(node) - 1;
        let (attach, network, key) = &self.nodes[place];
        let others = (1_u16..).zip(&self.nodes).filter(|(other, _)| *other != node);
        let others: Vec<String> = others.map(|(other, (_, port, _))| format!("{other}=127.0.0.1:{port}")).collect();
        let mut child = Command::new(self.program)
            .args(["-node", &node.to_string(), "-node-key", key, "-key", &format!("host-{node}.pem")])
            .args(["-listen", &format!("127.0.0.1:{attach}"), "-network", &format!("127.0.0.1:{network}")])
            .args(["-hosts", &others.join(",")])
            .current_dir(&self.dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        self.children[place] = Some(child);
        line.trim().strip_prefix("fingerprint = \"").and_then(|rest| rest.strip_suffix('"')).unwrap().to_owned()
    }

    fn kill(&mut self, node: u16) {
        let mut child = self.children[usize::from(node) - 1].take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Makes a node reach the others through its host.
fn attach(group: &Group, node: u16, port: u16, fingerprint: &str) {
    let file = group.node_dir(node).join("node.toml");
    let text = fs::read_to_string(&file).unwrap();
    let other = text.replace("transport = \"mesh\"", "transport = \"p2p-proxy\"");
    assert_ne!(text, other);
    let host = format!("\n[host]\naddress = \"127.0.0.1:{port}\"\nfingerprint = \"{fingerprint}\"\n");
    fs::write(file, other + &host).unwrap();
}

/// Waits until each of these nodes reaches so many others.
fn until_reached(group: &Group, nodes: &[u16], others: u64) {
    let begin = Instant::now();
    loop {
        let status = group.theta(&["status", "--json"]).json();
        let reached = |node: &u16| status["nodes"][usize::from(*node) - 1]["peers_connected"].as_u64();
        if nodes.iter().all(|node| reached(node) == Some(others)) {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{status:#}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Four nodes that reach each other through their hosts.
fn behind_hosts(program: &'static Path) -> (Group, Hosts) {
    let mut group = Group::made();
    let mut hosts = Hosts::beside(&group, program);
    for node in 1..=4 {
        let fingerprint = hosts.start(node);
        attach(&group, node, hosts.nodes[usize::from(node) - 1].0, &fingerprint);
    }
    group.start_all();
    until_reached(&group, &[1, 2, 3, 4], 3);
    (group, hosts)
}

fn works(group: &Group, tag: &str) {
    let name = group.file(&format!("{tag}.txt"), format!("contents of {tag}"));
    group.theta(&["encrypt", &name, "--key", "vault"]).ok();
    let opened = group.theta(&["decrypt", &format!("{name}.theta"), "-o", "-"]).ok();
    assert_eq!(opened.stdout, group.read(&name));
    group.theta(&["sign", &name, "--key", "seal"]).ok();
    group.theta(&["verify", &name, &format!("{name}.sig"), "--key", "seal"]).ok();
}

#[test]
fn a_group_makes_keys_and_works_through_hosts_of_which_some_die_and_come_back() {
    let Some(program) = program() else { return };
    let (group, mut hosts) = behind_hosts(program);
    assert!(group.log(1).contains("nodes through the host at 127.0.0.1:"), "{}", group.log(1));
    group.theta(&["keys", "create", "vault=sg02-ristretto255", "seal=frost-ed25519"]).ok();
    works(&group, "all");
    group.theta(&["doctor"]).ok();

    hosts.kill(2);
    works(&group, "without-host-2");
    let begin = Instant::now();
    let found = loop {
        let report = group.theta(&["doctor", "--json"]).json();
        let found = report["findings"].as_array().unwrap().iter().find(|found| found["kind"] == "host-away").cloned();
        if let Some(found) = found {
            break found;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "{report:#}");
    };
    assert_eq!(found["nodes"], serde_json::json!([2]));
    assert!(found["finding"].as_str().unwrap().contains("is away: "), "{found}");
    let status = group.theta(&["status"]).ok().text();
    assert!(status.contains("node 2: its host at 127.0.0.1:"), "{status}");
    assert!(group.told(2, "/metrics").contains("theta_host_attached 0"));

    hosts.start(2);
    until_reached(&group, &[1, 2, 3, 4], 3);
    nodes_1_and_2_work(&group, &mut hosts, "with-host-2-again");
    is_attached_for(&group, 2, 2);
}

/// Nodes 1 and 2 are all that there are from now on, and two are needed.
fn nodes_1_and_2_work(group: &Group, hosts: &mut Hosts, name: &str) {
    hosts.kill(3);
    hosts.kill(4);
    works(group, name);
}

/// A node is attached to its host, for so many times until now.
fn is_attached_for(group: &Group, node: u16, times: u32) {
    let metrics = group.told(node, "/metrics");
    assert!(
        metrics.contains(&format!("theta_host_attachments_total {times}")) && metrics.contains("theta_host_attached 1"),
        "{metrics}"
    );
}

/// Whoever reaches the network of a host sends it frames as long as it takes, faster than its node reads. The node goes on hearing the others.
#[test]
fn a_flood_of_long_frames_does_not_make_a_node_deaf() {
    let Some(program) = program() else { return };
    let (group, mut hosts) = behind_hosts(program);
    group.theta(&["keys", "create", "vault=sg02-ristretto255", "seal=frost-ed25519"]).ok();
    let frame = [&65_536_u32.to_be_bytes()[..], &[7; 65_536]].concat();
    for _ in 0..10 {
        let mut flood = TcpStream::connect(("127.0.0.1", hosts.nodes[0].1)).unwrap();
        flood.write_all(&2_u32.to_be_bytes()).unwrap();
        flood.write_all(&frame.repeat(64)).unwrap();
    }
    nodes_1_and_2_work(&group, &mut hosts, "flooded");
    is_attached_for(&group, 1, 1);
}

/// Waits until the other side has ended a connection; `false` if it has not in this time.
fn is_ended(mut connection: &TcpStream, within: Duration) -> bool {
    connection.set_read_timeout(Some(within)).unwrap();
    match connection.read(&mut [0]) {
        Ok(length) => length == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn a_host_takes_few_connections_of_each_peer_from_where_the_peer_is() {
    let Some(program) = program() else { return };
    let dir = tempfile::tempdir().unwrap();
    let free = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [attaching, network] = free.map(|listener| listener.local_addr().unwrap().to_string());
    let mut child = Command::new(program)
        .args(["-node", "1", "-node-key", &"5d".repeat(32), "-listen", &attaching, "-network", &network])
        .args(["-hosts", "2=127.0.0.1:1,3=192.0.2.1:1"])
        .current_dir(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    // It ends with this.
    let _hosts = Hosts { program, dir: dir.path().to_owned(), nodes: Vec::new(), children: vec![Some(child)] };
    let call = |number: Option<u32>| {
        let mut connection = TcpStream::connect(&network).unwrap();
        if let Some(number) = number {
            connection.write_all(&number.to_be_bytes()).unwrap();
        }
        connection
    };
    let (soon, long) = (Duration::from_millis(300), Duration::from_secs(20));
    for nobody in [1, 3, 9] {
        assert!(is_ended(&call(Some(nobody)), long), "node {nobody} is not there");
    }
    // Those that say nothing take no place for ever, and those who do not say who they are not the others'.
    let silent: Vec<TcpStream> = (0..64).map(|_| call(None)).collect();
    assert!(is_ended(&call(Some(2)), long), "so many have not said who they are");
    assert!(silent.iter().all(|connection| is_ended(connection, long)));
    let of_one = [(); 3].map(|()| {
        let connection = call(Some(2));
        assert!(!is_ended(&connection, soon));
        connection
    });
    assert!(is_ended(&of_one[0], long), "the oldest of a peer's makes room");
    assert!(!is_ended(&of_one[1], soon) && !is_ended(&of_one[2], soon));
}

#[test]
fn a_transport_and_its_host_are_named_together() {
    let dir = tempfile::tempdir().unwrap();
    let init = |more: &[&str]| {
        let words = [
            "node",
            "init",
            "--dir",
            "alpha",
            "--name",
            "alpha",
            "--peer",
            "localhost:7210",
            "--clients",
            "localhost:7211",
        ];
        crate::harness::theta_in(dir.path(), &[&words, more].concat())
    };
    init(&["--transport", "p2p-proxy"]).fails(2, &["--transport p2p-proxy takes --host and --host-fingerprint"]);
    init(&["--transport", "pigeons"]).fails(2, &["mesh or p2p-proxy or gossip"]);
    let pin = "5d".repeat(32);
    init(&["--host", "localhost:7300", "--host-fingerprint", &pin]).fails(2, &["--host takes --transport p2p-proxy"]);
    init(&["--transport", "p2p-proxy", "--host", "localhost:7300", "--host-fingerprint", &pin]).ok();
    let text = fs::read_to_string(dir.path().join("alpha/node.toml")).unwrap();
    assert!(text.contains("transport = \"p2p-proxy\"") && text.contains(&format!("fingerprint = \"{pin}\"")), "{text}");
}
