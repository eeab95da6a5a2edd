//! Makes the subject of a ceremony from a request and this node's keys.

use std::sync::Arc;

use theta_names::{Epoch, KeyRef, KeyState, Version};
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, KeyName};
use theta_statements::{CeremonyRequest, KeyChange};

use super::Custodian;
use crate::ceremony::{SourceKey, Subject};
use crate::codec::numbers;
use crate::{CeremonyError, CustodyError, KeyEntry};

impl Custodian {
    /// The subject of a request, by the keys of this node.
    pub(super) fn subject_of(&self, request: CeremonyRequest) -> Result<Subject, CeremonyError> {
        let subject = match &request.change {
            KeyChange::Create { key, suite, k, holders } => {
                let suite = suite.as_str().parse().map_err(CeremonyError::UnknownSuite)?;
                self.check_new(key, suite, holders)?;
                let (k, holders) = (*k, holders.clone());
                Subject { request, version: Version::FIRST, epoch: Epoch::FIRST, suite, k, holders, source: None }
            }
            KeyChange::Rotate { key } => self.rotation(&request, key)?,
            KeyChange::Refresh { key, version } => {
                let entry = self.source(key, *version, &[])?;
                let (k, holders) = (entry.public.threshold().k(), numbers(entry.holders.nodes()));
                renewal(request, &entry, k, holders)?
            }
            KeyChange::Reshare { key, version, k, holders } => {
                let entry = self.source(key, *version, holders)?;
                self.check_nodes(holders)?;
                let (k, holders) = (*k, holders.clone());
                renewal(request, &entry, k, holders)?
            }
            KeyChange::Recover { key, version, node } => self.recovery(&request, key, *version, *node)?,
        };
        if subject.nodes().contains(&self.local) { Ok(subject) } else { Err(CeremonyError::NotParty(self.local)) }
    }

    fn check_new(&self, key: &KeyName, suite: Suite, holders: &[u16]) -> Result<(), CeremonyError> {
        let stored = self.store.key(key);
        if stored.map_err(|error| CeremonyError::StoreFailed(error.to_string()))?.is_some() {
            return Err(CeremonyError::Exists(key.clone()));
        }
        takes_no_dealer(suite)?;
        self.check_nodes(holders)
    }

    fn check_nodes(&self, nodes: &[u16]) -> Result<(), CeremonyError> {
        let known = |node: &u16| self.group.nodes.iter().any(|other| other.get() == *node);
        nodes.iter().find(|node| !known(node)).map_or(Ok(()), |node| Err(CeremonyError::NoNode(*node)))
    }

    /// The version of the key that a request is about. `holders` are the holders afterwards, who may not know it yet.
    fn source(&self, key: &KeyName, version: Option<Version>, holders: &[u16]) -> Result<Arc<KeyEntry>, CeremonyError> {
        let meant = KeyRef { name: key.clone(), version };
        let name = meant.to_string();
        let Ok(entry) = self.table.find(&meant) else {
            return Err(if holders.contains(&self.local.get()) {
                CeremonyError::NotHereYet(key.clone(), self.group.k)
            } else {
                CeremonyError::UnknownKey { name, known: self.table.known() }
            });
        };
        takes_no_dealer(entry.suite)?;
        match entry.state {
            KeyState::Destroyed => Err(CeremonyError::State {
                name,
                state: entry.state.name(),
                help: "its shares are gone for ever; make a new key",
            }),
            KeyState::Pending | KeyState::Active | KeyState::Retired | KeyState::Disabled => Ok(entry),
        }
    }

    fn rotation(&self, request: &CeremonyRequest, key: &KeyName) -> Result<Subject, CeremonyError> {
        let entry = self.source(key, None, &[])?;
        if entry.state != KeyState::Active {
            let help = "enable it before it is rotated";
            return Err(CeremonyError::State { name: key.to_string(), state: entry.state.name(), help });
        }
        let stored = self.store.key(key);
        let record = stored.map_err(|error| CeremonyError::StoreFailed(error.to_string()))?;
        let unknown = || CeremonyError::UnknownKey { name: key.to_string(), known: self.table.known() };
        let version = record.ok_or_else(unknown)?.next_version();
        let (k, holders, suite) = (entry.public.threshold().k(), numbers(entry.holders.nodes()), entry.suite);
        Ok(Subject { request: request.clone(), version, epoch: Epoch::FIRST, suite, k, holders, source: None })
    }

    fn recovery(
        &self,
        request: &CeremonyRequest,
        key: &KeyName,
        version: Option<Version>,
        node: u16,
    ) -> Result<Subject, CeremonyError> {
        let entry = self.source(key, version, &[node])?;
        let holders = numbers(entry.holders.nodes());
        if !holders.contains(&node) {
            return Err(CeremonyError::NotHolder { node, name: entry.qualified_name() });
        }
        if node == self.local.get() && entry.share.is_some() {
            return Err(CeremonyError::HasShare(self.local));
        }
        let (k, suite, epoch) = (entry.public.threshold().k(), entry.suite, entry.epoch);
        let source = Some(SourceKey { public: entry.public.clone(), holders: holders.clone() });
        Ok(Subject { request: request.clone(), version: entry.version, epoch, suite, k, holders, source })
    }

    /// This node's share of the source of a ceremony, if it has it.
    pub(super) fn share_for(&self, subject: &Subject) -> Option<Arc<AnyKeyShare>> {
        let source = subject.source.as_ref()?;
        let versions = self.table.versions(subject.request.change.key().as_str());
        let entry = versions.into_iter().find(|entry| entry.version == subject.version)?;
        let same = entry.public == source.public && numbers(entry.holders.nodes()) == source.holders;
        entry.share.clone().filter(|_| same)
    }

    /// Whether the result of the ceremony could still be used here.
    pub(super) fn admits(&self, subject: &Subject) -> Result<bool, CustodyError> {
        let Some(record) = self.store.key(subject.request.change.key())? else { return Ok(true) };
        let Some(version) = record.version(subject.version) else {
            return Ok(record.state != KeyState::Destroyed && subject.version >= record.next_version());
        };
        let serving = version.serving.as_ref().map(|serving| serving.number);
        let newer = serving
            .is_none_or(|serving| subject.epoch > serving || (subject.is_recovery() && subject.epoch == serving));
        Ok(newer && record.effective_state(version) != KeyState::Destroyed)
    }

    /// The running ceremony of the same key and version.
    pub(super) fn rival(&self, subject: &Subject) -> Option<&super::Running> {
        let key = subject.request.change.key();
        self.running
            .values()
            .find(|running| running.subject.request.change.key() == key && running.subject.version == subject.version)
    }
}

fn renewal(request: CeremonyRequest, entry: &KeyEntry, k: u16, holders: Vec<u16>) -> Result<Subject, CeremonyError> {
    let epoch = entry.epoch.next().ok_or(CeremonyError::TooManyEpochs)?;
    let source = Some(SourceKey { public: entry.public.clone(), holders: numbers(entry.holders.nodes()) });
    Ok(Subject { request, version: entry.version, epoch, suite: entry.suite, k, holders, source })
}

/// Refuses RSA keys, which ceremonies cannot make or renew.
fn takes_no_dealer(suite: Suite) -> Result<(), CeremonyError> {
    if suite.key_group().is_some() { Ok(()) } else { Err(CeremonyError::TakesDealer(suite)) }
}
