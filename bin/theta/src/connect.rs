//! The client directory, and the connection to the group.

use std::{
    future::Future,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use serde::Serialize;
use theta_client::{Answer, Client, ClientOptions, Credentials, Token};
use tokio::runtime::{Builder, Runtime};

use crate::{
    access::{ApprovalFiles, REQUEST_KEY, read_signing_key},
    exit::Failure,
    files::Source,
    keys::{Keyring, change::Nonce},
    units,
};

/// The client directory, which `theta group init` writes.
#[derive(Debug, Args)]
pub(crate) struct ClientDir {
    /// Client directory: the group file, this client's certificate, the public keys
    #[arg(long, value_name = "DIR", env = "THETA_CLIENT", default_value = "theta-group/client")]
    client: PathBuf,
}

impl ClientDir {
    /// The public keys in it.
    pub(crate) fn keyring(&self) -> Keyring {
        Keyring::new(&self.client)
    }
}

/// How to ask the group.
#[derive(Debug, Args)]
pub struct ClientArgs {
    #[command(flatten)]
    dir: ClientDir,
    /// How long the nodes may take
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::parse_duration)]
    timeout: Duration,
    /// File of a bearer token, as theta token new writes it
    #[arg(long, value_name = "FILE", env = "THETA_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// Sign the request with request.key of the client directory: whoever relays it can ask for nothing else
    #[arg(long)]
    sign_request: bool,
}

impl ClientArgs {
    /// The public keys of the group.
    pub(crate) fn keyring(&self) -> Keyring {
        self.dir.keyring()
    }

    /// How long the nodes may take.
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Prepares the connection. Nothing is sent yet.
    pub fn open(&self) -> Result<Session, Failure> {
        self.session(&ApprovalFiles::default(), self.sign_request, None)
    }

    /// The same, with approvals.
    pub(crate) fn open_with(&self, approvals: &ApprovalFiles) -> Result<Session, Failure> {
        self.session(approvals, self.sign_request, None)
    }

    /// The same. Requests are signed if the client has a key for that, and ceremonies may take `ceremony_timeout`.
    pub(crate) fn open_signed(
        &self,
        approvals: &ApprovalFiles,
        ceremony_timeout: Duration,
    ) -> Result<Session, Failure> {
        let signed = self.sign_request || self.dir.client.join(REQUEST_KEY).is_file();
        self.session(approvals, signed, Some(ceremony_timeout))
    }

    fn session(
        &self,
        approvals: &ApprovalFiles,
        signed: bool,
        ceremony_timeout: Option<Duration>,
    ) -> Result<Session, Failure> {
        if !self.dir.client.join("group.toml").is_file() {
            let dir = self.dir.client.display();
            return Err(Failure::Usage(format!(
                "{dir} is not a client directory (it has no group.toml): name one with --client or THETA_CLIENT, or make a \
                 group with theta group init"
            )));
        }
        let signer = signed.then(|| read_signing_key(&self.dir.client.join(REQUEST_KEY))).transpose()?;
        let token = self.token_file.as_deref().map(read_token).transpose()?;
        let approved = approvals.read()?;
        let credentials = Credentials { token, signer, approvals: approved.approvals };
        let usual = ClientOptions::default();
        let ceremony_timeout = ceremony_timeout.unwrap_or(usual.ceremony_timeout);
        let options = ClientOptions { timeout: self.timeout, ceremony_timeout, ..usual };
        let session = Session::with(&self.dir.client, options, credentials)?;
        Ok(Session { approved: approved.nonce, ..session })
    }
}

