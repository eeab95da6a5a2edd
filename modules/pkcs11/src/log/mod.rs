//! What the module has to say: PKCS#11 tells hosts a number, and people need the reason.
//!
//! What one node makes it say is bounded, in lines and in time: a node that lies with each signature must not fill the disk of a host, and a
//! log that nobody reads must not keep a host from its signatures.

use std::{
    fmt,
    fs::OpenOptions,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
    process,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

pub(crate) use signals::shielded;
use theta_client::{Answer, UnixTime, is_shown};
use theta_keypool::LogTo;
use theta_names::WallTime;

use self::{
    rare::{Kind, Rare},
    waiting::Waiting,
};

mod rare;
mod signals;
mod waiting;

/// The longest line in characters.
const MOST: usize = 2000;
/// How many nodes that misbehaved are told of for one signature.
const MOST_CULPRITS: usize = 16;
/// How long a host waits for a line to be written. Until it is, those after it are lost.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where lines go. A file is opened for each line, so that it can be moved away.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    to: LogTo,
    rare: Arc<Rare>,
    waiting: Arc<Waiting>,
}

impl Log {
    pub(crate) fn new(to: LogTo) -> Self {
        Self { to, ..Self::default() }
    }

    /// Writes one line. What cannot be written is lost: a host must not fail for it, nor wait for whoever reads a pipe. A thread writes that
    /// takes no signals, since the host may be killed by that of a closed pipe.
    pub(crate) fn say(&self, what: impl fmt::Display) {
        if self.to == LogTo::Off {
            return;
        }
        let Some((place, lost)) = Waiting::begin(&self.waiting, PATIENCE) else { return };
        let lost = if lost == 0 { String::new() } else { format!("({lost} lines before this one are lost) ") };
        let words = one_line(&what.to_string());
        let line = format!("{} theta-pkcs11[{}]: {lost}{words}\n", now(), process::id());
        let (number, to) = (place.number(), self.to.clone());
        let write = move || {
            let _place = place;
            // There is nobody to tell.
            let _ = match &to {
                LogTo::Off => Ok(()),
                LogTo::Stderr => write_to_stderr(line.as_bytes()),
                LogTo::File(path) => append(path, &line),
            };
        };
        if shielded(|| thread::Builder::new().name("theta-log".to_owned()).spawn(write)).is_ok() {
            self.waiting.wait(number, PATIENCE);
        }
    }

    /// Writes a line about something that may come again and again: once a minute for each.
    pub(crate) fn say_rarely(&self, about: &str, what: impl fmt::Display) {
        self.say_of(Kind::Fault, about, what, Instant::now());
    }

    fn say_of(&self, kind: Kind, about: &str, what: impl fmt::Display, now: Instant) {
        if self.to == LogTo::Off {
            return;
        }
        match self.rare.is_time(kind, about, now) {
            None => {}
            Some(0) => self.say(what),
            Some(left_out) => self.say(format_args!("{what} ({left_out} lines of this kind before it are left out)")),
        }
    }

    /// Names the nodes that misbehaved for an answer.
    pub(crate) fn tell_of_liars<T>(&self, answer: &Answer<T>) {
        self.tell_of_liars_at(answer, Instant::now());
    }

    fn tell_of_liars_at<T>(&self, answer: &Answer<T>, now: Instant) {
        for problem in answer.bad_answers.iter().take(MOST_CULPRITS) {
            self.say_of(Kind::FalseAnswer, &problem.node.to_string(), problem, now);
        }
        for culprit in answer.culprits.iter().take(MOST_CULPRITS) {
            // It is the word of the node that tells, in words that may be others each time.
            let (teller, accused) = (answer.node, culprit.node);
            let words = format_args!("according to node {teller}, node {accused} misbehaved: {}", culprit.misbehaviour);
            self.say_of(Kind::ToldBy(teller), &accused.to_string(), words, now);
        }
    }
}

/// Past the lock of the standard library, which another thread may have held when this process was forked.
fn write_to_stderr(mut line: &[u8]) -> std::io::Result<()> {
    while !line.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(rustix::stdio::stderr(), line))?;
        line = line.get(written..).unwrap_or_default();
    }
    Ok(())
}

