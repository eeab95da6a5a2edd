//! One node without threads, tasks or clocks.

use std::sync::{Arc, OnceLock};

use prometheus_client::registry::Registry;
use theta_authority::{BringWarrant, Granted, Request};
use theta_custody::{
    CeremonyReport, ChangeReport, Custodian, CustodyEffect, KeyEntry, KeyTable, MembersState, SlotClaim, SlotRefusal,
};
use theta_network::{Inbound, Transport};
use theta_rounds::Bug;
use theta_schemes::keys::KeyName;
use theta_statements::{CeremonyRequest, MemberRequest, StateChange};
use tokio::{
    sync::{oneshot, oneshot::error::TryRecvError, watch},
    time::Instant,
};

use super::{
    ChangeKeyError, ChangeMembersError, HoldError, Keys, NoCustodian, StartError,
    custody::{Custody, Order},
    router::{Sorted, place_of, sort},
    slots::{SlotCommand, Slots},
};
use crate::{
    Certified, CulpritRecord, Finished, InstanceError, InstanceId, InstanceSnapshot, Load, OrchestratorConfig, Stock,
    SubmitError,
    burning::Burning,
    entropy::Entropy,
    instances::{Command, Ending, Shard, Shared},
};

/// All of one node's orchestration, driven by hand: every call does everything that has become possible, and all
/// messages have been sent when it returns.
///
/// [`Orchestrator`](crate::Orchestrator) is threads and tasks around the same parts. An engine has no thread, no clock
/// and no randomness of its own: with the same seed, keys (with their store), configuration and ordered calls it passes
/// the same bytes in the same order to its transport. That makes it the core of simulations of whole groups. (Times in
/// metrics and of culprits come from the real clock; nothing depends on them.)
pub struct Engine {
    shared: Arc<Shared>,
    shards: Vec<Shard>,
    custody: Option<Custody>,
    slots: Option<Slots>,
    /// Requests that wait for the certificates of their slots.
    held: Vec<Held>,
    /// The time of the custodian's next tick.
    custody_due: Instant,
}

/// A request that waits for the certificates of its slots.
struct Held {
    request: Request,
    certified: oneshot::Receiver<Result<(), SlotRefusal>>,
    gate: Gate,
}

/// The result of waiting: the ending of an instance, or an error.
type Gate = Arc<OnceLock<Result<Ending, InstanceError>>>;

/// A request that was accepted.
#[derive(Clone, Debug)]
pub struct Pending {
    id: InstanceId,
    gate: Gate,
}

impl Pending {
    /// The id of its instance, or the one that the instance had at first.
    #[must_use]
    pub const fn id(&self) -> InstanceId {
        self.id
    }

    /// The outcome; `None` while it runs. It stays, even when the engine has forgotten the instance.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<Arc<Finished>, InstanceError>> {
        match self.gate.get()? {
            Ok(ending) => ending.get(),
            Err(error) => Some(Err(error.clone())),
        }
    }
}

impl Engine {
    /// Sets up a node at the time `now`. All randomness follows from `seed`, which must be unpredictable, and must
    /// never be used twice, where secrets matter.
    ///
    /// # Errors
    /// [`StartError`]: limits that cannot work, or keys of another node.
    pub fn new(
        config: OrchestratorConfig,
        keys: impl Into<Keys>,
        transport: Arc<dyn Transport>,
        registry: &mut Registry,
        seed: [u8; 32],
        now: Instant,
    ) -> Result<Self, StartError> {
        let keys = keys.into();
        let burning = keys.burner(&config)?.map_or(Burning::Off, Burning::Here);
        let shared = super::share(config, &keys, transport, registry, burning)?;
        let shards = Shard::all(&shared, |stream| Entropy::seeded(seed, stream), now);
        let (custodian, certifier) = keys.into_parts();
        let custody = custodian.map(|custodian| Custody::new(custodian, Arc::clone(&shared)));
        let slots = certifier.map(|certifier| Slots::new(certifier, Arc::clone(&shared), now));
        Ok(Self { shared, shards, custody, slots, held: Vec::new(), custody_due: now })
    }