fn read_token(path: &Path) -> Result<Token, Failure> {
    let text = Source::open_private(path)?.read_secret(1024)?;
    let token = std::str::from_utf8(text.expose()).unwrap_or_default().trim_end().parse();
    token.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// A client of a group, with the runtime of its connections.
pub struct Session {
    dir: PathBuf,
    runtime: Runtime,
    client: Client,
    /// The nonce of the ceremony that its approvals are for.
    approved: Option<Nonce>,
}

impl Session {
    /// Opens a client directory, whose certificate is its only credential.
    pub fn open(dir: &Path, timeout: Duration) -> Result<Self, Failure> {
        Self::with(dir, ClientOptions { timeout, ..ClientOptions::default() }, Credentials::default())
    }

    /// The same; ceremonies may take so long.
    pub fn open_for(dir: &Path, timeout: Duration, ceremony_timeout: Duration) -> Result<Self, Failure> {
        Self::with(dir, ClientOptions { timeout, ceremony_timeout, ..ClientOptions::default() }, Credentials::default())
    }

    fn with(dir: &Path, options: ClientOptions, credentials: Credentials) -> Result<Self, Failure> {
        let runtime = runtime()?;
        let client = {
            let _inside = runtime.enter();
            Client::open_with(dir, options)?.with_credentials(credentials)
        };
        Ok(Self { dir: dir.to_owned(), runtime, client, approved: None })
    }

    /// The public keys of the group.
    pub fn keyring(&self) -> Keyring {
        Keyring::new(&self.dir)
    }

    /// The client.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The nonce of the ceremony that its approvals are for, if they name one.
    pub(crate) const fn approved(&self) -> Option<Nonce> {
        self.approved
    }

    /// Runs a future to its end.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }
}

/// A runtime for client work.
pub fn runtime() -> Result<Runtime, Failure> {
    let built = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    built.map_err(|error| Failure::Internal(format!("cannot start threads: {error}")))
}

/// How an answer came about, for the JSON of every command.
#[derive(Debug, Serialize)]
pub(crate) struct Provenance {
    key: String,
    node: u16,
    contributors: Vec<u16>,
    culprits: Vec<CulpritView>,
    instance_id: String,
    latency_ms: f64,
}

/// A node that misbehaved, and how.
#[derive(Debug, Serialize)]
pub struct CulpritView {
    /// The node.
    pub node: u16,
    /// The misbehaviour.
    pub misbehaviour: String,
}

impl Provenance {
    /// The provenance of this answer, made with this key.
    pub(crate) fn new<T>(key: &str, answer: &Answer<T>) -> Self {
        let caught = answer
            .culprits
            .iter()
            .map(|culprit| CulpritView { node: culprit.node.get(), misbehaviour: culprit.misbehaviour.clone() });
        let lied = answer
            .bad_answers
            .iter()
            .map(|problem| CulpritView { node: problem.node.get(), misbehaviour: problem.problem.to_string() });
        let mut contributors: Vec<u16> = answer.contributors.iter().map(|node| node.get()).collect();
        contributors.sort_unstable();
        Self {
            key: key.to_owned(),
            node: answer.node.get(),
            contributors,
            culprits: caught.chain(lied).collect(),
            instance_id: hex::encode(answer.instance_id),
            latency_ms: answer.latency.as_secs_f64() * 1e3,
        }
    }

    /// "by nodes 1 and 3 in 4.2 ms".
    pub(crate) fn summary(&self) -> String {
        let latency = units::human(Duration::from_secs_f64(self.latency_ms / 1e3));
        format!("by {} in {latency}", nodes(&self.contributors))
    }

    /// Prints a warning for every node that misbehaved.
    pub(crate) fn warn_of_culprits(&self) {
        for CulpritView { node, misbehaviour } in &self.culprits {
            crate::output::diagnostic("warning", &format!("node {node} misbehaved: {misbehaviour}"));
        }
    }
}

/// "node 3", "nodes 1 and 3", "nodes 1, 3 and 4".
pub fn nodes(numbers: &[u16]) -> String {
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    match texts.split_last() {
        None => "no nodes".to_owned(),
        Some((only, [])) => format!("node {only}"),
        Some((last, others)) => format!("nodes {} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_listed_in_words() {
        assert_eq!(nodes(&[]), "no nodes");
        assert_eq!(nodes(&[3]), "node 3");
        assert_eq!(nodes(&[1, 3, 4]), "nodes 1, 3 and 4");
    }
}
