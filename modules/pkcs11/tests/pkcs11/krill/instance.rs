//! One Krill process, with a folder of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::group::until;

use super::PATIENCE;

/// Where `cargo xtask test` has built Krill.
const BUILT: &str = "THETA_KRILL";

/// It ends when this is dropped.
pub(super) struct Instance {
    folder: PathBuf,
    url: String,
    server: Child,
}

/// A program of Krill's.
fn program(folder: &Path, name: &str) -> Command {
    let built = std::env::var_os(BUILT).map(|folder| Path::new(&folder).join(name));
    let mut command = Command::new(built.unwrap_or_else(|| PathBuf::from(name)));
    command.current_dir(folder).env_remove("THETA_PKCS11_CONFIG").env_remove("THETA_CLIENT").stdin(Stdio::null());
    command
}

impl Instance {
    /// Starts it in a folder that is there, as these lines of its configuration have it, with this configuration of the PKCS#11 module if it is to have
    /// that. It serves TLS, as two Krills insist on between them, with a certificate that it makes.
    pub(super) fn start(folder: PathBuf, port: u16, lines: &str, module: Option<&Path>) -> Self {
        let shown = folder.display();
        fs::create_dir(folder.join("krill")).unwrap();
        let configuration = format!(
            "storage_uri = \"{shown}/krill/\"\nlog_type = \"file\"\nlog_file = \"{shown}/krill.log\"\nlog_level = \"info\"\n\
             admin_token = \"secret\"\nip = \"127.0.0.1\"\nport = {port}\nunix_socket_enabled = false\n\
             service_uri = \"https://localhost:{port}/\"\nbgp_riswhois_enabled = false\n{lines}"
        );
        fs::write(folder.join("krill.conf"), configuration).unwrap();
        let mut server = program(&folder, "krill");
        server.envs(module.map(|module| ("THETA_PKCS11_CONFIG", module)));
        server.args(["-c", "krill.conf"]).stdout(Stdio::null()).stderr(Stdio::null());
        let server = server.spawn().expect("Krill is missing: let cargo xtask test build it, or install it");
        let started = Self { folder, url: format!("https://localhost:{port}/"), server };
        until("Krill answers", PATIENCE, || started.ask(&["list"]).is_ok());
        started
    }

    /// Runs Krill's command, which asks it for something; what it said, if Krill did that.
    pub(super) fn ask(&self, words: &[&str]) -> Result<String, String> {
        let mut krillc = program(&self.folder, "krillc");
        let output = krillc.args(["--server", &self.url, "--token", "secret"]).args(words).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        if output.status.success() {
            Ok(text(output.stdout))
        } else {
            Err(text([output.stdout, output.stderr].concat()))
        }
    }

    /// The same, where that must succeed, with the answer put into a file of its folder; the file's path.
    #[track_caller]
    pub(super) fn ask_into(&self, file: &str, words: &[&str]) -> String {
        let path = self.folder.join(file);
        fs::write(&path, self.ask(words).unwrap_or_else(|error| panic!("{error} {}", self.said()))).unwrap();
        path.into_os_string().into_string().unwrap()
    }

    /// What it has written so far.
    pub(super) fn said(&self) -> String {
        fs::read_to_string(self.folder.join("krill.log")).unwrap_or_default()
    }

    /// Adds an authority here, which publishes by one Krill's server and is below an authority of that one, by the exchange of RFC 8183.
    pub(super) fn add_authority(&self, name: &str, (upper, parent): (&Self, &str), resources: &[&str]) {
        self.ask(&["add", "--ca", name]).unwrap();
        let publisher = self.ask_into("publisher.xml", &["repo", "request", "--ca", name]);
        let repository = upper.ask_into("repository.xml", &["pubserver", "publishers", "add", "--request", &publisher]);
        self.ask(&["repo", "configure", "--ca", name, "--response", &repository]).unwrap();
        let child = self.ask_into("child.xml", &["parents", "request", "--ca", name]);
        let add = ["children", "add", "--ca", parent, "--child", name, "--request", &child];
        let response = upper.ask_into("parent.xml", &[&add[..], resources].concat());
        self.ask(&["parents", "add", "--ca", name, "--parent", parent, "--response", &response]).unwrap();
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
