//! How a program ends: one type for all failures, and their exit codes.

use std::{fmt, io, path::Path, process::ExitCode};

use clap::{Parser, error::ErrorKind};
use theta_client::{ClientError, OpenError, Problem, is_shown};
use theta_schemes::RequestError;
use theta_service::StartError;
use tonic::Code;

use crate::{interrupt::EndSignal, output::Ending};

/// The table of exit codes in `theta --help`.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    the operation failed: a signature does not verify, a ciphertext was
       changed, the nodes' policy refuses it, a file cannot be written, a
       port is in use
  2    wrong usage or bad input: a mistyped flag, a missing file, an unknown
       key, a damaged key file or configuration
  3    the group did not answer: too few nodes are up, or the time ran out
  4    internal error: please report it
  129  ended because its terminal was closed (SIGHUP)
  130  interrupted by Ctrl-C (SIGINT)
  143  ended by SIGTERM
A command that is ended leaves no unfinished file behind. With --json, what is
wrong is one JSON object on one line of standard error: level, message, kind,
exit_code. Warnings and notes are such objects, too, without the last two.";

/// Why a command failed. The text is one line: what was wrong, where, what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The input was right and the operation failed.
    #[error("{0}")]
    Failed(String),
    /// The caller can mend it: arguments, files, configuration.
    #[error("{0}")]
    Usage(String),
    /// Too few nodes answered in time.
    #[error("{0}")]
    NoAnswer(String),
    /// A bug of ours.
    #[error("internal error: {0}; please report it")]
    Internal(String),
    /// Ctrl-C, or another signal that ends a command.
    #[error("interrupted")]
    Interrupted(EndSignal),
    /// The reader of standard output has closed it, as `head` does: nothing is reported.
    #[error("standard output was closed")]
    OutputClosed,
}

impl Failure {
    /// The exit code, as [`EXIT_CODES`] documents it.
    pub const fn code(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::NoAnswer(_) => 3,
            Self::Internal(_) => 4,
            // As shells report a process that a signal ended.
            Self::Interrupted(signal) => 128 + signal.number(),
        }
    }

    /// The stable name of the exit code, for programs.
    const fn kind(&self) -> &'static str {
        match self {
            Self::OutputClosed => "output-closed",
            Self::Failed(_) => "failed",
            Self::Usage(_) => "usage",
            Self::NoAnswer(_) => "no-answer",
            Self::Internal(_) => "internal",
            Self::Interrupted(_) => "interrupted",
        }
    }

    fn ending(&self) -> Option<Ending> {
        Some(Ending { kind: self.kind(), exit_code: self.code() })
    }

    /// The error for a file that cannot be read, which the caller can mend.
    pub fn reading(path: &Path, error: &io::Error) -> Self {
        Self::Usage(format!("cannot read {}: {}", path.display(), reason(error)))
    }

    /// The error for a file that cannot be written.
    pub fn writing(path: &Path, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::Failed(format!("cannot write {}: {}", path.display(), reason(error)))
    }

    /// The error for standard output that cannot be written.
    pub fn stdout(error: &io::Error) -> Self {
        Self::writing(Path::new("standard output"), error)
    }

    /// The error for an invariant of ours that does not hold.
    pub fn internal(what: impl fmt::Display) -> Self {
        Self::Internal(what.to_string())
    }
}

/// What failed of a command that does one thing many times: a part that fails fails alone.
#[derive(Debug)]
pub(crate) struct Several {
    of: usize,
    failed: usize,
    first: Option<Failure>,
}

impl Several {
    /// A command with so many parts.
    pub(crate) const fn new(of: usize) -> Self {
        Self { of, failed: 0, first: None }
    }

