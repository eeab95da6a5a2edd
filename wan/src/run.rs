//! `theta-wan run`: commands in the networks of nodes, and their end.
//!
//! Two processes do it. The outer one makes a process namespace and starts the inner one, which is its first process. When that
//! ends, for whatever reason, the kernel ends everything else in it, however it was started: nothing is left over. The inner one
//! has the networks and the router, starts the commands, and waits.

use std::{
    collections::HashMap,
    env, io,
    os::unix::{net::UnixStream, process::CommandExt as _, process::ExitStatusExt as _},
    process::{self, Command},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    mount::{MountFlags, MountPropagationFlags, mount, mount_change},
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, kill_process_group, pidfd_open, pidfd_send_signal,
        set_parent_process_death_signal, waitpid,
    },
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use theta_wan::{Place, Profile, Wan, address};

use crate::{Failure, RunArgs};

/// How long commands have to end by themselves after a signal.
const GRACE: Duration = Duration::from_secs(10);
/// Set for the inner process.
const INSIDE: &str = "THETA_WAN_INSIDE";
const PLACES: &str = "THETA_WAN_PLACES";
/// What a shell adds to the number of the signal that ended a command.
const BY_SIGNAL: u8 = 128;

/// Runs the commands; returns the exit code of what they came to.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Failure> {
    let profile = Profile::find(&args.profile)?;
    if env::var_os(INSIDE).is_some() { inside(args, &profile) } else { outside(args.user_namespace) }
}

/// Starts the inner process and passes on signals to it, and its exit code to the caller.
fn outside(apart: bool) -> Result<u8, Failure> {
    theta_wan::unshare_processes(apart)?;
    let signals = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    let program = env::current_exe().map_err(Failure::failed("find this program"))?;
    let mut command = Command::new(program);
    let mut child = command.args(env::args_os().skip(1)).env(INSIDE, "1").spawn().map_err(Failure::failed("start"))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let handle = pid.ok_or(Errno::SRCH).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let handle = handle.map_err(|errno| Failure::failed("watch the inner process")(errno.into()))?;
    loop {
        let mut watched = [PollFd::new(&handle, PollFlags::IN), PollFd::new(&signals.woken, PollFlags::IN)];
        // An interruption is a signal, which is looked at below.
        let _ = poll(&mut watched, None);
        let [process, _] = watched;
        let ended = !process.revents().is_empty();
        signals.drain();
        if signals.told().is_some() {
            // It may have ended in the meantime.
            let _ = pidfd_send_signal(&handle, Signal::TERM);
        }
        if ended {
            let status = child.wait().map_err(Failure::failed("wait for the inner process"))?;
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            let code = code.or_else(|| status.signal().map(by_signal)).unwrap_or(u8::MAX);
            return Ok(signals.told().map_or(code, by_signal));
        }
    }
}

/// The first process of its namespace: it has the networks, starts the commands and collects all that end.
fn inside(args: &RunArgs, profile: &Profile) -> Result<u8, Failure> {
    let prepared = set_parent_process_death_signal(Some(Signal::KILL))
        .and_then(|()| mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC))
        .and_then(|()| {
            mount("proc", "/proc", "proc", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)
        });
    prepared.map_err(|errno| Failure::failed("show the new processes in /proc")(errno.into()))?;
    let signals = Signals::watch(&[SIGINT, SIGTERM, SIGHUP, SIGCHLD])?;
    let wan = Wan::new(profile, args.nodes, args.seed)?;
    let mut commands = Commands::start(args, &wan)?;
    let code = commands.wait(&signals);
    if signals.told().is_some() {
        commands.end(&signals);
    }
    if let Some(report) = wan.stop().filter(|_| args.counters) {
        crate::print_report(&report);
    }
    Ok(code)
}

/// The commands that run.
struct Commands {
    /// By their process ids.
    running: HashMap<u32, u16>,
    /// The one whose end is the end of everything.
    leader: Option<u32>,
}

impl Commands {
    fn start(args: &RunArgs, wan: &Wan) -> Result<Self, Failure> {
        let mut commands = Self { running: HashMap::new(), leader: None };
        if !args.once {
            for node in 1..=args.nodes {
                commands.start_one(wan, node, &args.command)?;
            }
        }
        let line = args.client.iter().map(|line| vec!["sh".to_owned(), "-c".to_owned(), line.clone()]);
        for words in line.chain(args.once.then(|| args.command.clone())) {
            commands.leader = Some(commands.start_one(wan, 0, &words)?);
        }
        Ok(commands)
    }

    fn start_one(&mut self, wan: &Wan, node: u16, words: &[String]) -> Result<u32, Failure> {
        let (program, arguments) = words.split_first().ok_or_else(|| Failure::Usage("give a command".to_owned()))?;
        let mut command = Command::new(program);
        command.args(arguments).env_remove(INSIDE).envs(environment(wan, node));
        let place = wan.place(node).ok_or_else(|| Failure::Usage(format!("there is no node {node}")))?;
        let child = place.within(|| command.spawn());
        let child = child.map_err(|error| Failure::Start { command: program.clone(), error })?;
        self.running.insert(child.id(), node);
        Ok(child.id())
    }