    /// Starts an instance for a granted request, or joins the one that runs or has a result. A request with slots waits
    /// until they are certified for it, and ends with [`InstanceError::Slot`] if they are not.
    ///
    /// # Errors
    /// [`SubmitError`]; a request that is not valid leaves no trace.
    pub fn submit(&mut self, granted: Granted<Request>) -> Result<Pending, SubmitError> {
        let claims = granted.claims().to_vec();
        // A node whose store may be an old copy promises nothing, whatever happens to the request.
        let trusted = self.shared.is_trusted();
        let promised = if trusted { claims.clone() } else { Vec::new() };
        if !promised.is_empty() {
            self.shared.announce_store();
        }
        let certified = match Certified::of(granted, &self.shared.keys) {
            Ok(certified) => certified,
            Err(error) => return Err(self.announce_slots(promised, error.into())),
        };
        if claims.is_empty() {
            return self.start(certified);
        }
        let request = certified.request().clone();
        let id = match self.shared.admit(certified, None) {
            Ok(admitted) => admitted.identification().id(),
            Err(error) => return Err(self.announce_slots(promised, error)),
        };
        if !trusted {
            return Ok(Pending { id, gate: Arc::new(Err(InstanceError::Slot(SlotRefusal::Unconfirmed)).into()) });
        }
        let (gate, (reply, answer)) = (Gate::default(), oneshot::channel());
        self.held.push(Held { request, certified: answer, gate: Arc::clone(&gate) });
        match self.slots {
            Some(_) => self.certify(SlotCommand::Certify(claims, reply)),
            None => {
                drop(reply.send(Err(SlotRefusal::NoIdentity)));
                self.release();
            }
        }
        Ok(Pending { id, gate })
    }

    /// Sends this node's promises for a request that it does not serve: they count all the same.
    fn announce_slots(&mut self, claims: Vec<SlotClaim>, error: SubmitError) -> SubmitError {
        if !claims.is_empty() {
            self.certify(SlotCommand::Announce(claims));
        }
        error
    }

    fn start(&mut self, certified: Certified) -> Result<Pending, SubmitError> {
        let admitted = self.shared.admit(certified, None)?;
        let id = admitted.identification().id();
        let (submission, mut answer) = admitted.into_submission(id, false);
        self.tell(&id, Command::Submit(submission));
        let answer = answer.try_recv().map_err(|_| SubmitError::Bug(Bug("a shard that does not answer")))?;
        let (id, ending) = answer?;
        Ok(Pending { id, gate: Arc::new(Ok(ending).into()) })
    }

    fn certify(&mut self, order: SlotCommand) {
        if let Some(slots) = &mut self.slots {
            slots.obey(order);
            self.release();
        }
    }

    /// Starts the requests that are certified, and ends those that will not be.
    fn release(&mut self) {
        let held = core::mem::take(&mut self.held);
        for mut held in held {
            let end = match held.certified.try_recv() {
                Err(TryRecvError::Empty) => {
                    self.held.push(held);
                    continue;
                }
                Err(TryRecvError::Closed) => Err(InstanceError::ShuttingDown),
                Ok(Err(refusal)) => Err(InstanceError::Slot(refusal)),
                Ok(Ok(())) => match self.start_again(held.request) {
                    Ok(pending) => pending.gate.get().cloned().unwrap_or(Err(InstanceError::ShuttingDown)),
                    // The version that the name meant is no longer in use.
                    Err(SubmitError::Key(error)) => Err(InstanceError::Key(error)),
                    // The request was accepted before, but there is no room now. Its slot remains its own.
                    Err(error) => Err(InstanceError::Expired(error.to_string())),
                },
            };
            // Only this line sets it.
            let _ = held.gate.set(end);
        }
    }

    /// Starts a request that has waited: its key may have changed meanwhile.
    fn start_again(&mut self, request: Request) -> Result<Pending, SubmitError> {
        let certified = Certified::after_waiting(request, &self.shared.keys)?;
        self.start(certified)
    }

    /// Takes a message of a peer.
    pub fn receive(&mut self, inbound: Inbound) {
        match sort(inbound, &self.shared) {
            Some(Sorted::Shard(id, command)) => self.tell(&id, command),
            Some(Sorted::Custodian { from, bytes }) => {
                let orders = core::iter::once(Order::Message { from, bytes });
                let changed = self.custody.as_mut().map(|custody| custody.obey(orders));
                self.keys_changed(changed.unwrap_or_default());
            }
            Some(Sorted::Slots { from, bytes }) => {
                self.certify(SlotCommand::Message { from, bytes, _place: None });
            }
            None => {}
        }
    }

    /// Sets the time, which never falls: asks silent peers again, ends what ran out of time, and drops what is old. To
    /// be called every [`OrchestratorConfig::tick`]. `unix` is the same time in seconds since 1970, for the custodian,
    /// which gets a tick every [`OrchestratorConfig::custody_tick`].
    pub fn tick(&mut self, now: Instant, unix: u64) {
        if let Some(custody) = self.custody.as_mut().filter(|_| now >= self.custody_due) {
            self.custody_due = now + self.shared.config.custody_tick;
            let changed = custody.obey(core::iter::once(Order::Tick(unix)));
            self.keys_changed(changed);
        }
        self.certify(SlotCommand::Tick(now));
        for shard in &mut self.shards {
            shard.carry_out([Command::Tick(now)]);
            shard.report(0);
        }
    }

