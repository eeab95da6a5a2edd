//! `theta ledger`: what the group has decided, checked from the founding members on.

mod place;
mod reason;
mod words;

use std::{
    io::{BufWriter, Write},
    path::PathBuf,
};

use clap::{Args, Subcommand};
use serde::Serialize;
use theta_ledger::{LedgerState, Seat};
use theta_names::{NodeId, WallTime};
use theta_statements::UnixTime;

pub(crate) use self::place::{Checked, read, read_any, read_file};
use self::place::{GenesisLine, MemberLine, PlaceArgs};
use self::reason::Reason;
use crate::{
    exit::Failure,
    files::Target,
    output::{GOOD, Output, Table},
};

/// See [`crate::cli`].
#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Show the members and keys that the group has, as a quorum of its nodes has certified
    Show(ShowArgs),
    /// Check every entry, and the votes for it, from the founding members on
    Verify(VerifyArgs),
    /// Write all entries as JSON lines, for verification elsewhere and without any node
    Export(ExportArgs),
}

/// Options of `theta ledger show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta ledger show                      what the nodes have
  theta ledger show ledger.jsonl         what a file has that theta ledger export wrote
  theta ledger show --entries            every entry, one to a line

All nodes are asked and none is believed: each entry carries the votes of a quorum of the group's nodes. A key comes in when a \
quorum of the nodes holds it, a few seconds after it was made, dealt or given new shares. States are those that the group has decided; what \
single nodes have disabled before that, theta keys list --live shows. Entries say who asked for them, by the key that signed the request, \
who approved, and which nodes consented: the names that belong to such keys stand in the policies.")]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Show the entries instead of what follows from them
    #[arg(long)]
    entries: bool,
}

/// Options of `theta ledger verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta ledger verify
  theta ledger verify ledger.jsonl --ledger 7f3a...      for somebody who has nothing but the ledger's id

Exit code 1, and the first entry that is wrong, if it is not what the group has decided.")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    place: PlaceArgs,
}

/// Options of `theta ledger export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta ledger export > ledger.jsonl
  theta ledger export -o ledger.jsonl && theta ledger verify ledger.jsonl")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Where to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct KeyView {
    key: String,
    version: u32,
    suite: String,
    /// What the group has decided, at the time of this machine's clock.
    state: &'static str,
    /// When it will be destroyed, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    destroyed_at: Option<u64>,
    k: u16,
    holders: Vec<u16>,
    epoch: u32,
    since: u64,
}

#[derive(Serialize)]
struct Summary {
    group: String,
    ledger: String,
    /// The fingerprint of its founding, if it begins with one.
    fingerprint: Option<String>,
    k: u16,
    nodes: usize,
    quorum: usize,
    height: u64,
    head: String,
    time: u64,
    members: Vec<SeatView>,
    keys: Vec<KeyView>,
}

/// A member of now.
#[derive(Serialize)]
struct SeatView {
    node: u16,
    /// Its name and addresses, in a group that was founded with cards.
    name: Option<String>,
    peer_address: Option<String>,
    api_address: Option<String>,
    /// The entry by which it is a member with its machine of now; 0 for those who founded the group.
    since: u64,
}

fn seats(state: &LedgerState) -> Vec<SeatView> {
    let view = |(node, seat): (&NodeId, &Seat)| {
        let content = seat.card().map(|card| card.content());
        SeatView {
            node: node.get(),
            name: content.map(|content| content.name.to_string()),
            peer_address: content.map(|content| content.peer_address.to_string()),
            api_address: content.map(|content| content.api_address.to_string()),
            since: seat.since(),
        }
    };
    state.seats().iter().map(view).collect()
}

#[derive(Serialize)]
struct EntryView {
    height: u64,
    time: u64,
    what: String,
    #[serde(flatten)]
    reason: Reason,
    signers: Vec<u16>,
}

#[derive(Serialize)]
struct Exported {
    entries: usize,
    output: PathBuf,
}

impl LedgerCommand {
    /// Does it.
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::Show(args) if args.entries => show_entries(&args.place.read()?, output),
            Self::Show(args) => show(&args.place.read()?, output),
            Self::Verify(args) => verify(&args.place.read()?, output),
            Self::Export(args) => export(&args, output),
        }
    }
}

fn summary(Checked { genesis, state, .. }: &Checked) -> Summary {
    let (mut keys, now) = (Vec::new(), WallTime::now().seconds());
    for (key, line) in state.keys() {
        for (version, history) in &line.versions {
            let Some(serving) = history.serving() else { continue };
            keys.push(KeyView {
                key: key.to_string(),
                version: version.get(),
                suite: history.suite.to_string(),
                state: line.state_at(*version, now).unwrap_or(history.state).name(),
                destroyed_at: line.doom_of(*version).filter(|doom| *doom > now),
                k: serving.k,
                holders: serving.holders.clone(),
                epoch: serving.epoch.get(),
                since: serving.since,
            });
        }
    }
    Summary {
        group: state.group().to_owned(),
        ledger: state.id().to_string(),
        fingerprint: genesis.founding().map(|founding| founding.fingerprint().to_string()),
        k: genesis.k(),
        nodes: state.members().len(),
        quorum: state.quorum(),
        height: state.height(),
        head: hex::encode(state.head()),
        time: state.time(),
        members: seats(state),
        keys,
    }
}

