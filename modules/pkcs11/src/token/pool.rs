//! Keys for hosts that make their own: taken from a pool of finished ones, and bound to what the host calls them.
//!
//! A key is a host's from the moment when its binding is on disk, which is before the host is told of it. A program that ends in between
//! leaves a key that nobody uses; none is ever given twice.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cryptoki_sys::{
    CK_MECHANISM_INFO, CK_MECHANISM_TYPE, CK_OBJECT_HANDLE, CKA_ID, CKA_LABEL, CKR_ACTION_PROHIBITED,
    CKR_ATTRIBUTE_READ_ONLY, CKR_DEVICE_ERROR, CKR_DEVICE_MEMORY, CKR_FUNCTION_NOT_SUPPORTED, CKR_GENERAL_ERROR,
    CKR_MECHANISM_INVALID, CKR_OBJECT_HANDLE_INVALID,
};
use theta_client::{CeremonyEnd, ClientError, Credentials, KeyChange, blocking::Client};
use theta_keypool::{Binding, Bindings, BindingsError, Locked, Pin, PoolConfig, Shown, Stamp, State};
use theta_names::WallTime;
use theta_schemes::{
    Suite,
    keys::{KeyKind, KeyName},
};

use super::Token;
use crate::{
    generation::{self, Wanted},
    mechanisms,
    objects::{Attribute, Class, LiveKey, Object},
    refusal::{Outcome, Refusal},
};

/// How many names are tried for a new key: others may have taken those behind the last one that is known.
const NAMES: u32 = 8;
/// How long one program waits for others that make keys, besides the time that a call of theirs may take.
const OTHERS: Duration = Duration::from_secs(10);

/// The bindings as this process has read them.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<(Option<Stamp>, Arc<Bindings>)>);

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
        if seen.0.as_ref() == Some(&stamp) {
            return;
        }
        match pool.bindings.read() {
            Ok(bindings) => {
                let bindings = Arc::new(bindings);
                // A file that was written just now is read more than once.
                let is_new = seen.0.is_none() || seen.1 != bindings;
                *seen = (Some(stamp), Arc::clone(&bindings));
                drop(seen);
                self.catalogue.bind(bindings);
                if is_new {
                    // It may be of a key that is new.
                    self.catalogue.expire();
                }
            }
            Err(error) => {
                // What was known stays known, and the log has one line for each change, or a few while it is recent.
                seen.0 = Some(stamp);
                drop(seen);
                self.log.say(error);
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

    fn lock(&self, pool: &PoolConfig) -> Outcome<(Locked, Bindings)> {
        let patience = self.config.timeout.saturating_add(OTHERS);
        let locked = pool.bindings.lock(patience).map_err(|error| self.unbound(&error))?;
        let bindings = locked.read().map_err(|error| self.unbound(&error))?;
        Ok((locked, bindings))
    }

    fn write(&self, locked: &Locked, bindings: Bindings) -> Outcome<()> {
        locked.write(&bindings).map_err(|error| self.unbound(&error))?;
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
        let keys = self.catalogue.read_now(&client, &self.log)?;
        let numbered = |key: &LiveKey| {
            let (suite, number) = pool.prefix.parse(key.name()?)?;
            (suite == wanted.suite).then_some(number)
        };
        let apt = |key: &&LiveKey| {
            let is_free = bindings.is_free(key.public.key_id().as_bytes());
            numbered(key).is_some() && key.signs && key.modulus_bits() == wanted.modulus_bits && is_free
        };
        let key = match keys.iter().filter(apt).min_by_key(|key| numbered(key)) {
            Some(key) => key.clone(),
            None => self.make(&client, pool, wanted.suite, keys.iter().filter_map(numbered).max())?,
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

    /// Hosts find their keys by `CKA_ID`: two with one are allowed, and hardly meant.
    fn warn_of_twins(&self, bindings: &Bindings, shown: &Shown) {
        let twin = |binding: &&Binding| binding.state == State::Bound && binding.private.id == shown.id;
        if let Some((twin, id)) = bindings.iter().find(twin).zip(shown.id.as_ref()) {
            self.log.say(format_args!("warning: {} has the CKA_ID {}, too", twin.key, hex::encode(id)));
        }
    }

    /// Has the group make a key at once, where there is no free one.
    fn make(&self, client: &Client, pool: &PoolConfig, suite: Suite, last: Option<u32>) -> Outcome<LiveKey> {
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
        let known = client.asynchronous().ledger(|state| state.keys().keys().filter_map(named).max()).flatten();
        let first = last.max(known).unwrap_or(0).saturating_add(1);
        let client = self.signing_client(client)?;
        for number in first..first.saturating_add(NAMES) {
            let name = pool.prefix.name(suite, number).ok_or(Refusal(CKR_GENERAL_ERROR))?;
            match self.hold(&client, &name, suite) {
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

    fn hold(&self, client: &Client, name: &KeyName, suite: Suite) -> Result<LiveKey, MakeError> {
        // The code of gRPC for what exists already.
        const ALREADY_EXISTS: i32 = 6;
        let asked = client.asynchronous();
        let group = asked.group();
        let holders = group.nodes().iter().map(|node| node.id.get()).collect();
        let change = KeyChange::Create {
            key: name.clone(),
            suite: suite.into(),
            delivery: Default::default(),
            k: group.threshold(),
            holders,
        };
        let reference = format!("{name}@1");
        let made = async {
            let outcome = asked.hold(change, |_| {}).await?;
            let public = match &outcome.end {
                CeremonyEnd::Activated { .. } => Some(asked.public_key(&reference).await?),
                _ => None,
            };
            Ok((outcome, public))
        };
        let limit = self.config.timeout.saturating_mul(2);
        let (outcome, public) = match client.within(limit, made) {
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

/// Why the group has made no key.
enum MakeError {
    /// There is a key of that name.
    Taken,
    /// It does not want to, in words.
    Refused(String),
    /// It could not; the log has the words.
    Failed(Refusal),
}