fn append(path: &PathBuf, line: &str) -> std::io::Result<()> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)?.write_all(line.as_bytes())
}

/// Errors of the client have a line for each node.
fn one_line(text: &str) -> String {
    let words = text.replace("\n  ", "; ");
    words.chars().take(MOST).map(|character| if is_shown(character) { character } else { ' ' }).collect()
}

/// The time, to the second.
fn now() -> UnixTime {
    UnixTime(WallTime::now().seconds().saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use theta_client::Culprit;
    use theta_names::NodeId;

    use super::*;

    #[test]
    fn a_line_is_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let log = Log::new(LogTo::File(path.clone()));
        log.say("no node gave a good answer\n  node 1: gone\r\u{1b}[31m");
        log.say("second");
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("answer; node 1: gone  [31m"), "{text}");
    }

    fn node(number: u16) -> NodeId {
        NodeId::try_from(number).unwrap()
    }

    /// An answer by a node that accuses these others.
    fn answer(teller: u16, accused: impl IntoIterator<Item = u16>, misbehaviour: &str) -> Answer<()> {
        let culprit =
            |accused| Culprit { node: node(accused), misbehaviour: misbehaviour.to_owned(), instance_id: Vec::new() };
        Answer {
            result: (),
            node: node(teller),
            instance_id: [0; 32],
            contributors: Vec::new(),
            culprits: accused.into_iter().map(culprit).collect(),
            bad_answers: Vec::new(),
            latency: Duration::ZERO,
        }
    }

    /// One node accuses all others with each signature, each time with other words.
    #[test]
    fn a_node_that_lies_fills_no_disk() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let log = Log::new(LogTo::File(path.clone()));
        // All within one minute, however long it takes here.
        let now = Instant::now();
        for signature in 0_u16..500 {
            let accused = (1..=16).map(|place| signature * 16 + place);
            log.tell_of_liars_at(&answer(1, accused, &format!("{signature}").repeat(60)), now);
        }
        let lines = fs::read_to_string(path).unwrap().lines().count();
        assert!((1..=rare::MOST_TOLD).contains(&lines), "{lines} lines");
    }

    /// Node 1 says something harmless of node 3 before node 2, and accuses all others.
    #[test]
    fn who_accuses_first_silences_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let log = Log::new(LogTo::File(path.clone()));
        let expected = [
            "according to node 1, node 3 misbehaved: was slow",
            "according to node 2, node 3 misbehaved: sent a false share",
            "no key is fit",
        ];
        // Lines are lost where the disk is slow, and come in another minute.
        let mut now = Instant::now();
        for _ in 0..60 {
            log.tell_of_liars_at(&answer(1, [3], "was slow"), now);
            (0..40).for_each(|part| log.tell_of_liars_at(&answer(1, part * 16 + 4..part * 16 + 20, "was slow"), now));
            log.tell_of_liars_at(&answer(2, [3], "sent a false share"), now);
            log.say_of(Kind::Fault, "pool", "no key is fit", now);
            let text = fs::read_to_string(&path).unwrap_or_default();
            if expected.iter().all(|line| text.contains(line)) {
                return;
            }
            now += Duration::from_secs(120);
        }
        panic!("{}", fs::read_to_string(path).unwrap());
    }

    /// A pipe that nobody reads: a host waits once, and no longer.
    #[test]
    fn a_log_that_nobody_reads_holds_up_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let log = Log::new(LogTo::File(path.clone()));
        let began = Instant::now();
        (0..1_000).for_each(|number| log.say(number));
        assert!(began.elapsed() < PATIENCE * 30, "{:?}", began.elapsed());
        // Somebody reads again.
        let read = thread::spawn({
            let path = path.clone();
            move || fs::read_to_string(path).unwrap()
        });
        assert!(read.join().unwrap().ends_with("]: 0\n"));
        let read = thread::spawn(move || fs::read_to_string(path).unwrap());
        let deadline = Instant::now() + Duration::from_secs(20);
        while !read.is_finished() {
            assert!(Instant::now() < deadline, "nothing is written any more");
            log.say("again");
        }
        let text = read.join().unwrap();
        assert!(text.contains(" lines before this one are lost) again"), "{text}");
    }
}
