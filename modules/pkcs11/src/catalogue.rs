//! Which keys a group has, as its members tell it: read again when a host looks for one, and kept while the nodes are away.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::{Duration, Instant},
};

use cryptoki_sys::{CK_OBJECT_HANDLE, CKR_DEVICE_ERROR, CKR_FUNCTION_REJECTED};
use theta_client::{KeyRef, KeyState, KnownKey, ListedKey, NodeProblem, Problem, Version, blocking::Client};
use theta_keypool::{Bindings, Prefix, Sharing, State as Fate, Told};
use theta_schemes::{Suite, keys::KeyId};

use crate::{
    log::Log,
    mechanisms,
    objects::{Attribute, Class, LiveKey, Object, next_handle},
    refusal::{Outcome, Refusal},
};

/// How long a node has to tell its keys: one that hangs must not hold up a host that looks for a key.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long learning the new keys of a look may take altogether.
const LEARNING: Duration = Duration::from_secs(5);
/// For how long what was read counts as new.
const NEW: Duration = Duration::from_secs(1);
/// After a look that took long, none is made for so many times as long.
const PAUSES: u32 = 10;
/// The longest time for which none is made.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

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
    /// When keys were added that the group has made since its keys were read: a look that began before may not have them.
    added: HashMap<KeyId, Instant>,
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
    /// When a look last ended without anything, before the first that found something.
    failed: Option<Instant>,
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
            state.added.insert(*key.public.key_id(), Instant::now());
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
        let look = read(client, log)?;
        if !look.is_new {
            return Err(Refusal(CKR_DEVICE_ERROR));
        }
        let (mut state, keys) = (self.state(), look.keys.clone());
        state.take(look, &self.manner, &self.handles);
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
        let asked = Instant::now();
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
        // Those who waited for a look that found nothing share what came of it.
        if known.is_none() && self.state().failed.is_some_and(|failed| failed >= asked) {
            return Err(Refusal(CKR_DEVICE_ERROR));
        }
        let began = Instant::now();
        let read = read(client, log);
        let mut state = self.state();
        match read {
            Ok(look) => state.take(look, &self.manner, &self.handles),
            Err(refusal) if state.again.is_none() => {
                state.failed = Some(Instant::now());
                return Err(refusal);
            }
            // The nodes are away, and the keys are what they were.
            Err(_) => {}
        }
        state.again = Some(Instant::now() + began.elapsed().saturating_mul(PAUSES).clamp(NEW, LONGEST_PAUSE));
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, look: Look, manner: &Manner, handles: &AtomicU64) {
        let known: HashSet<KeyId> = look.keys.iter().map(|key| *key.public.key_id()).collect();
        self.added.retain(|key, added| *added >= look.began && !known.contains(key));
        let is_gone = |key: &KeyId| look.is_gone(key) && !self.added.contains_key(key);
        self.keys.retain(|key| !known.contains(key.public.key_id()) && !is_gone(key.public.key_id()));
        self.keys.extend(look.keys);
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

/// What a look at the nodes has brought.
struct Look {
    /// When the nodes were asked.
    began: Instant,
    keys: Vec<LiveKey>,
    /// Whether the group has told them just now.
    is_new: bool,
    /// How many nodes answered, and by key how many of them have it.
    answered: usize,
    have: HashMap<[u8; 32], usize>,
    quorum: usize,
}

impl Look {
    /// Whether so many nodes do not have the key any more that one of them is honest: liars and slow nodes take no key away.
    fn is_gone(&self, id: &KeyId) -> bool {
        let have = self.have.get(id.as_bytes()).copied().unwrap_or(0);
        self.answered.saturating_sub(have) >= self.quorum
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

/// The same, and how they say that the key is shared: about that they may say different things, while it changes.
type Agreed = (Said, Option<Sharing>);

/// The keys of the group.
fn read(client: &Client, log: &Log) -> Outcome<Look> {
    let began = Instant::now();
    let asked = client.asynchronous();
    let quorum = usize::from(asked.given_group().threshold());
    let listed = client.within(PATIENCE.saturating_mul(2), asked.list_keys_within(PATIENCE));
    let mut is_told = false;
    if let Some((listed, problems)) = &listed {
        let away: HashSet<_> = problems.iter().map(|node| node.node).collect();
        let answered = asked.group().nodes().len().saturating_sub(away.len());
        let (agreed, have) = agreed(listed, quorum);
        is_told = answered >= quorum;
        // Nothing at all that they agree on is no news, unless they have nothing.
        if is_told && (!agreed.is_empty() || listed.is_empty()) {
            let deadline = Instant::now() + LEARNING;
            let learned = |(said, sharing)| Some(learned(client, &said, deadline, log)?.shared(sharing));
            let keys = agreed.into_iter().filter_map(learned).collect();
            return Ok(Look { began, keys, is_new: true, answered, have, quorum });
        }
    }
    let problems = listed.map(|(_, problems)| problems).unwrap_or_default();
    if is_told {
        // One has a new key before the others, or lies.
        log.say("the nodes tell of keys, and not enough of them of the same");
    } else {
        log.say(format_args!("too few nodes tell their keys: {}", words(&problems)));
    }
    // Whoever may not ask for the list knows what the group's ledger has.
    let is_denied = problems.iter().any(|node| matches!(node.problem, Problem::Denied { .. }));
    let is_read = is_denied && matches!(client.within(LEARNING, asked.renew()), Some(Ok(_)));
    let (keys, is_new) = (remembered(client), is_told || is_read);
    if keys.is_empty() && !is_new {
        return Err(Refusal(if is_denied { CKR_FUNCTION_REJECTED } else { CKR_DEVICE_ERROR }));
    }
    Ok(Look { began, keys, is_new, answered: 0, have: HashMap::new(), quorum })
}

fn words(problems: &[NodeProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What enough nodes say alike, once for each key and with one primary version for each name, and how many nodes have each key.
fn agreed(listed: &[ListedKey], quorum: usize) -> (Vec<Agreed>, HashMap<[u8; 32], usize>) {
    let mut told: BTreeMap<Said, (BTreeSet<_>, Told)> = BTreeMap::new();
    let mut have: HashMap<[u8; 32], BTreeSet<_>> = HashMap::new();
    for ListedKey { info, nodes, .. } in listed {
        let serves =
            Suite::ALL.into_iter().any(|suite| suite.name() == info.suite && !mechanisms::of(suite).is_empty());
        let state = KeyState::ALL.into_iter().find(|state| state.name() == info.state);
        let key_id = <[u8; 32]>::try_from(info.key_id.as_ref()).ok();
        if let (true, Some(version), Some(state), Some(key_id)) = (serves, Version::new(info.version), state, key_id) {
            if state != KeyState::Destroyed {
                have.entry(key_id).or_default().extend(nodes.iter().copied());
            }
            let said = Said { name: info.name.clone(), version, key_id, state, primary: info.primary };
            let (tell, shared) = told.entry(said).or_default();
            tell.extend(nodes.iter().copied());
            shared.add(Sharing::told(info.threshold, &info.holders, &info.delivery), nodes.iter().copied());
        }
    }
    let told = told.into_iter().filter(|(_, (nodes, _))| nodes.len() >= quorum);
    let told = told.map(|(said, (nodes, shared))| ((said, shared.agreed(quorum)), nodes.len()));
    let mut told: Vec<(Agreed, usize)> = told.collect();
    // In small groups two quorums may have no honest node in common. Most nodes count, and then the newest version.
    told.sort_by(|((a, _), by_a), ((b, _), by_b)| by_b.cmp(by_a).then_with(|| b.version.cmp(&a.version)));
    let (mut keys, mut primaries) = (HashSet::new(), HashSet::new());
    let mut said: Vec<Agreed> = Vec::new();
    for ((mut one, sharing), _) in told.into_iter().filter(|((one, _), _)| keys.insert(one.key_id)) {
        one.primary = one.primary && primaries.insert(one.name.clone());
        said.push((one, sharing));
    }
    (said, have.into_iter().map(|(id, nodes)| (id, nodes.len())).collect())
}

/// The key that the nodes list, with its public key: from what the client has checked already, or else from the nodes.
fn learned(client: &Client, said: &Said, deadline: Instant, log: &Log) -> Option<LiveKey> {
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
        match client.within(deadline.saturating_duration_since(Instant::now()), learning) {
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
            let sharing = shared(client, &version);
            let key = LiveKey::new(label, reference, version.public, signs);
            keys.extend(key.map(|key| key.shared(sharing)));
        }
    }
    keys
}

/// How the group's ledger says that a version is shared.
fn shared(client: &Client, known: &KnownKey) -> Option<Sharing> {
    let (version, delivery) = (known.version?, known.delivery?);
    let serving = client.asynchronous().ledger(|state| {
        let epoch = state.keys().get(&known.name)?.versions.get(&version)?.serving()?;
        Some((epoch.k, epoch.holders.iter().map(|holder| u32::from(*holder)).collect::<Vec<_>>()))
    });
    let (k, holders) = serving.flatten()?;
    Sharing::told(k.into(), &holders, delivery.name())
}

#[cfg(test)]
mod tests {
    use theta_names::NodeId;
    use theta_schemes::keys::deal_any;

    use super::*;

    const MANNER: Manner = Manner { hidden: false, destroyable: false, pool: None };

    fn key(seed: u8, label: &str) -> LiveKey {
        let threshold = theta_sharing::Threshold::new(2, 4).unwrap();
        let mut rng = <rand_chacha::ChaCha20Rng as rand_chacha::rand_core::SeedableRng>::from_seed([seed; 32]);
        let (public, _) = deal_any(Suite::FrostEd25519, threshold, &mut rng);
        LiveKey::new(label.to_owned(), format!("{label}@1"), public, true).unwrap()
    }

    fn look(keys: Vec<LiveKey>, answered: usize, have: &[(&LiveKey, usize)]) -> Look {
        let have = have.iter().map(|(key, nodes)| (*key.public.key_id().as_bytes(), *nodes)).collect();
        Look { began: Instant::now(), keys, is_new: true, answered, have, quorum: 2 }
    }

    #[test]
    fn a_key_goes_when_so_many_do_not_have_it_that_one_of_them_is_honest() {
        let (state, handles, a, b) = (&mut State::default(), &AtomicU64::new(1), key(1, "a"), key(2, "b"));
        state.take(look(vec![a.clone(), b.clone()], 4, &[(&a, 4), (&b, 4)]), &MANNER, handles);
        assert_eq!(state.live.len(), 4);
        let handles_before = state.live.clone();
        // One honest node that is slow and a liar that says nothing of b: one of three that answer has it.
        state.take(look(vec![a.clone()], 2, &[(&a, 2), (&b, 1)]), &MANNER, handles);
        assert_eq!(state.live.len(), 4, "one node takes no key away");
        state.take(look(vec![a.clone()], 3, &[(&a, 3), (&b, 1)]), &MANNER, handles);
        assert_eq!(state.live, handles_before[..2], "two do");
    }

    #[test]
    fn a_look_that_began_before_takes_no_new_key_away() {
        let (catalogue, a, b) = (Catalogue::new(Arc::new(AtomicU64::new(1)), MANNER), key(1, "a"), key(2, "b"));
        let mut state = catalogue.state();
        state.take(look(vec![a.clone()], 4, &[(&a, 4)]), &MANNER, &catalogue.handles);
        let before = look(vec![a.clone()], 4, &[(&a, 4)]);
        drop(state);
        catalogue.add(b);
        let mut state = catalogue.state();
        state.take(before, &MANNER, &catalogue.handles);
        assert_eq!(state.live.len(), 4, "nobody had it when the nodes were asked");
        state.take(look(vec![a.clone()], 4, &[(&a, 4)]), &MANNER, &catalogue.handles);
        assert_eq!(state.live.len(), 2, "it is gone since");
    }

    fn listed(name: &str, version: u32, id: u8, primary: bool, state: KeyState, nodes: &[u16]) -> ListedKey {
        let info = theta_wire::v1::KeyInfo {
            name: name.to_owned(),
            suite: Suite::FrostEd25519.name().to_owned(),
            version,
            key_id: vec![id; 32].into(),
            state: state.name().to_owned(),
            primary,
            ..Default::default()
        };
        let nodes = nodes.iter().map(|node| NodeId::try_from(*node).unwrap()).collect();
        ListedKey { info, nodes, ..ListedKey::default() }
    }

    #[test]
    fn of_two_statements_about_a_key_one_is_believed() {
        let active = KeyState::Active;
        let lists = [
            listed("www", 1, 1, true, active, &[1, 2]),
            listed("www", 1, 1, false, KeyState::Retired, &[3, 4, 5]),
            listed("www", 2, 2, true, active, &[3, 4]),
            listed("www", 3, 3, true, active, &[1, 2]),
            listed("lie", 1, 4, true, active, &[5]),
        ];
        let (said, have) = agreed(&lists, 2);
        let found: Vec<_> = said.iter().map(|(one, _)| (one.version.get(), one.state, one.primary)).collect();
        assert_eq!(found, [(1, KeyState::Retired, false), (3, active, true), (2, active, false)]);
        assert_eq!((have[&[1; 32]], have[&[4; 32]]), (5, 1));
    }
}
