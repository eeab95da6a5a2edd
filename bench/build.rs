//! Passes the version of the compiler to the program, for the report of `theta-bench micro`.

use std::{
    env,
    io::{self, Write},
    process::Command,
};

fn main() -> io::Result<()> {
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(compiler).arg("--version").output();
    let version = version.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    let version = if version.trim().is_empty() { "unknown" } else { version.trim() };
    let mut out = io::stdout();
    writeln!(out, "cargo::rustc-env=THETA_RUSTC={version}")?;
    writeln!(out, "cargo::rerun-if-changed=build.rs")?;
    writeln!(out, "cargo::rerun-if-env-changed=THETA_COMMIT")
}
