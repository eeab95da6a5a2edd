//! One `sshd` on loopback, which needs no rights and nothing of the system's: its user is in a file of its own.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use theta_knot::{
    places::Places,
    server::{free_port, tied},
};

use crate::group::{succeeds, until};

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(60);
/// Whose it is if the tests are those of root, for whom it would need a user and a folder of the system's.
const NOBODY: u32 = 65_534;
/// Lets a program find users in a file (cwrap.org, Debian's package libnss-wrapper).
const WRAPPER: &str = "libnss_wrapper.so";
/// Libraries that few systems have.
const LIBRARIES: [&str; 2] = ["libwrap.so.0", WRAPPER];
/// Programs that newer versions start by themselves, and which options name them.
const PARTS: [(&str, &str); 2] = [("sshd-session", "SshdSessionPath"), ("sshd-auth", "SshdAuthPath")];

/// A server. It ends when this is dropped, and when this process ends.
pub(super) struct Sshd {
    folder: TempDir,
    port: u16,
    server: Child,
}

impl Sshd {
    /// A server that lets nobody in so far.
    pub(super) fn start() -> Self {
        let places = Places::of_this_machine();
        places.check(&["sshd", "ssh", "ssh-keygen"]).unwrap();
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port().unwrap());
        let path = folder.path();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", "host"]).current_dir(path);
        succeeds(keygen);
        let host = fs::read_to_string(path.join("host.pub")).unwrap();
        fs::write(path.join("known_hosts"), format!("[127.0.0.1]:{port} {host}")).unwrap();
        let mut sshd = program(&places, path);
        fs::write(path.join("sshd_config"), config(path, port)).unwrap();
        sshd.args(["-D", "-e", "-f"]).arg(path.join("sshd_config")).current_dir(path);
        sshd.env("LD_PRELOAD", path.join(WRAPPER)).env("LD_LIBRARY_PATH", path);
        sshd.env("NSS_WRAPPER_PASSWD", path.join("passwd")).env("NSS_WRAPPER_GROUP", path.join("group"));
        let sshd = owned(path, sshd);
        let server = tied(&sshd, &path.join("sshd.log")).unwrap();
        let mut started = Self { folder, port, server };
        until("the server listens", PATIENCE, || {
            assert_eq!(started.server.try_wait().unwrap(), None, "sshd has ended: {}", started.said());
            started.said().contains("Server listening")
        });
        started
    }

    /// Lets in whoever has this key, and nobody else.
    pub(super) fn let_in(&self, key: &str) {
        fs::write(self.folder.path().join("authorized_keys"), key).unwrap();
    }

    /// The file of keys of servers, of which there is one.
    pub(super) fn known_hosts(&self) -> PathBuf {
        self.folder.path().join("known_hosts")
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// Who may log in, and where.
    pub(super) const fn user(&self) -> &'static str {
        "somebody@127.0.0.1"
    }

    /// What it has written to its log so far.
    pub(super) fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("sshd.log")).unwrap_or_default()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // Closes its standard input first. Nothing can be done about one that has ended by itself.
        let _ = self.server.wait();
    }
}

fn config(path: &Path, port: u16) -> String {
    let shown = path.display();
    let parts = PARTS.iter().filter(|(name, _)| path.join(name).is_file());
    let parts: String = parts.map(|(name, option)| format!("{option} {shown}/{name}\n")).collect();
    format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {shown}/host\nAuthorizedKeysFile {shown}/authorized_keys\nUsePAM no\nStrictModes no\n\
         PidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n{parts}"
    )
}

/// The server, copied into its folder with its libraries: whose it is may read nothing of the user's.
fn program(places: &Places, path: &Path) -> Command {
    let sshd = places.command("sshd");
    fs::copy(sshd.get_program(), path.join("sshd")).unwrap();
    let unpacked = places.libraries();
    let system = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"].map(PathBuf::from);
    for name in LIBRARIES {
        let found = unpacked.iter().chain(&system).map(|folder| folder.join(name)).find(|library| library.is_file());
        let found = found.unwrap_or_else(|| panic!("{name} is missing: let cargo xtask test unpack it"));
        fs::copy(found, path.join(name)).unwrap();
    }
    for folder in &unpacked {
        for (name, _) in PARTS {
            // usr/lib/openssh, beside the libraries' own folder.
            let part = folder.with_file_name("openssh").join(name);
            if part.is_file() {
                fs::copy(part, path.join(name)).unwrap();
            }
        }
    }
    Command::new(path.join("sshd"))
}

/// Has the server run as the owner of its files: this user, or nobody if that is root.
fn owned(path: &Path, sshd: Command) -> Command {
    let id = |option: &str| -> u32 {
        let mut id = Command::new("id");
        id.arg(option).stdin(Stdio::null());
        succeeds(id).trim().parse().unwrap()
    };
    let is_root = id("-u") == 0;
    let (user, group) = if is_root { (NOBODY, NOBODY) } else { (id("-u"), id("-g")) };
    let folder = path.display();
    fs::write(path.join("passwd"), format!("somebody:x:{user}:{group}::{folder}:/bin/sh\n")).unwrap();
    fs::write(path.join("group"), format!("somebody:x:{group}:\n")).unwrap();
    if !is_root {
        return sshd;
    }
    for entry in fs::read_dir(path).unwrap() {
        chown(entry.unwrap().path(), Some(user), Some(group)).unwrap();
    }
    let mut dropped = Command::new("setpriv");
    dropped.args([format!("--reuid={user}"), format!("--regid={group}"), "--clear-groups".to_owned()]);
    dropped.arg(sshd.get_program()).args(sshd.get_args()).current_dir(path);
    dropped.envs(sshd.get_envs().filter_map(|(name, value)| Some((name, value?))));
    dropped
}
