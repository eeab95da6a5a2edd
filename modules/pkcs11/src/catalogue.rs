//! Which keys a group has, as its members tell it: read again when a host looks for one, and kept while the nodes are away.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::{Duration, Instant},
};

use cryptoki_sys::{CK_OBJECT_HANDLE, CKR_DEVICE_ERROR, CKR_FUNCTION_REJECTED};
use theta_client::{KeyRef, KeyState, ListedKey, NodeProblem, Problem, Version, blocking::Client};
use theta_keypool::{Bindings, Prefix, State as Fate};
use theta_schemes::{Suite, keys::KeyId};

use crate::{
    log::Log,
    mechanisms,
    objects::{Attribute, Class, LiveKey, Object},
    process::next_handle,
    refusal::{Outcome, Refusal},
};

/// How long a node has to tell its keys: one that hangs must not hold up a host that looks for a key.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long learning a new key may take altogether.
const LEARNING: Duration = Duration::from_secs(5);
/// For how long what was read counts as new.
const NEW: Duration = Duration::from_secs(1);
/// After a look that took long, none is made for so many times as long.
const PAUSES: u32 = 10;

/// The objects of one token.
#[derive(Debug)]
pub(crate) struct Catalogue {
    handles: Arc<AtomicU64>,
    manner: Manner,
    /// Held by the thread that asks the nodes.
    turn: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The keys of the group as they were read.
    keys: Vec<LiveKey>,
    /// Which of them hosts have made.
    bindings: Arc<Bindings>,
    /// All that were ever seen: a handle stays good.
    objects: BTreeMap<CK_OBJECT_HANDLE, Arc<Object>>,
    by_key: HashMap<(KeyId, Class), CK_OBJECT_HANDLE>,
    /// Those that there are now.
    live: Vec<CK_OBJECT_HANDLE>,
    /// Those that hosts have destroyed.
    released: BTreeSet<CK_OBJECT_HANDLE>,
    /// When to look again; `None` before the first time.
    again: Option<Instant>,
}

/// What hosts may do with the objects of a token.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    /// Whether private keys are seen only after a login.
    pub(crate) hidden: bool,
    /// Whether keys may be destroyed.
    pub(crate) destroyable: bool,
    /// The pool whose keys are seen only by the host that has made them.
    pub(crate) pool: Option<Prefix>,
}

impl Catalogue {
    pub(crate) fn new(handles: Arc<AtomicU64>, manner: Manner) -> Self {
        Self { handles, manner, turn: Mutex::new(()), state: Mutex::default() }
    }

    /// The live objects that have all of these attributes, without asking anybody.
    pub(crate) fn find(&self, template: &[Attribute], logged_in: bool) -> Vec<CK_OBJECT_HANDLE> {
        let state = self.state();
        let live = state.live.iter().filter_map(|handle| state.objects.get(handle));
        let seen = live.filter(|object| (logged_in || !object.hidden) && object.matches(template));
        seen.map(|object| object.handle).collect()
    }

    /// An object by its handle.
    pub(crate) fn get(&self, handle: CK_OBJECT_HANDLE) -> Option<Arc<Object>> {
        let state = self.state();
        state.objects.get(&handle).filter(|_| !state.released.contains(&handle)).cloned()
    }

    /// Whether there was an object with this handle, which a host has destroyed.
    pub(crate) fn is_released(&self, handle: CK_OBJECT_HANDLE) -> bool {
        self.state().released.contains(&handle)
    }

    /// Takes what hosts have made, as it is now.
    pub(crate) fn bind(&self, bindings: Arc<Bindings>) {
        let mut state = self.state();
        state.bindings = bindings;
        state.show(&self.manner, &self.handles);
    }

    /// Takes a key that the group has made since its keys were read.
    pub(crate) fn add(&self, key: LiveKey) {
        let mut state = self.state();
        if !state.keys.iter().any(|known| known.public.key_id() == key.public.key_id()) {
            state.keys.push(key);
        }
    }

    /// The handles of a key's public and its private object, if both are seen.
    pub(crate) fn handles_of(&self, key: &KeyId) -> Option<(CK_OBJECT_HANDLE, CK_OBJECT_HANDLE)> {
        let state = self.state();
        let handle = |class| state.by_key.get(&(*key, class)).copied().filter(|handle| state.live.contains(handle));
        Some((handle(Class::Public)?, handle(Class::Private)?))
    }

