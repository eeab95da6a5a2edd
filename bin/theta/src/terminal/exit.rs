//! How the program ends: one type for everything that can go wrong, and its exit code, in one place.

use std::{fmt, io, path::Path, process::ExitCode};

use clap::{Parser, error::ErrorKind};
use theta_client::{ClientError, OpenError, Problem};
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
exit_code.";

/// Why a command did not do what it was asked. The text is one line: what was wrong, where, what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The input was fine, the operation was not.
    #[error("{0}")]
    Failed(String),
    /// The caller can repair it: arguments, files, configuration.
    #[error("{0}")]
    Usage(String),
    /// Too few nodes answered in time.
    #[error("{0}")]
    NoAnswer(String),
    /// Ours.
    #[error("internal error: {0}; please report it")]
    Internal(String),
    /// Ctrl-C, or another signal that ends a command.
    #[error("interrupted")]
    Interrupted(EndSignal),
    /// Whoever reads standard output has gone, as `head` does: nothing to complain about.
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

    /// The name of the exit code for programs, which never changes.
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

    /// A file that cannot be read: the caller named it, so it is theirs to repair.
    pub fn reading(path: &Path, error: &io::Error) -> Self {
        Self::Usage(format!("cannot read {}: {}", path.display(), reason(error)))
    }

    /// A file that cannot be written.
    pub fn writing(path: &Path, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::Failed(format!("cannot write {}: {}", path.display(), reason(error)))
    }

    /// Standard output that cannot be written.
    pub fn stdout(error: &io::Error) -> Self {
        Self::writing(Path::new("standard output"), error)
    }

    /// An invariant of ours that does not hold.
    pub fn internal(what: impl fmt::Display) -> Self {
        Self::Internal(what.to_string())
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
            | ClientError::UnknownNode(_) => Self::Usage(text),
            ClientError::NoAnswer { nodes, .. } if nodes.iter().any(|node| is_absence(&node.problem)) => {
                Self::NoAnswer(format!("{text}; theta status shows who is up"))
            }
            _ => Self::Failed(text),
        }
    }
}

/// Whether a node was not there, or lacked others, rather than said no.
pub(crate) const fn is_absence(problem: &Problem) -> bool {
    match problem {
        Problem::Unreachable(_) | Problem::Silent(_) => true,
        Problem::Refused { code, .. } => {
            matches!(code, Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted | Code::Cancelled)
        }
        Problem::TurnedAway { .. } | Problem::Denied { .. } | Problem::FalseAnswer(_) => false,
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

/// An I/O error in words, without the "(os error N)" that helps nobody.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    // What follows is the path, which the message has already.
    text.split_once(" (os error").map(|(words, _)| words.to_lowercase()).unwrap_or(text)
}

/// Text without any "(os error N)".
pub(crate) fn tidy(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, rest| text + rest.split_once(')').map_or("", |(_, after)| after))
}

/// The whole of a program: reads its command line, does what that says, and says on one line of standard error what went
/// wrong. `program` is what the program is called there.
pub fn main<C: Parser>(program: &'static str, run: impl FnOnce(C) -> Result<(), Failure>) -> ExitCode {
    crate::output::call_program(program);
    // Also a command line that is not understood is answered in the form that it asks for.
    if std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json") {
        crate::output::diagnose_in_json();
    }
    match C::try_parse() {
        Ok(command_line) => report(run(command_line)),
        Err(error) => report_usage(&error),
    }
}

/// Says what went wrong on one line of standard error and returns the exit code.
fn report(result: Result<(), Failure>) -> ExitCode {
    let Err(failure) = result else { return ExitCode::SUCCESS };
    if !matches!(failure, Failure::OutputClosed) {
        // What each node said is a line each in the client's errors.
        let text = tidy(&failure.to_string());
        let one_line = text.replace("answer\n  ", "answer: ").replace("\n  ", "; ").replace('\n', " ");
        crate::output::diagnose("error", &one_line, failure.ending());
    }
    ExitCode::from(failure.code())
}

/// Prints the help that was asked for, or says what is wrong with the command line on one line of standard error.
fn report_usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // Whoever reads it has gone, as `head` does.
        let _ = error.print();
    } else {
        let line = usage_line(&error.render().to_string());
        crate::output::diagnose("error", &line, Failure::Usage(String::new()).ending());
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// The paragraphs of clap's report on one line: what is wrong, then the tip, or else the usage.
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
    fn io_errors_read_like_sentences() {
        let missing = io::Error::from_raw_os_error(2);
        let failure = Failure::reading(Path::new("x.toml"), &missing);
        assert_eq!(failure.to_string(), "cannot read x.toml: no such file or directory");
        assert_eq!(failure.code(), 2);
        assert_eq!(tidy("a: x (os error 1); b: y (os error 22)!"), "a: x; b: y!");
        let pipe = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Failure::stdout(&pipe).code(), 0);
    }
}
