//! The rows of the tables that a results folder has.

use serde::{Deserialize, Serialize};

/// What a scenario measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Measure {
    /// Rates doubled until saturation.
    Capacity,
    /// Latencies by node at the knee, or at a given rate.
    Steady,
    /// One request under way, of any size.
    Payload,
    /// Round trips, starts and ceremonies.
    Network,
}

impl Measure {
    /// Its name, which is that of the command, too.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::Steady => "steady",
            Self::Payload => "payload",
            Self::Network => "network",
        }
    }
}

/// What one point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// One rate of a ladder.
    Capacity,
    /// A steady state, with traces.
    Steady,
    /// One request under way.
    Payload,
    /// A group that starts, until all are connected.
    Start,
    /// A key that a group makes.
    Ceremony,
    /// Messages there and back.
    Ping,
}

/// One measured point with all its conditions: a line of `results.csv`. What does not apply is empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    /// From 1; the other tables refer to it.
    pub(super) point: u32,
    pub(super) kind: Kind,
    pub(super) scenario: String,
    // Where and when.
    pub(super) date: String,
    pub(super) commit: String,
    pub(super) build: String,
    pub(super) cpu: String,
    pub(super) cores: u32,
    /// The load average at the end of the point.
    pub(super) load_average: Option<f64>,
    /// Cores that were busy with something else than the nodes and the client.
    pub(super) others_cores: Option<f64>,
    // Conditions.
    pub(super) n: u16,
    pub(super) k: u16,
    pub(super) profile: String,
    pub(super) delivery: String,
    pub(super) suite: String,
    pub(super) scheme: String,
    pub(super) operation: String,
    pub(super) payload_bytes: Option<u64>,
    pub(super) transport: String,
    /// The peer that a ping goes to: its place.
    pub(super) peer: String,
    /// Requests a second that were sent, answered or not.
    pub(super) rate: Option<f64>,
    /// Requests under way.
    pub(super) concurrency: Option<u32>,
    // Results.
    /// From the first request to the last answer; or how long a start or a ceremony took.
    pub(super) seconds: Option<f64>,
    pub(super) sent: u64,
    pub(super) failed: u64,
    pub(super) first_error: String,
    /// Good answers a second.
    pub(super) throughput: Option<f64>,
    pub(super) min_ms: Option<f64>,
    pub(super) p50_ms: Option<f64>,
    pub(super) p95_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
    /// CPU of a node, all of it, for each request; mean of the nodes, and of the busiest.
    pub(super) node_cpu_us: Option<f64>,
    pub(super) node_cpu_busiest_us: Option<f64>,
    /// CPU of a node that does nothing, in microseconds a second; mean of the nodes.
    pub(super) node_idle_us_per_s: Option<f64>,
    pub(super) client_cpu_us: Option<f64>,
    /// CPU of all nodes for a start or a ceremony.
    pub(super) all_cpu_s: Option<f64>,
    pub(super) busiest_cpu_s: Option<f64>,
    /// Bytes and messages that a node sent to its peers, for each request; mean. For a ceremony: all of them, by all nodes.
    pub(super) sent_bytes: Option<f64>,
    pub(super) sent_messages: Option<f64>,
    /// The most memory that any node has had so far.
    pub(super) memory_bytes: Option<u64>,
    // Over nodes, from traces.
    pub(super) traced: Option<u64>,
    pub(super) l_theta_ms: Option<f64>,
    pub(super) l95_ms: Option<f64>,
    pub(super) residual_delay: Option<f64>,
    pub(super) fairness: Option<f64>,
    pub(super) pooled_l_theta_ms: Option<f64>,
    pub(super) pooled_l95_ms: Option<f64>,
}

impl Row {
    /// Nothing but its kind.
    pub(super) fn empty(kind: Kind) -> Self {
        Self {
            point: 0,
            kind,
            scenario: String::new(),
            date: String::new(),
            commit: String::new(),
            build: String::new(),
            cpu: String::new(),
            cores: 0,
            load_average: None,
            others_cores: None,
            n: 0,
            k: 0,
            profile: String::new(),
            delivery: String::new(),
            suite: String::new(),
            scheme: String::new(),
            operation: String::new(),
            payload_bytes: None,
            transport: String::new(),
            peer: String::new(),
            rate: None,
            concurrency: None,
            seconds: None,
            sent: 0,
            failed: 0,
            first_error: String::new(),
            throughput: None,
            min_ms: None,
            p50_ms: None,
            p95_ms: None,
            p99_ms: None,
            node_cpu_us: None,
            node_cpu_busiest_us: None,
            node_idle_us_per_s: None,
            client_cpu_us: None,
            all_cpu_s: None,
            busiest_cpu_s: None,
            sent_bytes: None,
            sent_messages: None,
            memory_bytes: None,
            traced: None,
            l_theta_ms: None,
            l95_ms: None,
            residual_delay: None,
            fairness: None,
            pooled_l_theta_ms: None,
            pooled_l95_ms: None,
        }
    }

    /// Whether both are measurements of the same under the same conditions; the machine and the commit apart.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let what = |row: &Self| (row.kind, row.n, row.k, row.payload_bytes, row.concurrency);
        let names = |row: &Self| {
            let names = [&row.profile, &row.delivery, &row.suite, &row.operation, &row.transport, &row.peer];
            names.map(String::clone)
        };
        what(self) == what(other) && names(self) == names(other)
    }

    /// CPU that a node uses for one request, in microseconds, without what it uses when it does nothing.
    pub(super) fn net_cpu_us(&self) -> Option<f64> {
        let idle = self.node_idle_us_per_s.unwrap_or(0.0);
        let sent = u32::try_from(self.sent).ok().filter(|sent| *sent > 0)?;
        let meanwhile = idle * self.seconds? / f64::from(sent);
        self.node_cpu_us.map(|gross| (gross - meanwhile).max(0.0))
    }
}

/// One node in one point: a line of `nodes.csv`. Latencies are those of the node itself, from a request's arrival to its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct NodeRow {
    pub(super) point: u32,
    pub(super) node: u16,
    pub(super) place: String,
    pub(super) cpu_us: Option<f64>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) sent_bytes: Option<f64>,
    pub(super) sent_messages: Option<f64>,
    pub(super) traced: u64,
    pub(super) p5_ms: Option<f64>,
    pub(super) p25_ms: Option<f64>,
    pub(super) p50_ms: Option<f64>,
    pub(super) p75_ms: Option<f64>,
    pub(super) p95_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
}

/// One stage in one point: a line of `stages.csv`. Times are of one request at one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StageRow {
    pub(super) point: u32,
    pub(super) stage: String,
    pub(super) mean_us: f64,
    pub(super) p50_us: Option<f64>,
    pub(super) p95_us: Option<f64>,
}
