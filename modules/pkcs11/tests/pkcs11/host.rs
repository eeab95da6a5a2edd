//! A host in a process of its own: `host.py`, which is told call by call what to do.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use serde_json::{Value, json};

use crate::{
    group::{command, module},
    harness::Group,
};

/// The program.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../modules/pkcs11/tests/pkcs11/host.py");

pub(crate) const DEVICE_ERROR: u64 = 0x30;
pub(crate) const FUNCTION_REJECTED: u64 = 0x200;

/// The host's process. It ends when this is dropped.
pub(crate) struct Host {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Host {
    /// A host that has called nothing yet.
    pub(crate) fn start(group: &Group) -> Self {
        Self::with_stderr(group, Stdio::inherit())
    }

    /// The same, with a pipe for its standard error that nobody reads and that is closed.
    pub(crate) fn unheard(group: &Group) -> Self {
        let mut host = Self::with_stderr(group, Stdio::piped());
        drop(host.child.stderr.take().unwrap());
        host
    }

    /// The same, with a pipe that nobody reads and nobody closes.
    pub(crate) fn unread(group: &Group) -> Self {
        Self::with_stderr(group, Stdio::piped())
    }

    fn with_stderr(group: &Group, stderr: Stdio) -> Self {
        let mut command = command(group, "python3");
        command.arg("-B").arg(PROGRAM).arg(module()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().expect("python3 is installed");
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout }
    }

    /// A host that has called `C_Initialize`.
    pub(crate) fn ready(group: &Group) -> Self {
        let mut host = Self::start(group);
        host.ok(json!({"do": "initialise"}));
        host
    }

    /// Has it do something.
    pub(crate) fn tell(&mut self, ask: &Value) {
        writeln!(self.stdin, "{ask}").unwrap();
    }

    /// What came of that.
    pub(crate) fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert!(answer.get("error").is_none(), "{answer}");
        answer
    }

    /// Both.
    pub(crate) fn ask(&mut self, ask: Value) -> Value {
        self.tell(&ask);
        self.answer()
    }

    /// The same, which has to succeed.
    pub(crate) fn ok(&mut self, ask: Value) -> Value {
        let answer = self.ask(ask.clone());
        assert_eq!(answer["rv"], 0, "{ask}: {answer}");
        answer
    }

    /// The same, which has to fail with this return value.
    pub(crate) fn fails(&mut self, rv: u64, ask: Value) -> Value {
        let answer = self.ask(ask.clone());
        assert_eq!(answer["rv"], rv, "{ask}: {answer}");
        answer
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
