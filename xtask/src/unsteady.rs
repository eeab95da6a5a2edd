//! Runs all tests, some of them beside the others, and those few that failed once more, by themselves.
//!
//! Some tests run whole groups of processes and say what must have happened by when. Beside others, on a machine that somebody
//! else keeps busy, one of thousands may be late. It fails the run if it fails by itself as well; if not, the run names it at its
//! end, so that nobody takes it for a test that holds.

use std::{
    io::{self, BufRead, BufReader, PipeReader, Write},
    path::Path,
    process::Command,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::steps::shown;

/// More failures than these are no bad luck.
const MOST: usize = 3;

/// Tests that run beside what comes after their start. Their output is kept until somebody asks for it, or nobody will: then it is printed.
pub(crate) struct Beside(Option<JoinHandle<Ended>>);

/// What was heard, and all that was printed.
type Ended = Result<(Heard, Vec<u8>), String>;

impl Beside {
    /// Starts the tests of a command.
    pub(crate) fn start(root: &Path, command: Command) -> Self {
        let root = root.to_owned();
        Self(Some(thread::spawn(move || {
            let mut output = Vec::new();
            let heard = Heard::run(&root, &mut output, command)?;
            Ok((heard, output))
        })))
    }

    /// Waits for their end, and writes to `out` what they printed.
    fn heard(mut self, out: &mut impl Write) -> Result<Heard, String> {
        self.take(out).unwrap_or_else(|| Ok(Heard::default()))
    }

    fn take(&mut self, out: &mut impl Write) -> Option<Result<Heard, String>> {
        let ended = self.0.take()?.join();
        Some(ended.map_err(|_| "what ran tests beside others panicked".to_owned()).flatten().and_then(
            |(heard, output)| {
                out.write_all(&output).map_err(|error| error.to_string())?;
                Ok(heard)
            },
        ))
    }
}

impl Drop for Beside {
    /// What came after it has failed; its own end is waited for and told all the same, so that nothing runs on unseen.
    fn drop(&mut self) {
        let _ = self.take(&mut io::stdout());
    }
}

/// Runs the tests of these commands, one after the other, waits for those `beside` them, and runs once more those that failed, each by the
/// command that `again` gives for its name. What they print goes to `out`. Returns the names of those that failed at first.
pub(crate) fn run(
    root: &Path,
    out: &mut impl Write,
    commands: impl IntoIterator<Item = Command>,
    beside: Option<Beside>,
    again: impl Fn(&str) -> Command,
) -> Result<Vec<String>, String> {
    let mut first = Vec::new();
    for command in commands {
        first.push(Heard::run(root, out, command)?);
    }
    if let Some(beside) = beside {
        first.push(beside.heard(out)?);
    }
    let failed = failed_alone(&first)?;
    for name in &failed {
        writeln!(out, "\n== once more, by itself: {name}").map_err(|error| error.to_string())?;
        let again = Heard::run(root, out, again(name))?;
        if let Some(failure) = again.failure {
            return Err(format!("{failure}: {name} failed twice"));
        }
        if again.passed == 0 {
            return Err(format!("{name} failed, and was not found for a second run"));
        }
    }
    Ok(failed)
}

/// The tests that failed in these runs, if they are few, all known by name, and all that went wrong.
fn failed_alone(runs: &[Heard]) -> Result<Vec<String>, String> {
    let failures = runs.iter().filter(|heard| heard.failure.is_some());
    let names: Result<Vec<_>, String> = failures.clone().map(Heard::failed_alone).collect();
    if let Ok(names) = names.map(|names| names.concat())
        && names.len() <= MOST
    {
        return Ok(names);
    }
    let told = failures.map(|heard| heard.failed_alone().err().unwrap_or_else(|| heard.named()));
    Err(told.collect::<Vec<_>>().join("\n"))
}

/// What a run of tests printed.
#[derive(Debug, Default)]
struct Heard {
    /// The command and how it ended, if it failed.
    failure: Option<String>,
    /// Test programs that began and, of these, those that came to their end.
    begun: usize,
    ended: usize,
    /// Tests, by the programs' own sums.
    passed: usize,
    failed: usize,
    /// Tests that failed, by name.
    names: Vec<String>,
}

impl Heard {
    /// Runs a command and writes all that it prints to `out` as it comes.
    fn run(root: &Path, out: &mut impl Write, mut command: Command) -> Result<Self, String> {
        let shown = shown(&command);
        let start = || {
            let (reader, writer) = io::pipe()?;
            let child = command.current_dir(root).stdout(writer.try_clone()?).stderr(writer).spawn()?;
            // It holds the pipe's other end, too, so that the output would not end.
            drop(command);
            Ok((child, lines(reader)))
        };
        let started: io::Result<_> = start();
        let (mut child, lines) = started.map_err(|error| format!("`{shown}` did not start: {error}"))?;
        let mut heard = Self::default();
        let status = loop {
            // A process that a test left behind may hold the pipe open: what is silent after the command's end is not waited for.
            let ended = child.try_wait().map_err(|error| format!("`{shown}` was lost: {error}"))?;
            match (lines.recv_timeout(Duration::from_secs(1)), ended) {
                (Ok(line), _) => {
                    let _ = out.write_all(&line).and_then(|()| out.flush());
                    heard.line(String::from_utf8_lossy(&line).trim_end());
                }
                (_, Some(status)) => break status,
                (Err(RecvTimeoutError::Timeout), None) => {}
                (_, None) => break child.wait().map_err(|error| format!("`{shown}` was lost: {error}"))?,
            }
        };
        heard.failure = (!status.success()).then(|| format!("`{shown}` failed ({status})"));
        Ok(heard)
    }

    /// Takes a line of a test program.
    fn line(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED")) {
            self.names.push(name.trim_end_matches(" - should panic").to_owned());
        } else if let Some(sums) = line.strip_prefix("test result: ") {
            let sum =
                |of: &str| sums.split(['.', ';']).find_map(|sum| sum.trim().strip_suffix(of)?.trim().parse().ok());
            self.ended += 1;
            self.passed += sum("passed").unwrap_or(0);
            self.failed += sum("failed").unwrap_or(0);
        } else if line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test")) {
            self.begun += 1;
        }
    }

    /// How it ended, with the tests that failed.
    fn named(&self) -> String {
        format!("{}\n  {}", self.failure.as_deref().unwrap_or_default(), self.names.join("\n  "))
    }

    /// The tests that failed, if they are few, all known by name, and all that went wrong.
    fn failed_alone(&self) -> Result<&[String], String> {
        let named = self.named();
        if self.names.is_empty() || self.begun != self.ended || self.names.len() != self.failed {
            return Err(format!("{named}\n  {} programs of tests began, and {} ended", self.begun, self.ended));
        }
        // What is in documentation neither waits nor listens: there is no luck in it.
        if self.names.len() > MOST || self.names.iter().any(|name| name.contains(" (line ")) {
            return Err(named);
        }
        Ok(&self.names)
    }
}

