//! Three operators. Each has a node of the group, a copy of the zone, and an agent that lets the node sign what is in the copy.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::Deserialize;
use theta::{exit::Failure, group::plan::Plan};
use theta_cluster::{Cluster, Lifetime};
use tokio::time::sleep;

use crate::{
    agent::{COPY, KEYS, SOCKET, put},
    agent_process::AgentProcess,
    permission::{NAME_SERVER, new_client, rules},
};

/// How many there are.
pub(crate) const OPERATORS: u16 = 3;
/// How many of them sign.
pub(crate) const THRESHOLD: u16 = 2;
/// The keys of the zone's pool: Knot takes one for the zone's keys, and one for everything else.
pub(crate) const POOLED: [&str; 2] = ["zone-frost-ed25519-1", "zone-frost-ed25519-2"];
/// How long processes may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// What `theta status --json` says of the group, as far as it is of interest here.
#[derive(Debug, Deserialize)]
struct Status {
    culprits: Vec<Culprit>,
}

/// A node of which others tell something.
#[derive(Debug, Deserialize)]
pub(crate) struct Culprit {
    pub(crate) node: u16,
    pub(crate) misbehaviour: String,
    told_by: Option<Vec<u16>>,
    disputed: bool,
}

impl Culprit {
    /// Those that tell it.
    pub(crate) fn told_by(&self) -> &[u16] {
        self.told_by.as_deref().unwrap_or_default()
    }
}

/// The operators' processes. Dropping it kills them; they end with this process, too.
pub(crate) struct Operators {
    program: PathBuf,
    dir: PathBuf,
    group: Cluster,
    agents: Vec<AgentProcess>,
}

impl Operators {
    /// Makes a group and the operators' directories, in a directory that must not exist. Starts nothing yet. `program` is this program: it
    /// runs nodes and agents.
    pub(crate) fn create(program: &Path, dir: &Path) -> Result<Self, Failure> {
        fs::create_dir(dir).map_err(|error| Failure::writing(dir, &error))?;
        let dir = dir.canonicalize().map_err(|error| Failure::reading(dir, &error))?;
        let plan = Plan::new(OPERATORS, THRESHOLD, Vec::new())?;
        let group = Cluster::create(program.to_owned(), &dir.join("group"), &plan, Lifetime::Tied)?;
        let operators = Self { program: program.to_owned(), dir, group, agents: Vec::new() };
        let lines = new_client(|words| operators.theta(words))?;
        for number in 1..=OPERATORS {
            let own = operators.operator(number);
            fs::create_dir(&own).map_err(|error| Failure::writing(&own, &error))?;
            operators.write_policy(number, &lines)?;
        }
        Ok(operators)
    }

    /// The name server gets signatures of what the agent consents to, and nobody else gets any.
    fn write_policy(&self, number: u16, name_server: &str) -> Result<(), Failure> {
        let path = self.dir.join(format!("group/node-{number}/policy.toml"));
        let text = fs::read_to_string(&path).map_err(|error| Failure::reading(&path, &error))?;
        let clients = text.split_once("[[rule]]").map(|(clients, _)| clients);
        let clients = clients.ok_or_else(|| Failure::internal("a policy of a new group without rules"))?;
        let socket = self.operator(number).join(SOCKET);
        let text = format!("{clients}{name_server}\n{}\n{OPERATORS_RULE}", rules(&socket));
        fs::write(&path, text).map_err(|error| Failure::writing(&path, &error))
    }

    /// Starts the nodes, and waits until they take connections.
    pub(crate) async fn start_nodes(&mut self) -> Result<(), Failure> {
        self.group.start_all()?;
        self.group.listening(PATIENCE).await
    }

    /// Has the nodes make the keys of the pool, and tells every operator which they are.
    pub(crate) fn make_keys(&self) -> Result<(), Failure> {
        let [one, other] = POOLED.map(|name| format!("{name}=frost-ed25519"));
        self.theta(&["keys", "create", &one, &other])?;
        let mut keys = String::new();
        for name in POOLED {
            keys.push_str(&self.theta(&["keys", "export", name, "--format", "dnskey"])?);
        }
        (1..=OPERATORS).try_for_each(|number| put(&self.operator(number), KEYS, &keys))
    }

    /// Gives operators a copy of the zone.
    pub(crate) fn give(&self, numbers: impl IntoIterator<Item = u16>, records: &str) -> Result<(), Failure> {
        numbers.into_iter().try_for_each(|number| put(&self.operator(number), COPY, records))
    }

    /// Starts an agent beside each node.
    pub(crate) async fn start_agents(&mut self) -> Result<(), Failure> {
        for number in 1..=OPERATORS {
            let agent = AgentProcess::start(&self.program, &self.operator(number))?;
            self.agents.push(agent);
        }
        let deadline = Instant::now() + PATIENCE;
        for agent in &self.agents {
            while !agent.is_up() {
                if Instant::now() > deadline {
                    return Err(agent.is_not_up());
                }
                sleep(Duration::from_millis(10)).await;
            }
        }
        Ok(())
    }

    /// Ends a node as a power failure would: SIGKILL.
    pub(crate) fn kill_node(&mut self, number: u16) -> Result<(), Failure> {
        self.group.kill(number)
    }

    /// What a command of `theta` prints, run in the directory of all by the group's own client.
    pub(crate) fn theta(&self, words: &[&str]) -> Result<String, Failure> {
        self.group.theta(&self.dir, words)
    }

    /// How often a node has refused to sign something for the name server, as its log has it.
    pub(crate) fn refusals(&self, node: u16) -> Result<usize, Failure> {
        self.group.refusals(&self.dir, node, &ASKED)
    }

    /// The last time, as `theta audit show` shows it.
    pub(crate) fn last_refusal(&self, node: u16) -> Result<String, Failure> {
        self.group.last_refusal(&self.dir, node, &ASKED)
    }

    /// The nodes that took part in what an agent of another one refuses, as the group's state has it.
    pub(crate) fn disputed(&self) -> Result<Vec<Culprit>, Failure> {
        let status: Status = serde_json::from_str(&self.theta(&["status", "--json"])?).map_err(Failure::internal)?;
        Ok(status.culprits.into_iter().filter(|culprit| culprit.disputed).collect())
    }

    /// The directory of all, which is absolute.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    fn operator(&self, number: u16) -> PathBuf {
        self.dir.join(format!("operator-{number}"))
    }
}

/// What the name server asked for and did not get.
const ASKED: [&str; 4] = ["--by", NAME_SERVER, "--operation", "sign"];

/// What the operators themselves may do.
const OPERATORS_RULE: &str = r#"[[rule]]
name = "operators-make-keys-and-look"
effect = "allow"
clients = ["client"]
keys = ["*"]
operations = ["keys.create", "keys.list", "status", "audit.read"]
"#;
