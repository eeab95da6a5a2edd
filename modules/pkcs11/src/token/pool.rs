//! Keys for hosts that make their own: taken from a pool of finished ones, and bound to what the host calls them.
//!
//! A key is a host's from the moment when its binding is on disk, which is before the host is told of it. A program that ends in between
//! leaves a key that nobody uses; none is ever given twice.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cryptoki_sys::{
    CK_MECHANISM_INFO, CK_MECHANISM_TYPE, CK_OBJECT_HANDLE, CKA_ID, CKA_LABEL, CKR_ACTION_PROHIBITED,
    CKR_ATTRIBUTE_READ_ONLY, CKR_DEVICE_ERROR, CKR_DEVICE_MEMORY, CKR_FUNCTION_NOT_SUPPORTED, CKR_GENERAL_ERROR,
    CKR_MECHANISM_INVALID, CKR_OBJECT_HANDLE_INVALID,
};
use theta_client::{CeremonyEnd, ClientError, Credentials, KeyChange, blocking::Client};
use theta_keypool::{Binding, Bindings, BindingsError, Locked, Members, Pin, PoolConfig, Sharing, Shown, Stamp, State};
use theta_names::{NodeId, WallTime};
use theta_schemes::{
    Suite,
    keys::{KeyKind, KeyName},
};

use super::{OWN_WORK, Token};
use crate::{
    generation::{self, Wanted},
    mechanisms,
    objects::{Attribute, Class, LiveKey, Object},
    refusal::{Outcome, Refusal},
};

/// How many names are tried for a new key: others may have taken some that are not known yet.
const NAMES: usize = 8;
/// How long one program waits for others that make keys, besides the time that a call of theirs may take.
const OTHERS: Duration = Duration::from_secs(10);

/// After the system has not read the bindings, for a reason that says nothing of them, they are read again so often at most.
const AGAIN: Duration = Duration::from_millis(500);

/// The bindings as this process has read them.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<LastRead>);

#[derive(Debug, Default)]
struct LastRead {
    /// Of the file that was read; `None` if none was.
    stamp: Option<Stamp>,
    bindings: Arc<Bindings>,
    /// When the system last refused.
    refused: Option<Instant>,
}

impl Token {
    /// All mechanisms that hosts may name.
    pub(crate) fn mechanisms(&self) -> Vec<CK_MECHANISM_TYPE> {
        let generation = if self.config.pool.is_some() { &mechanisms::GENERATION[..] } else { &[] };
        [&mechanisms::ALL[..], generation].concat()
    }

    /// What `C_GetMechanismInfo` says.
    pub(crate) fn mechanism_info(&self, kind: CK_MECHANISM_TYPE) -> Outcome<CK_MECHANISM_INFO> {
        if self.mechanisms().contains(&kind) { mechanisms::info(kind) } else { Err(Refusal(CKR_MECHANISM_INVALID)) }
    }

    /// Looks whether another program has made or changed a key since.
    pub(super) fn see_bindings(&self) {
        let Some(pool) = &self.config.pool else { return };
        let stamp = pool.bindings.stamp();
        let mut seen = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.stamp.as_ref() == Some(&stamp) || seen.refused.is_some_and(|refused| refused.elapsed() < AGAIN) {
            return;
        }
        match pool.bindings.read() {
            Ok(bindings) => {
                let bindings = Arc::new(bindings);
                // A file that was written just now is read more than once.
                let is_new = seen.stamp.is_none() || seen.bindings != bindings;
                *seen = LastRead { stamp: Some(stamp), bindings: Arc::clone(&bindings), refused: None };
                // Before another thread has later ones: see `write`.
                self.catalogue.bind(bindings);
                drop(seen);
                if is_new {
                    // It may be of a key that is new.
                    self.catalogue.expire();
                }
            }
            Err(error) => {
                // What was known stays known. That a process has too many open files, or a disk a bad moment, does not stand in the file:
                // it is read again though it does not change.
                let is_refused = matches!(error, BindingsError::System { .. });
                seen.stamp = Some(stamp).filter(|_| !is_refused);
                seen.refused = is_refused.then(Instant::now);
                drop(seen);
                self.log.say_rarely(&error.to_string(), &error);
            }
        }
    }

