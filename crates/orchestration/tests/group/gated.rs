//! Nodes behind a gate, as in a front end: the gate is the real one, and its policy allows everything to one client.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

use bytes::Bytes;
use prometheus_client::registry::Registry;
use theta_authority::{Asks, Gate, Granted, KeyRequest, ListCeremonies, Presented, WatchCeremony};
use theta_custody::{CeremonyReport, ChangeReport, KeyTable};
use theta_names::NodeId;
use theta_network::{Inbound, Transport};
use theta_orchestration::{
    Asker, Certified, ChangeKeyError, Finished, HoldError, InstanceError, InstanceId, InstanceSnapshot, Keys,
    NotServed, OrchestratorConfig, Pending, StartError, SubmitError,
};
use theta_policy::{MemorySlots, Policy};
use theta_statements::{CeremonyRequest, StateChange, UnixTime};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

/// The client's certificate.
const CERTIFICATE: [u8; 32] = [0xc1; 32];

/// What a client asks of a key.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) key: String,
    pub(crate) operation: KeyRequest,
}

impl Request {
    /// The request as the front end of the node with these keys decodes it.
    fn decoded(&self, keys: &KeyTable) -> Result<theta_authority::Request, SubmitError> {
        Ok(theta_authority::Request::new(keys, self.key.parse().unwrap(), self.operation.clone())?)
    }
}

fn gate() -> Gate<MemorySlots> {
    gate_with("")
}

/// The same, where every signature is for a slot.
fn gate_of_slots() -> Gate<MemorySlots> {
    gate_with("[[signing]]\nname = \"slots\"\nkeys = [\"*\"]\nslot = \"claimed\"\n")
}

fn gate_with(more: &str) -> Gate<MemorySlots> {
    let certificate = hex::encode(CERTIFICATE);
    let text = format!(
        "format = 1\n[[client]]\nname = \"app\"\ncertificates = [\"{certificate}\"]\n[[rule]]\nname = \"all\"\n\
         effect = \"allow\"\nclients = [\"app\"]\nkeys = [\"*\"]\noperations = [\"*\"]\n{more}"
    );
    Gate::new("g", NodeId::FIRST, Policy::parse(&text, "policy.toml").unwrap(), MemorySlots::default())
}

fn grant<R: Asks>(gate: &Gate<MemorySlots>, request: R) -> Granted<R> {
    gate.decide(&Presented::new(Some(CERTIFICATE), None), request, UnixTime(0)).unwrap().answer.unwrap()
}

/// The permission for the client to have the result of what it was allowed.
fn grant_result(gate: &Gate<MemorySlots>, id: InstanceId) -> Granted<InstanceId> {
    // The terms of any permission will do, since this policy allows everything.
    let asked = KeyRequest::Sign(Bytes::new());
    let request = theta_authority::Request::new(&KeyTable::default(), "any".parse().unwrap(), asked).unwrap();
    let terms = grant(gate, request).terms().clone();
    let caller = gate.policy().current().caller_by_certificate(CERTIFICATE).unwrap();
    gate.decide_result(&caller, &terms, id, UnixTime(0)).answer.unwrap()
}

/// An orchestrator and its gate.
#[derive(Debug)]
pub(crate) struct Orchestrator {
    orchestrator: Arc<theta_orchestration::Orchestrator>,
    gate: Gate<MemorySlots>,
    slots: Gate<MemorySlots>,
}

impl Deref for Orchestrator {
    type Target = theta_orchestration::Orchestrator;

    fn deref(&self) -> &Self::Target {
        &self.orchestrator
    }
}

impl Orchestrator {
    pub(crate) fn start(
        config: OrchestratorConfig,
        keys: impl Into<Keys>,
        transport: Arc<dyn Transport>,
        inbound: mpsc::Receiver<Inbound>,
        registry: &mut Registry,
    ) -> Result<Arc<Self>, StartError> {
        let orchestrator = theta_orchestration::Orchestrator::start(config, keys, transport, inbound, registry)?;
        Ok(Arc::new(Self { orchestrator, gate: gate(), slots: gate_of_slots() }))
    }

    /// Certifies a request for a slot.
    pub(crate) async fn certify_slot(&self, request: &Request, slot: u64) -> Result<Certified, NotServed> {
        let request = request.decoded(self.keys()).unwrap().at(Some(slot));
        self.orchestrator.certify(grant(&self.slots, request)).await
    }

    async fn certified(&self, request: &Request) -> Result<Certified, SubmitError> {
        let granted = grant(&self.gate, request.decoded(self.keys())?);
        self.orchestrator.certify(granted).await.map_err(|error| match error {
            NotServed::Key(error) => error.into(),
            NotServed::Slot(refusal) => panic!("nothing takes a slot here: {refusal}"),
        })
    }

    pub(crate) async fn submit(&self, request: Request) -> Result<InstanceId, SubmitError> {
        self.orchestrator.submit(self.certified(&request).await?).await
    }

    /// As if an agent of this node refused what the request is about.
    pub(crate) async fn refuse(&self, request: &Request) {
        self.refused(&request.decoded(self.keys()).unwrap()).await;
    }

