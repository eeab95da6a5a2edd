//! What members and operators do with the program, each in a folder with the registry's data and everybody's keys.

mod checks;
mod overrides;
mod statements;

use std::{
    fmt, fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use tempfile::TempDir;
use theta_groups::Secret;
use theta_rpki::registry::Registry;
use theta_statements::SigningKey;

use crate::issuer::registry_text;

/// A folder in which commands run.
struct Desk(TempDir);

/// A command that has ended.
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(Secret::new([seed; 32])).unwrap()
}

/// The public key as the registry's data have it.
fn digits(seed: u8) -> String {
    hex::encode(key(seed).verifying_key().as_bytes())
}

impl Desk {
    /// With `registry.toml`, and the keys `1.key` to `3.key` of the member, `11.key` to `13.key` of the operators, `9.key` of nobody.
    fn new() -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        fs::write(desk.path("registry.toml"), registry_text()).unwrap();
        for seed in [1, 2, 3, 9, 11, 12, 13] {
            let path = desk.path(&format!("{seed}.key"));
            fs::write(&path, key(seed).to_pem().expose()).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// What an agent would know of the registry.
    fn registry(&self) -> Registry {
        Registry::parse(&self.text("registry.toml")).unwrap()
    }

    /// Runs the program with these words, of which none has a space.
    fn run(&self, words: &str) -> Run {
        self.run_with(words, &[])
    }

    /// With further arguments that may have spaces.
    fn run_with(&self, words: &str, more: &[&str]) -> Run {
        let mut command = Command::new(env!("CARGO_BIN_EXE_theta-rpki"));
        command.current_dir(self.0.path()).env("NO_COLOR", "1").stdin(Stdio::null());
        let ended = command.args(words.split_whitespace()).args(more).output().unwrap();
        Run {
            code: ended.status.code(),
            stdout: String::from_utf8(ended.stdout).unwrap(),
            stderr: String::from_utf8(ended.stderr).unwrap(),
        }
    }
}

impl Run {
    #[track_caller]
    fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// It ends with this code, and says these words on standard error.
    #[track_caller]
    fn fails(self, code: i32, words: &str) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.stderr.contains(words), "no {words:?} in {self:?}");
        self
    }

    #[track_caller]
    fn says(self, words: &str) -> Self {
        assert!(self.stdout.contains(words), "no {words:?} in {self:?}");
        self
    }

    #[track_caller]
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {:?}, stdout:\n{}\nstderr:\n{}", self.code, self.stdout, self.stderr)
    }
}
