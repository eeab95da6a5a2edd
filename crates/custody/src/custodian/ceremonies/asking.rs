//! Requests for ceremonies, until the group has decided on them.

use std::sync::Arc;

use theta_ceremonies::Aim;
use theta_ledger::{Action, Begun, DropReason, Input, LedgerState, Outcome, Refusal};
use theta_names::{Epoch, KeyState, NodeId, Version};
use theta_statements::{CancelRequest, CeremonyRequest, KeyChange};

use super::requests::recovers;
use crate::ceremony::Planned;
use crate::custodian::message::Id;
use crate::custodian::work::{Record, Work};
use crate::request::{CeremonyReport, CeremonyState, CustodyEffect};
use crate::{CeremonyError, Custodian, NotInLedger};

impl Custodian {
    /// Asks the group for a ceremony that this node's policy has granted to a client, or reports its state if it was
    /// asked for before. It begins when as many nodes as it takes were asked, and consent: see `spec/ledger.md`. The
    /// `reason` is what the client signed, and others approved.
    ///
    /// # Errors
    /// [`CeremonyError`] with the reason, and what would help.
    pub fn hold(
        &mut self,
        request: CeremonyRequest,
        reason: Vec<u8>,
        effects: &mut Vec<CustodyEffect>,
    ) -> Result<CeremonyReport, CeremonyError> {
        if let Some(why) = &self.failed {
            return Err(CeremonyError::StoreFailed(why.clone()));
        }
        let id = request.digest();
        let known =
            self.running.contains_key(&id) || self.ended.contains_key(&id) || self.requests.waiting.contains_key(&id);
        if let Some(report) = self.report(&id).filter(|report| known || !report.state.is_over()) {
            return Ok(report);
        }
        if self.store.is_used(&id).map_err(|error| CeremonyError::StoreFailed(error.to_string()))? {
            return Err(CeremonyError::Used);
        }
        self.identity()?;
        let planned = self.plan_of(&request)?;
        let report = planned.subject.report(id, CeremonyState::Running { done: 0, of: 1 }, AWAITS);
        let report = CeremonyReport { request: Some(request.clone()), ..report };
        self.requests.dropped.remove(&id);
        let action = Action::Begin(request);
        self.requests.waiting.insert(id, (action.digest(), report.clone()));
        let mut work = Work::default();
        work.effects.push(CustodyEffect::Report(report.clone()));
        self.drive_ledger(Input::Propose(action, reason), &mut work);
        effects.append(&mut self.settle(work));
        match &self.failed {
            Some(why) => Err(CeremonyError::StoreFailed(why.clone())),
            None => Ok(self.report(&id).unwrap_or(report)),
        }
    }

    /// Asks the group to let a ceremony come to nothing that this node's policy has granted to a client, or reports how it ended.
    ///
    /// # Errors
    /// [`CeremonyError`] with the reason.
    pub fn cancel(
        &mut self,
        cancel: &CancelRequest,
        reason: Vec<u8>,
        effects: &mut Vec<CustodyEffect>,
    ) -> Result<CeremonyReport, CeremonyError> {
        if let Some(why) = &self.failed {
            return Err(CeremonyError::StoreFailed(why.clone()));
        }
        let id = cancel.request.digest();
        if self.ledger.is_none() {
            return Err(CeremonyError::NotBegun);
        }
        let mut work = Work::default();
        match self.ledger().and_then(|ledger| ledger.request(&id)).map(|history| (history.number, history.ended)) {
            None => self.withdraw(&cancel.request, &mut work),
            Some((ceremony, None)) => {
                let action = Action::End { ceremony, outcome: Outcome::Cancelled };
                self.drive_ledger(Input::Propose(action, reason), &mut work);
            }
            Some((_, Some(_))) => {}
        }
        effects.append(&mut self.settle(work));
        match &self.failed {
            Some(why) => Err(CeremonyError::StoreFailed(why.clone())),
            None => self.report(&id).or_else(|| self.report_of_ledger(&id)).ok_or(CeremonyError::NotBegun),
        }
    }

