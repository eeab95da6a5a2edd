//! Reads a log from a stopped node's store, a file of JSON lines, or a running node.

use std::{
    io::{BufRead, BufReader},
    num::NonZeroU16,
    path::{Path, PathBuf},
};

use clap::Args;
use theta_names::NodeId;
use theta_service::NodeConfig;
use theta_statements::Digest;
use theta_statements::audit::{self, AuditRecord, LogEntry};
use theta_store::Store;

use crate::{
    connect::{ClientArgs, Session},
    exit::Failure,
    files::Source,
    vault,
};

/// The number of records in memory at one time.
const PAGE: usize = 1024;

/// The place of a log.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Place {
    /// A file of JSON lines, as theta audit export writes them; - for standard input
    file: Option<PathBuf>,
    /// The directory of a node that does not run
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// A running node, by its number
    #[arg(long, value_name = "NODE")]
    node: Option<NonZeroU16>,
}

/// Takes records in order; returns whether it wants more.
pub(super) type Take<'a> = dyn FnMut(&[LogEntry]) -> Result<bool, Failure> + 'a;

impl LogArgs {
    /// Passes on all records from number `from`, a page at a time.
    pub(super) fn pages(&self, from: u64, take: &mut Take<'_>) -> Result<(), Failure> {
        self.pages_of(vault::open, from, take)
    }

    /// The same for what makes room on a disk that is full.
    pub(super) fn pages_to_make_room(&self, from: u64, take: &mut Take<'_>) -> Result<(), Failure> {
        self.pages_of(vault::open_to_make_room, from, take)
    }

    fn pages_of(
        &self,
        open: impl FnOnce(&NodeConfig) -> Result<Store, Failure>,
        from: u64,
        take: &mut Take<'_>,
    ) -> Result<(), Failure> {
        match &self.place {
            Place { file: Some(file), .. } => of_file(file, from, take),
            Place { dir: Some(dir), .. } => of_store(&open(&vault::config(dir)?)?, from, take),
            Place { node: Some(node), .. } => of_node(&self.client.open()?, (*node).into(), from, take),
            Place { .. } => Err(Failure::internal("no log was named")),
        }
    }
}

fn of_store(store: &Store, mut from: u64, take: &mut Take<'_>) -> Result<(), Failure> {
    loop {
        let records = store.audit(from, PAGE)?;
        let page = records.into_iter().map(entry).collect::<Result<Vec<_>, Failure>>()?;
        let Some(last) = page.last() else { return Ok(()) };
        from = last.sequence.saturating_add(1);
        if !take(&page)? {
            return Ok(());
        }
    }
}

fn of_node(session: &Session, node: NodeId, mut from: u64, take: &mut Take<'_>) -> Result<(), Failure> {
    loop {
        let page = session.block_on(session.client().audit(node, from, PAGE as u64))?;
        let Some(last) = page.last() else { return Ok(()) };
        from = last.sequence.saturating_add(1);
        // Reading the log adds a record to it, so reading until nothing comes would never end.
        if !take(&page)? || page.len() < PAGE {
            return Ok(());
        }
    }
}

fn entry(record: theta_store::AuditRecord) -> Result<LogEntry, Failure> {
    let theta_store::AuditRecord { index, previous, hash, body } = record;
    let record = AuditRecord::decode(&body)
        .map_err(|error| Failure::Failed(format!("the log is broken at record {index}: it is no decision: {error}")))?;
    Ok(LogEntry { sequence: index, previous: Digest(previous), hash: Digest(hash), record })
}

fn of_file(path: &Path, from: u64, take: &mut Take<'_>) -> Result<(), Failure> {
    let source = Source::open(path)?;
    let name = source.name;
    let mut reader = BufReader::new(source.reader);
    let mut page = Vec::new();
    for number in 1_u64.. {
        let mut line = Vec::new();
        let read = std::io::Read::take(&mut reader, audit::MOST_LINE as u64 + 2).read_until(b'\n', &mut line);
        let ended = read.map_err(|error| Failure::reading(&name, &error))? == 0;
        if !ended {
            let wrong =
                |error: &dyn core::fmt::Display| Failure::Failed(format!("{}:{number}: {error}", name.display()));
            let text = std::str::from_utf8(&line).map_err(|error| wrong(&error))?;
            page.push(audit::from_line(text.trim_end()).map_err(|error| wrong(&error))?);
        }
        if ended || page.len() == PAGE {
            page.retain(|entry| entry.sequence >= from);
            if !take(&page)? || ended {
                return Ok(());
            }
            page.clear();
        }
    }
    Ok(())
}