    /// Tells that a part failed, and why. What concerns all parts is returned.
    pub(crate) fn note(&mut self, part: impl fmt::Display, failure: Failure) -> Result<(), Failure> {
        if matches!(failure, Failure::Interrupted(_) | Failure::OutputClosed | Failure::Internal(_)) {
            return Err(failure);
        }
        // The command ends with its one error. What nodes say is in this one, too.
        crate::output::diagnostic("warning", &format!("{part}: {}", one_line(&failure.to_string())));
        self.failed = self.failed.saturating_add(1);
        self.first.get_or_insert(failure);
        Ok(())
    }

    /// How the command ends: as its first part that failed did.
    pub(crate) fn end(self) -> Result<(), Failure> {
        let text = format!("{} of {} failed, as said above", self.failed, self.of);
        match self.first {
            None => Ok(()),
            Some(Failure::Usage(_)) => Err(Failure::Usage(text)),
            Some(Failure::NoAnswer(_)) => Err(Failure::NoAnswer(text)),
            Some(_) => Err(Failure::Failed(text)),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Tls(_) => Self::internal(error),
            error => Self::Usage(error.to_string()),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let text = error.to_string();
        match error {
            ClientError::Request(RequestError::InvalidCiphertext) => Self::Failed(text),
            ClientError::Request(_)
            | ClientError::Randomizer(_)
            | ClientError::KeyName(_)
            | ClientError::KeyVersion(_)
            // There is no such key.
            | ClientError::Refused { code: Code::NotFound, .. }
            | ClientError::UnknownNode(_) => Self::Usage(text),
            ClientError::NoAnswer { nodes, .. } if nodes.iter().any(|node| is_absence(&node.problem)) => {
                Self::NoAnswer(format!("{text}; theta status shows who is up"))
            }
            ClientError::Undecided { .. } => Self::NoAnswer(format!("{text}; theta status shows who is up")),
            _ => Self::Failed(text),
        }
    }
}

/// Whether a node was unreachable, or lacked other nodes, and did not refuse.
pub(crate) const fn is_absence(problem: &Problem) -> bool {
    match problem {
        Problem::Unreachable(_) | Problem::Silent(_) | Problem::NotReady(_) => true,
        Problem::Refused { code, .. } => {
            matches!(code, Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted | Code::Cancelled)
        }
        Problem::TurnedAway { .. }
        | Problem::Denied { .. }
        | Problem::Unanswerable(_)
        | Problem::OtherVersion(_)
        | Problem::KeyWithheld(_)
        | Problem::Unconfirmed(_)
        | Problem::FalseAnswer(_) => false,
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let text = error.to_string();
        match error {
            StartError::AddressInUse { .. } | StartError::Listen { .. } | StartError::Mesh(_) => Self::Failed(text),
            StartError::System(_) | StartError::Orchestrator(_) | StartError::Api(_) => Self::Internal(text),
            _ => Self::Usage(text),
        }
    }
}

/// An I/O error without "(os error N)".
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    // After it comes the path, which the message has already.
    text.split_once(" (os error").map(|(words, _)| words.to_lowercase()).unwrap_or(text)
}

/// The text without any "(os error N)", and with nothing in it that would move a terminal's cursor, colour it or turn its direction:
/// it may be that of a node that lies.
pub(crate) fn tidy(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    let text = parts.fold(first, |text, rest| text + rest.split_once(')').map_or("", |(_, after)| after));
    let plain = |character: char| match character {
        '\n' => ' ',
        character if !is_shown(character) => '\u{fffd}',
        character => character,
    };
    text.chars().map(plain).collect()
}

/// The body of a program: parses the command line, runs the command, and reports a failure in one line on standard error.
/// `program` is the program's name there.
pub fn main<C: Parser>(program: &'static str, run: impl FnOnce(C) -> Result<(), Failure>) -> ExitCode {
    crate::output::call_program(program);
    // A command line that cannot be parsed is answered in the format that it asks for, too.
    if std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json") {
        crate::output::diagnose_in_json();
    }
    match C::try_parse() {
        Ok(command_line) => report(run(command_line)),
        Err(error) => report_usage(&error),
    }
}

