//! The client file or directory, and the connection to the group.

use std::{
    future::Future,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use serde::Serialize;
use theta_client::{AgreedState, Answer, Client, ClientOptions, Credentials, KeyState, SigningKey, Token};
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};

use crate::{
    access::{ApprovalFiles, Nonce, request_key},
    culprits::{self, CulpritView},
    exit::Failure,
    files::{Source, check_client},
    keys::{Keyring, NamedKey},
    units,
};

pub(crate) use crate::terminal::pasted::client_option;
use crate::terminal::pasted::name_client;
pub use crate::text::nodes;

/// The client file, which `theta client new` writes, or the client directory, which `theta group init` writes.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClientDir {
    /// Client file, as theta client new writes it, or client directory
    #[arg(long, value_name = "FILE", env = "THETA_CLIENT", default_value = USUAL_CLIENT)]
    client: PathBuf,
}

/// Where `theta group init` puts the first client.
const USUAL_CLIENT: &str = "theta-group/client";

impl ClientDir {
    /// The file or directory.
    pub(crate) fn path(&self) -> &Path {
        &self.client
    }

    /// The public keys that the client knows.
    pub(crate) fn keyring(&self) -> Keyring {
        Keyring::new(&self.client)
    }

    /// The key that the client signs requests with.
    fn signer(&self) -> Result<SigningKey, Failure> {
        let client = self.client.display();
        request_key(&self.client)?.ok_or_else(|| {
            Failure::Usage(format!("the client {client} has no key to sign requests with (request.key)"))
        })
    }

    /// Finds something among the public keys that the client knows or, if it is not there, among those that it learns of now, that of this
    /// name in particular.
    pub(crate) fn look_up<T>(
        &self,
        name: Option<&str>,
        find: impl Fn(&Keyring) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let first = match find(&self.keyring()) {
            Ok(found) => return Ok(found),
            Err(first) => first,
        };
        self.try_anew(name, find).ok_or(first)
    }

    /// Tries again with what is new in the ledger, and then with this key as its holders have it, if the nodes can be reached.
    pub(crate) fn try_anew<T, E>(&self, key: Option<&str>, attempt: impl Fn(&Keyring) -> Result<T, E>) -> Option<T> {
        let session = Session::open(&self.client, AT_ONCE).ok()?;
        let (client, keyring) = (session.client(), session.keyring());
        session.block_on(async { timeout(AT_ONCE, client.renew()).await }).ok()?.ok()?;
        if let Ok(found) = attempt(&keyring) {
            return Some(found);
        }
        // Few nodes hold it, or it comes into the ledger in a moment.
        session.block_on(async { timeout(AT_ONCE, client.public_key_file(key?)).await.ok()?.ok() })?;
        attempt(&keyring).ok()
    }

    /// A key as far as it is known now, with the state that so many nodes tell that one of them is honest, if they can be reached.
    pub(crate) fn ask_state(
        &self,
        name: Option<&str>,
        choose: impl Fn(&Keyring) -> Result<NamedKey, Failure>,
    ) -> Result<(Keyring, NamedKey, Option<KeyState>), Failure> {
        // Whoever may read the keys and not the secrets beside them encrypts without asking.
        let Ok(session) = Session::open(&self.client, AT_ONCE) else {
            let keyring = self.keyring();
            let key = choose(&keyring)?;
            return Ok((keyring, key, None));
        };
        let client = session.client();
        // What cannot be asked is not known: this takes no node.
        let renewed = session.block_on(async { timeout(AT_ONCE, client.renew()).await });
        let (keyring, reached) = (session.keyring(), matches!(renewed, Ok(Ok(_))));
        let key = match (choose(&keyring), name) {
            (Err(first), Some(name)) if reached => {
                // Few nodes hold it, or it comes into the ledger in a moment.
                let told = session.block_on(async { timeout(AT_ONCE, client.public_key(name)).await });
                if matches!(told, Ok(Ok(_))) { choose(&keyring)? } else { return Err(first) }
            }
            (chosen, _) => chosen?,
        };
        if !reached {
            return Ok((keyring, key, None));
        }
        let states = session.block_on(async { timeout(AT_ONCE, client.key_states(&key.name)).await });
        let states = states.ok().and_then(Result::ok).unwrap_or_default();
        let this = |told: &&AgreedState| told.key_id.as_ref() == key.public.key_id().as_bytes();
        let state = states.iter().find(this).map(|told| told.state);
        Ok((keyring, key, state))
    }
}

