//! What a request for a ceremony comes to.

use theta_agreement::Member;
use theta_names::{Delivery, Epoch, KeyName, KeyState, SuiteName, Version};
use theta_statements::{CeremonyRequest, KeyChange};

use super::{Epochs, KeyHistory, LedgerState, Refusal, VersionHistory};
use crate::Outcome;

/// The sharing that a ceremony begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// How many shares it takes.
    pub k: u16,
    /// Its holders: that of index i at place i - 1.
    pub holders: Vec<u16>,
    /// Its public part in binary: the public key and all verification keys.
    pub public: Vec<u8>,
}

/// A ceremony that was begun: the request, and all that follows from it at its place in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// What was asked for.
    pub request: CeremonyRequest,
    /// Which version it makes, or is about.
    pub version: Version,
    /// The sharing that comes out, or whose share is recovered.
    pub epoch: Epoch,
    /// The scheme and group.
    pub suite: SuiteName,
    /// Who makes shares for a request: a new key has what was asked for, a next version or sharing what there was.
    pub delivery: Delivery,
    /// How many shares it takes afterwards.
    pub k: u16,
    /// The holders afterwards.
    pub holders: Vec<u16>,
    /// The sharing that it begins with; `None` for a new key.
    pub source: Option<Source>,
    /// The identities of those who take part, by rising number: as they were when it began, though a member be replaced while it runs.
    pub members: Vec<Member>,
}

impl Begun {
    /// Whether it recovers the share of a machine that is no member's any more, so that nothing can come of it.
    #[must_use]
    pub fn is_orphaned(&self, members: &[Member]) -> bool {
        let KeyChange::Recover { node: owner, .. } = &self.request.change else { return false };
        machine(&self.members, *owner) != machine(members, *owner)
    }

    /// All nodes that take part, by rising number.
    #[must_use]
    pub fn nodes(&self) -> Vec<u16> {
        let before = self.source.as_ref().map_or(&[][..], |source| &source.holders);
        let mut nodes = [&self.holders, before].concat();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}

/// The key that a member's machine signs with in ceremonies.
fn machine(members: &[Member], node: u16) -> Option<&[u8]> {
    members.iter().find(|member| member.node().get() == node).map(|member| member.verifying_key().bytes())
}

/// How a ceremony ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A sharing serves.
    Activated,
    /// The lost share was found.
    Recovered,
    /// Nothing came of it.
    Aborted,
    /// It was cancelled.
    Cancelled,
}

/// What became of a request for a ceremony.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHistory {
    /// The ceremony's number: the height of the entry with which it began.
    pub number: u64,
    /// What was asked for.
    pub change: KeyChange,
    /// Which version it made, or was about.
    pub version: Version,
    /// The sharing that came out, or whose share was recovered.
    pub epoch: Epoch,
    /// How it ended; `None` while it runs.
    pub ended: Option<Ended>,
}

impl LedgerState {
    /// What a request would come to if it were decided now.
    ///
    /// # Errors
    /// [`Refusal`]: it cannot succeed, or was used before.
    pub fn begun(&self, request: &CeremonyRequest) -> Result<Begun, Refusal> {
        if let Some(history) = self.requests.get(&request.digest()) {
            return Err(Refusal::Used(history.number));
        }
        let begun = match &request.change {
            KeyChange::Create { key, suite, delivery, k, holders } => {
                if self.keys.contains_key(key) || self.running_ceremony(key).is_some() {
                    return Err(Refusal::Exists(key.clone()));
                }
                self.check_holders(*k, holders)?;
                let (suite, holders) = (suite.clone(), holders.clone());
                let (version, epoch) = (Version::FIRST, Epoch::FIRST);
                Begun {
                    request: request.clone(),
                    version,
                    epoch,
                    suite,
                    delivery: *delivery,
                    k: *k,
                    holders,
                    source: None,
                    members: Vec::new(),
                }
            }
            KeyChange::Rotate { key } => self.rotation(request, key)?,
            KeyChange::Refresh { key, version } => {
                let (version, history, serving) = self.source(key, *version)?;
                renewal(request, version, history, serving, serving.k, &serving.holders)?
            }
            KeyChange::Reshare { key, version, k, holders } => {
                let (version, history, serving) = self.source(key, *version)?;
                self.check_holders(*k, holders)?;
                renewal(request, version, history, serving, *k, holders)?
            }
            KeyChange::Recover { key, version, node } => {
                let (version, history, serving) = self.source(key, *version)?;
                if !serving.holders.contains(node) {
                    return Err(Refusal::NotHolder { node: *node, key: key.to_string() });
                }
                if serving.holders.len() <= usize::from(serving.k) {
                    return Err(Refusal::Holders("a lost share takes k other holders to recover: here are too few"));
                }
                let renewed = renewal(request, version, history, serving, serving.k, &serving.holders)?;
                Begun { epoch: serving.epoch, ..renewed }
            }
        };
        match self.running_of(request.change.key(), begun.version) {
            Some(number) => Err(Refusal::Busy(number)),
            None => {
                let nodes = begun.nodes();
                let takes_part = |member: &&Member| nodes.binary_search(&member.node().get()).is_ok();
                Ok(Begun { members: self.members().iter().filter(takes_part).cloned().collect(), ..begun })
            }
        }
    }

