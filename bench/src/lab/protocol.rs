//! What the process that directs a scenario and the one that has the nodes say to each other: JSON, one line each.
//!
//! The nodes' client must be in a network of its own where a profile asks for one, and its CPU must be counted apart; so each group is measured
//! by a process of its own, which has nothing to decide.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{ceremony::Held, requests::Operation};

/// The first line that the process reads.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Opening {
    pub(crate) setup: Setup,
    /// An empty directory, which whoever directs removes in the end.
    pub(crate) home: PathBuf,
}

/// What the process is for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Setup {
    /// A group of node processes.
    Group {
        nodes: u16,
        threshold: u16,
        profile: Option<String>,
        /// The suites of the keys that are dealt.
        suites: Vec<String>,
        delivery: String,
        /// One request in so many is traced.
        traced: Option<u32>,
        patience_ms: u64,
    },
    /// The network layer alone, one node in each place of the profile.
    Wires { profile: Option<String> },
}

/// One thing to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// What it took until all nodes were connected.
    Start,
    /// Requests.
    Load { suite: String, operation: Operation, payload: u64, pace: Pace, milliseconds: u64, traced: bool },
    /// A key that the nodes make.
    Ceremony { suite: String },
    /// Messages from node 1 to another and back.
    Ping { transport: Transport, peer: u16, bytes: u64, count: u32 },
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Pace {
    /// So many a second, whether or not the earlier ones are answered.
    Open { rate: f64 },
    /// The next when the last one is answered, so many at most.
    Alone { requests: u32 },
}

/// What carries a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    /// A bare TCP connection: the raw round trip.
    Tcp,
    /// The nodes' mesh of TLS connections.
    Mesh,
}

impl Transport {
    pub(crate) const ALL: [Self; 2] = [Self::Tcp, Self::Mesh];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Mesh => "mesh",
        }
    }
}

/// What the other process answers to each line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The group is ready, or the wires are: the names of the places of the nodes 1, 2, ....
    Ready {
        places: Vec<String>,
    },
    Started(Started),
    Loaded(Box<Loaded>),
    Held(Box<Held>),
    Pinged(Pinged),
    /// It could not be measured; other things may be.
    Failed(String),
    /// Nothing more can be measured; with the exit code that is right for it.
    Broken {
        code: u8,
        text: String,
    },
}

/// A group that started.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Started {
    pub(crate) connected_seconds: f64,
    pub(crate) cpu_busiest_seconds: f64,
    pub(crate) cpu_all_seconds: f64,
    pub(crate) memory_bytes: u64,
}

/// What requests cost.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Loaded {
    pub(crate) seconds: f64,
    pub(crate) throughput: f64,
    /// Of each request in milliseconds; `None`: it failed.
    pub(crate) latencies_ms: Vec<Option<f64>>,
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) client_cpu_us: f64,
    /// Cores that were busy with something else.
    pub(crate) others_cores: Option<f64>,
    pub(crate) nodes: Vec<NodeLoad>,
    /// Of each traced request, the latencies in milliseconds of the nodes that have a result.
    pub(crate) traces_ms: Vec<Vec<f64>>,
    pub(crate) stages: Vec<StageTimes>,
}

/// What one node did for them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct NodeLoad {
    pub(crate) node: u16,
    pub(crate) cpu_us: f64,
    pub(crate) idle_us_per_s: f64,
    pub(crate) memory_bytes: u64,
    /// All of them, to all peers.
    pub(crate) sent_bytes: u64,
    pub(crate) sent_messages: u64,
    /// Of each traced request, in milliseconds.
    pub(crate) latencies_ms: Vec<f64>,
}

/// A stage of requests at nodes: the mean over all, and percentiles where single ones are known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StageTimes {
    pub(crate) stage: String,
    pub(crate) mean_us: f64,
    pub(crate) p50_us: Option<f64>,
    pub(crate) p95_us: Option<f64>,
}

/// Round trips.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pinged {
    pub(crate) milliseconds: Vec<f64>,
    /// How many were not answered in time.
    pub(crate) lost: u32,
}
