//! `theta audit`: a node's decisions, and whether its log is complete.

mod log;
mod prune;
mod show;

use std::{
    io::{BufWriter, Write},
    path::PathBuf,
};

use clap::{Args, Subcommand};
use serde::Serialize;
use theta_statements::audit::{self, Checkpoint, LogEntry};

use self::log::LogArgs;
use crate::{
    exit::Failure,
    files::Target,
    output::{GOOD, Output},
};

/// See [`crate::cli`].
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Show the latest decisions of a node
    Show(show::ShowArgs),
    /// Check that nothing in a log was altered, replaced or cut off
    Verify(VerifyArgs),
    /// Write a log as JSON lines, for other programs and for verification elsewhere
    Export(ExportArgs),
    /// Remove what was exported from the log of a node, while it runs or when it is stopped
    Prune(prune::PruneArgs),
}

/// Options of `theta audit verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta audit verify --node 1                                 a running node
  theta audit verify --dir theta-group/node-1                 a stopped one
  theta audit verify audit.jsonl --checkpoint theta-audit:1042:6f1c...
  theta audit verify --node 1 --after theta-audit:1042:6f1c...     after theta audit prune

Each record's hash covers the one before it, so the last hash stands for the whole log. Keep the checkpoint that this \
prints somewhere else: whoever gives it back later sees any change to the past and a log that was cut. Exit code 1, and the \
number of the first bad record, if the log is not what it was.")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    log: LogArgs,
    /// A checkpoint that was kept elsewhere: the log must agree with it
    #[arg(long, value_name = "CHECKPOINT")]
    checkpoint: Option<Checkpoint>,
    /// The checkpoint after which this log begins, if what came before was pruned or is in another file
    #[arg(long, value_name = "CHECKPOINT")]
    after: Option<Checkpoint>,
}

/// Options of `theta audit export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta audit export --node 1 > audit.jsonl
  theta audit export --node 1 --after theta-audit:1042:6f1c... -o next.jsonl     what follows an earlier export
  theta audit export --dir theta-group/node-1 --from 1000 --to 1999 -o some.jsonl
  jq -r 'select(.record.allowed | not) | .record.detail' audit.jsonl

Each record is checked against the one before it as it is written: an export that ends well is whole, and prints the checkpoint \
of its end, with which the next one goes on (--after) and the node may forget what it covers (theta audit prune).")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    log: LogArgs,
    /// The first record to write, from 0
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    from: u64,
    /// The last record to write [default: the last that there is now]
    #[arg(long, value_name = "NUMBER")]
    to: Option<u64>,
    /// The checkpoint of the export before: this one begins after it, and must follow it
    #[arg(long, value_name = "CHECKPOINT", conflicts_with = "from")]
    after: Option<Checkpoint>,
    /// Where to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct Verdict {
    whole: bool,
    records: u64,
    checkpoint: String,
    broken_at: Option<u64>,
    reason: Option<String>,
}

#[derive(Serialize)]
struct Exported {
    records: u64,
    /// The first of them; nothing if there is none.
    first: Option<u64>,
    /// How far the log goes by what was written.
    checkpoint: Option<String>,
    output: PathBuf,
}

impl AuditCommand {
    /// Runs the command.
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::Show(args) => show::show(&args, output),
            Self::Verify(args) => verify(&args, output),
            Self::Export(args) => export(&args, output),
            Self::Prune(args) => prune::prune(&args, output),
        }
    }
}