    /// The keys of the group as its nodes tell them now.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR` if too few nodes answer.
    pub(crate) fn read_now(&self, client: &Client, log: &Log) -> Outcome<Vec<LiveKey>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let Read { keys, is_new } = read(client, log)?;
        if !is_new {
            return Err(Refusal(CKR_DEVICE_ERROR));
        }
        let mut state = self.state();
        state.take(keys.clone(), &self.manner, &self.handles);
        state.again = Some(Instant::now() + NEW);
        Ok(keys)
    }

    /// The key that a host's public key is.
    pub(crate) fn given_by(&self, template: &[Attribute]) -> Option<LiveKey> {
        let state = self.state();
        state.objects.values().map(|object| &object.key).find(|key| key.is_given_by(template)).cloned()
    }

    /// Looks again at the next opportunity.
    pub(crate) fn expire(&self) {
        let mut state = self.state();
        if let Some(again) = &mut state.again {
            *again = Instant::now();
        }
    }

    /// Asks the nodes, if what is known is not new. One thread asks; others wait for it only if nothing is known yet.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR` if nothing is known and too few nodes answer.
    pub(crate) fn refresh(&self, client: &Client, log: &Log) -> Outcome<()> {
        let due = |again: Option<Instant>| again.is_none_or(|again| again <= Instant::now());
        let known = self.state().again;
        if !due(known) {
            return Ok(());
        }
        let _turn = match known {
            None => self.turn.lock().unwrap_or_else(PoisonError::into_inner),
            Some(_) => match self.turn.try_lock() {
                Ok(turn) => turn,
                // Another thread asks; what was known is good enough.
                Err(_) => return Ok(()),
            },
        };
        if !due(self.state().again) {
            return Ok(());
        }
        let began = Instant::now();
        let read = read(client, log);
        let mut state = self.state();
        match read {
            Ok(Read { keys, .. }) => state.take(keys, &self.manner, &self.handles),
            Err(refusal) if state.again.is_none() => return Err(refusal),
            // The nodes are away, and the keys are what they were.
            Err(_) => {}
        }
        state.again = Some(Instant::now() + NEW.max(began.elapsed().saturating_mul(PAUSES)));
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, keys: Vec<LiveKey>, manner: &Manner, handles: &AtomicU64) {
        self.keys = keys;
        self.show(manner, handles);
    }

    /// Makes the objects of the keys.
    fn show(&mut self, manner: &Manner, handles: &AtomicU64) {
        self.live.clear();
        for key in &self.keys {
            let id = *key.public.key_id();
            let binding = manner.pool.as_ref().and_then(|_| self.bindings.of(id.as_bytes()));
            let is_pooled = |pool: &Prefix| key.name().is_some_and(|name| pool.parse(name).is_some());
            if binding.is_none() && manner.pool.as_ref().is_some_and(is_pooled) {
                // It is free, and of nobody yet.
                continue;
            }
            let released = binding.is_some_and(|binding| binding.state == Fate::Released);
            let without_public = released || binding.is_some_and(|binding| binding.public.is_none());
            for (class, is_gone) in [(Class::Public, without_public), (Class::Private, released)] {
                if class == Class::Private && !key.signs {
                    continue;
                }
                let handle = *self.by_key.entry((id, class)).or_insert_with(|| next_handle(handles));
                if is_gone {
                    self.released.insert(handle);
                    continue;
                }
                let hidden = manner.hidden && class == Class::Private;
                let (binding, destroyable) = (binding.cloned().map(Arc::new), manner.destroyable || binding.is_some());
                let object = Object { handle, class, key: key.clone(), on_token: true, hidden, destroyable, binding };
                self.objects.insert(handle, Arc::new(object));
                self.live.push(handle);
            }
        }
    }
}

/// What so many nodes say alike that one of them is honest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Said {
    name: String,
    version: Version,
    key_id: [u8; 32],
    state: KeyState,
    primary: bool,
}

/// The keys of the group.
struct Read {
    keys: Vec<LiveKey>,
    /// Whether the group has told them just now.
    is_new: bool,
}

