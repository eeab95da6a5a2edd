//! `theta group`: how members come, go and change, and what their operators sign.

mod add;
mod ask;
mod bring;
mod cancel;
mod memory;
mod operator;
mod remove;
mod renew;
mod replace;
mod warrant;

use std::path::{Path, PathBuf};

use clap::Args;
use theta_ledger::founding::{Card, Fingerprint};
use theta_ledger::{LedgerId, LedgerState};
use theta_names::{NodeId, WallTime};

pub(crate) use self::ask::{AskArgs, look};
pub(crate) use self::{
    add::{AddArgs, add},
    bring::{BringArgs, bring},
    cancel::{CancelArgs, cancel},
    remove::{RemoveArgs, remove},
    renew::{RenewArgs, renew},
    replace::{OperatorsWord, ReplaceArgs, replace},
    warrant::{WarrantCommand, read_warrant, why},
};
use crate::{
    connect::ClientArgs,
    exit::Failure,
    founding::read_cards,
    ledger::{self, Checked},
};

/// By which ledger something is judged: that of the nodes, or an export on a machine without a network.
#[derive(Debug, Args)]
pub(crate) struct LedgerArgs {
    /// The group's ledger, as theta ledger export writes it, for a machine without a network [default: ask the nodes]
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// The group's fingerprint, as its members compared it [default: that of the client's group]
    #[arg(long, value_name = "FINGERPRINT", requires = "ledger")]
    fingerprint: Option<Fingerprint>,
    #[command(flatten)]
    client: ClientArgs,
}

impl LedgerArgs {
    /// Reads the ledger and checks each entry of it.
    pub(crate) fn read(&self) -> Result<Checked, Failure> {
        let id = self.fingerprint.map(|fingerprint| LedgerId::from_bytes(*fingerprint.as_bytes()));
        ledger::read(self.ledger.as_deref(), id, &self.client)
    }
}

/// The only card in a file, which has not ended.
pub(crate) fn one_card(file: &Path) -> Result<Card, Failure> {
    let [card] = <[Card; 1]>::try_from(read_cards(file)?).map_err(|_| {
        Failure::Usage(format!("{} has more than one card in it: name one of the machine alone", file.display()))
    })?;
    if card.content().until < WallTime::now().seconds() {
        return Err(Failure::Usage(format!(
            "the card in {} has ended: ask for a new one (theta node card)",
            file.display()
        )));
    }
    Ok(card)
}

/// "node 3 (Gamma Escrow)", as the ledger knows it.
pub(crate) fn in_words(state: &LedgerState, node: NodeId) -> String {
    match state.seats().get(&node).and_then(|seat| seat.card()) {
        Some(card) => format!("node {node} ({})", card.name()),
        None => format!("node {node}"),
    }
}

/// A key of ceremonies or of an operator, as people read it aloud.
pub(crate) fn aloud(key: &[u8; 32]) -> String {
    Fingerprint::from(*key).to_string()
}