fn verify(args: &VerifyArgs, output: Output) -> Result<(), Failure> {
    let mut reached = args.after.unwrap_or(Checkpoint::START);
    let mut broken = None;
    let kept = args.checkpoint;
    if let Some(kept) = kept.filter(|kept| kept.count < reached.count) {
        return Err(Failure::Usage(format!(
            "the checkpoint is of the first {} records and the log begins after {}: verify the export that has them",
            kept.count, reached.count
        )));
    }
    args.log.pages(reached.count, &mut |page| {
        let end = reached.count.saturating_add(u64::try_from(page.len()).unwrap_or(u64::MAX));
        // A page is checked only against a checkpoint within it; whether the log reaches the checkpoint is checked at the
        // end.
        let within = kept.filter(|kept| (reached.count..=end).contains(&kept.count));
        match audit::verify(page, reached, within) {
            Ok(checkpoint) => reached = checkpoint,
            Err(error) => broken = Some(error),
        }
        Ok(broken.is_none())
    })?;
    let broken = broken.or_else(|| audit::verify([], reached, kept).err());
    let verdict = Verdict {
        whole: broken.is_none(),
        records: reached.count,
        checkpoint: reached.to_string(),
        broken_at: broken.map(|broken| broken.sequence),
        reason: broken.map(|broken| broken.to_string()),
    };
    output.result(&verdict, |out| {
        if verdict.whole {
            writeln!(out, "{GOOD}ok{GOOD:#} the log is whole: {} records", verdict.records)?;
            writeln!(out, "checkpoint  {}", verdict.checkpoint)?;
        }
        Ok(())
    })?;
    let Some(broken) = broken else { return Ok(()) };
    let pruned = match broken.fault {
        audit::Fault::Missing(first) if broken.sequence == 0 && args.after.is_none() => {
            format!("; if the first {first} records were pruned, give the checkpoint of then with --after")
        }
        _ => String::new(),
    };
    Err(Failure::Failed(format!("{broken}{pruned}")))
}

fn export(args: &ExportArgs, output: Output) -> Result<(), Failure> {
    let target = Target::choose(args.output.as_deref(), None)?;
    target.check_json(output.json())?;
    let mut exported = Following { reached: args.after, ..Following::default() };
    if let Some(stream) = target.stream()? {
        exported.write(args, &mut BufWriter::new(stream), &target)?;
    } else {
        let mut draft = target.draft(false)?;
        exported.write(args, &mut BufWriter::new(draft.file()), &target)?;
        draft.commit()?;
    }
    let Following { records, first, reached } = exported;
    let checkpoint = reached.map(|reached| reached.to_string());
    let summary = format!("wrote {records} records to {}", target.name().display());
    let summary = checkpoint.iter().fold(summary, |summary, checkpoint| format!("{summary}\ncheckpoint  {checkpoint}"));
    output.remark(&Exported { records, first, checkpoint, output: target.name() }, &summary)
}

/// An export as far as it is written, whole.
#[derive(Default)]
struct Following {
    records: u64,
    first: Option<u64>,
    reached: Option<Checkpoint>,
}

impl Following {
    fn write(&mut self, args: &ExportArgs, writer: &mut dyn Write, target: &Target) -> Result<(), Failure> {
        let failed = |error: &std::io::Error| Failure::writing(&target.name(), error);
        let (from, to) = (args.after.map_or(args.from, |after| after.count), args.to.unwrap_or(u64::MAX));
        args.log.pages_to_make_room(from, &mut |page| {
            let wanted = page.iter().take_while(|entry| entry.sequence <= to);
            let lines = self.follow(page, to)?;
            for entry in wanted {
                let line = audit::to_line(entry).map_err(Failure::internal)?;
                writeln!(writer, "{line}").map_err(|error| failed(&error))?;
            }
            Ok(lines == page.len())
        })?;
        writer.flush().map_err(|error| failed(&error))
    }

    /// Checks that the records of a page up to this number follow what was written before; says how many they are.
    fn follow(&mut self, page: &[LogEntry], to: u64) -> Result<usize, Failure> {
        let count = page.iter().take_while(|entry| entry.sequence <= to).count();
        let Some(first) = page.first().filter(|_| count > 0) else { return Ok(count) };
        let before = self.reached.unwrap_or(Checkpoint { count: first.sequence, head: first.previous });
        let reached = audit::verify(page.iter().take(count), before, None);
        self.reached = Some(reached.map_err(|broken| Failure::Failed(format!("nothing more is exported: {broken}")))?);
        self.first.get_or_insert(first.sequence);
        self.records = self.records.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        Ok(count)
    }
}