/// The lines of a program's output, as bytes: not all that is printed is text.
fn lines(output: PipeReader) -> Receiver<Vec<u8>> {
    let (send, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        loop {
            let mut line = Vec::new();
            // Without a reader or anything to read there is nothing left to do: the exit status decides.
            let read = output.read_until(b'\n', &mut line).is_ok_and(|read| read > 0);
            if !read || send.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(output: &str) -> Heard {
        let mut heard = Heard { failure: Some("`tests` failed".to_owned()), ..Heard::default() };
        output.lines().for_each(|line| heard.line(line));
        heard
    }

    const ONE: &str = "\
running 2 tests
test a::good ... ok
test a::bad ... FAILED
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.01s
running 1 test
test b::bad - should panic ... FAILED
test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
";

    #[test]
    fn failed_tests_are_known_by_name() {
        let heard = heard(ONE);
        assert_eq!((heard.begun, heard.ended, heard.passed, heard.failed), (2, 2, 1, 2));
        assert_eq!(heard.failed_alone().unwrap(), ["a::bad", "b::bad"]);
    }

    #[test]
    fn what_is_more_than_bad_luck_is_not_run_again() {
        // A program that died, a failure without a name, none at all, too many, and documentation.
        assert!(heard(&format!("{ONE}running 5 tests\ntest c::died ... ok\n")).failed_alone().is_err());
        assert!(heard(&ONE.replace("test a::bad ... FAILED\n", "")).failed_alone().is_err());
        assert!(heard("").failed_alone().is_err());
        assert!(heard(&ONE.repeat(2)).failed_alone().is_err());
        assert!(heard(&ONE.replace("a::bad", "src/lib.rs - a (line 3)")).failed_alone().is_err());
    }

    #[test]
    fn only_what_fails_by_itself_as_well_fails_the_run() {
        let printing = |text: &str, status: u8| {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("printf '%s' '{text}'; exit {status}")]);
            command
        };
        let good = "running 1 test\ntest a::bad ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
        let here = Path::new(".");
        let run_with = |again: fn(&str) -> (&str, u8), beside: Option<(&str, u8)>| {
            let beside = beside.map(|(text, status)| Beside::start(here, printing(text, status)));
            let again = |_: &str| printing(again(good).0, again(good).1);
            run(here, &mut Vec::new(), [printing(ONE, 101)], beside, again)
        };
        assert_eq!(run_with(|good| (good, 0), None).unwrap(), ["a::bad", "b::bad"]);
        assert!(run_with(|_| (ONE, 101), None).unwrap_err().ends_with("a::bad failed twice"));
        assert!(run_with(|_| ("running 0 tests\ntest result: ok. 0 passed; 0 failed\n", 0), None).is_err());
        let run_good = |beside, out: &mut Vec<u8>| run(here, out, [printing(good, 0)], beside, |_| printing(good, 0));
        assert!(run_good(None, &mut Vec::new()).unwrap().is_empty());

        // What ran beside them is told as a whole, and counts as they do.
        assert_eq!(run_with(|good| (good, 0), Some((good, 0))).unwrap().len(), 2);
        assert!(run_with(|good| (good, 0), Some((ONE, 101))).is_err(), "four are no bad luck");
        assert!(run_with(|good| (good, 0), Some(("error: it does not compile\n", 101))).is_err(), "nor is this");
        let mut told = Vec::new();
        let beside = Beside::start(here, printing(ONE, 101));
        assert_eq!(run_good(Some(beside), &mut told).unwrap(), ["a::bad", "b::bad"]);
        assert!(String::from_utf8(told).unwrap().starts_with(&[good, ONE].concat()));
    }
}
