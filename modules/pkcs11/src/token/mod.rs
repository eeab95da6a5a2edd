//! A group as a token: who the host is to the nodes, and what it asks them.

mod pool;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::{Duration, Instant},
};

use cryptoki_sys::{
    CK_FLAGS, CK_OBJECT_HANDLE, CKF_LOGIN_REQUIRED, CKF_RNG, CKF_TOKEN_INITIALIZED, CKF_USER_PIN_INITIALIZED,
    CKR_ACTION_PROHIBITED, CKR_ATTRIBUTE_VALUE_INVALID, CKR_DEVICE_ERROR, CKR_GENERAL_ERROR, CKR_PIN_INCORRECT,
    CKR_TOKEN_NOT_PRESENT, CKR_USER_ALREADY_LOGGED_IN, CKR_USER_NOT_LOGGED_IN,
};
use theta_client::{
    ClientError, ClientFile, ClientOptions, Credentials, KeyRef, KeyState, LockError, OpenError, Problem, SigningKey,
    Token as ClientToken, blocking::Client, read_group,
};

use theta_keypool::{Pin, TokenConfig, shown_label};

use self::pool::Seen;
use crate::{
    catalogue::{Catalogue, Manner},
    log::{Log, shielded},
    look_ahead::LookAhead,
    mechanisms::Request,
    objects::{Attribute, Class, LiveKey, Object},
    refusal::{Outcome, Refusal},
};

/// How long connecting to one node may take at most.
const CONNECTING: Duration = Duration::from_secs(5);
/// How long the nodes may take to say whether they know a client's token.
const LOGIN: Duration = Duration::from_secs(8);
/// How long each of them has to answer, once it is connected: the others do not wait longer for one that hangs.
const ANSWER_TO_LOGIN: Duration = Duration::from_secs(2);
/// What a call may take longer than the nodes have: the client's own work.
const OWN_WORK: Duration = Duration::from_millis(500);

/// One token.
pub(crate) struct Token {
    config: TokenConfig,
    log: Log,
    /// The group's name and a number that tells it from others; `None` if its client file cannot be read.
    group: Option<(String, u64)>,
    state: Mutex<State>,
    catalogue: Catalogue,
    /// Which keys hosts have made.
    seen: Seen,
    /// What is signed before hosts ask for it, if somebody can say what that is.
    look_ahead: Option<LookAhead>,
}

#[derive(Debug, Default)]
struct State {
    /// Opened when it is first needed, since that starts a thread.
    client: Option<Client>,
    /// The same with the host's credentials.
    logged_in: Option<Client>,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("client", &self.config.client).finish_non_exhaustive()
    }
}

impl Token {
    pub(crate) fn new(config: TokenConfig, log: Log, handles: Arc<AtomicU64>) -> Self {
        let group = match read_group(&config.client) {
            Ok(group) => Some((group.name().to_owned(), serial(&[group.name(), group.founding().unwrap_or_default()]))),
            Err(error) => {
                log.say(format_args!("a token is absent: {error}"));
                None
            }
        };
        let pool = config.pool.as_ref().map(|pool| pool.prefix.clone());
        let manner = Manner { hidden: config.pin != Pin::None, destroyable: config.destroy, pool };
        let catalogue = Catalogue::new(handles, manner);
        let ahead = config.look_ahead.clone().map(|socket| LookAhead::new(socket, config.timeout, log.clone()));
        Self { config, log, group, state: Mutex::default(), catalogue, seen: Seen::default(), look_ahead: ahead }
    }

    /// Whether its client file could be read.
    pub(crate) const fn is_present(&self) -> bool {
        self.group.is_some()
    }

    pub(crate) const fn check_present(&self) -> Outcome<()> {
        if self.is_present() { Ok(()) } else { Err(Refusal(CKR_TOKEN_NOT_PRESENT)) }
    }

    /// Its label, of 32 bytes at most.
    pub(crate) fn label(&self) -> &str {
        let name = self.group.as_ref().map_or("", |(name, _)| name.as_str());
        shown_label(self.config.label.as_deref().unwrap_or(name))
    }

    /// Sixteen hexadecimal digits that tell groups apart.
    pub(crate) fn serial(&self) -> String {
        format!("{:016x}", self.group.as_ref().map_or(0, |(_, serial)| *serial))
    }

