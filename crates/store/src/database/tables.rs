//! The tables of a store.

use redb::TableDefinition;

/// A table of records by key. All are sealed but [`Table::Head`], [`Table::Burnt`] and [`Table::Used`], which hold nothing
/// secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// In clear: format, store id, the wrapped store key.
    Head,
    /// Counters and floors of the store as a whole.
    Settings,
    /// The openings by generation.
    Openings,
    /// Keys by name, without shares.
    Keys,
    /// Shares by key, version and epoch.
    Shares,
    /// Who this node is in ceremonies.
    Identity,
    /// What was seen of peers' stores, by number of the peer.
    Peers,
    /// What peers remember of this node's store and it does not, by number of the peer and link of the claim.
    Contradictions,
    /// Ceremonies by id.
    Ceremonies,
    /// The inputs of ceremonies by id and index.
    Inputs,
    /// In clear: what must not happen twice, by id.
    Burnt,
    /// What was decided for a slot, by key, rule and slot.
    Slots,
    /// How far a rule has come, by key and rule.
    Marks,
    /// The audit log by index.
    Audit,
    /// How often people have changed the state of a key, and how the last time, by name.
    Generations,
    /// In clear: requests that are used up, by digest.
    Used,
    /// The entries of the group's ledger by height.
    Ledger,
    /// What this node has said about the next entry, in order.
    LedgerVotes,
}

impl Table {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Settings => "settings",
            Self::Openings => "openings",
            Self::Keys => "keys",
            Self::Shares => "shares",
            Self::Identity => "identity",
            Self::Peers => "peers",
            Self::Contradictions => "contradictions",
            Self::Ceremonies => "ceremonies",
            Self::Inputs => "inputs",
            Self::Burnt => "burnt",
            Self::Slots => "slots",
            Self::Marks => "marks",
            Self::Audit => "audit",
            Self::Generations => "generations",
            Self::Used => "used",
            Self::Ledger => "ledger",
            Self::LedgerVotes => "ledger-votes",
        }
    }

    pub(crate) const fn is_sealed(self) -> bool {
        !matches!(self, Self::Head | Self::Burnt | Self::Used)
    }

    pub(super) const fn definition(self) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
        TableDefinition::new(self.name())
    }
}