/// How long the nodes may take to tell what is new, where a command needs no node.
const AT_ONCE: Duration = Duration::from_secs(2);

/// How to ask the group.
#[derive(Clone, Debug, Args)]
pub struct ClientArgs {
    #[command(flatten)]
    dir: ClientDir,
    /// How long the nodes may take
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::parse_duration)]
    timeout: Duration,
    /// File of a token, as theta token new writes it; it is sent to nobody
    #[arg(long, value_name = "FILE", env = "THETA_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// Sign the request with request.key of the client directory: whoever relays it can ask for nothing else
    #[arg(long)]
    sign_request: bool,
}

impl ClientArgs {
    /// As [`ClientDir::look_up`].
    pub(crate) fn look_up<T>(&self, name: &str, find: impl Fn(&Keyring) -> Result<T, Failure>) -> Result<T, Failure> {
        self.dir.look_up(Some(name), find)
    }

    /// As [`ClientDir::try_anew`].
    pub(crate) fn try_anew<T, E>(&self, name: &str, attempt: impl Fn(&Keyring) -> Result<T, E>) -> Option<T> {
        self.dir.try_anew(Some(name), attempt)
    }

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
        let signed = self.sign_request || request_key(&self.dir.client)?.is_some();
        self.session(approvals, signed, Some(ceremony_timeout))
    }

    fn session(
        &self,
        approvals: &ApprovalFiles,
        signed: bool,
        ceremony_timeout: Option<Duration>,
    ) -> Result<Session, Failure> {
        check_client(&self.dir.client)?;
        let usual = std::env::var_os("THETA_CLIENT").map_or_else(|| PathBuf::from(USUAL_CLIENT), PathBuf::from);
        if self.dir.client != usual {
            name_client(&self.dir.client);
        }
        let signer = if signed { Some(self.dir.signer()?) } else { None };
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

/// Reads a token's file.
pub(crate) fn read_token(path: &Path) -> Result<Token, Failure> {
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
    /// Opens a client file or directory, whose certificate is its only credential.
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
        Keyring::of(&self.dir, self.client.known())
    }

    /// Finds a key among those that the client knows or, if it is not there, among those that the nodes tell of.
    pub(crate) fn look_up(
        &self,
        name: Option<&str>,
        find: impl Fn(&Keyring) -> Result<NamedKey, Failure>,
    ) -> Result<NamedKey, Failure> {
        let keyring = self.keyring();
        let first = match find(&keyring) {
            Ok(found) => return Ok(found),
            Err(first) => first,
        };
        let learned = self.block_on(async {
            // A key that few nodes hold is not in the ledger: its holders tell it.
            match name {
                Some(name) => self.client.public_key(name).await.is_ok(),
                None => self.client.renew().await.unwrap_or(false),
            }
        });
        if learned { find(&keyring) } else { Err(first) }
    }

    /// The client.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Learns what the group has decided since, if the nodes tell at once.
    pub(crate) fn renew(&self) {
        // What cannot be learned now is found out by whoever needs it.
        let _ = self.block_on(async { timeout(AT_ONCE, self.client.renew()).await });
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

impl Provenance {
    /// The provenance of this answer, made with this key.
    pub(crate) fn new<T>(key: &str, answer: &Answer<T>) -> Self {
        let mut contributors: Vec<u16> = answer.contributors.iter().map(|node| node.get()).collect();
        contributors.sort_unstable();
        Self {
            key: key.to_owned(),
            node: answer.node.get(),
            contributors,
            culprits: culprits::of_answer(answer),
            instance_id: hex::encode(answer.instance_id),
            latency_ms: answer.latency.as_secs_f64() * 1e3,
        }
    }

    /// The key, as it was asked for.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// "by nodes 1 and 3 in 4.2 ms"; a node in quorum mode that was told the result does not learn whose shares made it, but of coins that prove
    /// themselves by them.
    pub(crate) fn summary(&self) -> String {
        let latency = units::human(Duration::from_secs_f64(self.latency_ms / 1e3));
        if self.contributors.is_empty() {
            return format!("by nodes of which node {} was not told, in {latency}", self.node);
        }
        format!("by {} in {latency}", nodes(&self.contributors))
    }

    /// Prints a warning for every node that misbehaved.
    pub(crate) fn warn_of_culprits(&self) {
        for culprit in &self.culprits {
            crate::output::diagnostic("warning", &culprit.to_string());
        }
    }
}