    /// Waits for the leader or, without one, for all commands or the first that fails. Returns the exit code of that.
    fn wait(&mut self, signals: &Signals) -> u8 {
        while !self.running.is_empty() {
            if let Some(signal) = signals.told() {
                return by_signal(signal);
            }
            signals.wait(None);
            while let Ok(Some((pid, status))) = waitpid(None, WaitOptions::NOHANG) {
                let Some(pid) = u32::try_from(pid.as_raw_pid()).ok() else { continue };
                // Others are what commands have left behind, whose parent is this process by now.
                let Some(node) = self.running.remove(&pid) else { continue };
                let code = exit_code(status);
                if self.leader == Some(pid) || (self.leader.is_none() && code != 0) {
                    if self.leader.is_none() {
                        crate::note(&format!("the command of node {node} ended with exit code {code}: all are ended"));
                    }
                    return code;
                }
            }
        }
        0
    }

    /// Asks all to end, and waits a while. Who has not ended then is ended together with this process.
    fn end(&mut self, signals: &Signals) {
        // To the first process of a namespace, this means all others in it.
        if kill_process_group(Pid::INIT, Signal::TERM).is_err() {
            return;
        }
        let deadline = Instant::now() + GRACE;
        loop {
            while let Ok(Some((pid, _))) = waitpid(None, WaitOptions::NOHANG) {
                self.running.retain(|running, _| u32::try_from(pid.as_raw_pid()) != Ok(*running));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.running.is_empty() {
                return;
            }
            signals.wait(Some(left));
        }
    }
}

/// What a command is told.
fn environment(wan: &Wan, node: u16) -> Vec<(&'static str, String)> {
    let shown = |node| address(node).map(|address| address.to_string()).unwrap_or_default();
    let all: Vec<String> = (1..=wan.nodes()).map(shown).collect();
    let region = wan.profile().regions().get(wan.profile().region_of(node));
    vec![
        ("THETA_WAN_NODE", node.to_string()),
        ("THETA_WAN_NODES", wan.nodes().to_string()),
        ("THETA_WAN_ADDRESS", shown(node)),
        ("THETA_WAN_ADDRESSES", all.join(",")),
        ("THETA_WAN_CLIENT", shown(0)),
        ("THETA_WAN_REGION", region.map(|region| region.name.clone()).unwrap_or_default()),
        ("THETA_WAN_PROFILE", wan.profile().name().to_owned()),
        (PLACES, wan.paths(process::id()).join(":")),
    ]
}

/// `theta-wan at`: becomes a command in the network of a node, from within `theta-wan run`.
pub(crate) fn at(node: u16, words: &[String]) -> Result<u8, Failure> {
    let places =
        env::var(PLACES).map_err(|_| Failure::Usage("`theta-wan at` works within `theta-wan run` only".into()))?;
    let path = places.split(':').nth(usize::from(node));
    let path = path.ok_or_else(|| Failure::Usage(format!("there is no node {node} in this network")))?;
    let (program, arguments) = words.split_first().ok_or_else(|| Failure::Usage("give a command".to_owned()))?;
    Place::open(path).and_then(|place| place.enter()).map_err(Failure::failed("enter the network of a node"))?;
    let mut command = Command::new(program);
    command.args(arguments).env("THETA_WAN_NODE", node.to_string());
    command.env("THETA_WAN_ADDRESS", address(node).map(|address| address.to_string()).unwrap_or_default());
    Err(Failure::Start { command: program.clone(), error: command.exec() })
}

fn exit_code(status: WaitStatus) -> u8 {
    let code = status.exit_status().and_then(|code| u8::try_from(code).ok());
    code.or_else(|| status.terminating_signal().map(by_signal)).unwrap_or(u8::MAX)
}

fn by_signal(signal: i32) -> u8 {
    BY_SIGNAL.saturating_add(u8::try_from(signal).unwrap_or(u8::MAX))
}

/// Signals that have come.
struct Signals {
    /// Has something to read when one has come.
    woken: UnixStream,
    /// The last that means the end.
    told: Arc<AtomicUsize>,
}

impl Signals {
    fn watch(signals: &[i32]) -> Result<Self, Failure> {
        let told = Arc::new(AtomicUsize::new(0));
        let watched = || -> io::Result<UnixStream> {
            let (woken, wakes) = UnixStream::pair()?;
            woken.set_nonblocking(true)?;
            for signal in signals {
                if let (true, Ok(number)) = (*signal != SIGCHLD, usize::try_from(*signal)) {
                    signal_hook::flag::register_usize(*signal, Arc::clone(&told), number)?;
                }
                signal_hook::low_level::pipe::register(*signal, wakes.try_clone()?)?;
            }
            Ok(woken)
        };
        let woken = watched().map_err(Failure::failed("watch for signals"))?;
        Ok(Self { woken, told })
    }

    /// The signal that means the end, if one has come.
    fn told(&self) -> Option<i32> {
        i32::try_from(self.told.load(Ordering::SeqCst)).ok().filter(|signal| *signal != 0)
    }

    /// Waits for any, at most so long.
    fn wait(&self, most: Option<Duration>) {
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        let _ = poll(&mut [PollFd::new(&self.woken, PollFlags::IN)], most.as_ref());
        self.drain();
    }

    fn drain(&self) {
        let mut bytes = [0; 64];
        while io::Read::read(&mut &self.woken, &mut bytes).is_ok_and(|read| read > 0) {}
    }
}