    fn unbound(&self, error: &BindingsError) -> Refusal {
        self.log.say(error);
        Refusal(match error {
            BindingsError::Busy { .. } => CKR_DEVICE_ERROR,
            _ => CKR_GENERAL_ERROR,
        })
    }

    /// Waits for other programs that make keys, each for no longer than its own call may take: the time of this call begins then.
    fn lock(&self, pool: &PoolConfig) -> Outcome<(Locked, Bindings)> {
        let patience = self.config.timeout.saturating_add(OTHERS);
        let locked = pool.bindings.lock(patience).map_err(|error| self.unbound(&error))?;
        let bindings = locked.read().map_err(|error| self.unbound(&error))?;
        Ok((locked, bindings))
    }

    /// Writes the bindings, and shows them. A thread that has read those of before, and has not shown them yet, has the lock of what was seen
    /// meanwhile: so it does not show them after these.
    fn write(&self, locked: &Locked, bindings: Bindings) -> Outcome<()> {
        if let Some(doubt) = locked.write(&bindings).map_err(|error| self.unbound(&error))? {
            self.log.say(doubt);
        }
        let _seen = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.catalogue.bind(Arc::new(bindings));
        Ok(())
    }

    /// The pool, without which no keys are made.
    pub(crate) fn check_pool(&self) -> Outcome<&PoolConfig> {
        self.config.pool.as_ref().ok_or_else(|| {
            self.log.say("no key is made: the configuration names no pool for this token (pool = \"NAME\")");
            Refusal(CKR_FUNCTION_NOT_SUPPORTED)
        })
    }

    /// Gives the host the oldest free key of the kind that it wants: the handles of its public and its private object.
    pub(crate) fn generate(&self, wanted: &Wanted) -> Outcome<(CK_OBJECT_HANDLE, CK_OBJECT_HANDLE)> {
        let pool = self.check_pool()?;
        let client = self.client()?;
        let (locked, mut bindings) = self.lock(pool)?;
        let deadline = Instant::now() + self.config.timeout;
        let keys = self.catalogue.read_now(&client, &self.log, deadline)?;
        let members = members(&client);
        let number = |name: &str| pool.prefix.parse(name).filter(|(suite, _)| *suite == wanted.suite).map(|(_, it)| it);
        let numbered = |key: &LiveKey| number(key.name()?);
        let apt = |key: &&LiveKey| {
            let is_free = bindings.is_free(key.public.key_id().as_bytes());
            numbered(key).is_some() && key.signs && is_free && self.is_fit(pool, &members, wanted.suite, key)
        };
        let apt = keys.iter().filter(apt).filter(|key| key.modulus_bits() == wanted.modulus_bits);
        let key = match apt.min_by_key(|key| numbered(key)) {
            Some(key) => key.clone(),
            None => {
                let bound = bindings.iter().filter_map(|binding| number(binding.key.strip_suffix("@1")?));
                let taken = keys.iter().filter_map(numbered).chain(bound).collect();
                self.make(&client, pool, wanted.suite, taken, deadline)?
            }
        };
        self.warn_of_twins(&bindings, &wanted.private);
        let id = *key.public.key_id();
        bindings.put(Binding {
            key: key.reference.clone(),
            key_id: *id.as_bytes(),
            state: State::Bound,
            since: WallTime::now().seconds(),
            mechanism: wanted.mechanism,
            private: wanted.private.clone(),
            public: Some(wanted.public.clone()),
        });
        self.catalogue.add(key.clone());
        self.write(&locked, bindings)?;
        self.log.say(format_args!("{} is a host's now", key.reference));
        self.catalogue.handles_of(&id).ok_or(Refusal(CKR_GENERAL_ERROR))
    }

