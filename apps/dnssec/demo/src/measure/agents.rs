//! The agents of a group's operators, which look at all that is signed, each with its own copy of the zone.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use theta::exit::Failure;
use theta_cluster::{Cluster, cpu_time};

use crate::{
    agent::{COPY, KEYS, SOCKET, put},
    agent_process::AgentProcess,
    permission::rules,
};

/// How long agents may take to start, with a large zone.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often it is looked whether they have.
const GLANCE: Duration = Duration::from_millis(10);

/// The running agents of one point, one beside each node. They end when this is dropped.
pub(super) struct Agents {
    running: Vec<AgentProcess>,
    dirs: Vec<PathBuf>,
}

/// The directory of an operator, in that of all.
fn operators(dir: &Path, n: u16) -> Vec<PathBuf> {
    (1..=n).map(|number| dir.join(format!("operator-{number}"))).collect()
}

/// Makes the operators' directories, and has the policies of nodes that are not started yet let the name server, of which these lines are, sign what agents
/// consent to. What the group's own client may do stays as it is.
pub(super) fn permit(group: &Cluster, dir: &Path, name_server: &str) -> Result<(), Failure> {
    let nodes = group.node_dirs();
    let n = u16::try_from(nodes.len()).map_err(Failure::internal)?;
    for (node, operator) in nodes.iter().zip(operators(dir, n)) {
        fs::create_dir(&operator).map_err(|error| Failure::writing(&operator, &error))?;
        let policy = node.join("policy.toml");
        let text = fs::read_to_string(&policy).map_err(|error| Failure::reading(&policy, &error))?;
        let text = format!("{text}\n{name_server}\n{}", rules(&operator.join(SOCKET)));
        fs::write(&policy, text).map_err(|error| Failure::writing(&policy, &error))?;
    }
    Ok(())
}

impl Agents {
    /// Starts one for each of n nodes, with this copy of the zone and these keys, and waits until nodes can ask them.
    pub(super) fn start(program: &Path, (dir, n): (&Path, u16), records: &str, keys: &str) -> Result<Self, Failure> {
        let mut agents = Self { running: Vec::new(), dirs: operators(dir, n) };
        agents.put(KEYS, keys)?;
        agents.give(records)?;
        for operator in &agents.dirs {
            agents.running.push(AgentProcess::start(program, operator)?);
        }
        let deadline = Instant::now() + PATIENCE;
        for agent in &agents.running {
            while !agent.is_up() {
                if Instant::now() > deadline {
                    return Err(agent.is_not_up());
                }
                thread::sleep(GLANCE);
            }
        }
        Ok(agents)
    }

    /// Gives all operators another copy of the zone.
    pub(super) fn give(&self, records: &str) -> Result<(), Failure> {
        self.put(COPY, records)
    }

    /// CPU of an agent until now, on average.
    pub(super) fn cpu(&self) -> Duration {
        let all: Duration = self.running.iter().filter_map(|agent| cpu_time(agent.pid())).sum();
        let count = u32::try_from(self.running.len()).unwrap_or(u32::MAX);
        all.checked_div(count).unwrap_or_default()
    }

    /// Writes a file of each operator.
    fn put(&self, name: &str, text: &str) -> Result<(), Failure> {
        self.dirs.iter().try_for_each(|dir| put(dir, name, text))
    }
}
