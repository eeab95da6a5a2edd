//! The Prometheus metrics, and the stages of a request.

use core::time::Duration;
use std::sync::{Arc, OnceLock};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use theta_names::NodeId;
use theta_schemes::Suite;
use tracing::debug;

use crate::InstanceId;

/// The stages of a request that the evaluation literature measures. Each is an event at level debug and an observation
/// of the histogram `theta_stage_seconds{stage,scheme}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The service has the request's bytes (since the connection delivered the first).
    Received,
    /// The service has parsed them.
    Deserialised,
    /// The key is found.
    KeyFound,
    /// The request has its instance id and a CPU thread has taken it (the time that it waited for one).
    Assigned,
    /// The statement is checked, for a ciphertext by its validity proof.
    Validated,
    /// This node's share is made and handed to the network.
    ShareMade,
    /// A peer's share is taken in.
    ShareReceived,
    /// The share that completed the result is taken in, the shares are combined and the result is checked.
    Combining,
    /// There is a result (since the orchestrator was asked).
    Finished,
    /// The service has answered (since it received the request).
    Returned,
}

impl Stage {
    const ALL: [Self; 10] = [
        Self::Received,
        Self::Deserialised,
        Self::KeyFound,
        Self::Assigned,
        Self::Validated,
        Self::ShareMade,
        Self::ShareReceived,
        Self::Combining,
        Self::Finished,
        Self::Returned,
    ];

    /// The name in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Deserialised => "deserialised",
            Self::KeyFound => "key_found",
            Self::Assigned => "instance_assigned",
            Self::Validated => "ciphertext_validated",
            Self::ShareMade => "share_made",
            Self::ShareReceived => "share_received",
            Self::Combining => "combining",
            Self::Finished => "finished",
            Self::Returned => "returned",
        }
    }
}