    /// Whether a key is what its name says. Who plants one that is not gives hosts nothing by it, and is seen in the log.
    fn is_fit(&self, pool: &PoolConfig, members: &Members, named: Suite, key: &LiveKey) -> bool {
        let checked = members.check(named, pool.security, &key.public, key.sharing.as_ref());
        if let Err(reason) = &checked {
            self.log.say_rarely(
                &key.reference,
                format_args!("{} is given to no host: {reason}; who has made it?", key.reference),
            );
        }
        checked.is_ok()
    }

    /// Hosts find their keys by `CKA_ID`: two with one are allowed, and hardly meant.
    fn warn_of_twins(&self, bindings: &Bindings, shown: &Shown) {
        let twin = |binding: &&Binding| binding.state == State::Bound && binding.private.id == shown.id;
        if let Some((twin, id)) = bindings.iter().find(twin).zip(shown.id.as_ref()) {
            self.log.say(format_args!("warning: {} has the CKA_ID {}, too", twin.key, hex::encode(id)));
        }
    }

    /// Has the group make a key at once, where there is no free one, if there is time for it until then.
    fn make(
        &self,
        client: &Client,
        pool: &PoolConfig,
        suite: Suite,
        mut taken: BTreeSet<u32>,
        deadline: Instant,
    ) -> Outcome<LiveKey> {
        let none = format!("the pool {} has no free key of {suite}", pool.prefix);
        let empty = |why: &str| {
            self.log.say(format_args!("{none}, and {why}: fill it with theta pkcs11 pool"));
            Err(Refusal(CKR_DEVICE_MEMORY))
        };
        if suite.key_kind() == KeyKind::Rsa {
            return empty("keys of RSA take a dealer");
        }
        // Destroyed keys keep their names; so do keys whose ceremony runs.
        let named = |name: &KeyName| pool.prefix.parse(name.as_str()).filter(|(of, _)| *of == suite).map(|(_, it)| it);
        let known = client.asynchronous().ledger(|state| state.keys().keys().filter_map(named).collect::<Vec<_>>());
        taken.extend(known.unwrap_or_default());
        let shared = match members(client).share(suite, pool.security) {
            Ok(shared) => shared,
            Err(reason) => return empty(&reason.to_string()),
        };
        let client = self.signing_client(client)?;
        for name in pool.prefix.free_names(suite, &taken).take(NAMES) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.log
                    .say(format_args!("{none}, and {name} is not made: the call's {:?} are over", self.config.timeout));
                return Err(Refusal(CKR_DEVICE_ERROR));
            }
            match self.hold(&client, &name, suite, shared.clone(), left) {
                Ok(key) => {
                    self.log.say(format_args!("{none}: the group has made {name}"));
                    return Ok(key);
                }
                Err(MakeError::Taken) => {}
                Err(MakeError::Refused(words)) => return empty(&format!("the group makes none ({words})")),
                Err(MakeError::Failed(refusal)) => return Err(refusal),
            }
        }
        empty("all names are taken that were tried")
    }

    /// The client, which signs its requests if it can: policies may want that of ceremonies.
    fn signing_client(&self, client: &Client) -> Outcome<Client> {
        if self.config.pin != Pin::None || !self.config.client.is_file() {
            // It has the host's credentials since the login; what a directory has to sign with is not read here.
            return Ok(client.clone());
        }
        let signer = self.signer()?;
        Ok(client.clone().with_credentials(Credentials { signer, ..Credentials::default() }))
    }

    fn hold(
        &self,
        client: &Client,
        name: &KeyName,
        suite: Suite,
        shared: Sharing,
        left: Duration,
    ) -> Result<LiveKey, MakeError> {
        // The code of gRPC for what exists already.
        const ALREADY_EXISTS: i32 = 6;
        let asked = client.asynchronous();
        let Sharing { k, holders, delivery } = shared;
        let holders = holders.into_iter().map(NodeId::get).collect();
        let change = KeyChange::Create { key: name.clone(), suite: suite.into(), delivery, k, holders };
        let reference = format!("{name}@1");
        let made = async {
            let outcome = asked.hold(change, |_| {}).await?;
            let public = match &outcome.end {
                CeremonyEnd::Activated { .. } => Some(asked.public_key(&reference).await?),
                _ => None,
            };
            Ok((outcome, public))
        };
        let (outcome, public) = match client.within(left.saturating_add(OWN_WORK), made) {
            Some(Ok(made)) => made,
            Some(Err(ClientError::Refused { code, .. })) if i32::from(code) == ALREADY_EXISTS => {
                return Err(MakeError::Taken);
            }
            Some(Err(error @ (ClientError::Denied { .. } | ClientError::Refused { .. }))) => {
                return Err(MakeError::Refused(error.to_string()));
            }
            failed => self.answered(&format!("making {name}"), failed).map_err(MakeError::Failed)?,
        };
        let id = match outcome.end {
            CeremonyEnd::Activated { key_id, .. } => Some(key_id),
            CeremonyEnd::Failed(reason) => return Err(MakeError::Refused(reason)),
            _ => None,
        };
        let public = public.filter(|public| Some(*public.key_id().as_bytes()) == id);
        let key = public.and_then(|public| LiveKey::new(name.to_string(), reference, public, true));
        key.ok_or_else(|| {
            self.log.say(format_args!("the ceremony that makes {name} has not ended with a key"));
            MakeError::Failed(Refusal(CKR_DEVICE_ERROR))
        })
    }

    /// Whether the host has destroyed the object with this handle.
    pub(crate) fn is_released(&self, handle: CK_OBJECT_HANDLE) -> bool {
        self.catalogue.is_released(handle)
    }

    /// Lets go what a host has made and destroys: of a public key the object alone, of a private key the key, which nobody gets again.
    pub(super) fn release(&self, object: &Object) -> Outcome<()> {
        self.change(object, |binding| match object.class {
            Class::Public => {
                binding.public = None;
                "has no public object any more"
            }
            Class::Private => {
                binding.state = State::Released;
                "is released: the host has destroyed it"
            }
        })
    }

    /// Gives an object of a host's another `CKA_ID` or label.
    pub(crate) fn rename(&self, object: &Object, attributes: &[Attribute]) -> Outcome<()> {
        if object.binding.is_none() {
            self.log.say(format_args!("{} is not changed: no host has made it", object.key.reference));
            return Err(Refusal(CKR_ACTION_PROHIBITED));
        }
        let (mut id, mut label) = (None, None);
        for Attribute { kind, value } in attributes {
            let outcome = match *kind {
                CKA_ID => generation::id(value).map(|given| id = Some(given)),
                CKA_LABEL => generation::label(value).map(|given| label = Some(given)),
                // What it is already may be said again.
                kind if object.attribute(kind).as_ref() == Ok(value) => Ok(()),
                kind => Err((Refusal(CKR_ATTRIBUTE_READ_ONLY), format!("attribute {kind:#x} is not the host's"))),
            };
            outcome.map_err(|(refusal, reason)| {
                self.log.say(format_args!("{} is not changed: {reason}", object.key.reference));
                refusal
            })?;
        }
        self.change(object, |binding| {
            let shown = match object.class {
                Class::Public => binding.public.get_or_insert_default(),
                Class::Private => &mut binding.private,
            };
            shown.id = id.or_else(|| shown.id.take());
            shown.label = label.or_else(|| shown.label.take());
            "has another id or label"
        })
    }

    /// Changes the binding of an object, on disk and here.
    fn change(&self, object: &Object, change: impl FnOnce(&mut Binding) -> &'static str) -> Outcome<()> {
        let pool = self.config.pool.as_ref().ok_or(Refusal(CKR_ACTION_PROHIBITED))?;
        let (locked, mut bindings) = self.lock(pool)?;
        // Another program may have destroyed the key, or its public object alone.
        let is_there =
            |it: &&Binding| it.state == State::Bound && (object.class == Class::Private || it.public.is_some());
        let bound = bindings.of(object.key.public.key_id().as_bytes()).filter(is_there).cloned();
        let mut binding = bound.ok_or(Refusal(CKR_OBJECT_HANDLE_INVALID))?;
        let words = change(&mut binding);
        bindings.put(binding);
        self.write(&locked, bindings)?;
        self.log.say(format_args!("{} {words}", object.key.reference));
        Ok(())
    }
}

