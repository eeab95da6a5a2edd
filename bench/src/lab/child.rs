//! The process that has the nodes, as the one that directs it sees it; and what ends both early.

use std::{
    fs,
    io::{self, BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use theta::{
    exit::Failure,
    interrupt::{EndSignal, told_to_end},
};
use theta_cluster::this_program;

use super::protocol::{Answer, Opening, Order, Setup};

/// How often and how soon a directory is removed again that something is still written to.
const AGAIN: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// A signal that came, and the process that is to end with this one.
#[derive(Clone, Default)]
pub(super) struct Ending(Arc<Mutex<(Option<EndSignal>, Option<Pid>)>>);

impl Ending {
    /// Watches for signals from now on: what has been measured is kept, and the process ends in order.
    pub(super) fn watch() -> Result<Self, Failure> {
        let ending = Self::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::internal)?;
        let told = {
            let _inside = runtime.enter();
            told_to_end()?
        };
        let watched = ending.clone();
        thread::spawn(move || {
            let signal = runtime.block_on(told);
            let mut state = watched.state();
            state.0 = Some(signal);
            if let Some(process) = state.1 {
                // It has ended already, or it does now; its nodes end with their input.
                let _ = kill_process(process, Signal::TERM);
            }
        });
        Ok(ending)
    }

    fn state(&self) -> MutexGuard<'_, (Option<EndSignal>, Option<Pid>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The failure by which a signal ends the command, if there was one.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.state().0.map_or(Ok(()), |signal| Err(Failure::Interrupted(signal)))
    }
}

/// A process with a group or wires.
pub(super) struct Lab {
    home: PathBuf,
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    places: Vec<String>,
    ending: Ending,
}

impl Lab {
    /// Starts one, and waits until it is ready.
    pub(super) fn start(setup: &Setup, ending: &Ending) -> Result<Self, Failure> {
        let home = tempfile::Builder::new().prefix("theta-lab-").tempdir();
        let home = home.map_err(|error| Failure::writing(&std::env::temp_dir(), &error))?;
        let mut command = Command::new(this_program()?);
        command.arg("measure").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = {
            // No signal comes between the process's start and its being known.
            let mut state = ending.state();
            if let Some(signal) = state.0 {
                return Err(Failure::Interrupted(signal));
            }
            let child = command.spawn().map_err(|error| Failure::Failed(format!("cannot start a process: {error}")))?;
            state.1 = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            child
        };
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::internal("a process without its pipes"));
        };
        let mut lab = Self {
            home: home.keep(),
            child,
            orders: Some(orders),
            answers: BufReader::new(answers),
            places: Vec::new(),
            ending: ending.clone(),
        };
        let opening = Opening { setup: setup.clone(), home: lab.home.clone() };
        match lab.ask(&opening)? {
            Answer::Ready { places } => lab.places = places,
            Answer::Broken { code: 2, text } => return Err(Failure::Usage(text)),
            Answer::Broken { code: 3, text } => return Err(Failure::NoAnswer(text)),
            Answer::Broken { text, .. } => return Err(Failure::Failed(text)),
            _ => return Err(Failure::internal("a process that is not ready")),
        }
        Ok(lab)
    }

    /// The names of the places of the nodes 1, 2, ....
    pub(super) fn places(&self) -> &[String] {
        &self.places
    }

    /// Lets it measure something.
    pub(super) fn measure(&mut self, order: &Order) -> Result<Answer, Failure> {
        self.ask(order)
    }

    fn ask(&mut self, question: &impl serde::Serialize) -> Result<Answer, Failure> {
        let line = serde_json::to_string(question).map_err(Failure::internal)?;
        let Some(orders) = self.orders.as_mut() else { return Err(Failure::internal("a process that was ended")) };
        let written = writeln!(orders, "{line}").and_then(|()| orders.flush());
        let mut answer = String::new();
        let read = written.and_then(|()| self.answers.read_line(&mut answer));
        match read {
            Ok(1..) => serde_json::from_str(&answer).map_err(Failure::internal),
            // It is gone: by the signal that this process got, too, or else by a fault of its own, which it has reported.
            Ok(0) | Err(_) => {
                // A terminal tells both at once.
                thread::sleep(4 * PAUSE);
                self.ending.check()?;
                Err(Failure::Failed("the process that measures has ended: see above".to_owned()))
            }
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // It ends with its input, and the nodes with it.
        drop(self.orders.take());
        let _ = self.child.wait();
        self.ending.state().1 = None;
        // Nodes of a process that a signal ended notice that a moment later, and may write until then.
        for _ in 0..AGAIN {
            match fs::remove_dir_all(&self.home) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => thread::sleep(PAUSE),
                _ => break,
            }
        }
    }
}
