//! Where the keys of a pool come from: nodes that make them among themselves, or a dealer where nodes do not run.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use theta_client::{KeyChange, KeyState};
use theta_keypool::{Members, PoolConfig, Security, Sharing, TokenConfig, Told};
use theta_names::{NodeId, Version};
use theta_schemes::{
    Suite,
    keys::{KeyId, KeyName},
};
use theta_sharing::Threshold;

use super::stock::{Key, Kind};
use crate::{
    connect::{ClientArgs, Session},
    exit::Failure,
    group::{
        ExistingGroup,
        plan::{self, KeySpec},
    },
    keys::{CeremonyArgs, deal_all, hold, warn_of_passive},
};

/// A group, as it can be asked now.
pub(super) enum Supply {
    /// Its nodes run.
    Nodes { args: Box<CeremonyArgs>, session: Box<Session> },
    /// Its directories are in one place, and no node runs.
    Stores { group: ExistingGroup, threshold: Threshold },
}

impl Supply {
    /// The directories of a group whose nodes do not run.
    pub(super) fn of_stores(directory: &Path) -> Result<Self, Failure> {
        let group = ExistingGroup::open(directory)?;
        let threshold = Threshold::new(group.threshold(), group.nodes()).map_err(Failure::internal)?;
        Ok(Self::Stores { group, threshold })
    }

    /// The nodes of the group that the token is.
    pub(super) fn of_nodes(client: &ClientArgs, patience: Duration, token: &TokenConfig) -> Result<Self, Failure> {
        let args = CeremonyArgs::of(client.clone(), patience);
        let session = args.open()?;
        let (asked, shown) = (session.client().given_group().clone(), theta_client::read_group(&token.client));
        // The module's client file may be secret to whoever fills the pool.
        if let Some(shown) =
            shown.ok().filter(|shown| shown.name() != asked.name() || shown.founding() != asked.founding())
        {
            return Err(Failure::Usage(format!(
                "the token is the group {}, and this client is of {}: name another client with --client",
                shown.name(),
                asked.name()
            )));
        }
        Ok(Self::Nodes { args: Box::new(args), session: Box::new(session) })
    }

    /// The keys that sign, as the group has them now.
    pub(super) fn keys(&self) -> Result<Vec<Key>, Failure> {
        match self {
            Self::Stores { group, .. } => {
                let active = group.keys()?.into_iter().filter(|key| key.state == KeyState::Active);
                let mut keys = BTreeMap::new();
                for entry in active {
                    let (k, holders) = (entry.public.threshold().k(), entry.holders.iter().collect());
                    let sharing = Some(Sharing { k, holders, delivery: entry.delivery });
                    let (name, public) = (entry.name.clone(), entry.public.clone());
                    keys.insert(entry.key_id, Key { name, version: entry.version, public, sharing });
                }
                Ok(keys.into_values().collect())
            }
            Self::Nodes { session, .. } => of_nodes(session),
        }
    }

    /// The members, as they share keys of a pool.
    pub(super) fn members(&self) -> Members {
        match self {
            Self::Stores { group, threshold } => Members::new(threshold.k(), group.members()),
            Self::Nodes { session, .. } => {
                let group = session.client().group();
                Members::new(group.threshold(), group.nodes().iter().map(|node| node.id))
            }
        }
    }

    /// The names of all keys that there are, or were.
    pub(super) fn names(&self) -> Result<BTreeSet<KeyName>, Failure> {
        Ok(match self {
            Self::Stores { group, .. } => group.keys()?.into_iter().map(|key| key.name.clone()).collect(),
            Self::Nodes { session, .. } => {
                let decided = session.client().ledger(|state| state.keys().keys().cloned().collect::<BTreeSet<_>>());
                decided.unwrap_or_default().into_iter().chain(session.client().known().names()).collect()
            }
        })
    }

    /// Says what people should know before keys of this suite are made.
    pub(super) fn comment(&self, pool: &PoolConfig, suite: Suite) {
        // Who makes one is told what is wrong.
        let Ok(Sharing { delivery, .. }) = self.members().share(suite, pool.security) else { return };
        if delivery.has_dishonest_majority() {
            plan::note_of_majority(&format!("keys of {suite}"));
        }
        warn_of_passive(&format!("{}-{suite}-NUMBER", pool.prefix), delivery);
    }

    /// Makes a key.
    pub(super) fn make(&self, name: &KeyName, Kind { suite, bits }: Kind, security: Security) -> Result<(), Failure> {
        let shared = self.members().share(suite, security);
        let shared = shared.map_err(|reason| Failure::Usage(format!("key {name}: {reason}")))?;
        match self {
            Self::Nodes { args, session } => {
                let (Sharing { k, holders, delivery }, key) = (shared, name.clone());
                let holders = holders.into_iter().map(NodeId::get).collect();
                hold(args, session, KeyChange::Create { key, suite: suite.into(), delivery, k, holders }).map(drop)
            }
            Self::Stores { group, threshold } => {
                let spec: KeySpec = format!("{name}={suite}").parse().map_err(Failure::internal)?;
                let bits = bits.unwrap_or(crate::group::DEFAULT_BITS);
                deal_all(group, *threshold, &[spec.delivered(shared.delivery)?], bits).map(drop)
            }
        }
    }
}

/// What so many nodes list alike that one of them is honest.
fn of_nodes(session: &Session) -> Result<Vec<Key>, Failure> {
    session.renew();
    let client = session.client();
    let (listed, problems) = session.block_on(client.list_keys());
    let quorum = usize::from(client.given_group().threshold());
    // Nodes without keys answer, too.
    if client.group().nodes().len().saturating_sub(problems.len()) < quorum {
        let words: Vec<String> = problems.iter().map(|problem| crate::exit::tidy(&problem.to_string())).collect();
        return Err(Failure::NoAnswer(format!("too few nodes list their keys: {}", words.join("; "))));
    }
    let mut told: BTreeMap<(KeyName, Version, KeyId), (BTreeSet<NodeId>, Told)> = BTreeMap::new();
    let signing = listed.into_iter().filter(|key| key.info.state == KeyState::Active.name());
    for key in signing.filter(|key| Suite::ALL.iter().any(|suite| suite.name() == key.info.suite)) {
        let id = <[u8; 32]>::try_from(key.info.key_id.as_ref()).map(KeyId::from_bytes);
        if let (Ok(name), Some(version), Ok(id)) = (key.info.name.parse(), Version::new(key.info.version), id) {
            let info = &key.info;
            let (nodes, shared) = told.entry((name, version, id)).or_default();
            nodes.extend(key.nodes.iter().copied());
            shared.add(Sharing::told(info.threshold, &info.holders, &info.delivery), key.nodes);
        }
    }
    let agreed = told.into_iter().filter(|(_, (nodes, _))| nodes.len() >= quorum);
    // The ledger has every key, a moment after the nodes have it.
    let known = agreed.filter_map(|((name, version, id), (_, told))| {
        Some(Key { name, version, public: client.known().of_id(&id)?.public, sharing: told.agreed(quorum) })
    });
    Ok(known.collect())
}
