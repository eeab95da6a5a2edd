//! The state that all handlers share.

use std::{
    fs, mem,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use rand_core::CryptoRng;
use theta_authority::{Asks, Authority, Granted, KeyRequest, Look, Place, Presented, Refusal, Request as KeyUse, Seed};
use theta_names::{KeyRef, WallTime};
use theta_network::{GroupTransport, PeerState, Transport};
use theta_orchestration::{
    Certified, Finished, InstanceId, KeyEntry, NotServed, Orchestrator, Quarantine, SlotRefusal, Stage,
};
use theta_payload::{HeaderBytes, PayloadKey, open_payload, split_ciphertext};
use theta_schemes::{RequestError, Suite, keys::AnyPublicKey, signatures::frost::randomized_key};
use theta_statements::Name;
use theta_wire::v1;
use tokio::time;
use tonic::{Code, Request, Status};

use super::{answer, backup::Backups, deadline, door, gate::Arrival, refusal};
use crate::node::{CertificateKeeper, Host};

/// The most culprits that a status lists.
const MAX_CULPRITS: usize = 100;

/// How long a request waits for the host's order.
const LONGEST_RACE: Duration = Duration::from_secs(60);

/// The node behind the API.
pub(crate) struct NodeState {
    pub(crate) orchestrator: Arc<Orchestrator>,
    pub(crate) authority: Arc<Authority>,
    pub(crate) transport: Arc<dyn Transport>,
    /// What is under the transport.
    pub(crate) network: Arc<dyn GroupTransport>,
    pub(crate) certificate: Arc<CertificateKeeper>,
    /// How many nodes the group has.
    pub(crate) nodes: Arc<AtomicU16>,
    pub(crate) started: Instant,
    pub(crate) backups: Backups,
    /// The host, if the node has one.
    pub(crate) host: Option<Arc<Host>>,
}

impl NodeState {
    /// Decides whether a client may make this request. `enclosed`: the signed request, or nothing, and the approvals.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) async fn decide<T, R: Asks + Send + 'static>(
        &self,
        request: &Request<T>,
        enclosed: (&Bytes, &[Bytes]),
        asks: R,
    ) -> Result<Granted<R>, Status> {
        let presented = door::presented(request).with(enclosed.0, enclosed.1);
        let granted = self.authority.decide(presented, asks).await.map_err(|refusal| refusal::gate(&refusal))?;
        Self::recognised(request, granted)
    }

    /// Moves the request to the account of the client that asks.
    fn recognised<T, R>(request: &Request<T>, granted: Granted<R>) -> Result<Granted<R>, Status> {
        // A client that a signature has identified has had a stranger's place so far, or that of the caller that relays.
        // Anybody who has seen its request can bring copies of it: they stay with whoever does.
        if let Some(arrival) = request.extensions().get::<Arrival>().filter(|_| !granted.is_copy()) {
            arrival.recognised(granted.client())?;
        }
        Ok(granted)
    }

    /// The same for what only a member's machine does. One that is none, or not yet, decides nothing: its record would say that it had
    /// allowed what it then refused.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) async fn decide_seated<T, R: Asks + Send + 'static>(
        &self,
        request: &Request<T>,
        enclosed: (&Bytes, &[Bytes]),
        asks: R,
    ) -> Result<Granted<R>, Status> {
        self.seated()?;
        self.decide(request, enclosed, asks).await
    }

    /// Decides about a request without signature and approvals.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) async fn decide_plain<T, R: Asks + Send + 'static>(
        &self,
        request: &Request<T>,
        asks: R,
    ) -> Result<Granted<R>, Status> {
        self.decide(request, (&Bytes::new(), &[]), asks).await
    }

    /// Decodes a request to a key and finds the key, once for everything that follows.
    ///
    /// # Errors
    /// The caller's mistake.
    pub(crate) fn key_use(&self, key: &str, asked: KeyRequest, slot: Option<u64>) -> Result<KeyUse, Status> {
        let key = refusal::key_ref(key)?;
        let request = KeyUse::new(self.orchestrator.keys(), key, asked).map_err(|error| refusal::request(&error))?;
        Ok(request.at(slot))
    }

    /// Decides whether a client may use a key. Refuses if this node's store is not confirmed and the request takes a slot.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) async fn decide_use<T>(
        &self,
        request: &Request<T>,
        enclosed: (&Bytes, &[Bytes]),
        key_use: KeyUse,
    ) -> Result<Granted<KeyUse>, Status> {
        self.may_take_slots(&key_use)?;
        let presented = door::presented(request).with(enclosed.0, enclosed.1);
        let presented = self.first_in_the_order(request, presented, &key_use).await?;
        self.seated()?;
        let asked = key_use.clone();
        match self.authority.decide(presented, key_use).await {
            Ok(granted) => Self::recognised(request, granted),
            Err(refusal) => Err(self.refused(&asked, &refusal).await),
        }
    }

    /// What the caller is told of a refusal to use a key. Where an agent refuses the contents, nodes that take part in it all the same are noted.
    pub(crate) async fn refused(&self, asked: &KeyUse, refusal: &Refusal) -> Status {
        if refusal.is_by_contents() {
            self.orchestrator.refused(asked).await;
        }
        refusal::gate(refusal)
    }

    /// Refuses a request that takes a slot while this node's store is not confirmed.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn may_take_slots(&self, key_use: &KeyUse) -> Result<(), Status> {
        // An old copy of the store does not know which slots are taken. The crates below refuse as well; refusing here is
        // faster and makes no record of a decision.
        if self.authority.takes_slot(key_use) && !self.orchestrator.is_trusted() {
            return Err(Status::unavailable(
                "a signing rule covers this key, and too few nodes have confirmed yet that this node's store is its latest: try \
                 again in a moment or ask another node",
            ));
        }
        Ok(())
    }

    /// Waits until the host's order says that this message is the first for its slots, where a signing rule wants that: then every node
    /// promises the same, and no race makes a slot void. Returns what is to be decided by then.
    ///
    /// # Errors
    /// The refusal. Nothing was promised.
    pub(crate) async fn first_in_the_order<T>(
        &self,
        request: &Request<T>,
        presented: Presented,
        key_use: &KeyUse,
    ) -> Result<Presented, Status> {
        let key = key_use.key().name.as_str();
        if !self.authority.policy().may_race(Some(key), key_use.operation()) {
            return Ok(presented);
        }
        let raced = self.authority.races(presented, key_use).await;
        let (presented, races) = raced.map_err(|refusal| refusal::gate(&refusal))?;
        if races.is_empty() {
            return Ok(presented);
        }
        let Some(host) = &self.host else {
            return Err(Status::unavailable(
                "a signing rule waits for the order of this node's host, and it has none: name one by [order] in node.toml, or take \
                 race = \"ordered\" out of the policy",
            ));
        };
        let patience = deadline::patience(request.metadata()).unwrap_or(LONGEST_RACE).min(LONGEST_RACE);
        host.is_first(races, patience).await.map_err(|error| refusal::not_first(&error))?;
        Ok(presented)
    }

    /// Refuses if this machine is not its member's: not yet, or not any more.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn seated(&self) -> Result<(), Status> {
        match self.orchestrator.departure() {
            None => Ok(()),
            Some(why) if self.orchestrator.is_behind() => {
                Err(refusal::not_ready(format!("{why}: ask again in a moment")))
            }
            Some(why) => Err(Status::unavailable(refusal::short(why))),
        }
    }

    /// What a node that has not caught up with its group says does not exist may well exist.
    pub(crate) fn or_not_ready(&self, status: Status) -> Status {
        if status.code() == Code::NotFound && self.orchestrator.is_behind() {
            let message = status.message();
            return refusal::not_ready(format!(
                "{message}; but it has not caught up with what its group has decided: ask again in a moment"
            ));
        }
        status
    }

    /// Waits until a granted request can be served, that is until its key is here and its slot is certified for it, but at
    /// most as long as the caller waits.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) async fn certified(
        &self,
        granted: Granted<KeyUse>,
        patience: Option<Duration>,
    ) -> Result<Certified, Status> {
        let (terms, claims) = (granted.terms().clone(), granted.claims().to_vec());
        let certified = self.orchestrator.certify(granted);
        let served = match patience.filter(|_| !claims.is_empty()) {
            None => certified.await,
            Some(patience) => match time::timeout(patience, certified).await {
                Ok(served) => served,
                Err(_) => {
                    let standing = self.orchestrator.slot_standing(claims).await;
                    let late = || SlotRefusal::Undecided("the slot was not decided before the deadline".to_owned());
                    return Err(refusal::uncertified(&terms, &standing.unwrap_or_else(late), false));
                }
            },
        };
        served.map_err(|error| match error {
            NotServed::Key(error) => self.or_not_ready(refusal::key(&error)),
            NotServed::Slot(slots) => refusal::uncertified(&terms, &slots, true),
        })
    }

    /// A key of this node, whatever its state.
    fn key_entry(&self, key: &KeyRef) -> Result<Arc<KeyEntry>, Status> {
        let keys = self.orchestrator.keys();
        keys.find(key)
            // Which others there are is for those who may list them.
            .map_err(|_| refusal::not_found(format!("no key named \"{key}\" on this node")))
            .map_err(|status| self.or_not_ready(status))
    }

    /// A key, for a caller that may see it.
    ///
    /// # Errors
    /// The refusal, or there is no such key.
    pub(crate) async fn key_seen<T>(&self, request: &Request<T>, key: &str) -> Result<Arc<KeyEntry>, Status> {
        let (_, key) = self.may_see(request, key).await?;
        self.key_entry(&key)
    }

    /// A key to compute with, for a caller that may see it, and a place for the computation. It counts for the caller, as an instance would.
    ///
    /// # Errors
    /// The refusal, or there is no such key.
    pub(crate) async fn key_to_compute_with<T>(
        &self,
        request: &Request<T>,
        key: &str,
    ) -> Result<(Arc<KeyEntry>, Place), Status> {
        let (granted, key) = self.may_see(request, key).await?;
        self.authority.submission(granted.client()).map_err(|refusal| refusal::gate(&refusal))?;
        Ok((self.key_entry(&key)?, self.computation(granted.client())?))
    }

    /// A place for a computation of this client.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn computation(&self, client: &Name) -> Result<Place, Status> {
        let place = self.authority.computation(client, self.orchestrator.computations());
        place.map_err(|refusal| refusal::gate(&refusal))
    }

    /// Decides whether a caller may see a key.
    async fn may_see<T>(&self, request: &Request<T>, key: &str) -> Result<(Granted<Look>, KeyRef), Status> {
        let key = refusal::key_ref(key)?;
        Ok((self.decide_plain(request, Look::Key(key.clone())).await?, key))
    }

    /// A place for one of this client's streams.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn stream(&self, client: &Name) -> Result<Place, Status> {
        self.authority.stream(client).map_err(|refusal| refusal::gate(&refusal))
    }

    /// All versions of all keys that this node knows, by name, also those without a share here.
    pub(crate) fn keys(&self) -> Vec<v1::KeyInfo> {
        self.orchestrator.keys().iter().map(|entry| self.key_info(&entry)).collect()
    }

    /// A version of a key as this node describes it.
    pub(crate) fn key_info(&self, entry: &KeyEntry) -> v1::KeyInfo {
        answer::key_info(entry, self.orchestrator.stock(entry), Quarantine::of(entry))
    }

    /// Runs a computation on the CPU pool.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        computation: impl FnOnce(&mut dyn CryptoRng) -> T + Send + 'static,
    ) -> Result<T, Status> {
        self.orchestrator.compute(computation).await.map_err(|error| refusal::compute(&error))
    }

    /// Runs a computation that has a place.
    pub(crate) async fn compute_at<T: Send + 'static>(
        &self,
        place: Place,
        computation: impl FnOnce(&mut dyn CryptoRng) -> T + Send + 'static,
    ) -> Result<T, Status> {
        self.compute(move |rng| {
            let result = computation(rng);
            drop(place);
            result
        })
        .await
    }

    /// Opens a ciphertext, whose header is parsed already, with the payload key that is the result of an instance.
    pub(crate) async fn open(
        &self,
        finished: Arc<Finished>,
        header: HeaderBytes,
        ciphertext: Bytes,
    ) -> Result<Bytes, Status> {
        let open = move |_: &mut dyn CryptoRng| {
            let key = PayloadKey::from_bytes(finished.result.expose()).map_err(|error| error.to_string())?;
            let payload = ciphertext.get(header.bytes().len()..).unwrap_or_default();
            let mut plaintext = open_payload(&key, &header.header(), payload).map_err(|error| error.to_string())?;
            Ok::<_, String>(Bytes::from(mem::take(plaintext.expose_mut())))
        };
        self.compute(open).await?.map_err(|reason| refusal::invalid(format!("the payload does not open: {reason}")))
    }

    /// The key under which a signature with a seed verifies; `public` is the version that signed.
    pub(crate) async fn randomized_key(
        &self,
        public: AnyPublicKey,
        seed: Seed,
        finished: Arc<Finished>,
    ) -> Result<Bytes, Status> {
        let derived = self.compute(move |_| randomized_key(&public, &seed, &finished.proof)).await?;
        derived.map(Bytes::from).ok_or_else(|| Status::internal("bug: a randomizer without its key; please report it"))
    }

    /// Records how long the request took to arrive and to be decoded.
    pub(crate) fn decoded<T>(&self, request: &Request<T>, suite: Suite) {
        if let Some(arrival) = request.extensions().get::<Arrival>() {
            let (received, now) = (arrival.receiving(), arrival.since().elapsed());
            self.orchestrator.observe_stage(suite, Stage::Received, None, received);
            self.orchestrator.observe_stage(suite, Stage::Deserialised, None, now.saturating_sub(received));
        }
    }

    /// Records that the answer is ready to leave.
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

    fn disk(&self) -> v1::DiskStatus {
        let store = self.authority.store();
        let free = store.free_space();
        v1::DiskStatus {
            free: free.unwrap_or_default(),
            unknown: free.is_none(),
            failed: store.has_failed(),
            store_bytes: fs::metadata(store.place()).map_or(0, |file| file.len()),
        }
    }

    fn store_standing(&self) -> v1::StoreStanding {
        if self.orchestrator.store_failure().is_some() {
            v1::StoreStanding::Failed
        } else if self.orchestrator.is_trusted() {
            v1::StoreStanding::Confirmed
        } else {
            v1::StoreStanding::Unconfirmed
        }
    }

    /// How far the log goes; nothing if it cannot be read now.
    fn audit(&self) -> Option<v1::AuditStatus> {
        let store = self.authority.store();
        let (first, next) = (store.audit_start().ok()?.len(), store.audit_end().ok()?.len());
        Some(v1::AuditStatus { first, next })
    }

    /// That this node does not vote in the group's ledger, if that is so: in a small group nobody decides anything meanwhile.
    fn voteless(&self) -> Option<String> {
        let lacks = self.authority.store().lacks_ledger_votes().unwrap_or(false);
        lacks.then(|| {
            "it does not vote on changes of keys and members, since its store was restored or set back, until others have decided one \
             without it: where all have to decide, as in 2 of 3, another machine has to take its place (theta group warrant)"
                .to_owned()
        })
    }

    /// This node, its peers and its load.
    pub(crate) fn status(&self) -> v1::GetStatusResponse {
        let load = self.orchestrator.load();
        let culprits = self.orchestrator.culprits_to_tell(MAX_CULPRITS);
        v1::GetStatusResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            node: u32::from(self.transport.local().get()),
            nodes: u32::from(self.nodes.load(Relaxed)),
            peers: self.transport.status().into_iter().map(answer::peer).collect(),
            instances_running: u64::try_from(load.running).unwrap_or(u64::MAX),
            results_cached: u64::try_from(load.results).unwrap_or(u64::MAX),
            uptime_seconds: self.started.elapsed().as_secs(),
            warnings: self
                .authority
                .standing()
                .unwrap_or_else(Some)
                .into_iter()
                .chain(self.certificate.warning())
                .chain(self.orchestrator.departure())
                .chain(self.voteless())
                .collect(),
            policy: Bytes::copy_from_slice(&self.authority.policy().digest().0),
            clock: WallTime::now().milliseconds(),
            disk: Some(self.disk()),
            certificate_ends: self.certificate.ends(),
            store: self.store_standing().into(),
            audit: self.audit(),
            host: self.network.host().map(answer::host),
            culprits: culprits.iter().map(|record| answer::culprit(&record.culprit)).collect(),
        }
    }
}

/// The header of a whole ciphertext, parsed, sharing its buffer.
pub(crate) fn header_of(ciphertext: &Bytes) -> Result<HeaderBytes, RequestError> {
    let (header, _) = split_ciphertext(ciphertext)?;
    HeaderBytes::parse(ciphertext.slice_ref(header))
}
