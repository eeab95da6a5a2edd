//! `theta keys ceremonies`.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use serde::Serialize;
use theta_client::{KeyRef, NodeProblem};
use theta_names::{NodeId, Version};
use theta_schemes::keys::KeyName;
use theta_wire::v1::{CeremonyState, CeremonyStatus};

use crate::{
    connect::{self, ClientArgs},
    exit::{self, Failure},
    output::{self, BAD, GOOD, Output},
};

/// Options of `theta keys ceremonies`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys ceremonies                 those that run
  theta keys ceremonies --all           and those that ended lately
  theta keys ceremonies --key files --all --json

Each node is asked for what it knows. A ceremony that runs says what it waits for and which nodes have not sent it yet: look \
whether those are up (theta status), connected and know the ceremony. One that ended without a result changed nothing.")]
pub(crate) struct CeremoniesArgs {
    /// Those that ended lately, too
    #[arg(long)]
    all: bool,
    /// Those of this key alone
    #[arg(long, value_name = "NAME")]
    key: Option<KeyName>,
    #[command(flatten)]
    client: ClientArgs,
}

/// A ceremony, as the nodes tell of it.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct View {
    id: String,
    aim: String,
    key: String,
    version: u32,
    epoch: u64,
    running: bool,
    nodes: BTreeMap<u16, Told>,
    /// Whom some node that runs it waits for.
    waits_for: BTreeSet<u32>,
    culprits: BTreeSet<u32>,
    /// Nodes that answered and do not know it.
    unknown_to: Vec<u16>,
}

/// What one node says of it.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Told {
    /// Words for people, which may change.
    state: &'static str,
    /// The state for programs, as [`kind`] has it.
    kind: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    awaits: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    failure: String,
    silent: Vec<u32>,
}

/// A state in words, and whether it is still to end.
const fn in_words(state: CeremonyState) -> (&'static str, bool) {
    match state {
        CeremonyState::Running => ("runs", true),
        CeremonyState::Activated => ("done", false),
        CeremonyState::Recovered => ("done: the share is there again", false),
        CeremonyState::Aborted => ("given up by agreement, nothing was changed", false),
        CeremonyState::Cancelled => ("cancelled, nothing was changed", false),
        CeremonyState::Failed => ("failed at this node", false),
        CeremonyState::Unspecified => ("of a state that this release does not know", false),
    }
}

/// A state for programs: these words stay.
const fn kind(state: CeremonyState) -> &'static str {
    match state {
        CeremonyState::Running => "running",
        CeremonyState::Activated => "activated",
        CeremonyState::Recovered => "recovered",
        CeremonyState::Aborted => "aborted",
        CeremonyState::Cancelled => "cancelled",
        CeremonyState::Failed => "failed",
        CeremonyState::Unspecified => "unknown",
    }
}

impl View {
    fn add(&mut self, node: NodeId, status: CeremonyStatus) {
        let (state, running) = in_words(status.state());
        self.running |= running;
        let id = hex::encode(&status.id);
        (self.id, self.aim, self.key) = (id, exit::tidy(&status.aim), exit::tidy(&status.key));
        (self.version, self.epoch) = (status.version, status.epoch);
        if running {
            self.waits_for.extend(&status.silent);
        }
        self.culprits.extend(status.evidence.iter().map(|evidence| evidence.node));
        let (awaits, failure) = (exit::tidy(&status.awaits), exit::tidy(&status.failure));
        let kind = kind(status.state());
        self.nodes.insert(node.get(), Told { state, kind, awaits, failure, silent: status.silent });
    }

    /// "create of vault@1, epoch 0".
    fn title(&self) -> String {
        let key = self.key.parse().map(|name| KeyRef { name, version: Version::new(self.version) });
        let key = key.map_or_else(|_| self.key.clone(), |key| key.to_string());
        format!("{} of {key}, epoch {}", self.aim, self.epoch)
    }

    /// One line for all nodes that say the same.
    fn lines(&self) -> Vec<String> {
        let mut said: Vec<(String, Vec<u16>)> = Vec::new();
        for (node, told) in &self.nodes {
            let mut words = told.state.to_owned();
            if !told.awaits.is_empty() {
                words.push_str(&format!(", waits for {}", told.awaits));
            }
            if !told.failure.is_empty() {
                words.push_str(&format!(": {}", told.failure));
            }
            match said.iter_mut().find(|(others, _)| *others == words) {
                Some((_, nodes)) => nodes.push(*node),
                None => said.push((words, vec![*node])),
            }
        }
        said.into_iter().map(|(words, nodes)| format!("{}: {words}", connect::nodes(&nodes))).collect()
    }
}