fn time(seconds: u64) -> String {
    UnixTime(seconds.saturating_mul(1000).min(UnixTime::LAST.0)).to_string()
}

fn show(checked: &Checked, output: Output) -> Result<(), Failure> {
    let summary = summary(checked);
    output.result(&summary, |out| {
        let Summary { group, ledger, k, nodes, quorum, height, .. } = &summary;
        writeln!(out, "group   {group}: {nodes} nodes, {} of which may do what they like; {quorum} decide", k - 1)?;
        writeln!(out, "ledger  {ledger}")?;
        if let Some(fingerprint) = &summary.fingerprint {
            writeln!(out, "founded {fingerprint}")?;
        }
        let mut table = Table::new(&["member", "name", "for nodes", "for clients", "since"], &[4]);
        for SeatView { node, name, peer_address, api_address, since } in &summary.members {
            let text = |field: &Option<String>| field.clone().unwrap_or_else(|| "-".to_owned());
            table.row([node.to_string(), text(name), text(peer_address), text(api_address), since.to_string()]);
        }
        table.write(out)?;
        if *height == 0 {
            return writeln!(out, "height  0: nothing has been decided yet");
        }
        writeln!(out, "height  {height}, of {}", time(summary.time))?;
        let mut table = Table::new(&["key", "version", "suite", "shares", "epoch", "since", "state"], &[1, 4, 5]);
        for key in &summary.keys {
            table.row([
                key.key.clone(),
                key.version.to_string(),
                key.suite.clone(),
                format!("any {} of {}", key.k, key.holders.len()),
                key.epoch.to_string(),
                key.since.to_string(),
                key.destroyed_at
                    .map_or_else(|| key.state.to_owned(), |at| format!("{}, destroyed at {}", key.state, time(at))),
            ]);
        }
        table.write(out)
    })
}

fn show_entries(checked: &Checked, output: Output) -> Result<(), Failure> {
    let views: Vec<EntryView> = checked
        .entries
        .iter()
        .map(|certified| EntryView {
            height: certified.entry.height,
            time: certified.entry.time,
            what: words::what_of(certified),
            reason: Reason::of(&certified.entry, checked.state.group()),
            signers: certified.certificate.signatures().keys().map(|party| party.get()).collect(),
        })
        .collect();
    output.result(&views, |out| {
        let mut table = Table::new(&["#", "when", "what", "why", "certified by"], &[0]);
        for view in &views {
            let signers = crate::connect::nodes(&view.signers);
            let why = view.reason.in_words();
            table.row([view.height.to_string(), time(view.time), view.what.clone(), why, signers]);
        }
        table.write(out)
    })
}

fn verify(checked: &Checked, output: Output) -> Result<(), Failure> {
    let summary = summary(checked);
    output.result(&summary, |out| {
        writeln!(
            out,
            "{GOOD}ok{GOOD:#} {} entries, each certified by {} nodes or more",
            summary.height, summary.quorum
        )?;
        writeln!(out, "ledger  {}", summary.ledger)?;
        writeln!(out, "head    {}", summary.head)
    })
}

fn export(args: &ExportArgs, output: Output) -> Result<(), Failure> {
    let target = Target::choose(args.output.as_deref(), None)?;
    target.check_json(output.json())?;
    let checked = args.place.read()?;
    let failed = |error: &std::io::Error| Failure::writing(&target.name(), error);
    let write_all = |writer: &mut dyn Write| -> Result<(), Failure> {
        let members = checked.genesis.members().iter().map(|member| MemberLine {
            node: member.node().get(),
            identity: hex::encode(member.verifying_key().bytes()),
        });
        let genesis = GenesisLine {
            words: words::EDITION,
            ledger: checked.genesis.id().to_string(),
            group: checked.genesis.name().to_owned(),
            k: checked.genesis.k(),
            founding: checked.genesis.founding().map(theta_ledger::founding::Founding::to_text),
            members: members.collect(),
        };
        let line = serde_json::to_string(&genesis).map_err(Failure::internal)?;
        writeln!(writer, "{line}").map_err(|error| failed(&error))?;
        for certified in &checked.entries {
            let line = serde_json::to_string(&words::line_of(certified)).map_err(Failure::internal)?;
            writeln!(writer, "{line}").map_err(|error| failed(&error))?;
        }
        writer.flush().map_err(|error| failed(&error))
    };
    if let Some(stream) = target.stream()? {
        write_all(&mut BufWriter::new(stream))?;
    } else {
        let mut draft = target.draft(false)?;
        write_all(&mut BufWriter::new(draft.file()))?;
        draft.commit()?;
    }
    let exported = Exported { entries: checked.entries.len(), output: target.name() };
    output.remark(&exported, &format!("wrote {} entries to {}", exported.entries, exported.output.display()))
}
