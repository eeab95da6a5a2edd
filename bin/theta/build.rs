//! Passes one argument to the linker.

use std::{
    env,
    io::{self, Write},
    process::Command,
};

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "cargo::rerun-if-changed=build.rs")?;
    let set = |name| env::var(name).unwrap_or_default();
    let glibc = set("CARGO_CFG_TARGET_OS") == "linux" && set("CARGO_CFG_TARGET_ENV") == "gnu";
    // An address in a table, which the loader has to move, takes 24 bytes; packed it takes little more than a bit. The loader of glibc knows
    // them packed since 2.36. Linkers that do not know them ignore this.
    if glibc && set("HOST") == set("TARGET") && loader().is_some_and(|version| version >= (2, 36)) {
        writeln!(out, "cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs")?;
    }
    Ok(())
}

/// The version of this machine's glibc.
fn loader() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