    /// This node wants a request no more that the group has not begun. It uses the request up, so that neither a client nor another node asks it
    /// again, and votes against its begin: those who have consented have done so for some days.
    fn withdraw(&mut self, request: &CeremonyRequest, work: &mut Work) {
        let (id, action) = (request.digest(), Action::Begin(request.clone()).digest());
        let known = self.requests.dropped.get(&id).or_else(|| self.requests.waiting.get(&id).map(|(_, report)| report));
        let (waits, voted) = self
            .ledger
            .as_ref()
            .map_or((false, false), |replica| (replica.wants(&action), replica.speaks_for(&action)));
        // What this node has never heard of is not remembered. What it has voted for at this height may be decided all the same: it is asked again.
        let over = known.is_some_and(|known| known.state == CeremonyState::Cancelled);
        if over || voted || (known.is_none() && !waits) {
            return;
        }
        let report = known.cloned().unwrap_or_else(|| CeremonyReport::of_request(request));
        self.drive_ledger(Input::Withdraw(action), work);
        work.records.push(Record::Use { request: id, now: self.now });
        self.requests.waiting.remove(&id);
        let report = CeremonyReport { state: CeremonyState::Cancelled, awaits: "", request: None, ..report };
        self.requests.keep(id, report.clone());
        work.effects.push(CustodyEffect::Report(report));
    }

    /// A request that waits, with those for whom it does, or that came to nothing.
    pub(in crate::custodian) fn report_of_request(&self, id: &Id) -> Option<CeremonyReport> {
        let Some((action, report)) = self.requests.waiting.get(id) else {
            return self.requests.dropped.get(id).cloned();
        };
        let awaited = self.ledger.as_ref().map_or_else(Vec::new, |replica| replica.awaited(action));
        Some(CeremonyReport { silent: awaited.into_iter().map(|node| node.get()).collect(), ..report.clone() })
    }

    /// All requests that wait or came to nothing.
    pub(in crate::custodian) fn reports_of_requests(&self) -> impl Iterator<Item = CeremonyReport> {
        self.requests.ids().filter_map(|id| self.report_of_request(id))
    }

    /// The plan of what the ledger makes of a request, if this node knows nothing that speaks against it.
    fn plan_of(&mut self, request: &CeremonyRequest) -> Result<Arc<Planned>, CeremonyError> {
        let ledger = self.ledger().ok_or_else(|| {
            let nobody = |node: &&theta_names::NodeId| self.group.member(**node).is_none();
            CeremonyError::NoCeremonyKey(self.group.nodes.iter().find(nobody).copied().unwrap_or(self.local))
        })?;
        let begun = ledger.begun(request).map_err(|refusal| self.not_begun(ledger, request, refusal))?;
        let (voters, quorum) =
            (ledger.members().iter().map(|member| member.node()).collect::<Vec<_>>(), ledger.quorum());
        self.check_here(&begun)?;
        let planned = self.planned.of(&self.group.name, &begun)?;
        self.enough_confirmed(voters.into_iter(), quorum, REPLACE)?;
        let plan = &planned.plan;
        // Whose share is recovered need not be trusted: it learns something, and says nothing that others rely on.
        if !matches!(plan.aim(), Aim::Recover(..)) {
            let members = plan.members().iter().map(|party| party.node());
            self.enough_confirmed(members, plan.quorum(), CONFIRM)?;
        }
        Ok(planned)
    }

    /// Whether there are so many among these nodes that may say something. What would run into its patience is refused before it begins.
    fn enough_confirmed(
        &self,
        nodes: impl Iterator<Item = NodeId>,
        needed: usize,
        help: &'static str,
    ) -> Result<(), CeremonyError> {
        let (doubted, others): (Vec<_>, Vec<_>) = nodes.partition(|node| self.witnesses.doubts(*node));
        if doubted.is_empty() || others.len() >= needed {
            return Ok(());
        }
        let nodes = doubted.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Err(CeremonyError::Unconfirmed { nodes, left: others.len(), needed, help })
    }

    /// Whether what this node has fits the request.
    fn check_here(&self, begun: &Begun) -> Result<(), CeremonyError> {
        let versions = self.table.versions(begun.request.change.key().as_str());
        let about = |version: Version| versions.iter().find(|entry| entry.version == version);
        match &begun.request.change {
            // A dealer's key may not be in the ledger yet.
            KeyChange::Create { key, .. } => match self.store.key(key) {
                Ok(None) => Ok(()),
                Ok(Some(_)) => Err(CeremonyError::Exists(key.clone())),
                Err(error) => Err(CeremonyError::StoreFailed(error.to_string())),
            },
            KeyChange::Rotate { key } => match versions.iter().find(|entry| entry.primary) {
                Some(entry) if entry.state != KeyState::Active => {
                    let help = "enable it before it is rotated";
                    Err(CeremonyError::State { name: key.to_string(), state: entry.state.name(), help })
                }
                _ => Ok(()),
            },
            change => match about(begun.version) {
                Some(entry) if entry.state == KeyState::Destroyed => {
                    let (name, state) = (entry.qualified_name(), entry.state.name());
                    Err(CeremonyError::State { name, state, help: "its shares are gone for ever; make a new key" })
                }
                Some(entry) if recovers(change, self.local.get()) && entry.share.is_some() => {
                    Err(CeremonyError::HasShare(self.local))
                }
                _ => Ok(()),
            },
        }
    }

