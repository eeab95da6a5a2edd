//! What people ask a group, and how a process of a demonstration ends with it.

use std::{
    io,
    path::Path,
    process::{Command, Stdio},
    thread,
};

use serde_json::Value;
use theta::exit::{Failure, reason};
use tokio::sync::oneshot;

use crate::Cluster;

impl Cluster {
    /// What a command of `theta` prints, run in this directory by the group's own client.
    pub fn theta(&self, dir: &Path, words: &[&str]) -> Result<String, Failure> {
        let program = &self.program;
        let mut theta = Command::new(program);
        theta.args(words).current_dir(dir).stdin(Stdio::null());
        theta.env("THETA_CLIENT", self.client_dir()).env_remove("THETA_TOKEN_FILE");
        let not_started =
            |error: io::Error| Failure::Failed(format!("{} does not start: {}", program.display(), reason(&error)));
        let output = theta.output().map_err(not_started)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Failure::Failed(format!("theta {}: {said}", words.join(" "))))
    }

    /// How often a node has refused something, as its log has it; `about` narrows that down, in words of `theta audit show`.
    pub fn refusals(&self, dir: &Path, node: u16, about: &[&str]) -> Result<usize, Failure> {
        let shown = self.refused(dir, node, "10000", &[about, &["--json"]].concat())?;
        let records: Vec<Value> = serde_json::from_str(&shown).map_err(Failure::internal)?;
        Ok(records.len())
    }

    /// The last time, as `theta audit show` shows it.
    pub fn last_refusal(&self, dir: &Path, node: u16, about: &[&str]) -> Result<String, Failure> {
        self.refused(dir, node, "1", about)
    }

    fn refused(&self, dir: &Path, node: u16, last: &str, about: &[&str]) -> Result<String, Failure> {
        let node = node.to_string();
        let words = ["audit", "show", "--refused", "--last", last, "--node", &node];
        self.theta(dir, &[&words[..], about].concat())
    }
}

/// Waits until standard input ends: that is when the process that has started this one ends, however it ends.
pub async fn end_of_input() {
    let (ended, end_of_input) = oneshot::channel::<()>();
    thread::spawn(move || {
        // An error ends the input as well.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = ended.send(());
    });
    let _ = end_of_input.await;
}
