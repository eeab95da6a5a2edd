//! The same client for programs without an async runtime.
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = theta_client::blocking::Client::open("group/client".as_ref())?;
//! let answer = client.sign("release", "a message".into())?;
//! println!("signed by nodes {:?} in {:?}", answer.contributors, answer.latency);
//! # Ok(())
//! # }
//! ```
//!
//! Each method is the one of [`crate::Client`] of the same name and blocks its thread until the answer is there. The
//! documentation of that method says what it does, returns and refuses.
//!
//! A request goes on after its answer is there, for 2 s at most, because it still has to reach the slower nodes. It does so
//! in a thread that all clones of a client share and that ends with the last of them. If a program drops its client at
//! once, some nodes may never receive its last request: the answer stays good, but these nodes miss their part, for example
//! of a slot.

use std::{
    future::Future,
    io,
    path::Path,
    pin::pin,
    sync::{Arc, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use bytes::Bytes;
use theta_names::{KeyState, NodeId, Version};
use theta_network::{Identity, group::GroupFile};
use theta_payload::PayloadKey;
use theta_schemes::{
    groups::Secret,
    keys::{AnyPublicKey, KeyName},
};
use theta_statements::{
    CeremonyRequest, KeyChange, StateChange,
    audit::{Checkpoint, LogEntry},
};
use theta_wire::v1;
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    task::unconstrained,
    time::timeout,
};

use crate::{
    Answer, CeremonyEnded, CeremonyOutcome, CeremonyProgress, ClientError, ClientFile, ClientOptions, Coin,
    Credentials, ListedKey, NodeProblem, NodeStatus, OpenError, RandomizedSignature, StateChanged,
};

/// A client of one group whose methods block. Clones share the connections and the thread that drives them.
#[derive(Clone, Debug)]
pub struct Client {
    client: crate::Client,
    driver: Arc<Driver>,
}

/// The runtime and the thread that drives it. After an answer the runtime goes on with the request, which still has to
/// reach the other nodes.
#[derive(Debug)]
struct Driver {
    handle: Handle,
    /// Dropping it, with the last client, ends the thread.
    _alive: oneshot::Sender<()>,
}

impl Driver {
    /// Uses a thread of our own rather than one of the runtime's: Tokio panics if the system has none to give.
    fn start() -> Result<Self, OpenError> {
        let failed = |error: io::Error| OpenError::Runtime(error.to_string());
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let handle = runtime.handle().clone();
        let (alive, last_client_gone) = oneshot::channel::<()>();
        let drive = move || {
            // Nothing is ever sent: the receiver resolves when the last client drops its end.
            drop(runtime.block_on(last_client_gone));
            runtime.shutdown_background();
        };
        // Nobody joins this thread: a client may be dropped where blocking is not allowed, for example inside another
        // runtime.
        drop(thread::Builder::new().name("theta-client".to_owned()).spawn(drive).map_err(failed)?);
        Ok(Self { handle, _alive: alive })
    }
}

impl Client {
    /// As [`crate::Client::open`].
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        Self::open_with(folder, ClientOptions::default())
    }

    /// As [`crate::Client::open_with`].
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_with(folder: &Path, options: ClientOptions) -> Result<Self, OpenError> {
        Self::make(|| crate::Client::open_with(folder, options))
    }

    /// As [`crate::Client::of_file`].
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn of_file(file: ClientFile, path: &Path, options: ClientOptions) -> Result<Self, OpenError> {
        Self::make(|| crate::Client::of_file(file, path, options))
    }

    /// As [`crate::Client::new`].
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn new(
        group: GroupFile,
        identity: Option<&Identity>,
        keys: impl IntoIterator<Item = (KeyName, AnyPublicKey)>,
        options: ClientOptions,
    ) -> Result<Self, OpenError> {
        Self::make(|| crate::Client::new(group, identity, keys, options))
    }

    fn make(client: impl FnOnce() -> Result<crate::Client, OpenError>) -> Result<Self, OpenError> {
        let driver = Driver::start()?;
        let client = {
            let _inside = driver.handle.enter();
            client()?
        };
        Ok(Self { client, driver: Arc::new(driver) })
    }

    /// As [`crate::Client::with_credentials`].
    #[must_use]
    pub fn with_credentials(self, credentials: Credentials) -> Self {
        Self { client: self.client.with_credentials(credentials), ..self }
    }

    /// The asynchronous client underneath, for what does not block: its group and its options, for example.
    #[must_use]
    pub const fn asynchronous(&self) -> &crate::Client {
        &self.client
    }

    /// Blocks until a future of the [asynchronous client](Self::asynchronous) is done, and no longer than this; `None` if it takes longer.
    /// What was sent before the time is over stays sent.
    ///
    /// ```no_run
    /// # fn example(client: &theta_client::blocking::Client) {
    /// let limit = std::time::Duration::from_secs(2);
    /// let signed = client.within(limit, client.asynchronous().sign("release", "a message".into()));
    /// # }
    /// ```
    pub fn within<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        // The clock of the driver's runtime can be asked from inside `wait` alone.
        self.wait(async { timeout(limit, future).await.ok() })
    }

    /// Blocks until the future is done. Inside another runtime it blocks a thread of that runtime as well, which works but
    /// is not advised.
    fn wait<F: Future>(&self, future: F) -> F::Output {
        // Not Tokio's `block_on`, which panics on a thread of another runtime; the ways around that take one thread a call.
        let _inside = self.driver.handle.enter();
        let (woken, wakes) = mpsc::sync_channel(1);
        let waker = Waker::from(Arc::new(Woken(woken)));
        let mut context = Context::from_waker(&waker);
        // The budget of the other runtime would stop this future and never be renewed.
        let mut future = pin!(unconstrained(future));
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            // Cannot fail: this function holds the waker, and with it the other end.
            let _ = wakes.recv();
        }
    }
}