    fn not_begun(&self, ledger: &LedgerState, request: &CeremonyRequest, refusal: Refusal) -> CeremonyError {
        let key = request.change.key();
        match refusal {
            Refusal::Exists(key) => CeremonyError::Exists(key),
            Refusal::Unknown(name) if self.table.get(key.as_str()).is_some() && !ledger.keys().contains_key(key) => {
                NotInLedger { name, k: self.group.k }.into()
            }
            Refusal::Unknown(_) => {
                let name =
                    request.change.version().map_or_else(|| key.to_string(), |version| format!("{key}@{version}"));
                let known: Vec<String> = ledger.keys().keys().map(ToString::to_string).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                CeremonyError::UnknownKey { name, known }
            }
            Refusal::State { key, state } => {
                let help = if state == KeyState::Destroyed {
                    "its shares are gone for ever; make a new key"
                } else {
                    "enable it before it is rotated"
                };
                CeremonyError::State { name: key, state: state.name(), help }
            }
            Refusal::Busy(number) => match ledger.running().get(&number) {
                Some(begun) => CeremonyError::Busy { id: begun.request.digest(), aim: begun.request.change.aim() },
                None => CeremonyError::Used,
            },
            Refusal::Used(_) => CeremonyError::Used,
            Refusal::NoMember(node) => CeremonyError::NoNode(node),
            Refusal::NotHolder { node, key } => CeremonyError::NotHolder { node, name: key },
            Refusal::Exhausted(_) => CeremonyError::TooManyEpochs,
            refusal => CeremonyError::Refused(refusal.to_string()),
        }
    }

    /// Nothing came of what this node wanted decided.
    pub(in crate::custodian) fn dropped(&mut self, action: &Action, why: &DropReason, work: &mut Work) {
        let Action::Begin(request) = action else { return };
        let open = matches!(why, DropReason::TooFew).then(|| request.clone());
        let why = match why {
            DropReason::Refused(refusal) => refusal.to_string(),
            DropReason::Full => "too much waits for the group's decision already: ask again later".to_owned(),
            DropReason::TooLong => {
                "the request and its approvals are longer than an entry of the ledger can be".to_owned()
            }
            DropReason::TooFew => {
                "too few nodes agreed to it in time; it may still begin within a week, when others are back: `theta status` \
                 shows who is away, and `theta keys cancel` takes it back"
                    .to_owned()
            }
        };
        if let Some(report) = self.requests.drop(request.digest(), why, open) {
            work.effects.push(CustodyEffect::Report(report));
        }
    }

    /// What the ledger says of a request, for nodes that take no part in its ceremony, or no longer know more.
    pub(in crate::custodian) fn report_of_ledger(&self, id: &Id) -> Option<CeremonyReport> {
        let ledger = self.ledger()?;
        let history = ledger.request(id)?;
        let (key, version, epoch) = (history.change.key().clone(), history.version, history.epoch);
        let state = match history.ended {
            None => CeremonyState::Running { done: 0, of: 1 },
            Some(theta_ledger::Ended::Recovered) => CeremonyState::Recovered,
            Some(theta_ledger::Ended::Aborted) => CeremonyState::Aborted,
            Some(theta_ledger::Ended::Cancelled) => CeremonyState::Cancelled,
            Some(theta_ledger::Ended::Activated) => activated(ledger, &key, version, epoch)?,
        };
        let awaits = if history.ended.is_none() { "the nodes that take part" } else { "" };
        let (aim, id) = (history.change.aim(), *id);
        let (evidence, silent) = (Vec::new(), Vec::new());
        Some(CeremonyReport { id, key, version, epoch, aim, state, evidence, silent, awaits, request: None })
    }
}

/// What makes a node take part in ceremonies again.
const CONFIRM: &str = "see theta keys trust-store --help, on the machine of each";

/// Who may have voted without remembering it does not vote at that height again, and the others are no quorum.
const REPLACE: &str =
    "the group cannot decide anything until their machines are replaced, see theta group warrant --help";

/// What a request waits for.
const AWAITS: &str = "as many nodes as it takes to be asked and to agree";

fn activated(
    ledger: &LedgerState,
    key: &theta_names::KeyName,
    version: Version,
    epoch: Epoch,
) -> Option<CeremonyState> {
    let history = ledger.keys().get(key)?.versions.get(&version)?;
    let sharing = history.epochs.iter().find(|sharing| sharing.epoch == epoch)?;
    let public = crate::ceremony::public_of(&sharing.public).ok()?;
    Some(CeremonyState::Activated { key_id: *public.key_id(), certificate: sharing.certificate.clone() })
}