fn read(client: &Client, log: &Log) -> Outcome<Read> {
    let asked = client.asynchronous();
    let quorum = usize::from(asked.given_group().threshold());
    let told = client.within(PATIENCE.saturating_mul(2), asked.list_keys_within(PATIENCE));
    let timed_out = told.is_none();
    let (listed, problems) = told.unwrap_or_default();
    // Nodes without keys answer, too; what is new is listed by some of them before the others.
    let answered = asked.group().nodes().len().saturating_sub(problems.len());
    if answered >= quorum && !timed_out {
        let keys = agreed(listed, quorum).into_iter().filter_map(|said| learned(client, &said, log)).collect();
        return Ok(Read { keys, is_new: true });
    }
    if !problems.is_empty() {
        log.say(format_args!("too few nodes tell their keys: {}", words(&problems)));
    }
    // Whoever may not ask for the list knows what the group's ledger has.
    let is_denied = problems.iter().any(|node| matches!(node.problem, Problem::Denied { .. }));
    let is_new = is_denied && matches!(client.within(LEARNING, asked.renew()), Some(Ok(_)));
    let keys = remembered(client);
    match (keys.is_empty(), is_denied) {
        (false, _) => Ok(Read { keys, is_new }),
        (true, true) => Err(Refusal(CKR_FUNCTION_REJECTED)),
        (true, false) => Err(Refusal(CKR_DEVICE_ERROR)),
    }
}

fn words(problems: &[NodeProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn agreed(listed: Vec<ListedKey>, quorum: usize) -> Vec<Said> {
    let mut told: BTreeMap<Said, BTreeSet<_>> = BTreeMap::new();
    for ListedKey { info, nodes, .. } in listed {
        let serves =
            Suite::ALL.into_iter().any(|suite| suite.name() == info.suite && !mechanisms::of(suite).is_empty());
        let state = KeyState::ALL.into_iter().find(|state| state.name() == info.state);
        let key_id = <[u8; 32]>::try_from(info.key_id.as_ref()).ok();
        if let (true, Some(version), Some(state), Some(key_id)) = (serves, Version::new(info.version), state, key_id) {
            let said = Said { name: info.name, version, key_id, state, primary: info.primary };
            told.entry(said).or_default().extend(nodes);
        }
    }
    told.into_iter().filter(|(_, nodes)| nodes.len() >= quorum).map(|(said, _)| said).collect()
}

/// The key that the nodes list, with its public key: from what the client has checked already, or else from the nodes.
fn learned(client: &Client, said: &Said, log: &Log) -> Option<LiveKey> {
    let signs = match said.state {
        KeyState::Active => true,
        KeyState::Retired | KeyState::Disabled => false,
        KeyState::Pending | KeyState::Destroyed => return None,
    };
    let reference = format!("{}@{}", said.name, said.version);
    let (asked, id) = (client.asynchronous(), KeyId::from_bytes(said.key_id));
    let found = asked.known().of_id(&id).map(|known| known.public).or_else(|| {
        let learning = async {
            // The ledger has most keys; its holders tell the others.
            let _ = asked.renew().await;
            match asked.known().of_id(&id) {
                Some(known) => Ok(known.public),
                None => asked.public_key(&reference).await,
            }
        };
        match client.within(LEARNING, learning) {
            Some(Ok(public)) if *public.key_id() == id => Some(public),
            Some(Ok(_)) => None,
            Some(Err(error)) => {
                log.say(format_args!("{reference} is left out: {error}"));
                None
            }
            None => {
                log.say(format_args!("{reference} is left out: the nodes do not tell its public key in time"));
                None
            }
        }
    })?;
    let label = if said.primary { said.name.clone() } else { reference.clone() };
    LiveKey::new(label, reference, found, signs)
}

/// What the client knows without asking.
fn remembered(client: &Client) -> Vec<LiveKey> {
    let known = client.asynchronous().known();
    let (mut keys, mut seen) = (Vec::new(), BTreeSet::new());
    for name in known.names() {
        for (place, version) in known.versions(&KeyRef { name: name.clone(), version: None }).into_iter().enumerate() {
            let signs = version.state.is_none_or(|state| state == KeyState::Active);
            let gone = matches!(version.state, Some(KeyState::Pending | KeyState::Destroyed));
            if gone || !seen.insert(*version.public.key_id().as_bytes()) {
                continue;
            }
            let reference = version.version.map_or_else(|| name.to_string(), |version| format!("{name}@{version}"));
            let label = if place == 0 { name.to_string() } else { reference.clone() };
            keys.extend(LiveKey::new(label, reference, version.public, signs));
        }
    }
    keys
}
