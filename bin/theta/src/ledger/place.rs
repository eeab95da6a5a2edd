//! Where a ledger is read from: the nodes, or a file that somebody exported.

use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use clap::Args;
use serde::{Deserialize, Serialize};
use theta_client::genesis_of;
use theta_ledger::founding::{Fingerprint, Founding, NodeSignatures};
use theta_ledger::{CertifiedEntry, Genesis, LedgerId, LedgerState};

use super::words;
use crate::{
    connect::ClientArgs,
    exit::{self, Failure},
    files::Source,
    output,
};

/// The longest line of an export, in bytes: the longest entry with its votes, in hexadecimal.
const MOST_LINE: u64 = 4 << 20;

/// Where the ledger is, and by what it is checked.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// A file that theta ledger export wrote [default: ask the nodes]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The ledger's id, as somebody told it whom you trust; only for a file [default: that of the group in the client directory]
    #[arg(long, value_name = "ID", requires = "file", value_parser = parse_id)]
    ledger: Option<LedgerId>,
    #[command(flatten)]
    client: ClientArgs,
}

/// A ledger that was checked from its beginning.
pub(crate) struct Checked {
    pub(crate) genesis: Genesis,
    pub(crate) state: LedgerState,
    pub(crate) entries: Vec<CertifiedEntry>,
}

/// The first line of an export.
#[derive(Deserialize, Serialize)]
pub(super) struct GenesisLine {
    /// Whose words its lines are in: [`words::EDITION`] of the release that wrote it.
    #[serde(default = "first_edition")]
    pub(super) words: u32,
    pub(super) ledger: String,
    pub(super) group: String,
    pub(super) k: u16,
    /// Its founding, as text, if its ledger begins with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) founding: Option<String>,
    pub(super) members: Vec<MemberLine>,
}

/// A member in it.
#[derive(Deserialize, Serialize)]
pub(super) struct MemberLine {
    pub(super) node: u16,
    pub(super) identity: String,
}

/// Every other line.
#[derive(Deserialize, Serialize)]
pub(super) struct EntryLine {
    pub(super) height: u64,
    pub(super) time: u64,
    pub(super) what: String,
    pub(super) certified: String,
}

/// The words of exports that do not say.
const fn first_edition() -> u32 {
    1
}

fn parse_id(text: &str) -> Result<LedgerId, String> {
    let bytes = hex::decode(text).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    let bytes = bytes.or_else(|| text.parse::<Fingerprint>().ok().map(|founding| *founding.as_bytes()));
    let wrong = "a ledger's id is 64 hexadecimal digits, or the fingerprint of the group's founding";
    bytes.map(LedgerId::from_bytes).ok_or_else(|| wrong.to_owned())
}

impl PlaceArgs {
    /// Reads the ledger and checks each entry: its place, what it says, and the votes for it.
    pub(super) fn read(&self) -> Result<Checked, Failure> {
        read(self.file.as_deref(), self.ledger, &self.client)
    }
}

/// Reads a ledger and checks each entry, from the nodes or from a file; from the latter that with this id, or else that of the client's
/// group.
pub(crate) fn read(file: Option<&Path>, id: Option<LedgerId>, client: &ClientArgs) -> Result<Checked, Failure> {
    match (file, id) {
        (Some(file), Some(id)) => read_file(file, id),
        (Some(file), None) => {
            let session = client.open()?;
            let genesis =
                genesis_of(session.client().given_group()).map_err(|error| Failure::Usage(error.to_string()))?;
            read_file(file, genesis.id())
        }
        (None, _) => ask(client),
    }
}

fn ask(client: &ClientArgs) -> Result<Checked, Failure> {
    let session = client.open()?;
    let genesis = genesis_of(session.client().given_group()).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut state = LedgerState::new(&genesis);
    let followed = session.block_on(session.client().follow_ledger(&mut state))?;
    for problem in &followed.problems {
        output::diagnostic("warning", &exit::tidy(&problem.to_string()));
    }
    Ok(Checked { genesis, state, entries: followed.entries })
}

