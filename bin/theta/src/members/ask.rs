//! Asks the nodes for a change of the members, and waits until the group's ledger has it.

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use theta_client::{Client, ClientError, MembersChanged, MembersProgress};
use theta_ledger::{LedgerState, MemberChange};
use theta_names::{NodeId, WallTime};

use super::aloud;
use crate::{
    access::{ApprovalFiles, Nonce},
    connect::{self, ClientArgs, Session},
    exit::Failure,
    output::{self, GOOD, Output},
    progress::WaitBar,
    units,
};

/// How a change of the members is asked for.
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    #[command(flatten)]
    approvals: ApprovalFiles,
    /// The request's nonce, as theta approve shows it: approvals are of one request [default: the one in the approvals' files, else a new one]
    #[arg(long, value_name = "HEX")]
    nonce: Option<Nonce>,
    /// How long to wait for the members that have to agree
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = units::parse_duration)]
    patience: Duration,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// A change that the group has decided.
#[derive(Serialize)]
pub(super) struct Changed {
    change: &'static str,
    /// The member that it is about.
    pub(super) node: u16,
    name: Option<String>,
    /// The entry of the ledger that has made it.
    height: u64,
    members: Vec<u16>,
    /// How many of them decide.
    quorum: usize,
    fingerprint: String,
    latency_ms: f64,
    #[serde(skip)]
    pub(super) group: String,
    /// Where another member is reached by nodes.
    #[serde(skip)]
    from: Option<String>,
    #[serde(skip)]
    latency: String,
}

impl AskArgs {
    /// Prepares the connection, and learns what the group has decided so far.
    pub(crate) fn open(&self) -> Result<Session, Failure> {
        let session = self.client.open_signed(&self.approvals, self.patience)?;
        session.renew();
        Ok(session)
    }

    /// Asks for a change, and waits for it. `doing` describes it.
    pub(super) fn change(
        &self,
        session: &Session,
        (change, proof): (&MemberChange, Vec<u8>),
        doing: &str,
    ) -> Result<Changed, Failure> {
        // Asked in vain, it is refused here, without any node.
        let (now, reason) = (WallTime::now().seconds(), &proof);
        let check = |state: &LedgerState| {
            state.check(&theta_ledger::Action::Members(change.clone()))?;
            state.check_member_time(change, reason, now.max(state.time()))
        };
        look(session, check)?.map_err(|refusal| Failure::Failed(refusal.to_string()))?;
        let number = change.node();
        let name = number.and_then(|number| named(session, number));
        let nonce = self.nonce.or_else(|| session.approved()).map(|nonce| nonce.0);
        let request = Client::member_request(change, proof, nonce)?;
        let takes_consents = !request.claims_proof();
        let mut bar = WaitBar::new(doing);
        let asked = session.client().change_members(request, |progress| bar.stands(in_words(progress)));
        let changed = session.block_on(asked);
        drop(bar);
        if let (true, Err(ClientError::Denied { reason, .. })) = (takes_consents, &changed)
            && matches!(reason.as_str(), "no-rule" | "too-few-approvals")
        {
            output::note(how_to_approve(change));
        }
        let changed = changed?;
        report_problems(&changed);
        let node = match (number, change.card()) {
            (Some(node), _) => node,
            (None, Some(card)) => {
                look(session, |state| number_of(state, &card.content().ceremony_key))?.unwrap_or_default()
            }
            (None, None) => 0,
        };
        let word = match change {
            MemberChange::Add(_) => "add",
            MemberChange::Replace { .. } => "replace",
            MemberChange::Renew { .. } => "renew",
            MemberChange::Remove { .. } => "remove",
        };
        Changed::new(session, word, (node, name), &changed)
    }
}

impl Changed {
    pub(super) fn new(
        session: &Session,
        change: &'static str,
        (node, name): (u16, Option<String>),
        changed: &MembersChanged,
    ) -> Result<Self, Failure> {
        let (members, quorum, fingerprint, (group, from)) = look(session, |state| {
            let members = state.seats().keys().map(|node| node.get()).collect();
            let mut others = state.seats().iter().filter(|(other, _)| other.get() != node);
            let from = others.find_map(|(_, seat)| Some(seat.card()?.content().peer_address.to_string()));
            (members, state.quorum(), aloud(state.id().as_bytes()), (state.group().to_owned(), from))
        })?;
        Ok(Self {
            change,
            node,
            name: named(session, node).or(name),
            height: changed.height,
            members,
            quorum,
            fingerprint,
            latency_ms: changed.latency.as_secs_f64() * 1e3,
            group,
            from,
            latency: units::human(changed.latency),
        })
    }