    /// The state of an instance, with its result if there is one; `None` if it is not known here.
    #[must_use]
    pub fn status(&self, granted: Granted<InstanceId>) -> Option<InstanceSnapshot> {
        let id = granted.into_request();
        self.shard(&id)?.status(&id)
    }

    /// Follows an instance; `None` if it is not known here.
    pub fn watch(&mut self, granted: Granted<InstanceId>) -> Option<watch::Receiver<InstanceSnapshot>> {
        let id = granted.into_request();
        let place = place_of(&id, self.shards.len())?;
        self.shards.get_mut(place)?.watch(&id)
    }

    /// As [`Orchestrator::hold`](crate::Orchestrator::hold).
    ///
    /// # Errors
    /// [`HoldError`].
    pub fn hold(&mut self, granted: Granted<CeremonyRequest>, reason: Vec<u8>) -> Result<CeremonyReport, HoldError> {
        self.ask(|custodian, effects| custodian.hold(granted.into_request(), reason, effects))
    }

    /// As [`Orchestrator::change_key`](crate::Orchestrator::change_key).
    ///
    /// # Errors
    /// [`ChangeKeyError`].
    pub fn change_key(
        &mut self,
        granted: Granted<StateChange>,
        reason: Vec<u8>,
    ) -> Result<ChangeReport, ChangeKeyError> {
        let change = granted.into_request();
        self.ask(|custodian, effects| custodian.change(&change, reason, effects))
    }

    /// As [`Orchestrator::change_members`](crate::Orchestrator::change_members).
    ///
    /// # Errors
    /// [`ChangeMembersError`].
    pub fn change_members(
        &mut self,
        granted: Granted<MemberRequest>,
        reason: Vec<u8>,
    ) -> Result<MembersState, ChangeMembersError> {
        let request = granted.into_request();
        self.ask(|custodian, effects| custodian.change_members(&request, reason, effects))
    }

    /// As [`Orchestrator::bring_warrant`](crate::Orchestrator::bring_warrant).
    ///
    /// # Errors
    /// [`ChangeMembersError`].
    pub fn bring_warrant(&mut self, granted: Granted<BringWarrant>) -> Result<MembersState, ChangeMembersError> {
        let warrant = granted.into_request().warrant;
        self.ask(|custodian, effects| custodian.bring_warrant(&warrant, effects))
    }

    /// The custodian, for inspection.
    #[must_use]
    pub fn custodian(&self) -> Option<&Custodian> {
        self.custody.as_ref().map(Custody::custodian)
    }

    /// The keys of this node.
    #[must_use]
    pub fn keys(&self) -> &Arc<KeyTable> {
        &self.shared.keys
    }

    /// As [`Orchestrator::stock`](crate::Orchestrator::stock).
    #[must_use]
    pub fn stock(&self, entry: &KeyEntry) -> Option<Stock> {
        self.shared.stock(entry)
    }

    /// How busy this node is.
    #[must_use]
    pub fn load(&self) -> Load {
        self.shared.load()
    }

    /// The nodes whose misbehaviour was seen lately, oldest first.
    #[must_use]
    pub fn culprits(&self) -> Vec<CulpritRecord> {
        self.shared.culprits.list()
    }

    /// Asks the custodian, and moves the instances of keys that have changed.
    fn ask<A, E, F: From<NoCustodian> + From<E>>(
        &mut self,
        ask: impl FnOnce(&mut Custodian, &mut Vec<CustodyEffect>) -> Result<A, E>,
    ) -> Result<A, F> {
        let custody = self.custody.as_mut().ok_or(NoCustodian::Fixed)?;
        let (answer, changed) = custody.ask(ask);
        self.keys_changed(changed);
        Ok(answer?)
    }

    fn keys_changed(&mut self, names: Vec<KeyName>) {
        for name in names {
            for shard in &mut self.shards {
                shard.carry_out([Command::KeyChanged(name.clone())]);
                shard.report(0);
            }
        }
    }

    fn shard(&self, id: &InstanceId) -> Option<&Shard> {
        self.shards.get(place_of(id, self.shards.len())?)
    }

    fn tell(&mut self, id: &InstanceId, command: Command) {
        let place = place_of(id, self.shards.len());
        if let Some(shard) = place.and_then(|place| self.shards.get_mut(place)) {
            shard.carry_out([command]);
            shard.report(0);
        }
    }
}

impl core::fmt::Debug for Engine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Engine").field("local", &self.shared.local).field("load", &self.load()).finish()
    }
}
