//! Passes the version of the compiler and the commit to the program, for its reports.

use std::{
    env,
    io::{self, Write},
    process::Command,
};

fn main() -> io::Result<()> {
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = said(Command::new(compiler).arg("--version"));
    let commit = env::var("THETA_COMMIT").ok().or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    let mut out = io::stdout();
    writeln!(out, "cargo::rustc-env=THETA_RUSTC={}", version.as_deref().unwrap_or("unknown"))?;
    writeln!(out, "cargo::rustc-env=THETA_COMMIT={}", commit.as_deref().unwrap_or("unknown"))?;
    writeln!(out, "cargo::rerun-if-changed=build.rs")?;
    writeln!(out, "cargo::rerun-if-env-changed=THETA_COMMIT")?;
    // A figure with the wrong commit is worse than a build: this file changes with every commit and every checkout.
    if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
        writeln!(out, "cargo::rerun-if-changed={log}")?;
    }
    Ok(())
}

fn git(words: &[&str]) -> Option<String> {
    said(Command::new("git").args(words))
}

/// The first line that a command says, if it succeeds.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(str::to_owned).filter(|line| !line.trim().is_empty())
}