    /// "node 3 (Gamma Escrow)".
    pub(super) fn member(&self) -> String {
        match &self.name {
            Some(name) => format!("node {} ({name})", self.node),
            None => format!("node {}", self.node),
        }
    }

    /// Says what was done, and what comes next.
    pub(super) fn report(&self, output: Output, done: &str, next: &[String]) -> Result<(), Failure> {
        output.result(self, |out| {
            let Self { height, members, quorum, latency, .. } = self;
            let member = self.member();
            writeln!(out, "{GOOD}ok{GOOD:#} {member} {done}: entry {height} of the ledger, after {latency}")?;
            writeln!(out, "the group has {} members, of which {quorum} decide", members.len())?;
            if !next.is_empty() {
                writeln!(out, "\nNext:")?;
            }
            next.iter().try_for_each(|line| writeln!(out, "  {line}"))
        })
    }

    /// What the new machine's operator does: three lines.
    pub(super) fn how_to_join(&self) -> [String; 2] {
        let (file, from) = (format!("{}.ledger", self.group), self.from.as_deref().unwrap_or("HOST:PORT"));
        [
            format!(
                "theta node join --dir DIR --from {from} --fingerprint '{}'     at the new machine",
                self.fingerprint
            ),
            format!(
                "where it reaches no node: theta ledger export -o {file}, and join with that file in the place of --from"
            ),
        ]
    }
}

/// Looks at the ledger as far as the client has it.
pub(crate) fn look<T>(session: &Session, at: impl FnOnce(&LedgerState) -> T) -> Result<T, Failure> {
    session.client().ledger(at).ok_or_else(|| {
        Failure::Usage("this group keeps no ledger: its members are those of its group file at each node".to_owned())
    })
}

/// What a member is called.
pub(super) fn named(session: &Session, number: u16) -> Option<String> {
    let node = NodeId::try_from(number).ok()?;
    let name = |state: &LedgerState| Some(state.seats().get(&node)?.card()?.name().to_string());
    session.client().ledger(name).flatten()
}

/// The member that has this key of ceremonies.
pub(super) fn number_of(state: &LedgerState, key: &[u8; 32]) -> Option<u16> {
    let of = |seat: &theta_ledger::Seat| seat.card().is_some_and(|card| card.content().ceremony_key == *key);
    state.seats().iter().find(|(_, seat)| of(seat)).map(|(node, _)| node.get())
}

/// For whom a change waits.
pub(super) fn in_words(progress: &MembersProgress) -> String {
    let numbers = |nodes: &[NodeId]| connect::nodes(&nodes.iter().map(|node| node.get()).collect::<Vec<_>>());
    match (progress.asked.as_slice(), progress.awaited.as_slice()) {
        ([], _) => "no node has taken it yet".to_owned(),
        (asked, []) => format!("{} decide", numbers(asked)),
        (_, awaited) => format!("waits for {}", numbers(awaited)),
    }
}

pub(super) fn report_problems(changed: &MembersChanged) {
    for problem in &changed.problems {
        output::diagnostic("warning", &crate::exit::tidy(&problem.to_string()));
    }
}

/// The commands that lead to the approval of a refused change.
fn how_to_approve(change: &MemberChange) -> String {
    let what = match change {
        MemberChange::Add(_) => "--card CARD".to_owned(),
        MemberChange::Replace { node, .. } | MemberChange::Renew { node, .. } => format!("--node {node} --card CARD"),
        MemberChange::Remove { node } => format!("--node {node}"),
    };
    format!(
        "who belongs to a group takes, by its members' policies, more than one client's word; for an approval by somebody else:
  theta approver new --name ann       once; the lines that it prints, and the rule members-take-an-approval, go into policy.toml
                                      at as many nodes as decide (running nodes take it by themselves)
  theta approve --as ann.key --operation group.change {what} -o ann.approval
  the same command again, with --approval ann.approval"
    )
}
