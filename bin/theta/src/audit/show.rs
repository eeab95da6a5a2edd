//! `theta audit show`.

use std::collections::VecDeque;

use clap::Args;
use serde::Serialize;
use theta_names::Operation;
use theta_statements::audit::{self, LogEntry};

use super::log::LogArgs;
use crate::{
    exit::Failure,
    output::{BAD, Output, Table},
};

/// Options of `theta audit show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta audit show --node 1
  theta audit show --node 1 --refused --last 100
  theta audit show audit.jsonl --by gateway --key release --json

The log has digests and names; messages, labels and tokens are not in it.")]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    log: LogArgs,
    /// How many of the latest to show
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    last: usize,
    /// Only requests of this client
    #[arg(long = "by", value_name = "CLIENT")]
    by: Option<String>,
    /// Only requests for this key
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Only requests for this operation
    #[arg(long, value_name = "OPERATION")]
    operation: Option<Operation>,
    /// Only requests that were refused
    #[arg(long)]
    refused: bool,
}

impl ShowArgs {
    fn wants(&self, LogEntry { record, .. }: &LogEntry) -> bool {
        let is = |wanted: &Option<String>, is: &Option<String>| wanted.is_none() || wanted == is;
        is(&self.by, &record.client)
            && is(&self.key, &record.key)
            && self.operation.is_none_or(|operation| record.operation == operation.name())
            && !(self.refused && record.allowed)
    }
}

#[derive(Serialize)]
struct Shown(Vec<serde_json::Value>);

/// `theta audit show`.
pub(super) fn show(args: &ShowArgs, output: Output) -> Result<(), Failure> {
    let mut latest = VecDeque::new();
    args.log.pages(0, &mut |page| {
        for entry in page.iter().filter(|entry| args.wants(entry)) {
            if latest.len() == args.last {
                latest.pop_front();
            }
            latest.push_back(entry.clone());
        }
        latest.truncate(args.last);
        Ok(true)
    })?;
    let lines = latest.iter().map(|entry| {
        let line = audit::to_line(entry).map_err(Failure::internal)?;
        serde_json::from_str(&line).map_err(Failure::internal)
    });
    let shown = Shown(lines.collect::<Result<_, _>>()?);
    output.result(&shown, |out| {
        let mut table = Table::new(&["#", "when", "who", "operation", "key", "answer", "rule", "why"], &[0]);
        for entry in &latest {
            table.row(cells(entry));
        }
        table.write(out)?;
        let refused = latest.iter().filter(|entry| !entry.record.allowed).count();
        if refused > 0 { writeln!(out, "{BAD}{refused} refused{BAD:#}") } else { Ok(()) }
    })
}

fn cells(LogEntry { sequence, record, .. }: &LogEntry) -> [String; 8] {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let slot = record.slot.map(|slot| format!(" slot {slot}")).unwrap_or_default();
    let detail = match record.approvers.as_slice() {
        [] => record.detail.clone(),
        approvers => format!("{} (approved by {})", record.detail, approvers.join(", ")),
    };
    [
        sequence.to_string(),
        record.time.to_string(),
        or_dash(&record.client),
        format!("{}{slot}", record.operation),
        or_dash(&record.key),
        if record.allowed { "allowed" } else { "refused" }.to_owned(),
        or_dash(&record.rule),
        detail,
    ]
}
