//! A group with keys of every kind that the module serves, and a host's configuration for it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::{Duration, Instant},
};

use theta_knot::places::Places;

use crate::harness::Group;

/// A private key of RSA whose primes are safe: making one takes a minute.
pub(crate) const SAFE_PRIMES: &str = include_str!("../../../../crates/keyfiles/src/import/safe_primes.pem");

/// The same with 3072 bits, whose primes are those of `vectors/sh00/safe_primes.json`.
pub(crate) const SAFE_PRIMES_3072: &str = include_str!("safe_primes_3072.pem");

/// The keys that were dealt, by what they are of. `live` was made by the nodes.
pub(crate) const KEYS: [(&str, &str); 7] = [
    ("ed", "frost-ed25519"),
    ("p256", "ecdsa-p256"),
    ("k1", "ecdsa-secp256k1"),
    ("rsa", "sh00-pkcs1-sha256"),
    ("rsa512", "sh00-pkcs1-sha512"),
    ("pss", "sh00-pss-sha256"),
    ("live", "frost-ed25519"),
];

/// The module, which cargo has built beside this program.
pub(crate) fn module() -> PathBuf {
    let module = std::env::current_exe().unwrap().with_file_name("libtheta_pkcs11.so");
    assert!(module.is_file(), "{} is missing: it is built with these tests", module.display());
    module
}

/// A running group of 2 of 4 with all keys, and `pkcs11.toml` with `host.client` beside it.
pub(crate) fn with_keys() -> Group {
    let mut group = Group::made_with(&["--keys", "ed=frost-ed25519,p256=ecdsa-p256,k1=ecdsa-secp256k1"]);
    group.file("rsa.pem", SAFE_PRIMES);
    for (name, suite) in KEYS.iter().filter(|(_, suite)| suite.starts_with("sh00")) {
        group.theta(&["keys", "import", "--name", name, "--suite", suite, "rsa.pem"]).ok();
    }
    group.start_all();
    group.theta(&["keys", "create", "live=frost-ed25519"]).ok();
    group.theta(&["client", "convert", "theta-group/client", "-o", "host.client"]).ok();
    configure(&group, "");
    group
}

/// The same for all tests that do not change it.
pub(crate) fn shared() -> &'static Group {
    static SHARED: OnceLock<Group> = OnceLock::new();
    SHARED.get_or_init(with_keys)
}

/// Writes the configuration of the host's module, with these lines for its token.
pub(crate) fn configure(group: &Group, lines: &str) {
    group.file("pkcs11.toml", format!("log = \"module.log\"\n[[token]]\nclient = \"host.client\"\n{lines}"));
}

/// What the module has written so far.
pub(crate) fn log(group: &Group) -> String {
    fs::read_to_string(group.path().join("module.log")).unwrap_or_default()
}

/// A program in the group's directory, with the module's configuration.
pub(crate) fn command(group: &Group, program: impl AsRef<std::ffi::OsStr>) -> Command {
    configured(group, Command::new(program))
}

fn configured(group: &Group, mut command: Command) -> Command {
    command.current_dir(group.path()).env("THETA_PKCS11_CONFIG", group.path().join("pkcs11.toml"));
    command.env_remove("THETA_CLIENT");
    command
}

/// Runs a program to its end; what it printed, if it succeeded.
pub(crate) fn succeeds(mut command: Command) -> String {
    let shown = format!("{command:?}");
    let output = command.output().unwrap_or_else(|error| panic!("{shown}: {error}"));
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{shown}: {}\n{said}", output.status);
    said
}

/// A program of a host, in the group's directory, with the module's configuration.
pub(crate) fn host_program(group: &Group, name: &str) -> Command {
    let places = Places::of_this_machine();
    places.check(&[name]).unwrap();
    configured(group, places.command(name))
}

/// Runs `openssl` with these words.
pub(crate) fn openssl(directory: &Path, words: &[&str]) -> String {
    let mut command = Command::new("openssl");
    command.args(words).current_dir(directory);
    succeeds(command)
}

/// Waits until something is so.
pub(crate) fn until(what: &str, patience: Duration, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !is_so() {
        assert!(Instant::now() < deadline, "it does not come about that {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