/// Puts together what the nodes tell of each ceremony.
fn gather(listed: Vec<(NodeId, Vec<CeremonyStatus>)>, args: &CeremoniesArgs) -> Vec<View> {
    let answered: Vec<u16> = listed.iter().map(|(node, _)| node.get()).collect();
    let mut views: BTreeMap<Vec<u8>, View> = BTreeMap::new();
    for (node, ceremonies) in listed {
        for status in ceremonies {
            views.entry(status.id.to_vec()).or_default().add(node, status);
        }
    }
    let wanted =
        |view: &View| (args.all || view.running) && args.key.as_ref().is_none_or(|key| key.as_str() == view.key);
    let mut views: Vec<View> = views.into_values().filter(wanted).collect();
    for view in &mut views {
        view.unknown_to = answered.iter().copied().filter(|node| !view.nodes.contains_key(node)).collect();
    }
    views.sort_by_key(|view| (!view.running, view.key.clone(), view.version, view.epoch));
    views
}

/// `theta keys ceremonies`.
pub(in crate::keys) fn ceremonies(args: &CeremoniesArgs, output: Output) -> Result<(), Failure> {
    let session = args.client.open()?;
    let (listed, problems) = session.block_on(session.client().ceremonies());
    for problem in &problems {
        output::diagnostic("warning", &exit::tidy(&problem.to_string()));
    }
    if listed.is_empty() {
        return Err(nobody(&problems));
    }
    let views = gather(listed, args);
    output.result(&views, |out| {
        if views.is_empty() {
            let more = if args.all { "" } else { "; --all shows those that ended lately" };
            return writeln!(out, "no ceremony runs{more}");
        }
        for view in &views {
            let style = if view.running { BAD } else { GOOD };
            writeln!(out, "{style}{}{style:#}  {}", view.title(), view.id.get(..8).unwrap_or_default())?;
            for line in view.lines() {
                writeln!(out, "  {line}")?;
            }
            let named = |nodes: &BTreeSet<u32>| -> Vec<u16> {
                nodes.iter().filter_map(|node| u16::try_from(*node).ok()).collect()
            };
            if !view.waits_for.is_empty() {
                writeln!(out, "  not heard from yet: {}", connect::nodes(&named(&view.waits_for)))?;
            }
            if view.running && !view.unknown_to.is_empty() {
                writeln!(out, "  not known there: {}", connect::nodes(&view.unknown_to))?;
            }
            if !view.culprits.is_empty() {
                let accused = connect::nodes(&named(&view.culprits));
                writeln!(out, "  {BAD}accused of lying by nodes above, which is not checked here: {accused}{BAD:#}")?;
            }
        }
        Ok(())
    })
}

fn nobody(problems: &[NodeProblem]) -> Failure {
    if problems.iter().any(|problem| exit::is_absence(&problem.problem)) {
        Failure::NoAnswer("no node tells of its ceremonies; theta status shows who is up".to_owned())
    } else {
        Failure::Failed(
            "no node tells of its ceremonies: all are there and refuse this client, as said above".to_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nodes_tell_of_one_ceremony_is_put_together() {
        let node = |number: u16| NodeId::try_from(number).unwrap();
        let status = |id: u8, state: CeremonyState, awaits: &str, silent: &[u32]| CeremonyStatus {
            id: vec![id; 32].into(),
            key: "vault".to_owned(),
            version: 1,
            aim: "refresh".to_owned(),
            epoch: 2,
            state: state.into(),
            awaits: awaits.to_owned(),
            silent: silent.to_vec(),
            ..CeremonyStatus::default()
        };
        let running = |silent: &[u32]| status(7, CeremonyState::Running, "dealings", silent);
        let listed = || {
            vec![
                (node(1), vec![running(&[3]), status(8, CeremonyState::Activated, "", &[4])]),
                (node(2), vec![running(&[3, 4])]),
                (node(4), Vec::new()),
            ]
        };
        let args = |all| CeremoniesArgs::parse(all);
        let views = gather(listed(), &args(false));
        assert_eq!(views.len(), 1);
        assert_eq!(views[0].title(), "refresh of vault@1, epoch 2");
        assert_eq!(views[0].lines(), ["nodes 1 and 2: runs, waits for dealings"]);
        assert_eq!((&views[0].waits_for, &views[0].unknown_to), (&BTreeSet::from([3, 4]), &vec![4]));
        let views = gather(listed(), &args(true));
        assert_eq!(views.len(), 2);
        assert!(views[1].waits_for.is_empty(), "what is over waits for nobody");
        assert_eq!(views[1].lines(), ["node 1: done"]);
        assert_eq!((views[0].nodes[&2].kind, views[1].nodes[&1].kind), ("running", "activated"));
    }

    impl CeremoniesArgs {
        fn parse(all: bool) -> Self {
            use clap::FromArgMatches as _;
            let command = Self::augment_args(clap::Command::new("ceremonies"));
            let arguments = if all { &["ceremonies", "--all"][..] } else { &["ceremonies"] };
            Self::from_arg_matches(&command.get_matches_from(arguments)).unwrap()
        }
    }
}
