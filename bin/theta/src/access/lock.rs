//! `theta client lock` and `unlock`: client files whose private keys take a passphrase.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use theta_client::{ClientFile, LockError};
use theta_schemes::groups::Secret;
use theta_store::SealingKey;

use crate::{
    exit::Failure,
    files::{Source, write_new},
    output::Output,
};

/// The longest passphrase in bytes: that of PINs of PKCS#11.
const MOST: usize = 1024;

/// The files of both commands.
#[derive(Debug, Args)]
struct Files {
    /// A client file
    #[arg(value_name = "FILE")]
    client: PathBuf,
    /// File of the passphrase, which its owner alone can read; - for standard input
    #[arg(long, value_name = "FILE")]
    passphrase_file: PathBuf,
    /// The file to make
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Options of `theta client lock`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  theta client lock ann.client --passphrase-file passphrase -o host.client

The file stays as it is: remove it where its keys should not lie open. Hosts of the PKCS#11 module give the passphrase as their PIN, with \
pin = \"passphrase\" in the module's configuration (theta pkcs11 config --pin passphrase). The other commands of theta take no locked file.")]
pub(crate) struct LockArgs {
    #[command(flatten)]
    files: Files,
}

/// Options of `theta client unlock`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  theta client unlock host.client --passphrase-file passphrase -o ann.client")]
pub(crate) struct UnlockArgs {
    #[command(flatten)]
    files: Files,
}

#[derive(Serialize)]
struct Made<'a> {
    file: &'a Path,
}

/// `theta client lock`.
pub(super) fn lock(args: &LockArgs, output: Output) -> Result<(), Failure> {
    let files = &args.files;
    let passphrase = passphrase(&files.passphrase_file)?;
    check_new(&files.passphrase_file, line(&passphrase))?;
    change(files, &passphrase, output, "its private keys take the passphrase", ClientFile::lock)
}

/// `theta client unlock`.
pub(super) fn unlock(args: &UnlockArgs, output: Output) -> Result<(), Failure> {
    let passphrase = passphrase(&args.files.passphrase_file)?;
    change(&args.files, &passphrase, output, "it holds secrets", ClientFile::unlock)
}

fn change(
    files: &Files,
    passphrase: &Secret<Vec<u8>>,
    output: Output,
    what: &str,
    change: impl FnOnce(ClientFile, &[u8]) -> Result<ClientFile, LockError>,
) -> Result<(), Failure> {
    let file = ClientFile::load(&files.client)?;
    let changed = change(file, line(passphrase));
    let changed = changed.map_err(|error| Failure::Usage(format!("{}: {error}", files.client.display())))?;
    write_new(&files.output, changed.to_text().expose().as_bytes(), true)?;
    let made = Made { file: &files.output };
    output.result(&made, |out| writeln!(out, "made the client file {}: {what}", made.file.display()))
}

/// Refuses what is found by trying, as for a store.
fn check_new(path: &Path, passphrase: &[u8]) -> Result<(), Failure> {
    let named = |reason: &dyn std::fmt::Display| Failure::Usage(format!("{}: {reason}", path.display()));
    let text = std::str::from_utf8(passphrase).map_err(|_| named(&"a passphrase is a line of UTF-8"))?;
    let key = SealingKey::passphrase(Secret::new(text.to_owned())).map_err(|error| named(&error))?;
    key.check_new().map_err(|error| named(&error))
}

fn passphrase(path: &Path) -> Result<Secret<Vec<u8>>, Failure> {
    let bytes = Source::open_private(path)?.read_secret(MOST)?;
    if line(&bytes).is_empty() {
        return Err(Failure::Usage(format!("{} has no passphrase in it", path.display())));
    }
    Ok(bytes)
}

/// Without the end of the line, which editors add.
fn line(passphrase: &Secret<Vec<u8>>) -> &[u8] {
    passphrase.expose().trim_ascii_end()
}