/// Reads the ledger with this id from a file.
pub(crate) fn read_file(path: &Path, expected: LedgerId) -> Result<Checked, Failure> {
    read_as(path, Some(expected))
}

/// Reads a ledger from a file, whichever it is: for what somebody checks later.
pub(crate) fn read_any(path: &Path) -> Result<Checked, Failure> {
    read_as(path, None)
}

fn read_as(path: &Path, expected: Option<LedgerId>) -> Result<Checked, Failure> {
    let source = Source::open(path)?;
    let name = source.name.clone();
    let mut lines = Lines { reader: BufReader::new(source.reader), name: &name, number: 0 };
    let first: GenesisLine = lines.next()?.ok_or_else(|| lines.wrong(&"the file is empty"))?;
    let genesis = read_genesis(&first).map_err(|error| lines.wrong(&error))?;
    if let Some(expected) = expected.filter(|expected| *expected != genesis.id()) {
        let (found, expected) = (in_words(&genesis.id()), in_words(&expected));
        return Err(Failure::Failed(format!("{} is of ledger {found}, not of {expected}", name.display())));
    }
    let (mut state, mut entries) = (LedgerState::new(&genesis), Vec::new());
    let comparable = first.words == words::EDITION;
    if !comparable {
        let name = name.display();
        output::diagnostic(
            "warning",
            &format!(
                "another release wrote {name}: each entry is checked, and not whether what its lines say in words is what the entries \
                 say; theta ledger show --entries {name} puts them into words anew"
            ),
        );
    }
    while let Some(line) = lines.next::<EntryLine>()? {
        let bytes = hex::decode(&line.certified).map_err(|error| lines.wrong(&error))?;
        let certified = CertifiedEntry::decode(&bytes).map_err(|error| lines.wrong(&error))?;
        state.advance(&certified).map_err(|error| lines.wrong(&error))?;
        let says = !comparable || words::line_of(&certified).what == line.what;
        if !says || line.height != certified.entry.height {
            return Err(lines.wrong(&"what the line says is not what the entry says"));
        }
        entries.push(certified);
    }
    Ok(Checked { genesis, state, entries })
}

/// A ledger's id as its hexadecimal digits, and as the fingerprint that people compare.
fn in_words(id: &LedgerId) -> String {
    format!("{id} (fingerprint {})", Fingerprint::from(*id.as_bytes()))
}

fn read_genesis(line: &GenesisLine) -> Result<Genesis, String> {
    let member = |member: &MemberLine| {
        let key = hex::decode(&member.identity).map_err(|error| error.to_string())?;
        words::member(member.node, &key).ok_or_else(|| format!("node {} has no identity that is a key", member.node))
    };
    let members = line.members.iter().map(member).collect::<Result<_, _>>()?;
    let founding = line.founding.as_ref().map(|text| Founding::from_text(text, &NodeSignatures));
    let founding = founding.transpose().map_err(|error| error.to_string())?;
    let genesis = Genesis::of_file(&line.group, line.k, members, founding.as_ref());
    let genesis = genesis.map_err(|error| error.to_string())?;
    if genesis.id().to_string() == line.ledger {
        Ok(genesis)
    } else {
        Err("the ledger's id is not its members'".to_owned())
    }
}

/// The lines of an export.
struct Lines<'a, R> {
    reader: BufReader<R>,
    name: &'a Path,
    number: u64,
}

impl<R: Read> Lines<'_, R> {
    fn wrong(&self, error: &dyn core::fmt::Display) -> Failure {
        Failure::Failed(format!("{}:{}: {error}", self.name.display(), self.number))
    }

    fn next<T: for<'de> Deserialize<'de>>(&mut self) -> Result<Option<T>, Failure> {
        let mut line = Vec::new();
        self.number += 1;
        let read = self.reader.by_ref().take(MOST_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| Failure::reading(self.name, &error))? == 0 {
            return Ok(None);
        }
        serde_json::from_slice(&line).map(Some).map_err(|error| self.wrong(&error))
    }
}
