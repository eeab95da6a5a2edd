//! Nodes with few file descriptors, and strangers that would have them all.

use std::{
    fs,
    io::ErrorKind,
    net::{Ipv4Addr, TcpStream},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::harness::{EXE, Group};

/// Strangers of one address that say nothing. Whoever is sent away comes back.
struct Crowd {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Crowd {
    fn at(port: u16, size: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (end, came) = (Arc::clone(&over), Arc::new(AtomicBool::new(false)));
        let all = Arc::clone(&came);
        let connect = move || {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
            stream.set_nonblocking(true).ok()?;
            Some(stream)
        };
        let stays = |stream: &Option<TcpStream>| {
            let said = stream.as_ref().map(|stream| stream.peek(&mut [0]));
            matches!(said, Some(Err(error)) if error.kind() == ErrorKind::WouldBlock)
        };
        let thread = thread::spawn(move || {
            let mut streams: Vec<_> = (0..size).map(|_| connect()).collect();
            all.store(true, Ordering::Relaxed);
            while !end.load(Ordering::Relaxed) {
                for stream in streams.iter_mut().filter(|stream| !stays(stream)) {
                    *stream = connect();
                }
                thread::sleep(Duration::from_millis(20));
            }
        });
        while !came.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(10));
        }
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Two of four nodes, so that both take part in every signature; neither gives up a client that is slow to come in.
fn made() -> Group {
    let group = Group::made_with(&["--keys", "sign=frost-ed25519"]);
    for node in [1, 2] {
        let file = group.node_dir(node).join("node.toml");
        let text = fs::read_to_string(&file).unwrap();
        let patient = text.replacen("\nhandshake_seconds = 5\n", "\nhandshake_seconds = 3600\n", 1);
        assert_ne!(patient, text, "the crowd would be gone by itself");
        fs::write(file, patient).unwrap();
    }
    group.file("text", "in a crowd");
    group
}

/// The same, started, with a signature made.
#[cfg(target_os = "linux")]
fn signing() -> Group {
    let mut group = made();
    for node in [1, 2] {
        group.start(node);
    }
    for node in [1, 2] {
        group.await_up(node);
    }
    signs(&group, "before");
    group
}

fn signs(group: &Group, output: &str) {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        let run = group.theta(&["sign", "text", "-o", output]);
        if run.code == 0 {
            return;
        }
        assert!(Instant::now() < deadline, "{run:?}\nnode 1:\n{}", group.log(1));
    }
}

#[test]
fn a_node_with_few_descriptors_has_room_for_members_and_clients() {
    let mut group = made();
    let mut few = Command::new("sh");
    few.args(["-c", "ulimit -n 200; exec \"$0\" \"$@\"", EXE]);
    group.start_by(1, few);
    group.start(2);
    group.await_up(1);
    group.await_up(2);
    assert!(group.log(1).contains("raise its hard limit"), "{}", group.log(1));
    assert!(!group.log(2).contains("raise its hard limit"), "{}", group.log(2));
    let (peers, clients) = group.ports(1);
    let _crowds = [Crowd::at(clients, 250), Crowd::at(peers, 250)];
    signs(&group, "first");
    // The member comes anew, past those at the door.
    group.kill(2);
    group.start(2);
    group.await_up(2);
    signs(&group, "second");
}

/// How many descriptors a node has open.
#[cfg(target_os = "linux")]
fn open(group: &mut Group, node: u16) -> usize {
    fs::read_dir(format!("/proc/{}/fd", group.child(node).id())).unwrap().count()
}

/// Lets a running node have so many descriptors more than it has open.
#[cfg(target_os = "linux")]
fn lower(group: &mut Group, node: u16, more: usize) {
    let most = open(group, node) + more;
    let (process, limit) = (group.child(node).id().to_string(), format!("--nofile={most}:{most}"));
    assert!(Command::new("prlimit").args(["--pid", &process, &limit]).status().unwrap().success());
}

#[cfg(target_os = "linux")]
fn await_that(mut holds: impl FnMut() -> bool, told: impl Fn() -> String) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{}", told());
        thread::sleep(Duration::from_millis(50));
    }
}

/// The limit falls while the node runs, so that its places were more than the descriptors: a stranger's goes when the client's comes.
#[cfg(target_os = "linux")]
#[test]
fn a_node_without_descriptors_closes_a_strangers_connection() {
    let mut group = signing();
    lower(&mut group, 1, 20);
    let _crowd = Crowd::at(group.ports(1).1, 200);
    signs(&group, "after");
    assert!(group.log(1).matches("cannot accept an API connection").count() <= 3, "{}", group.log(1));
    await_that(|| group.log(1).contains("raise its hard limit"), || group.log(1));
}

/// Strangers at the door for clients have all descriptors when the limit falls, and stay: the member that comes anew needs some.
#[cfg(target_os = "linux")]
#[test]
fn clients_do_not_take_the_descriptors_of_members() {
    let mut group = signing();
    let (clients, before) = (group.ports(1).1, open(&mut group, 1));
    let crowd = |size: usize| -> Vec<_> {
        (0..size).map(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, clients)).unwrap()).collect()
    };
    let strangers = crowd(100);
    let deadline = Instant::now() + Duration::from_secs(60);
    while open(&mut group, 1) < before + 90 {
        assert!(Instant::now() < deadline, "they do not come in: {}", group.log(1));
        thread::sleep(Duration::from_millis(20));
    }
    lower(&mut group, 1, 0);
    group.kill(2);
    // What the member has given back is taken, before it comes again.
    let more = crowd(20);
    thread::sleep(Duration::from_secs(2));
    group.start(2);
    let comes = || group.told(2, "/metrics").contains("theta_peer_connected{peer=\"1\"} 1");
    await_that(comes, || format!("{}\n{}", group.log(1), group.log(2)));
    signs(&group, "after");
    drop((strangers, more));
}