    /// What `CK_TOKEN_INFO` says.
    pub(crate) const fn flags(&self) -> CK_FLAGS {
        let login = match self.config.pin {
            Pin::None => 0,
            Pin::Token | Pin::Passphrase => CKF_LOGIN_REQUIRED,
        };
        CKF_RNG | CKF_TOKEN_INITIALIZED | CKF_USER_PIN_INITIALIZED | login
    }

    pub(crate) const fn log(&self) -> &Log {
        &self.log
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether private keys are seen and used.
    pub(crate) fn is_logged_in(&self) -> bool {
        self.state().logged_in.is_some()
    }

    /// Whether the host may use private keys now.
    fn is_open(&self) -> bool {
        self.config.pin == Pin::None || self.is_logged_in()
    }

    fn open(&self, state: &mut State) -> Outcome<Client> {
        if let Some(client) = &state.client {
            return Ok(client.clone());
        }
        let opened = shielded(|| Client::open_with(&self.config.client, self.options()));
        let opened = opened.map_err(|error| self.unopened(&error))?;
        Ok(state.client.insert(opened).clone())
    }

    fn options(&self) -> ClientOptions {
        let timeout = self.config.timeout;
        let connect_timeout = timeout.min(CONNECTING);
        ClientOptions { timeout, connect_timeout, ceremony_timeout: timeout, ..ClientOptions::default() }
    }

    fn unopened(&self, error: &OpenError) -> Refusal {
        self.log.say(error);
        Refusal::from(error)
    }

    /// The client with the host's credentials.
    fn client(&self) -> Outcome<Client> {
        let mut state = self.state();
        match (&state.logged_in, self.config.pin) {
            (Some(client), _) => Ok(client.clone()),
            (None, Pin::None) => self.open(&mut state),
            (None, Pin::Token | Pin::Passphrase) => Err(Refusal(CKR_USER_NOT_LOGGED_IN)),
        }
    }

    /// The client with the credentials that this PIN is. The nodes may be asked.
    pub(crate) fn credentials(&self, pin: &[u8]) -> Outcome<Client> {
        let opened = {
            let mut state = self.state();
            if state.logged_in.is_some() {
                return Err(Refusal(CKR_USER_ALREADY_LOGGED_IN));
            }
            if self.config.pin == Pin::Passphrase { None } else { Some(self.open(&mut state)?) }
        };
        match (opened, self.config.pin) {
            (Some(client), Pin::Token) => self.with_token(client, pin),
            (Some(client), _) => Ok(client),
            (None, _) => self.unlocked(pin),
        }
    }

    /// Takes the host's credentials, which [`Self::credentials`] has given.
    pub(crate) fn log_in(&self, client: Client) -> Outcome<()> {
        let mut state = self.state();
        if state.logged_in.is_some() {
            // Another thread was quicker.
            return Err(Refusal(CKR_USER_ALREADY_LOGGED_IN));
        }
        state.logged_in = Some(client);
        drop(state);
        self.catalogue.expire();
        Ok(())
    }

    /// The client whose private keys this passphrase unlocks.
    fn unlocked(&self, passphrase: &[u8]) -> Outcome<Client> {
        let path = &self.config.client;
        let file = ClientFile::load(path).map_err(|error| self.unopened(&error))?;
        let file = file.unlock(passphrase).map_err(|error| {
            self.log.say(format_args!("{}: {error}", path.display()));
            Refusal(if error == LockError::Passphrase { CKR_PIN_INCORRECT } else { CKR_TOKEN_NOT_PRESENT })
        })?;
        // Requests are signed only if some of them may have to be.
        let signer = if self.config.destroy || self.config.pool.is_some() {
            file.signer(path).map_err(|error| self.unopened(&error))?
        } else {
            None
        };
        let client = shielded(|| Client::of_file(file, path, self.options()));
        let client = client.map_err(|error| self.unopened(&error))?;
        Ok(client.with_credentials(Credentials { signer, ..Credentials::default() }))
    }

    /// The client with a token that the nodes know.
    fn with_token(&self, client: Client, pin: &[u8]) -> Outcome<Client> {
        let wrong = Refusal(CKR_PIN_INCORRECT);
        let token: ClientToken = std::str::from_utf8(pin).unwrap_or_default().trim().parse().map_err(|error| {
            self.log.say(format_args!("the PIN is wrong: {error}"));
            wrong
        })?;
        let client = client.with_credentials(Credentials { token: Some(token), ..Credentials::default() });
        let asked = client.asynchronous();
        let timeout = self.config.timeout;
        let asking = asked.list_keys_within(ANSWER_TO_LOGIN.min(timeout));
        let (_, problems) = client.within(LOGIN.min(timeout), asking).ok_or_else(|| {
            self.log.say("the nodes do not say in time whether they know the token");
            Refusal(CKR_DEVICE_ERROR)
        })?;
        let (nodes, quorum) = (asked.group().nodes().len(), usize::from(asked.given_group().threshold()));
        let unknown = problems.iter().filter(|node| is_unknown_caller(&node.problem)).count();
        // With so many that know nothing of it, too few are left that could sign.
        if nodes.saturating_sub(unknown) < quorum {
            self.log.say("the nodes do not know this token: put its line into their policies (theta token line)");
            return Err(wrong);
        }
        // A clock that is off makes no PIN wrong.
        let unproven: Vec<_> = problems.iter().filter(|node| is_unproven(&node.problem)).collect();
        if let Some(node) = unproven.first().filter(|_| nodes.saturating_sub(unproven.len()) < quorum) {
            self.log.say(format_args!("the nodes do not take this token's proof: {}", node.problem));
            return Err(Refusal(CKR_DEVICE_ERROR));
        }
        let reached =
            problems.iter().filter(|node| matches!(node.problem, Problem::Unreachable(_) | Problem::Silent(_)));
        if nodes.saturating_sub(reached.count()) < quorum {
            self.log.say("too few nodes can be reached to check the token");
            return Err(Refusal(CKR_DEVICE_ERROR));
        }
        Ok(client)
    }

    /// Forgets the host's credentials.
    pub(crate) fn log_out(&self) {
        self.state().logged_in = None;
        self.forget_ahead();
    }

    /// What was signed with one host's credentials is no other one's. Without a PIN all have the same.
    fn forget_ahead(&self) {
        if let Some(ahead) = self.look_ahead.as_ref().filter(|_| self.config.pin != Pin::None) {
            ahead.forget_all();
        }
    }

    /// `C_Logout`.
    pub(crate) fn check_log_out(&self) -> Outcome<()> {
        let before = self.state().logged_in.take();
        before.map(drop).ok_or(Refusal(CKR_USER_NOT_LOGGED_IN))?;
        self.forget_ahead();
        Ok(())
    }

    /// Looks for objects with these attributes. Before a login, where one is needed, nobody is asked and nothing is found.
    pub(crate) fn find(&self, template: &[Attribute]) -> Outcome<Vec<CK_OBJECT_HANDLE>> {
        if !self.is_open() {
            return Ok(Vec::new());
        }
        self.see_bindings();
        self.catalogue.refresh(&self.client()?, &self.log, self.config.timeout)?;
        Ok(self.catalogue.find(template, true))
    }

    /// An object by its handle, if the host may see it.
    pub(crate) fn object(&self, handle: CK_OBJECT_HANDLE) -> Option<Arc<Object>> {
        self.catalogue.get(handle).filter(|object| !object.hidden || self.is_open())
    }

    /// The key of the group that a host's public key is.
    pub(crate) fn given_by(&self, template: &[Attribute]) -> Outcome<LiveKey> {
        let found = self.catalogue.given_by(template).or_else(|| {
            self.find(&[]).ok()?;
            self.catalogue.given_by(template)
        });
        found.ok_or_else(|| {
            self.log.say(
                "a public key of the host's is left out: signatures are verified here under keys of the group alone",
            );
            Refusal(CKR_ATTRIBUTE_VALUE_INVALID)
        })
    }

    /// A signature of the group: one that was made before it is asked for, or a new one.
    pub(crate) fn sign(&self, key: &LiveKey, request: Request) -> Outcome<Vec<u8>> {
        let (client, deadline) = (self.client()?, Instant::now() + self.config.timeout);
        let ahead = self.look_ahead.as_ref().zip(request.digest());
        match ahead.and_then(|(ahead, digest)| ahead.signature(&client, key, &digest)) {
            Some(signature) => Ok(signature.to_vec()),
            None => self.sign_now(&client, key, request, deadline),
        }
    }

    /// Asks the group for a signature. What a host has waited already for one that was made ahead is a part of its time.
    fn sign_now(&self, client: &Client, key: &LiveKey, request: Request, deadline: Instant) -> Outcome<Vec<u8>> {
        let (name, whole) = (key.reference.as_str(), request.clone());
        let left = deadline.saturating_duration_since(Instant::now());
        let (asked, limit) = (client.asynchronous(), left.saturating_add(OWN_WORK));
        let answer = match request {
            Request::Message(message) => client.within(limit, asked.sign(name, message)),
            Request::Digest(digest) => client.within(limit, asked.sign_digest(name, digest, None)),
        };
        let answer = self.answered(&format!("signing with {name}"), answer)?;
        self.log.tell_of_liars(&answer);
        // The client has verified it under what the nodes mean by this name. The host has shown another public key to others, if the
        // name had no version with it and the key was rotated since.
        if key.accepts(&whole, &answer.result) {
            return Ok(answer.result.to_vec());
        }
        self.log.say(format_args!("{name} is another key by now: look for it again"));
        self.catalogue.expire();
        Err(Refusal(CKR_DEVICE_ERROR))
    }

    fn answered<T>(&self, what: &str, answer: Option<Result<T, ClientError>>) -> Outcome<T> {
        match answer {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => {
                self.log.say(format_args!("{what} failed: {error}"));
                Err(Refusal::from(&error))
            }
            None => {
                self.log.say(format_args!("{what} failed: no answer within {:?}", self.config.timeout));
                Err(Refusal(CKR_DEVICE_ERROR))
            }
        }
    }

    /// Destroys a key, if the configuration allows it and the group decides it. A key that a host has made is released at any rate.
    pub(crate) fn destroy(&self, object: &Object) -> Outcome<()> {
        if let Some(ahead) = &self.look_ahead {
            ahead.forget(object.key.public.key_id());
        }
        match (&object.binding, object.class) {
            (Some(_), Class::Private) if self.config.destroy => {
                self.destroy_in_group(object)?;
                self.release(object)
            }
            (Some(_), _) => self.release(object),
            (None, _) => self.destroy_in_group(object),
        }
    }

    fn destroy_in_group(&self, object: &Object) -> Outcome<()> {
        let name = object.key.reference.as_str();
        if !self.config.destroy || object.class == Class::Public {
            self.log.say(format_args!(
                "{name} is not destroyed: a key is destroyed as a private key, with destroy = true for its token"
            ));
            return Err(Refusal(CKR_ACTION_PROHIBITED));
        }
        let client = match self.config.pin {
            // It has the host's credentials since the login: a key or a token, beside which the file is nobody.
            Pin::Passphrase | Pin::Token => self.client()?,
            Pin::None => {
                let signer = self.signer()?;
                self.client()?.with_credentials(Credentials { signer, ..Credentials::default() })
            }
        };
        let key: KeyRef = name.parse().map_err(|_| Refusal(CKR_GENERAL_ERROR))?;
        if key.version.is_none() {
            // A name alone means all versions.
            self.log.say(format_args!("{name} is not destroyed: the nodes have not told which version of it this is"));
            self.catalogue.expire();
            return Err(Refusal(CKR_DEVICE_ERROR));
        }
        let asked = client.asynchronous();
        let limit = self.config.timeout.saturating_add(OWN_WORK);
        let done = client.within(limit, asked.change_state(key.name.as_ref(), key.version, KeyState::Destroyed));
        self.answered(&format!("destroying {name}"), done)?;
        self.log.say(format_args!("{name} is destroyed"));
        self.catalogue.expire();
        Ok(())
    }

    /// The key that the client signs changes of keys with.
    fn signer(&self) -> Outcome<Option<SigningKey>> {
        let path = &self.config.client;
        if !path.is_file() {
            self.log.say("keys are destroyed by clients of one file (theta client convert makes one of a directory)");
            return Err(Refusal(CKR_ACTION_PROHIBITED));
        }
        ClientFile::load(path).and_then(|file| file.signer(path)).map_err(|error| self.unopened(&error))
    }
}

/// Whether a node does not know who asks, whatever is asked.
fn is_unknown_caller(problem: &Problem) -> bool {
    // The code of gRPC for requests without credentials that a server knows.
    const UNAUTHENTICATED: i32 = 16;
    match problem {
        Problem::TurnedAway { .. } => true,
        Problem::Denied { reason, .. } => reason == "unidentified" || reason == "credential-withdrawn",
        Problem::Refused { code, .. } => i32::from(*code) == UNAUTHENTICATED,
        _ => false,
    }
}

/// Whether a node says that the proof of a token is of another time, or for another node.
fn is_unproven(problem: &Problem) -> bool {
    matches!(problem, Problem::Denied { reason, .. } if reason == "token-proof")
}

/// A number that differs where these texts do (FNV-1a): a name, and no proof of anything.
fn serial(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