    /// A ceremony of a key that runs, of whatever version.
    pub(super) fn running_ceremony(&self, key: &KeyName) -> Option<u64> {
        self.running.iter().find(|(_, begun)| begun.request.change.key() == key).map(|(number, _)| *number)
    }

    fn running_of(&self, key: &KeyName, version: Version) -> Option<u64> {
        let same = |begun: &Begun| begun.request.change.key() == key && begun.version == version;
        self.running.iter().find(|(_, begun)| same(begun)).map(|(number, _)| *number)
    }

    pub(super) fn check_holders(&self, k: u16, holders: &[u16]) -> Result<(), Refusal> {
        let mut sorted = holders.to_vec();
        sorted.sort_unstable();
        if sorted.iter().zip(sorted.iter().skip(1)).any(|(a, b)| a == b) {
            return Err(Refusal::Holders("a holder is listed twice"));
        }
        if k == 0 || usize::from(k) > holders.len() {
            return Err(Refusal::Holders("a key takes at least 1 share, and at most as many as there are holders"));
        }
        self.check_members(holders)
    }

    fn check_members(&self, nodes: &[u16]) -> Result<(), Refusal> {
        // Members are in the order of their numbers.
        let known = |node: &u16| self.members().binary_search_by_key(node, |member| member.node().get()).is_ok();
        nodes.iter().find(|node| !known(node)).map_or(Ok(()), |node| Err(Refusal::NoMember(*node)))
    }

    fn rotation(&self, request: &CeremonyRequest, key: &KeyName) -> Result<Begun, Refusal> {
        let (primary, history, serving) = self.source(key, None)?;
        let line = self.keys.get(key).ok_or_else(|| Refusal::Unknown(key.to_string()))?;
        let state = line.state_of(primary).unwrap_or(KeyState::Destroyed);
        if state != KeyState::Active {
            return Err(Refusal::State { key: key.to_string(), state });
        }
        self.check_members(&serving.holders)?;
        let version = line.next_version().ok_or(Refusal::Exhausted("versions of this key"))?;
        Ok(Begun {
            request: request.clone(),
            version,
            epoch: Epoch::FIRST,
            suite: history.suite.clone(),
            delivery: history.delivery,
            k: serving.k,
            holders: serving.holders.clone(),
            source: None,
            members: Vec::new(),
        })
    }

    fn source(&self, key: &KeyName, version: Option<Version>) -> Result<(Version, &VersionHistory, &Epochs), Refusal> {
        let unknown = || Refusal::Unknown(key.to_string());
        let line: &KeyHistory = self.keys.get(key).ok_or_else(unknown)?;
        let version = version.or_else(|| line.primary()).ok_or_else(unknown)?;
        let history = line.versions.get(&version).ok_or_else(unknown)?;
        let serving = history.serving().ok_or_else(unknown)?;
        match line.state_of(version) {
            Some(KeyState::Destroyed) | None => {
                Err(Refusal::State { key: key.to_string(), state: KeyState::Destroyed })
            }
            Some(_) => Ok((version, history, serving)),
        }
    }

    /// Whether a running ceremony may end so, and the sharing that serves then.
    pub(super) fn ended(&self, number: u64, outcome: &Outcome) -> Result<Option<Epochs>, Refusal> {
        let begun = self.running.get(&number).ok_or(Refusal::NoCeremony(number))?;
        let recovery = matches!(begun.request.change, KeyChange::Recover { .. });
        match outcome {
            Outcome::Aborted | Outcome::Cancelled => Ok(None),
            Outcome::Recovered if recovery => Ok(None),
            Outcome::Recovered => Err(Refusal::Outcome("it was not to recover a share")),
            Outcome::Activated { .. } if recovery => Err(Refusal::Outcome("a recovery makes no sharing")),
            // That it is the key that was there, or has these shares, its ceremony's certificate says, which the voters check.
            Outcome::Activated { public, certificate } => {
                let (epoch, k, holders) = (begun.epoch, begun.k, begun.holders.clone());
                let (public, certificate) = (public.clone(), certificate.clone());
                Ok(Some(Epochs { epoch, since: 0, k, holders, public, certificate }))
            }
        }
    }
}

fn renewal(
    request: &CeremonyRequest,
    version: Version,
    history: &VersionHistory,
    serving: &Epochs,
    k: u16,
    holders: &[u16],
) -> Result<Begun, Refusal> {
    let epoch = serving.epoch.next().ok_or(Refusal::Exhausted("epochs of this key"))?;
    let source = Source { k: serving.k, holders: serving.holders.clone(), public: serving.public.clone() };
    Ok(Begun {
        request: request.clone(),
        version,
        epoch,
        suite: history.suite.clone(),
        delivery: history.delivery,
        k,
        holders: holders.to_vec(),
        source: Some(source),
        members: Vec::new(),
    })
}
