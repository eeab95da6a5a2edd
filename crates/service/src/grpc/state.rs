//! What all handlers share.

use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use rand_core::CryptoRng;
use theta_custody::announcement;
use theta_names::KeyRef;
use theta_network::{PeerState, Transport};
use theta_orchestration::{Finished, InstanceId, KeyEntry, Orchestrator, Seed, SlotRefusal, Stage};
use theta_payload::{Header, PayloadKey, open_bytes, split_ciphertext};
use theta_schemes::{Suite, signatures::frost::randomized_key};
use theta_wire::v1;
use tokio::time;
use tonic::{Request, Status};

use super::{answer, gate::Arrival, refusal};
use crate::authority::{Asked, Authority, Grant, Presented};

/// The most culprits that a status lists.
const MAX_CULPRITS: usize = 100;

/// The node behind the API.
pub(crate) struct NodeState {
    pub(crate) orchestrator: Arc<Orchestrator>,
    pub(crate) authority: Arc<Authority>,
    pub(crate) transport: Arc<dyn Transport>,
    /// How many nodes the group has.
    pub(crate) nodes: u16,
    pub(crate) started: Instant,
}

impl NodeState {
    /// Decides whether a request is for this client, and whether this node can be sure of what it decided before.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) async fn decide<T>(&self, request: &Request<T>, asked: Asked) -> Result<Grant, Status> {
        // An old copy of the store does not know which slots are taken.
        let takes_slot = self.authority.policy().takes_slot(asked.key.as_deref(), asked.operation);
        if takes_slot && !self.orchestrator.is_trusted() {
            return Err(Status::unavailable(
                "a signing rule covers this key, and too few nodes have confirmed yet that this node's store is its latest: try \
                 again in a moment or ask another node",
            ));
        }
        let grant = self.authority.decide(Presented::of(request), asked).await?;
        // Who was recognised by a signature has had a place among strangers, or its carrier's.
        if let Some(arrival) = request.extensions().get::<Arrival>() {
            arrival.recognised(grant.client())?;
        }
        if takes_slot {
            // Before the share: were this node's store set back, whoever has seen the share could tell.
            self.orchestrator.announce(announcement(&self.authority.store().incarnation()));
        }
        Ok(grant)
    }

    /// Waits until the slots of an allowed request are certified for it: before that, nothing may be done for it that hangs on a
    /// share. At most as long as the caller waits.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) async fn certify(&self, grant: &Grant, patience: Option<Duration>) -> Result<(), Status> {
        if grant.slots.is_empty() {
            return Ok(());
        }
        let certified = self.orchestrator.certify(grant.slots.clone());
        let verdict = match patience {
            None => certified.await,
            Some(patience) => match time::timeout(patience, certified).await {
                Ok(verdict) => verdict,
                Err(_) => {
                    let standing = self.orchestrator.slot_standing(grant.slots.clone()).await;
                    let late = || SlotRefusal::Undecided("the slot was not decided before the deadline".to_owned());
                    return Err(grant.uncertified(&standing.unwrap_or_else(late), false));
                }
            },
        };
        verdict.map_err(|refusal| grant.uncertified(&refusal, true))
    }

    /// A version of a key that would serve an allowed request, whose slots are certified for it; `header`: of the ciphertext to
    /// open.
    ///
    /// # Errors
    /// The refusal. What this node promised is said to the others all the same: it counts, whoever holds shares.
    pub(crate) async fn certified_entry(
        &self,
        key: &KeyRef,
        header: Option<&Bytes>,
        grant: &Grant,
        patience: Option<Duration>,
    ) -> Result<Arc<KeyEntry>, Status> {
        if let Err(status) = self.serving_entry(key, header) {
            self.orchestrator.announce_slots(grant.slots.clone()).await;
            return Err(status);
        }
        self.certify(grant, patience).await?;
        // Looked up again: it may have changed meanwhile.
        self.serving_entry(key, header)
    }

    /// A key of this node, whatever its state.
    pub(crate) fn key_entry(&self, key: &KeyRef) -> Result<Arc<KeyEntry>, Status> {
        let keys = self.orchestrator.keys();
        let name = key.to_string();
        keys.get(&name).ok_or_else(|| {
            refusal::not_found(format!("no key named \"{name}\" on this node; it has: {}", keys.known()))
        })
    }

    /// The version of a key that would serve a request; `header`: of the ciphertext to open.
    pub(crate) fn serving_entry(&self, key: &KeyRef, header: Option<&Bytes>) -> Result<Arc<KeyEntry>, Status> {
        let id = header.and_then(|header| Header::parse(header).ok()).map(|header| *header.key_id());
        self.orchestrator.keys().resolve(&key.to_string(), id.as_ref()).map_err(|error| refusal::key(&error))
    }

    /// All versions of all keys, by name.
    pub(crate) fn keys(&self) -> Vec<v1::KeyInfo> {
        self.orchestrator.keys().iter().map(|entry| answer::key_info(&entry)).collect()
    }

    /// Runs a computation on the CPU pool.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        computation: impl FnOnce(&mut dyn CryptoRng) -> T + Send + 'static,
    ) -> Result<T, Status> {
        self.orchestrator.compute(computation).await.map_err(|error| refusal::compute(&error))
    }

    /// Opens a ciphertext with the payload key that an instance found.
    pub(crate) async fn open(&self, finished: Arc<Finished>, ciphertext: Bytes) -> Result<Bytes, Status> {
        let open = move |_: &mut dyn CryptoRng| {
            let key = PayloadKey::from_bytes(finished.result.expose()).map_err(|error| error.to_string())?;
            let mut plaintext = open_bytes(&key, &ciphertext).map_err(|error| error.to_string())?;
            Ok::<_, String>(Bytes::from(mem::take(plaintext.expose_mut())))
        };
        self.compute(open).await?.map_err(|reason| refusal::invalid(format!("the payload does not open: {reason}")))
    }

    /// The key that a signature made with a seed verifies under.
    pub(crate) async fn randomized_key(
        &self,
        key: &KeyRef,
        seed: Seed,
        finished: Arc<Finished>,
    ) -> Result<Bytes, Status> {
        let public = self.key_entry(key)?.public.clone();
        let derived = self.compute(move |_| randomized_key(&public, &seed, &finished.proof)).await?;
        derived.map(Bytes::from).ok_or_else(|| Status::internal("bug: a randomizer without its key; please report it"))
    }

    /// Notes how long the request took to arrive and to be decoded.
    pub(crate) fn decoded<T>(&self, request: &Request<T>, suite: Suite) {
        if let Some(arrival) = request.extensions().get::<Arrival>() {
            let (received, now) = (arrival.receiving(), arrival.since().elapsed());
            self.orchestrator.observe_stage(suite, Stage::Received, None, received);
            self.orchestrator.observe_stage(suite, Stage::Deserialised, None, now.saturating_sub(received));
        }
    }

    /// Notes when the answer is ready to leave.
    pub(crate) fn returned<T>(&self, request: &Request<T>, suite: Suite, instance: InstanceId) {
        if let Some(arrival) = request.extensions().get::<Arrival>() {
            self.orchestrator.observe_stage(suite, Stage::Returned, Some(&instance), arrival.since().elapsed());
        }
    }

    /// The peers that are not connected.
    pub(crate) fn unreachable(&self) -> Vec<u16> {
        let peers = self.transport.status().into_iter();
        peers.filter(|peer| peer.state != PeerState::Connected).map(|peer| peer.peer.get()).collect()
    }

    /// This node, its peers and its load.
    pub(crate) fn status(&self) -> v1::GetStatusResponse {
        let load = self.orchestrator.load();
        let culprits = self.orchestrator.culprits();
        v1::GetStatusResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            node: u32::from(self.transport.local().get()),
            nodes: u32::from(self.nodes),
            peers: self.transport.status().into_iter().map(answer::peer).collect(),
            instances_running: u64::try_from(load.running).unwrap_or(u64::MAX),
            results_cached: u64::try_from(load.results).unwrap_or(u64::MAX),
            uptime_seconds: self.started.elapsed().as_secs(),
            warnings: self.authority.standing().unwrap_or_else(Some).into_iter().collect(),
            culprits: culprits.iter().rev().take(MAX_CULPRITS).map(|record| answer::culprit(&record.culprit)).collect(),
        }
    }
}

/// The header of a whole ciphertext, sharing its buffer.
pub(crate) fn header_of(ciphertext: &Bytes) -> Result<Bytes, Status> {
    let (header, _) = split_ciphertext(ciphertext).map_err(|error| refusal::request(&error))?;
    Ok(ciphertext.slice_ref(header))
}
