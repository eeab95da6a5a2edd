//! One run of a program, and its result. The tests of `theta-demo` and `theta-bench` include this file, too. The module
//! that includes it defines `EXE`, the program, and `PROGRAM`, its name in messages.

#![allow(dead_code, reason = "each of the test programs uses a part of it")]

use std::{
    fmt,
    path::Path,
    process::{Command, Output, Stdio},
};

use super::harness::{EXE, PROGRAM};

/// A finished command.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// Asserts success.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// Asserts a failure with this exit code and a message of one line that contains all these words.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in {self:?}");
        }
        // The form for people, or with --json for programs.
        let beginnings = [format!("{PROGRAM}: error: "), r#"{"level":"error","#.to_owned()];
        let is_error = |line: &str| beginnings.iter().any(|beginning| line.starts_with(beginning));
        assert_eq!(self.stderr.lines().filter(|line| is_error(line)).count(), 1, "{self:?}");
        assert_eq!(self.stderr.lines().last().map(is_error), Some(true), "{self:?}");
        self
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stdout = String::from_utf8_lossy(&self.stdout);
        write!(f, "exit code {}, stdout:\n{stdout}\nstderr:\n{}", self.code, self.stderr)
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let stderr = String::from_utf8(output.stderr).unwrap();
        Self { code: output.status.code().unwrap_or(-1), stdout: output.stdout, stderr }
    }
}

/// The program, without the parts of the caller's environment that it would use, and without ignored signals, as under
/// `nohup` and in the background of a script.
pub(crate) fn command() -> Command {
    let mut command = Command::new("env");
    command
        .args(["--default-signal=HUP,INT,TERM", EXE])
        .env_remove("THETA_CLIENT")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null());
    command
}

/// Runs the program with these arguments in this directory.
pub(crate) fn run_in(dir: &Path, arguments: &[&str]) -> Run {
    command().args(arguments).current_dir(dir).output().unwrap().into()
}