    pub(crate) async fn submit_for(&self, request: Request, asker: Asker) -> Result<InstanceId, SubmitError> {
        self.orchestrator.submit_for(self.certified(&request).await?, asker).await
    }

    pub(crate) async fn run(
        &self,
        request: Request,
    ) -> Result<(InstanceId, Result<Arc<Finished>, InstanceError>), SubmitError> {
        self.orchestrator.run(self.certified(&request).await?).await
    }

    pub(crate) async fn run_for(
        &self,
        request: Request,
        asker: Asker,
    ) -> Result<(InstanceId, Result<Arc<Finished>, InstanceError>), SubmitError> {
        self.orchestrator.run_for(self.certified(&request).await?, asker).await
    }

    pub(crate) async fn outcome(&self, id: InstanceId) -> Result<Arc<Finished>, InstanceError> {
        self.orchestrator.outcome(grant_result(&self.gate, id)).await
    }

    pub(crate) async fn status(&self, id: InstanceId) -> Option<InstanceSnapshot> {
        self.orchestrator.status(grant_result(&self.gate, id)).await
    }

    pub(crate) async fn watch(&self, id: InstanceId) -> Option<watch::Receiver<InstanceSnapshot>> {
        self.orchestrator.watch(grant_result(&self.gate, id)).await
    }

    pub(crate) async fn hold(&self, request: CeremonyRequest) -> Result<CeremonyReport, HoldError> {
        self.orchestrator.hold(grant(&self.gate, request), Vec::new()).await
    }

    pub(crate) async fn ceremonies(&self) -> Vec<CeremonyReport> {
        self.orchestrator.ceremonies(grant(&self.gate, ListCeremonies)).await
    }

    pub(crate) async fn watch_ceremony(&self, id: [u8; 32]) -> Option<watch::Receiver<CeremonyReport>> {
        self.orchestrator.watch_ceremony(grant(&self.gate, WatchCeremony(id))).await
    }

    /// How a ceremony stands; `None` if it is not known there.
    pub(crate) async fn ceremony(&self, id: [u8; 32]) -> Option<CeremonyReport> {
        Some(self.watch_ceremony(id).await?.borrow().clone())
    }

    pub(crate) async fn change_key(&self, change: StateChange) -> Result<ChangeReport, ChangeKeyError> {
        self.orchestrator.change_key(grant(&self.gate, change), Vec::new()).await
    }
}

/// The same without threads.
#[derive(Debug)]
pub(crate) struct Engine {
    engine: theta_orchestration::Engine,
    gate: Gate<MemorySlots>,
    slots: Gate<MemorySlots>,
}

impl Deref for Engine {
    type Target = theta_orchestration::Engine;

    fn deref(&self) -> &Self::Target {
        &self.engine
    }
}

impl DerefMut for Engine {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.engine
    }
}

impl Engine {
    pub(crate) fn new(
        config: OrchestratorConfig,
        keys: impl Into<Keys>,
        transport: Arc<dyn Transport>,
        registry: &mut Registry,
        seed: [u8; 32],
        now: Instant,
    ) -> Result<Self, StartError> {
        let engine = theta_orchestration::Engine::new(config, keys, transport, registry, seed, now)?;
        Ok(Self { engine, gate: gate(), slots: gate_of_slots() })
    }

    #[allow(clippy::needless_pass_by_value, reason = "as the engine takes it")]
    pub(crate) fn submit(&mut self, request: Request) -> Result<Pending, SubmitError> {
        let granted = grant(&self.gate, request.decoded(self.engine.keys())?);
        self.engine.submit(granted)
    }

    /// What the policy allows now, to be carried out later.
    pub(crate) fn granted(&self, request: &Request) -> Granted<theta_authority::Request> {
        grant(&self.gate, request.decoded(self.engine.keys()).unwrap())
    }

    /// The same for a slot.
    pub(crate) fn granted_slot(&self, request: &Request, slot: u64) -> Granted<theta_authority::Request> {
        grant(&self.slots, request.decoded(self.engine.keys()).unwrap().at(Some(slot)))
    }

    pub(crate) fn submit_granted(
        &mut self,
        granted: Granted<theta_authority::Request>,
    ) -> Result<Pending, SubmitError> {
        self.engine.submit(granted)
    }

    pub(crate) fn status(&self, id: InstanceId) -> Option<InstanceSnapshot> {
        self.engine.status(grant_result(&self.gate, id))
    }

    pub(crate) fn watch(&mut self, id: InstanceId) -> Option<watch::Receiver<InstanceSnapshot>> {
        self.engine.watch(grant_result(&self.gate, id))
    }

    pub(crate) fn hold(&mut self, request: CeremonyRequest) -> Result<CeremonyReport, HoldError> {
        self.engine.hold(grant(&self.gate, request), Vec::new())
    }

    pub(crate) fn change_key(&mut self, change: &StateChange) -> Result<ChangeReport, ChangeKeyError> {
        self.engine.change_key(grant(&self.gate, change.clone()), Vec::new())
    }
}
