//! A warrant in words.

use std::io::{self, Write};

use serde::Serialize;
use theta_ledger::{LedgerState, Warrant, WarrantRefusal};
use theta_statements::UnixTime;

use super::super::{aloud, in_words};
use crate::connect;

/// What a warrant says, for people and programs.
#[derive(Serialize)]
pub(super) struct WarrantView {
    group: String,
    fingerprint: String,
    /// The height from which on it serves.
    from: u64,
    /// When it ends, in seconds since 1970.
    until: u64,
    machines: Vec<MachineView>,
    /// The members whose operators have signed.
    signed: Vec<u16>,
    /// How many operators have to sign.
    needed: usize,
    /// Those that have not signed.
    unsigned: Vec<u16>,
    /// Whether it serves for the next entry.
    serves: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
struct MachineView {
    node: u16,
    /// "node 3 (Gamma Escrow)".
    #[serde(skip)]
    member: String,
    name: String,
    gone: String,
    key: String,
    peer_address: String,
    api_address: String,
}

impl WarrantView {
    /// Of a warrant whose signatures were checked.
    pub(super) fn new(state: &LedgerState, warrant: &Warrant) -> Self {
        let machines = warrant.stand_ins().iter().map(|stand_in| {
            let content = stand_in.card.content();
            MachineView {
                node: stand_in.node.get(),
                member: in_words(state, stand_in.node),
                name: content.name.to_string(),
                gone: aloud(&stand_in.gone),
                key: aloud(&content.ceremony_key),
                peer_address: content.peer_address.to_string(),
                api_address: content.api_address.to_string(),
            }
        });
        let signed: Vec<u16> = warrant.signatures().keys().map(|node| node.get()).collect();
        let unsigned = state.seats().keys().map(|node| node.get()).filter(|node| !signed.contains(node));
        let refusal = state.check_warrant(warrant).err();
        Self {
            group: state.group().to_owned(),
            fingerprint: aloud(state.id().as_bytes()),
            from: warrant.from_height(),
            until: warrant.until(),
            machines: machines.collect(),
            unsigned: unsigned.collect(),
            signed,
            needed: state.quorum(),
            serves: refusal.is_none(),
            reason: refusal.map(|refusal| why(&refusal)),
        }
    }

    /// What it allows.
    pub(super) fn write_terms(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { group, fingerprint, from, until, .. } = self;
        let until = UnixTime(until.saturating_mul(1_000));
        writeln!(out, "a warrant in the group {group}, from entry {from} of its ledger on, until {until}")?;
        writeln!(out, "  founded       {fingerprint}")?;
        for machine in &self.machines {
            writeln!(out, "\n{}: until the group has replaced it, another machine votes in its place", machine.member)?;
            writeln!(out, "  gone          {}", machine.gone)?;
            writeln!(out, "  instead       {}", machine.key)?;
            writeln!(out, "  for nodes     {}", machine.peer_address)?;
            writeln!(out, "  for clients   {}", machine.api_address)?;
        }
        Ok(())
    }

    /// Who has signed, and what is missing.
    pub(super) fn write_signatures(&self, out: &mut dyn Write) -> io::Result<()> {
        let signed = connect::nodes(&self.signed);
        writeln!(out, "\nsigned by the operators of {signed}; it takes {}", self.needed)?;
        match &self.reason {
            None => writeln!(out, "it serves"),
            Some(reason) => writeln!(out, "it does not serve: {reason}"),
        }
    }

    /// Who still has to sign, if the signatures are all that is missing.
    pub(super) fn missing(&self) -> Option<(usize, &[u16])> {
        let missing = self.needed.saturating_sub(self.signed.len());
        (missing > 0).then_some((missing, &self.unsigned))
    }
}

/// Why it does not serve, and what helps.
pub(crate) fn why(refusal: &WarrantRefusal) -> String {
    match refusal {
        WarrantRefusal::TooMany { most: 0, .. } => "in a group of this size and threshold no machine can be stood in for. Where the other \
             members are enough to decide, the machine is replaced without (theta group replace); where all but one may lie, it is the end of \
             the keys, and of the group"
            .to_owned(),
        WarrantRefusal::Early(from) => {
            format!("it is for entry {from} and after, and this ledger ends before: ask for what the group has decided since")
        }
        refusal => refusal.to_string(),
    }
}