/// How an instance ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended {
    Finished,
    Aborted,
    Expired,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabels {
    stage: &'static str,
    scheme: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    scheme: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SchemeLabels {
    scheme: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CulpritLabels {
    node: u32,
    misbehaviour: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    node: u32,
    cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CeremonyLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SubjectLabels {
    about: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    limit: &'static str,
}

/// The metrics of one suite, looked up once so that a request touches only atomics and one short lock.
#[derive(Debug)]
pub(crate) struct SuiteMetrics {
    suite: Suite,
    stages: [Histogram; Stage::ALL.len()],
    finished: Counter,
    aborted: Counter,
    expired: Counter,
    shares: Counter,
}

impl SuiteMetrics {
    /// Records that `stage` took `elapsed`.
    pub(crate) fn stage(&self, stage: Stage, instance: Option<&InstanceId>, elapsed: Duration) {
        if let Some(histogram) = self.stages.get(stage as usize) {
            histogram.observe(elapsed.as_secs_f64());
        }
        debug!(
            target: "theta::stage",
            stage = stage.name(), scheme = self.suite.name(), instance = instance.map(tracing::field::display),
            micros = elapsed.as_secs_f64() * 1e6,
        );
        if stage == Stage::ShareReceived {
            self.shares.inc();
        }
    }

    pub(crate) fn ended(&self, how: Ended) {
        match how {
            Ended::Finished => self.finished.inc(),
            Ended::Aborted => self.aborted.inc(),
            Ended::Expired => self.expired.inc(),
        };
    }
}

/// All metrics of an orchestrator.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// As many as [`Suite::ALL`]; each is made when a key of its suite is first used.
    suites: [OnceLock<Arc<SuiteMetrics>>; Suite::ALL.len()],
    unlisted: OnceLock<Arc<SuiteMetrics>>,
    stages: Family<StageLabels, Histogram, fn() -> Histogram>,
    finished: Family<ResultLabels, Counter>,
    shares: Family<SchemeLabels, Counter>,
    ceremonies: Family<CeremonyLabels, Counter>,
    culprits: Family<CulpritLabels, Counter>,
    failed_programs: Family<FailureLabels, Counter>,
    overloaded: Family<LimitLabels, Counter>,
    custody_messages: Family<SubjectLabels, Counter>,
    custody_bytes: Family<SubjectLabels, Counter>,
    ceremonies_running: Gauge,
    ceremony_age: Gauge,
    ledger_height: Gauge,
    ledger_behind: Gauge,
    pub(crate) running: Gauge,
    pub(crate) queued: Gauge,
    pub(crate) inbox: Gauge,
    pub(crate) backlog: Gauge,
    pub(crate) results: Gauge,
    pub(crate) backlog_dropped: Counter,
    pub(crate) late: Counter,
    pub(crate) asked: Counter,
    pub(crate) resent: Counter,
    pub(crate) reminded: Counter,
    pub(crate) refused_by_transport: Counter,
    pub(crate) custody_dropped: Counter,
    pub(crate) slots_dropped: Counter,
    pub(crate) mail_dropped: Counter,
    pub(crate) claims: Counter,
    pub(crate) checks: Counter,
    pub(crate) proofs: Counter,
    pub(crate) proof_checks: Counter,
    pub(crate) hedges: Counter,
    pub(crate) ticks: Counter,
}

impl Metrics {
    /// Registers all metrics.
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            suites: [const { OnceLock::new() }; Suite::ALL.len()],
            unlisted: OnceLock::new(),
            stages: Family::new_with_constructor(buckets),
            finished: Family::default(),
            shares: Family::default(),
            ceremonies: Family::default(),
            culprits: Family::default(),
            failed_programs: Family::default(),
            overloaded: Family::default(),
            custody_messages: Family::default(),
            custody_bytes: Family::default(),
            ceremonies_running: Gauge::default(),
            ceremony_age: Gauge::default(),
            ledger_height: Gauge::default(),
            ledger_behind: Gauge::default(),
            running: Gauge::default(),
            queued: Gauge::default(),
            inbox: Gauge::default(),
            backlog: Gauge::default(),
            results: Gauge::default(),
            backlog_dropped: Counter::default(),
            late: Counter::default(),
            asked: Counter::default(),
            resent: Counter::default(),
            reminded: Counter::default(),
            refused_by_transport: Counter::default(),
            custody_dropped: Counter::default(),
            slots_dropped: Counter::default(),
            mail_dropped: Counter::default(),
            claims: Counter::default(),
            checks: Counter::default(),
            proofs: Counter::default(),
            proof_checks: Counter::default(),
            hedges: Counter::default(),
            ticks: Counter::default(),
        };
        registry.register("theta_stage_seconds", "How long the stages of requests took", metrics.stages.clone());
        registry.register("theta_instances_finished", "Instances that ended, by how", metrics.finished.clone());
        registry.register("theta_shares_received", "Shares of peers taken into instances", metrics.shares.clone());
        metrics.register(registry);
        metrics.register_custody(registry);
        metrics
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("theta_culprits", "Misbehaviour of nodes that was seen", self.culprits.clone());
        registry.register(
            "theta_failed_programs",
            "Programs for signatures that failed a check and name nobody, by cause, and by each other node in them or those that began anew",
            self.failed_programs.clone(),
        );
        registry.register("theta_overloaded", "Requests refused at a limit", self.overloaded.clone());
        registry.register("theta_instances_running", "Instances that run", self.running.clone());
        registry.register("theta_requests_queued", "Requests that wait for a CPU thread", self.queued.clone());
        registry.register("theta_inbox_commands", "Commands that wait for CPU threads", self.inbox.clone());
        registry.register("theta_backlog_messages", "Messages that wait for their requests", self.backlog.clone());
        registry.register("theta_results_cached", "Results that are kept", self.results.clone());
        let dropped = self.backlog_dropped.clone();
        registry.register("theta_backlog_dropped", "Messages whose request did not come in time or number", dropped);
        registry.register("theta_messages_late", "Messages for instances that had ended", self.late.clone());
        registry.register(
            "theta_resends_asked",
            "Times that a silent peer was asked to send again",
            self.asked.clone(),
        );
        registry.register(
            "theta_reminders",
            "Messages sent again to silent peers, which may lack what they should answer",
            self.reminded.clone(),
        );
        registry.register("theta_resends_answered", "Messages sent again to peers that asked", self.resent.clone());
        let dropped = self.slots_dropped.clone();
        registry.register("theta_slots_dropped", "Promises for slots that the certifier's full inbox refused", dropped);
        let dropped = self.mail_dropped.clone();
        registry.register("theta_mail_dropped", "Messages of peers that had no more room at a CPU thread", dropped);
        let claims = self.claims.clone();
        registry.register(
            "theta_results_checked",
            "Results that were checked together with those that waited, too",
            claims,
        );
        registry.register("theta_result_checks", "How often that was done", self.checks.clone());
        let proofs = self.proofs.clone();
        registry.register("theta_proofs_checked", "Proofs of ciphertexts, checked with those that waited, too", proofs);
        registry.register("theta_proof_checks", "How often that was done", self.proof_checks.clone());
        let hedges = self.hedges.clone();
        registry.register(
            "theta_hedges",
            "Instances in quorum mode in which those that were drawn took too long",
            hedges,
        );
        let ticks = self.ticks.clone();
        registry.register(
            "theta_ticks",
            "Ticks that CPU threads were sent: none while nothing waits for the time",
            ticks,
        );
        let refused = self.refused_by_transport.clone();
        registry.register("theta_sends_refused", "Messages that the transport could not queue", refused);
    }

    /// What the custodian does: ceremonies, the ledger, and its messages.
    fn register_custody(&self, registry: &mut Registry) {
        registry.register("theta_ceremonies", "Ceremonies that ended at this node, by how", self.ceremonies.clone());
        let running = self.ceremonies_running.clone();
        registry.register(
            "theta_ceremonies_running",
            "Ceremonies that run or wait to begin, as this node knows",
            running,
        );
        let age = self.ceremony_age.clone();
        registry.register("theta_ceremony_oldest_seconds", "For how long this node has known the oldest of them", age);
        let height = self.ledger_height.clone();
        registry.register("theta_ledger_height", "Entries of the group's ledger that this node has", height);
        let behind = self.ledger_behind.clone();
        registry.register("theta_ledger_behind", "1 while the node lacks entries that others have", behind);
        let messages = self.custody_messages.clone();
        registry.register("theta_custody_messages", "Messages to other custodians, by what they are about", messages);
        let bytes = self.custody_bytes.clone();
        registry.register("theta_custody_message_bytes", "Bytes of the messages to other custodians", bytes);
        let dropped = self.custody_dropped.clone();
        registry.register("theta_custody_dropped", "Messages that the custodian's full inbox refused", dropped);
    }

    /// The metrics of a suite.
    pub(crate) fn suite(&self, suite: Suite) -> &Arc<SuiteMetrics> {
        let place = Suite::ALL.iter().position(|known| *known == suite);
        let place = place.and_then(|place| self.suites.get(place)).unwrap_or(&self.unlisted);
        place.get_or_init(|| Arc::new(self.make(suite)))
    }

    fn make(&self, suite: Suite) -> SuiteMetrics {
        let scheme = suite.name();
        let stage = |stage: Stage| self.stages.get_or_create_owned(&StageLabels { stage: stage.name(), scheme });
        let result = |result| self.finished.get_or_create_owned(&ResultLabels { scheme, result });
        SuiteMetrics {
            suite,
            stages: Stage::ALL.map(stage),
            finished: result("finished"),
            aborted: result("aborted"),
            expired: result("expired"),
            shares: self.shares.get_or_create_owned(&SchemeLabels { scheme }),
        }
    }

    pub(crate) fn ceremony(&self, outcome: &'static str) {
        self.ceremonies.get_or_create(&CeremonyLabels { outcome }).inc();
    }

    /// So many ceremonies run, and this node has known the oldest for so many seconds.
    pub(crate) fn ceremonies_running(&self, count: usize, oldest: u64) {
        self.ceremonies_running.set(i64::try_from(count).unwrap_or(i64::MAX));
        self.ceremony_age.set(i64::try_from(oldest).unwrap_or(i64::MAX));
    }

    /// The ledger's height here, and whether others have more.
    pub(crate) fn ledger(&self, height: u64, behind: bool) {
        self.ledger_height.set(i64::try_from(height).unwrap_or(i64::MAX));
        self.ledger_behind.set(i64::from(behind));
    }

    pub(crate) fn culprit(&self, party: NodeId, misbehaviour: &'static str) {
        self.culprits.get_or_create(&CulpritLabels { node: party.get().into(), misbehaviour }).inc();
    }

    /// Counts a program that failed a check, for a node that may have brought it about.
    pub(crate) fn failed_program(&self, node: u16, cause: &'static str) {
        self.failed_programs.get_or_create(&FailureLabels { node: node.into(), cause }).inc();
    }

    /// Counts a message about something, of so many bytes, to so many other custodians.
    pub(crate) fn custody_sent(&self, about: &'static str, bytes: usize, to: usize) {
        let (to, labels) = (u64::try_from(to).unwrap_or(u64::MAX), SubjectLabels { about });
        self.custody_messages.get_or_create(&labels).inc_by(to);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(to);
        self.custody_bytes.get_or_create(&labels).inc_by(bytes);
    }

    pub(crate) fn overloaded(&self, limit: &'static str) {
        self.overloaded.get_or_create(&LimitLabels { limit }).inc();
    }
}

/// Buckets from 10 microseconds to 10 seconds, three in each decade.
fn buckets() -> Histogram {
    Histogram::new([
        1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
    ])
}
