//! Which keys a group has, as its members tell it: read again when a host looks for one, and kept while the nodes are away.

mod look;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::{Duration, Instant},
};

use cryptoki_sys::{CK_OBJECT_HANDLE, CKR_DEVICE_ERROR};
use theta_client::blocking::Client;
use theta_keypool::{Bindings, Prefix, State as Fate};
use theta_schemes::keys::KeyId;

use self::look::{Look, read};
use crate::{
    log::Log,
    objects::{Attribute, Class, LiveKey, Object, next_handle},
    refusal::{Outcome, Refusal},
};

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

    /// The keys of the group as its nodes tell them now, and until this time.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR` if too few nodes answer.
    pub(crate) fn read_now(&self, client: &Client, log: &Log, deadline: Instant) -> Outcome<Vec<LiveKey>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let look = read(client, log, deadline)?;
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

    /// Asks the nodes, if what is known is not new, and for no longer than this. One thread asks; others wait for it only if nothing is known
    /// yet.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR` if nothing is known and too few nodes answer.
    pub(crate) fn refresh(&self, client: &Client, log: &Log, patience: Duration) -> Outcome<()> {
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
        let read = read(client, log, began + patience);
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
            // Also the later versions: hosts are given the first alone.
            let is_pooled = |pool: &Prefix| pool.parse(key.bare_name()).is_some();
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
                // Of a key that no host has made the private object is destroyed, and the public one goes with it.
                let destroyable = binding.is_some() || (manner.destroyable && class == Class::Private);
                let binding = binding.cloned().map(Arc::new);
                let object = Object { handle, class, key: key.clone(), on_token: true, hidden, destroyable, binding };
                self.objects.insert(handle, Arc::new(object));
                self.live.push(handle);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use theta_schemes::{Suite, keys::deal_any};

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

    /// A host that looks for what it may destroy is shown what it may.
    #[test]
    fn public_objects_of_the_groups_keys_are_not_destroyable() {
        let manner = Manner { destroyable: true, ..MANNER };
        let (state, handles, a) = (&mut State::default(), &AtomicU64::new(1), key(1, "a"));
        state.take(look(vec![a.clone()], 4, &[(&a, 4)]), &manner, handles);
        let shown: Vec<_> = state.objects.values().map(|object| (object.class, object.destroyable)).collect();
        assert_eq!(shown, [(Class::Public, false), (Class::Private, true)]);
    }

    #[test]
    fn a_later_version_of_a_pools_key_is_nobodys() {
        let manner = Manner { pool: "zone".parse().ok(), ..MANNER };
        let (state, handles, other) = (&mut State::default(), &AtomicU64::new(1), key(1, "other"));
        let mut later = key(2, "zone-frost-ed25519-1");
        later.reference = "zone-frost-ed25519-1@2".to_owned();
        let keys = vec![other.clone(), key(3, "zone-frost-ed25519-2"), later];
        state.take(look(keys, 4, &[(&other, 4)]), &manner, handles);
        let shown: Vec<_> = state.objects.values().map(|object| object.key.reference.as_str()).collect();
        assert_eq!(shown, ["other@1", "other@1"]);
    }
}