/// The members of the group.
fn members(client: &Client) -> Members {
    let group = client.asynchronous().group();
    Members::new(group.threshold(), group.nodes().iter().map(|node| node.id))
}

/// Why the group has made no key.
enum MakeError {
    /// There is a key of that name.
    Taken,
    /// It does not want to, in words.
    Refused(String),
    /// It could not; the log has the words.
    Failed(Refusal),
}

#[cfg(test)]
mod tests {
    use std::{
        path::Path,
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    use theta_keypool::{BindingsFile, Security, TokenConfig};
    use theta_schemes::keys::deal_any;

    use super::*;
    use crate::log::Log;

    /// A token with a pool whose bindings are in this folder. No node is asked.
    fn token(folder: &Path) -> Token {
        let bindings = BindingsFile::new(folder.join("bindings.toml"));
        let pool = PoolConfig { prefix: "zone".parse().unwrap(), bindings, security: Security::Active };
        let config = TokenConfig {
            client: folder.join("absent.client"),
            label: None,
            pin: Pin::None,
            timeout: Duration::from_secs(10),
            destroy: false,
            pool: Some(pool),
            look_ahead: None,
        };
        Token::new(config, Log::new(theta_keypool::LogTo::Off), Arc::default())
    }

    fn key(number: u8) -> LiveKey {
        let threshold = theta_sharing::Threshold::new(2, 3).unwrap();
        let mut rng = <rand_chacha::ChaCha20Rng as rand_chacha::rand_core::SeedableRng>::from_seed([number; 32]);
        let (public, _) = deal_any(Suite::FrostEd25519, threshold, &mut rng);
        let name = format!("zone-frost-ed25519-{number}");
        LiveKey::new(name.clone(), format!("{name}@1"), public, true).unwrap()
    }

    fn bind(token: &Token, key: &LiveKey) {
        let (locked, mut bindings) = token.lock(token.check_pool().unwrap()).unwrap();
        bindings.put(Binding {
            key: key.reference.clone(),
            key_id: *key.public.key_id().as_bytes(),
            state: State::Bound,
            since: 1,
            mechanism: 0x1055,
            private: Shown::default(),
            public: Some(Shown::default()),
        });
        token.catalogue.add(key.clone());
        token.write(&locked, bindings).unwrap();
    }

    /// Makes these keys a host's; how many of them another thread has hidden again. A host that was told of one uses it at once, and later.
    fn make(token: &Token, numbers: std::ops::Range<u8>) -> usize {
        let is_lost = |number: &u8| {
            let key = key(*number);
            bind(token, &key);
            (0..300).any(|_| token.catalogue.handles_of(key.public.key_id()).is_none())
        };
        numbers.filter(is_lost).count()
    }

    /// Threads that look for keys have read the file before others changed it.
    #[test]
    fn who_looks_undoes_no_binding() {
        let folder = tempfile::tempdir().unwrap();
        let (token, over) = (&token(folder.path()), &AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        token.see_bindings();
                    }
                });
            }
            let makers = [scope.spawn(|| make(token, 0..60)), scope.spawn(|| make(token, 60..120))];
            let lost = makers.map(thread::ScopedJoinHandle::join);
            over.store(true, Ordering::Relaxed);
            assert_eq!(lost.map(Result::unwrap), [0, 0], "keys that were bound have no handles");
        });
    }
}
