//! One look at the nodes: what enough of them say alike, and the public keys of that.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::{Duration, Instant},
};

use cryptoki_sys::{CKR_DEVICE_ERROR, CKR_FUNCTION_REJECTED};
use theta_client::{KeyRef, KeyState, KnownKey, ListedKey, NodeProblem, Problem, Version, blocking::Client};
use theta_keypool::{Sharing, Told};
use theta_schemes::{
    Suite,
    keys::{AnyPublicKey, KeyId},
};

use crate::{
    log::Log,
    mechanisms,
    objects::LiveKey,
    refusal::{Outcome, Refusal},
};

/// How long a node has to tell its keys: one that hangs must not hold up a host that looks for a key.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long learning the new keys of a look may take altogether.
const LEARNING: Duration = Duration::from_secs(5);

/// What a look at the nodes has brought.
pub(super) struct Look {
    /// When the nodes were asked.
    pub(super) began: Instant,
    pub(super) keys: Vec<LiveKey>,
    /// Whether the group has told them just now.
    pub(super) is_new: bool,
    /// How many nodes answered, and by key how many of them have it.
    pub(super) answered: usize,
    pub(super) have: HashMap<[u8; 32], usize>,
    pub(super) quorum: usize,
}

impl Look {
    /// Whether so many nodes do not have the key any more that one of them is honest: liars and slow nodes take no key away.
    pub(super) fn is_gone(&self, id: &KeyId) -> bool {
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

/// What the lists of nodes say together.
struct Lists {
    agreed: Vec<Agreed>,
    /// By key, how many nodes have it.
    have: HashMap<[u8; 32], usize>,
    /// Whether no node lists any key that the module would serve.
    is_empty: bool,
}

/// The keys of the group, asked for until this time.
pub(super) fn read(client: &Client, log: &Log, deadline: Instant) -> Outcome<Look> {
    let began = Instant::now();
    let asked = client.asynchronous();
    let quorum = usize::from(asked.given_group().threshold());
    // A caller that has little time needs some of it for what the lists name.
    let patience = PATIENCE.min(deadline.saturating_duration_since(began) / 2);
    let listed = client.within(patience.saturating_mul(2), asked.list_keys_within(patience));
    let learning = deadline.min(Instant::now() + LEARNING);
    let mut is_told = false;
    if let Some((listed, problems)) = &listed {
        let away: HashSet<_> = problems.iter().map(|node| node.node).collect();
        let answered = asked.group().nodes().len().saturating_sub(away.len());
        let lists = agreed(listed, quorum);
        is_told = answered >= quorum;
        // Nothing at all that they agree on is no news, unless they have nothing.
        if is_told && (!lists.agreed.is_empty() || lists.is_empty) {
            let keys = learned(client, lists.agreed, learning, log);
            return Ok(Look { began, keys, is_new: true, answered, have: lists.have, quorum });
        }
    }
    if is_told {
        // One has a new key before the others, or lies.
        log.say_rarely("lists", "the nodes tell of keys, and not enough of them of the same");
    } else {
        match &listed {
            Some((_, problems)) => log.say(format_args!("too few nodes tell their keys: {}", words(problems))),
            None => log.say(format_args!("the nodes do not tell their keys within {:?}", began.elapsed())),
        }
    }
    let problems = listed.map(|(_, problems)| problems).unwrap_or_default();
    // Whoever may not ask for the list knows what the group's ledger has.
    let is_denied = problems.iter().any(|node| matches!(node.problem, Problem::Denied { .. }));
    let is_read = is_denied && matches!(client.within(left(learning), asked.renew()), Some(Ok(_)));
    let (keys, is_new) = (remembered(client), is_told || is_read);
    if keys.is_empty() && !is_new {
        return Err(Refusal(if is_denied { CKR_FUNCTION_REJECTED } else { CKR_DEVICE_ERROR }));
    }
    Ok(Look { began, keys, is_new, answered: 0, have: HashMap::new(), quorum })
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

fn words(problems: &[NodeProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What enough nodes say alike of keys that the module serves, once for each key and with one primary version for each name.
fn agreed(listed: &[ListedKey], quorum: usize) -> Lists {
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
    let is_empty = told.is_empty();
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
    Lists { agreed: said, have: have.into_iter().map(|(id, nodes)| (id, nodes.len())).collect(), is_empty }
}

/// The keys that the nodes list, with their public keys: from what the client has checked already, or else from the nodes. What they do not
/// tell in time is left out, and asked for at the next look.
fn learned(client: &Client, listed: Vec<Agreed>, deadline: Instant, log: &Log) -> Vec<LiveKey> {
    let known = client.asynchronous().known();
    let find = |said: &Said| known.of_id(&KeyId::from_bytes(said.key_id)).map(|known| known.public);
    let is_there = |(said, _): &Agreed| !matches!(said.state, KeyState::Pending | KeyState::Destroyed);
    let listed: Vec<Agreed> = listed.into_iter().filter(is_there).collect();
    // The ledger has most keys, and it is asked for once: as many keys as nodes make up must not ask for it again and again.
    if listed.iter().any(|(said, _)| find(said).is_none()) {
        let _ = client.within(left(deadline), client.asynchronous().renew());
    }
    let (mut keys, mut late) = (Vec::new(), 0_usize);
    for (said, sharing) in listed {
        let public = match find(&said) {
            Some(public) => Some(public),
            None if left(deadline).is_zero() => {
                late = late.saturating_add(1);
                None
            }
            None => told(client, &said, deadline, log),
        };
        keys.extend(public.and_then(|public| said.live(public)).map(|key| key.shared(sharing)));
    }
    if late > 0 {
        log.say(format_args!("{late} keys are left out: the nodes do not tell their public keys in time"));
    }
    keys
}

/// The public key that a key's holders tell: some are not in the ledger.
fn told(client: &Client, said: &Said, deadline: Instant, log: &Log) -> Option<AnyPublicKey> {
    let (reference, id) = (said.reference(), KeyId::from_bytes(said.key_id));
    let asked = client.asynchronous();
    let told = client.within(left(deadline), asked.public_key_file(&reference));
    let left_out = |why: &dyn std::fmt::Display| {
        log.say_rarely(&reference, format_args!("{reference} is left out: {why}"));
        None
    };
    match told {
        // The client keeps what it was told.
        Some(Ok(_)) => asked.known().of_id(&id).map(|known| known.public),
        Some(Err(error)) => left_out(&error),
        None => left_out(&"the nodes do not tell its public key in time"),
    }
}

impl Said {
    fn reference(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    /// The key with its public key, if it has a place among a host's.
    fn live(&self, public: AnyPublicKey) -> Option<LiveKey> {
        let reference = self.reference();
        let label = if self.primary { self.name.clone() } else { reference.clone() };
        LiveKey::new(label, reference, public, self.state == KeyState::Active)
    }
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

    use super::*;

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
        let Lists { agreed: said, have, is_empty } = agreed(&lists, 2);
        assert!(!is_empty);
        let found: Vec<_> = said.iter().map(|(one, _)| (one.version.get(), one.state, one.primary)).collect();
        assert_eq!(found, [(1, KeyState::Retired, false), (3, active, true), (2, active, false)]);
        assert_eq!((have[&[1; 32]], have[&[4; 32]]), (5, 1));
    }

    /// Keys that PKCS#11 has no words for are no contradiction.
    #[test]
    fn a_group_without_keys_for_hosts_has_none() {
        let mut bls = listed("seal", 1, 1, true, KeyState::Active, &[1, 2, 3]);
        bls.info.suite = Suite::Bls04MinPk.name().to_owned();
        let one = listed("www", 1, 2, true, KeyState::Active, &[4]);
        assert!(agreed(&[bls.clone()], 2).is_empty);
        let both = agreed(&[bls, one], 2);
        assert!(!both.is_empty && both.agreed.is_empty());
    }
}