/// Wakes a waiting thread. One wake-up in the queue is enough.
struct Woken(mpsc::SyncSender<()>);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        // An error means that a wake-up waits already, or that the thread has stopped waiting.
        let _ = self.0.try_send(());
    }
}

/// Makes a blocking method for each method of the asynchronous client.
macro_rules! waits_for {
    ($($(#[doc = $doc:literal])+ $name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)+) => {
        impl Client {
            $(
                $(#[doc = $doc])+
                pub fn $name(&self, $($argument: $kind),*) -> $answer {
                    self.wait(self.client.$name($($argument),*))
                }
            )+
        }
    };
}

waits_for! {
    /// As [`crate::Client::decapsulate`].
    ///
    /// # Errors
    /// [`ClientError`].
    decapsulate(key: &str, header: Bytes) -> Result<Answer<PayloadKey>, ClientError>;
    /// As [`crate::Client::decrypt`].
    ///
    /// # Errors
    /// [`ClientError`].
    decrypt(key: &str, ciphertext: Bytes) -> Result<Answer<Secret<Vec<u8>>>, ClientError>;
    /// As [`crate::Client::sign`].
    ///
    /// # Errors
    /// [`ClientError`].
    sign(key: &str, message: Bytes) -> Result<Answer<Bytes>, ClientError>;
    /// As [`crate::Client::sign_for_slot`].
    ///
    /// # Errors
    /// [`ClientError`].
    sign_for_slot(key: &str, message: Bytes, slot: u64) -> Result<Answer<Bytes>, ClientError>;
    /// As [`crate::Client::sign_digest`].
    ///
    /// # Errors
    /// [`ClientError`].
    sign_digest(key: &str, digest: Bytes, slot: Option<u64>) -> Result<Answer<Bytes>, ClientError>;
    /// As [`crate::Client::sign_randomized`].
    ///
    /// # Errors
    /// [`ClientError`].
    sign_randomized(
        key: &str,
        message: Bytes,
        randomizer: &Secret<Vec<u8>>
    ) -> Result<Answer<RandomizedSignature>, ClientError>;
    /// As [`crate::Client::flip_coin`].
    ///
    /// # Errors
    /// [`ClientError`].
    flip_coin(key: &str, name: Bytes) -> Result<Answer<Coin>, ClientError>;
    /// As [`crate::Client::sign_all`].
    ///
    /// # Errors
    /// [`ClientError`].
    sign_all(key: &str, messages: &[Bytes]) -> Result<crate::Answers<Bytes>, ClientError>;
    /// As [`crate::Client::sign_each`].
    ///
    /// # Errors
    /// [`ClientError`].
    sign_each(asks: &[(&str, Bytes)]) -> Result<crate::Answers<Bytes>, ClientError>;
    /// As [`crate::Client::sign_digests`].
    ///
    /// # Errors
    /// [`ClientError`].
    sign_digests(key: &str, digests: &[Bytes]) -> Result<crate::Answers<Bytes>, ClientError>;
    /// As [`crate::Client::flip_coins`].
    ///
    /// # Errors
    /// [`ClientError`].
    flip_coins(key: &str, names: &[Bytes]) -> Result<crate::Answers<Coin>, ClientError>;
    /// As [`crate::Client::decapsulate_all`].
    ///
    /// # Errors
    /// [`ClientError`].
    decapsulate_all(key: &str, headers: &[Bytes]) -> Result<crate::Answers<PayloadKey>, ClientError>;
    /// As [`crate::Client::public_key`].
    ///
    /// # Errors
    /// [`ClientError`].
    public_key(name: &str) -> Result<AnyPublicKey, ClientError>;
    /// As [`crate::Client::public_key_file`].
    ///
    /// # Errors
    /// [`ClientError`].
    public_key_file(name: &str) -> Result<String, ClientError>;
    /// As [`crate::Client::list_keys`].
    list_keys() -> (Vec<ListedKey>, Vec<NodeProblem>);
    /// As [`crate::Client::next_generation`].
    ///
    /// # Errors
    /// [`ClientError`].
    next_generation(name: &KeyName) -> Result<u64, ClientError>;
    /// As [`crate::Client::change_state`].
    ///
    /// # Errors
    /// [`ClientError`].
    change_state(key: &str, version: Option<Version>, state: KeyState) -> Result<StateChanged, ClientError>;
    /// As [`crate::Client::change_state_at`].
    ///
    /// # Errors
    /// [`ClientError`].
    change_state_at(
        key: &str,
        version: Option<Version>,
        state: KeyState,
        generation: u64
    ) -> Result<StateChanged, ClientError>;
    /// As [`crate::Client::make_change`].
    ///
    /// # Errors
    /// [`ClientError`].
    make_change(change: StateChange) -> Result<StateChanged, ClientError>;
    /// As [`crate::Client::running_ceremonies`].
    ///
    /// # Errors
    /// [`ClientError`].
    running_ceremonies() -> Result<Vec<CeremonyRequest>, ClientError>;
    /// As [`crate::Client::cancel`].
    ///
    /// # Errors
    /// [`ClientError`].
    cancel(request: &CeremonyRequest) -> Result<CeremonyEnded, ClientError>;
    /// As [`crate::Client::hold`].
    ///
    /// # Errors
    /// [`ClientError`].
    hold(
        change: KeyChange,
        on_progress: impl FnMut(&CeremonyProgress) + Send
    ) -> Result<CeremonyOutcome, ClientError>;
    /// As [`crate::Client::hold_request`].
    ///
    /// # Errors
    /// [`ClientError`].
    hold_request(
        request: CeremonyRequest,
        on_progress: impl FnMut(&CeremonyProgress) + Send
    ) -> Result<CeremonyOutcome, ClientError>;
    /// As [`crate::Client::ceremonies`].
    ceremonies() -> (Vec<(NodeId, Vec<v1::CeremonyStatus>)>, Vec<NodeProblem>);
    /// As [`crate::Client::status`].
    status() -> Vec<NodeStatus>;
    /// As [`crate::Client::audit`].
    ///
    /// # Errors
    /// [`ClientError`].
    audit(node: NodeId, from: u64, count: u64) -> Result<Vec<LogEntry>, ClientError>;
    /// As [`crate::Client::prune_audit`].
    ///
    /// # Errors
    /// [`ClientError`].
    prune_audit(node: NodeId, through: Checkpoint) -> Result<(u64, Checkpoint), ClientError>;
    /// As [`crate::Client::explain`].
    ///
    /// # Errors
    /// [`ClientError`].
    explain(
        node: NodeId,
        question: v1::ExplainPolicyRequest
    ) -> Result<v1::ExplainPolicyResponse, ClientError>;
    /// As [`crate::Client::follow_ledger`].
    ///
    /// # Errors
    /// [`ClientError`].
    follow_ledger(state: &mut theta_ledger::LedgerState) -> Result<crate::Followed, ClientError>;
    /// As [`crate::Client::renew`].
    ///
    /// # Errors
    /// [`ClientError`].
    renew() -> Result<bool, ClientError>;
    /// As [`crate::Client::key_states`].
    ///
    /// # Errors
    /// [`ClientError`].
    key_states(name: &KeyName) -> Result<Vec<crate::AgreedState>, ClientError>;
    /// As [`crate::Client::policy`].
    ///
    /// # Errors
    /// [`ClientError`].
    policy(node: NodeId) -> Result<v1::GetPolicyResponse, ClientError>;
}
