//! The members of the group, as far as the client has checked the group's ledger, and the connections to them.
//!
//! A client is given a group file and the founding's fingerprint. Who the members are, their keys and their addresses follow from the founding
//! and the ledger, and from nothing else; the file says where members may be found besides. What it says of nodes that the ledger does not
//! know (yet) is a hint: they are asked for the ledger, whose entries prove themselves, and for nothing else.

use std::sync::{Arc, PoisonError, RwLock};

use theta_ledger::{
    Genesis, LedgerState, Seat,
    founding::{Card, Founding},
};
use theta_names::NodeId;
use theta_network::{
    Fingerprint, Identity,
    group::{CeremonyKey, GroupFile, GroupNode},
};
use tokio::runtime::Handle;

use crate::{ClientOptions, Connection, OpenError, ledger::Book};

/// Whom a client knows.
#[derive(Debug)]
pub(crate) struct Roster {
    /// As the client was given it.
    file: GroupFile,
    /// Whether the file's owner vouches for the keys in it. Of a client file, the fingerprint does.
    trusted: bool,
    identity: Option<Identity>,
    /// The connections to the nodes of the file.
    given: Vec<Connection>,
    /// On which connections are made.
    runtime: Option<Handle>,
    now: RwLock<Option<Arc<Present>>>,
}

/// The members as of one height of the ledger.
#[derive(Debug)]
pub(crate) struct Present {
    pub(crate) group: Arc<GroupFile>,
    pub(crate) connections: Vec<Connection>,
    /// Nodes of the file that are no members as far as the ledger is known.
    pub(crate) hints: Vec<Connection>,
    /// The height of the newest change of members that it follows from.
    since: u64,
}

impl Present {
    /// Whether both follow from the same changes of the members.
    pub(crate) const fn is_of(&self, other: &Self) -> bool {
        self.since == other.since
    }
}

impl Roster {
    /// The members of a file, which its owner trusts as it stands, or which has to fit its founding. Addresses are checked now.
    pub(crate) fn new(
        file: GroupFile,
        trusted: bool,
        identity: Option<&Identity>,
        options: &ClientOptions,
    ) -> Result<Self, OpenError> {
        let given = file.nodes().iter().map(|node| Connection::new(node, &[], identity, options));
        let given = given.collect::<Result<_, _>>()?;
        let (identity, runtime) = (identity.cloned(), Handle::try_current().ok());
        Ok(Self { file, trusted, identity, given, runtime, now: RwLock::default() })
    }

    /// As the client was given it: with what the group's ledger begins follows from it.
    pub(crate) const fn file(&self) -> &GroupFile {
        &self.file
    }

    /// The members as of what is known now.
    pub(crate) fn present(&self, book: &Book, options: &ClientOptions) -> Arc<Present> {
        let since = book.look(LedgerState::members_since).unwrap_or_default();
        let known = self.now.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known.as_ref().filter(|known| known.since == since) {
            return Arc::clone(known);
        }
        // Whoever asks may be outside of the runtime.
        let _inside = self.runtime.as_ref().map(Handle::enter);
        let made = Arc::new(self.make(book, options, known.as_deref()));
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&made));
        made
    }

    fn make(&self, book: &Book, options: &ClientOptions, before: Option<&Present>) -> Present {
        let founders = book.genesis().and_then(Genesis::founding).map(Founding::members).unwrap_or_default();
        let members = |state: &LedgerState| -> Option<Vec<(GroupNode, Vec<String>)>> {
            state.seats().iter().map(|(node, seat)| self.member(*node, seat, founders)).collect()
        };
        // Before the client has come to its checkpoint, the ledger says nothing: the members of the founding may all be gone.
        let found = match book.ahead() {
            None => book.look(|state| (members(state), state.members_since())),
            Some(_) => None,
        };
        let as_given = || self.file.nodes().iter().map(|node| (node.clone(), Vec::new())).collect::<Vec<_>>();
        let (members, since) = match found {
            Some((Some(members), since)) => (members, since),
            // Without a founding the members are those of the file, as they are before the checkpoint.
            Some((None, since)) => (as_given(), since),
            None => (as_given(), 0),
        };
        // A connection that stands is kept.
        let before = before.map(|before| before.connections.as_slice()).unwrap_or_default();
        let connect = |(node, others): &(GroupNode, Vec<String>)| {
            let mut kept = before.iter().chain(&self.given);
            let kept = kept.find(|kept| kept.leads_to(node) && kept.has_others(others)).cloned();
            kept.or_else(|| Connection::new(node, others, self.identity.as_ref(), options).ok())
        };
        let connections: Vec<Connection> = members.iter().filter_map(connect).collect();
        let is_member = |hint: &Connection| connections.iter().any(|connection| connection.is_same(hint));
        let hints = self.given.iter().filter(|given| !is_member(given)).cloned().collect();
        let nodes = members.into_iter().map(|(node, _)| node).collect();
        // Numbers have gaps where members have left.
        let group = match since {
            0 => GroupFile::new(self.file.name(), self.file.threshold(), nodes, self.file.clients().to_vec()),
            height => self.file.clone().with_members(nodes, height),
        };
        let group = match (group, self.file.founding()) {
            (Ok(group), Some(founding)) => group.with_founding(founding.to_owned()),
            (Ok(group), None) => group,
            (Err(_), _) => self.file.clone(),
        };
        Present { group: Arc::new(group), connections, hints, since }
    }

    /// A member as a group file has it, and where else it may be; `None` in a ledger without cards.
    fn member(&self, id: NodeId, seat: &Seat, founders: &[Card]) -> Option<(GroupNode, Vec<String>)> {
        let card = seat.card()?;
        let of_card = group_node(id, card);
        let same_machine = |node: &&GroupNode| node.ceremony_key == of_card.ceremony_key;
        let Some(given) = self.file.node(id).filter(same_machine) else { return Some((of_card, Vec::new())) };
        let pinned = given.certificate == of_card.certificate;
        let as_founded = usize::from(id.get()).checked_sub(1).and_then(|place| founders.get(place)) == Some(card);
        if (pinned || self.trusted) && as_founded {
            let others =
                if pinned && given.api_address != of_card.api_address { vec![of_card.api_address] } else { Vec::new() };
            return Some((given.clone(), others));
        }
        // The member has moved since, or the file knows more of it than the ledger does so far.
        let others =
            if given.api_address == of_card.api_address { Vec::new() } else { vec![given.api_address.clone()] };
        Some((of_card, others))
    }
}

/// A member as a group file has it.
#[must_use]
pub fn group_node(id: NodeId, card: &Card) -> GroupNode {
    let content = card.content();
    GroupNode {
        id,
        name: Some(content.name.clone()),
        peer_address: content.peer_address.to_string(),
        api_address: content.api_address.to_string(),
        certificate: Fingerprint::from(content.tls_key),
        ceremony_key: Some(CeremonyKey::from(content.ceremony_key)),
    }
}