/// Reports a failure in one line on standard error, and returns the exit code.
fn report(result: Result<(), Failure>) -> ExitCode {
    let Err(failure) = result else { return ExitCode::SUCCESS };
    if !matches!(failure, Failure::OutputClosed) {
        let text = one_line(&failure.to_string());
        crate::output::diagnose("error", &text, failure.ending());
    }
    ExitCode::from(failure.code())
}

/// An error in one line: the client's errors have one more line for each node.
pub(crate) fn one_line(text: &str) -> String {
    tidy(&text.replace("answer\n  ", "answer: ").replace("\n  ", "; "))
}

/// Prints the help that was asked for, or reports in one line on standard error what is wrong with the command line.
fn report_usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // The reader may have closed the output, as `head` does.
        let _ = error.print();
    } else {
        let line = usage_line(&error.render().to_string());
        crate::output::diagnose("error", &line, Failure::Usage(String::new()).ending());
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Puts clap's report into one line: what is wrong, then the tip, or else the usage.
fn usage_line(report: &str) -> String {
    let (mut said, mut usage) = (Vec::new(), None);
    for paragraph in report.split("\n\n") {
        let text = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(synopsis) = text.strip_prefix("Usage: ") {
            usage = Some(format!("usage: {synopsis}"));
        } else if let Some(tip) = text.strip_prefix("tip: ") {
            said.push(tip.replace(" tip: ", "; "));
        } else if !text.starts_with("For more information") {
            let problem = text.strip_prefix("error: ").unwrap_or(&text);
            said.push(problem.replace("invalid digit found in string", "write a whole number"));
        }
    }
    if said.len() == 1 {
        said.extend(usage);
    }
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_documented_ones() {
        let text = String::new;
        for failure in
            [Failure::Failed(text()), Failure::Usage(text()), Failure::NoAnswer(text()), Failure::Internal(text())]
                .into_iter()
                .chain(EndSignal::ALL.map(Failure::Interrupted))
        {
            assert!(EXIT_CODES.contains(&format!("\n  {:<3}  ", failure.code())), "{failure:?}");
        }
    }

    #[test]
    fn a_wrong_command_line_is_one_line() {
        let line = |report: &str| usage_line(report);
        assert_eq!(
            line(
                "error: no '--x'\n\n  tip: there is '--y'\n\nUsage: theta --y\n\nFor more information, try '--help'.\n"
            ),
            "no '--x'; there is '--y'"
        );
        assert_eq!(
            line("error: missing:\n  <FILE>\n\nUsage: theta sign <FILE>\n\nFor more information, try '--help'.\n"),
            "missing: <FILE>; usage: theta sign <FILE>"
        );
    }

    #[test]
    fn what_each_node_did_is_told_apart() {
        assert_eq!(
            one_line("sign: no node gave a good answer\n  node 1: cannot be reached\n  node 2: \u{1b}[2Jno\nmore"),
            "sign: no node gave a good answer: node 1: cannot be reached; node 2: \u{fffd}[2Jno more"
        );
        assert_eq!(one_line("it waits for node 3\n  node 3: x"), "it waits for node 3; node 3: x");
    }

    #[test]
    fn io_errors_read_like_sentences() {
        let missing = io::Error::from_raw_os_error(2);
        let failure = Failure::reading(Path::new("x.toml"), &missing);
        assert_eq!(failure.to_string(), "cannot read x.toml: no such file or directory");
        assert_eq!(failure.code(), 2);
        assert_eq!(tidy("a: x (os error 1); b: y (os error 22)!"), "a: x; b: y!");
        assert_eq!(tidy("\u{1b}[2Jok\n  run: rm \u{202e}"), "\u{fffd}[2Jok   run: rm \u{fffd}");
        let pipe = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Failure::stdout(&pipe).code(), 0);
    }
}
