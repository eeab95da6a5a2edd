//! The tables of a store.

use redb::TableDefinition;

/// A table of records by key. All but [`Table::Head`], [`Table::Burnt`] and [`Table::Used`] are sealed; those three
/// hold no secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// In clear: format, store id, the wrapped store key.
    Head,
    /// Counters and lower bounds of the store as a whole.
    Settings,
    /// The openings by generation.
    Openings,
    /// Keys by name, without shares.
    Keys,
    /// Shares by key, version and epoch.
    Shares,
    /// The secret of the node's identity in ceremonies.
    Identity,
    /// The last that this node saw of each peer's store, by number of the peer.
    Peers,
    /// Incarnations of this node's store that peers remember and that are not in its history, by number of the peer and
    /// link of the claim.
    Contradictions,
    /// Ceremonies by id.
    Ceremonies,
    /// The inputs of ceremonies by id and index.
    Inputs,
    /// In clear: ids of what must not happen twice.
    Burnt,
    /// The digest that was decided for each slot, by key, rule and slot.
    Slots,
    /// The mark of each rule: slots up to it are refused. By key and rule.
    Marks,
    /// The audit log by index.
    Audit,
    /// The generation of the last change of a key's state, and that change, by name.
    Generations,
    /// What this node does not use any more, before the group has decided so: by name and version.
    Frozen,
    /// Holders among whom somebody cheated, by key, version, epoch and indices.
    Quarantined,
    /// In clear: used requests, by digest.
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
            Self::Frozen => "frozen",
            Self::Quarantined => "quarantined",
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
