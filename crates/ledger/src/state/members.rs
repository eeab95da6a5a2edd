//! Who belongs to the group.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use theta_agreement::{Digest, Member, SIGNATURE_LEN};
use theta_names::{KeyState, NodeId, Version};

use super::{LedgerState, MemberRefusal, Refusal};
use crate::founding::{Card, MOST_MEMBERS, NodeSignatures};
use crate::{Action, Genesis, MemberChange, Warrant};

/// Seconds in which a member renews its card, and is replaced by its own operator, so many times at most. It needs nobody's consent, and every entry
/// stays, for each new client to read.
const DAY: u64 = 24 * 60 * 60;
const MONTH: u64 = 30 * DAY;
const MOST_RENEWALS_A_DAY: usize = 8;
const MOST_REPLACEMENTS_A_DAY: usize = 2;
const MOST_A_MONTH: usize = 40;
/// How much later than an entry its cards may say that they were made, in seconds: some clocks are wrong. A card of the end of time would be its
/// machine's last.
const MADE_AHEAD: u64 = 2 * DAY;

/// A member as of one height.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    member: Member,
    card: Option<Card>,
    since: u64,
    past: Past,
}

/// When a member last changed by its own word, the latest last. A thief of a node's key renews its card as often as may be, and must not keep the operator
/// from replacing the machine by that: so they are counted apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Past {
    renewed: VecDeque<u64>,
    replaced: VecDeque<u64>,
}

impl Past {
    /// Whether one more change is too many. What others agree to is not counted.
    fn is_full_for(&self, change: &MemberChange, reason: &[u8], time: u64) -> bool {
        let (times, most) = match change {
            MemberChange::Renew { .. } => (&self.renewed, MOST_RENEWALS_A_DAY),
            MemberChange::Replace { .. } if reason.len() == SIGNATURE_LEN => (&self.replaced, MOST_REPLACEMENTS_A_DAY),
            _ => return false,
        };
        let within = |seconds: u64| times.iter().filter(|at| at.saturating_add(seconds) > time).count();
        within(DAY) >= most || within(MONTH) >= MOST_A_MONTH
    }

    fn note(&mut self, change: &MemberChange, reason: &[u8], time: u64) {
        let times = match change {
            MemberChange::Renew { .. } => &mut self.renewed,
            MemberChange::Replace { .. } if reason.len() == SIGNATURE_LEN => &mut self.replaced,
            _ => return,
        };
        times.push_back(time);
        while times.len() > MOST_A_MONTH {
            times.pop_front();
        }
    }
}

impl Seat {
    /// Its number and the key that its statements verify under.
    #[must_use]
    pub const fn member(&self) -> &Member {
        &self.member
    }

    /// Its name, keys and addresses; `None` in a group without a founding.
    #[must_use]
    pub const fn card(&self) -> Option<&Card> {
        self.card.as_ref()
    }

    /// The height of the entry that made it a member with this key of ceremonies; 0 for those who founded the group.
    #[must_use]
    pub const fn since(&self) -> u64 {
        self.since
    }
}

/// All members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Roll {
    seats: BTreeMap<NodeId, Seat>,
    /// Those of the seats, by rising number.
    members: Vec<Member>,
    /// The highest number that was ever given.
    last: u16,
    /// Every key of ceremonies that was ever a member's.
    spent: BTreeSet<[u8; 32]>,
    /// The TLS keys that were members' and are nobody's now, with the height of the entry by which they ceased to be.
    former: BTreeMap<[u8; 32], u64>,
    /// The height of each change, by the digest of its action: none is decided twice, since keys and numbers are given once, and a
    /// member's cards are ever newer.
    changes: BTreeMap<Digest, u64>,
    /// The height of the newest of them.
    changed: u64,
    founded: bool,
    /// How many founded the group.
    founders: usize,
}

impl Roll {
    pub(super) fn new(genesis: &Genesis) -> Self {
        let mut roll = Self {
            seats: BTreeMap::new(),
            members: Vec::new(),
            last: 0,
            spent: BTreeSet::new(),
            former: BTreeMap::new(),
            changes: BTreeMap::new(),
            changed: 0,
            founded: genesis.founding().is_some(),
            founders: genesis.members().len(),
        };
        let cards = genesis.founding().map(crate::founding::Founding::members).unwrap_or_default();
        // The members of a founding are in the order of their numbers, and so are its cards.
        for (at, member) in genesis.members().iter().enumerate() {
            roll.sit(member.clone(), cards.get(at).cloned(), 0, Past::default());
        }
        roll
    }

    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    fn sit(&mut self, member: Member, card: Option<Card>, since: u64, past: Past) {
        let node = member.node();
        self.last = self.last.max(node.get());
        self.spent.extend(key_of(&member));
        self.seats.insert(node, Seat { member, card, since, past });
        self.members = self.seats.values().map(|seat| seat.member.clone()).collect();
    }

    fn seat(&self, node: u16) -> Result<(&Seat, &Card), Refusal> {
        let seat = NodeId::try_from(node).ok().and_then(|node| self.seats.get(&node));
        let seat = seat.ok_or(Refusal::NoMember(node))?;
        Ok((seat, seat.card.as_ref().ok_or(MemberRefusal::NoFounding)?))
    }

    /// A member's card is another one from this height on, or there is none.
    fn leave(&mut self, old: Option<&Card>, new: Option<&Card>, height: u64) {
        let new = new.map(|card| card.content().tls_key);
        let gone = old.map(|card| card.content().tls_key).filter(|old| Some(*old) != new);
        self.former.extend(gone.map(|key| (key, height)));
        if let Some(new) = new {
            self.former.remove(&new);
        }
    }

    /// The number that the next new member gets.
    fn next(&self) -> Option<NodeId> {
        NodeId::try_from(self.last.checked_add(1)?).ok()
    }

    /// Refuses a card that has something that a member has. What the node itself has it may keep.
    fn check_doubles(&self, node: Option<u16>, card: &Card) -> Result<(), MemberRefusal> {
        let new = card.content();
        for (number, seat) in &self.seats {
            let Some(old) = seat.card.as_ref().map(Card::content).filter(|_| Some(number.get()) != node) else {
                continue;
            };
            // Who names another's address cannot answer there, and anybody could: so addresses bar nobody.
            let same = [
                (old.name.folded() == new.name.folded(), "name"),
                (old.ceremony_key == new.ceremony_key, "key of ceremonies"),
                (old.operator_key == new.operator_key, "operator's key"),
                (old.tls_key == new.tls_key, "TLS key"),
            ];
            if let Some((_, what)) = same.into_iter().find(|(same, _)| *same) {
                return Err(MemberRefusal::Double { node: number.get(), what });
            }
        }
        Ok(())
    }

    fn check_unspent(&self, card: &Card) -> Result<(), MemberRefusal> {
        let spent = self.spent.contains(&card.content().ceremony_key);
        if spent { Err(MemberRefusal::SpentKey) } else { Ok(()) }
    }
}

fn key_of(member: &Member) -> Option<[u8; 32]> {
    member.verifying_key().bytes().try_into().ok()
}

/// The member of this number with the key of a card.
pub(crate) fn member_of(node: NodeId, card: &Card) -> Result<Member, Refusal> {
    Member::of(node, &card.content().ceremony_key).map_err(|_| Refusal::Member(MemberRefusal::Signature))
}

impl LedgerState {
    /// The members with their cards, by rising number.
    #[must_use]
    pub const fn seats(&self) -> &BTreeMap<NodeId, Seat> {
        &self.roll.seats
    }

    /// The height at which a change of the members was decided, by the digest of its action.
    #[must_use]
    pub fn changed_at(&self, action: &Digest) -> Option<u64> {
        self.roll.changes.get(action).copied()
    }

    /// The height of the newest change of the members; 0 if there is none.
    #[must_use]
    pub const fn members_since(&self) -> u64 {
        self.roll.changed
    }

    /// How many members the group began with.
    #[must_use]
    pub const fn founders(&self) -> usize {
        self.roll.founders
    }

    /// Whether a key of ceremonies is or ever was a member's.
    #[must_use]
    pub fn was_member(&self, key: &[u8]) -> bool {
        <[u8; 32]>::try_from(key).is_ok_and(|key| self.roll.spent.contains(&key))
    }

    /// The TLS keys that were members' and are nobody's now, with the height of the entry by which they ceased to be.
    #[must_use]
    pub const fn former(&self) -> &BTreeMap<[u8; 32], u64> {
        &self.roll.former
    }

    /// The number that the next new member gets; `None` if there are no more.
    #[must_use]
    pub fn next_number(&self) -> Option<NodeId> {
        self.roll.next()
    }

    /// Whether fewer members than 3t + 1 decide: one that is away can then stop all change. See [`crate::Warrant`].
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.members().len() < self.faulty().saturating_mul(3).saturating_add(1)
    }

    pub(super) fn check_member_change(&self, change: &MemberChange) -> Result<(), Refusal> {
        let roll = &self.roll;
        if !roll.founded {
            return Err(MemberRefusal::NoFounding.into());
        }
        self.follow_change(change)?;
        // Last, since it costs most.
        let signed = change.card().is_none_or(|card| card.vartime_is_signed(&NodeSignatures));
        if signed { Ok(()) } else { Err(MemberRefusal::Signature.into()) }
    }

    fn follow_change(&self, change: &MemberChange) -> Result<(), Refusal> {
        let roll = &self.roll;
        match change {
            MemberChange::Add(card) => {
                if roll.seats.len() >= MOST_MEMBERS {
                    return Err(MemberRefusal::TooMany.into());
                }
                roll.next().ok_or(Refusal::Exhausted("numbers of nodes"))?;
                roll.check_unspent(card)?;
                Ok(roll.check_doubles(None, card)?)
            }
            MemberChange::Replace { node, card } => {
                let (_, old) = roll.seat(*node)?;
                roll.check_unspent(card)?;
                if old.name() != card.name() {
                    return Err(MemberRefusal::OtherCard { node: *node, what: "name" }.into());
                }
                Ok(roll.check_doubles(Some(*node), card)?)
            }
            MemberChange::Renew { node, card } => {
                let (_, old) = roll.seat(*node)?;
                check_renewal(*node, old, card)?;
                Ok(roll.check_doubles(Some(*node), card)?)
            }
            MemberChange::Remove { node } => self.check_removal(*node),
        }
    }

    /// What depends on the entry's time as well, in seconds since 1970.
    ///
    /// # Errors
    /// [`Refusal`]: an entry of this time cannot have the change.
    pub fn check_member_time(&self, change: &MemberChange, reason: &[u8], time: u64) -> Result<(), Refusal> {
        if let Some(card) = change.card().map(Card::content) {
            if card.until < time {
                return Err(MemberRefusal::Ended.into());
            }
            if card.made > time.saturating_add(MADE_AHEAD) {
                return Err(MemberRefusal::Future.into());
            }
        }
        let Some(node) = change.node() else { return Ok(()) };
        if matches!(change, MemberChange::Remove { .. }) {
            self.check_free(node, Some(time))?;
        }
        let (seat, _) = self.roll.seat(node)?;
        if seat.past.is_full_for(change, reason, time) {
            return Err(MemberRefusal::TooOften(node).into());
        }
        let by_warrant = matches!(change, MemberChange::Replace { .. }) && Warrant::is_like(reason);
        if by_warrant && !Warrant::decode(reason).is_ok_and(|warrant| time <= warrant.until()) {
            return Err(MemberRefusal::Unproven.into());
        }
        Ok(())
    }

    fn check_removal(&self, node: u16) -> Result<(), Refusal> {
        self.roll.seat(node)?;
        let k = self.faulty().saturating_add(1);
        if self.members().len() <= k {
            return Err(MemberRefusal::TooFew { k }.into());
        }
        self.check_free(node, None)
    }

    /// Whether a member holds nothing and takes part in nothing, at this time. What is doomed is destroyed when its time has come, by the very entry
    /// with which its holder leaves if none came before. Without a time what is doomed does not count: it depends on the entry.
    fn check_free(&self, node: u16, time: Option<u64>) -> Result<(), Refusal> {
        let over = |line: &super::KeyHistory, version: Version| {
            line.state_of(version) == Some(KeyState::Destroyed)
                || line.doom_of(version).is_some_and(|doom| time.is_none_or(|time| doom <= time))
        };
        let busy = |begun: &super::Begun| {
            let line = self.keys.get(begun.request.change.key());
            begun.nodes().contains(&node) && !line.is_some_and(|line| over(line, begun.version))
        };
        if let Some((ceremony, _)) = self.running.iter().find(|(_, begun)| busy(begun)) {
            return Err(MemberRefusal::Busy { node, ceremony: *ceremony }.into());
        }
        let mut held = Vec::new();
        for (key, line) in &self.keys {
            let holds = |(version, history): (&Version, &super::VersionHistory)| {
                !over(line, *version) && history.serving().is_some_and(|serving| serving.holders.contains(&node))
            };
            held.extend(
                line.versions.iter().filter(|entry| holds(*entry)).map(|(version, _)| format!("{key}@{version}")),
            );
        }
        if held.is_empty() { Ok(()) } else { Err(MemberRefusal::Holder { node, keys: held.join(", ") }.into()) }
    }

    pub(super) fn change_members(
        &mut self,
        change: &MemberChange,
        reason: &[u8],
        (height, time): (u64, u64),
    ) -> Result<(), Refusal> {
        let node = match change.node() {
            Some(node) => NodeId::try_from(node).map_err(|_| Refusal::NoMember(node))?,
            None => self.roll.next().ok_or(Refusal::Exhausted("numbers of nodes"))?,
        };
        let before = self.roll.seats.get(&node);
        let mut past = before.map(|seat| seat.past.clone()).unwrap_or_default();
        let old = before.and_then(|seat| seat.card.clone());
        self.roll.leave(old.as_ref(), change.card(), height);
        past.note(change, reason, time);
        self.roll.changes.insert(Action::Members(change.clone()).digest(), height);
        self.roll.changed = height;
        match change {
            MemberChange::Add(card) | MemberChange::Replace { card, .. } => {
                self.roll.sit(member_of(node, card)?, Some(card.clone()), height, past);
            }
            MemberChange::Renew { card, .. } => {
                if let Some(seat) = self.roll.seats.get_mut(&node) {
                    (seat.card, seat.past) = (Some(card.clone()), past);
                }
            }
            MemberChange::Remove { .. } => {
                self.roll.seats.remove(&node);
                self.roll.members.retain(|member| member.node() != node);
            }
        }
        Ok(())
    }
}

/// A card that a member may have instead of its own: it is signed with the same key, and what people know it by stays.
fn check_renewal(node: u16, old: &Card, new: &Card) -> Result<(), MemberRefusal> {
    let (before, after) = (old.content(), new.content());
    let differs = [
        (before.ceremony_key != after.ceremony_key, "key of ceremonies"),
        (before.name != after.name, "name"),
        // A thief of the node's key must not become its operator.
        (before.operator_key != after.operator_key, "operator's key"),
    ];
    if let Some((_, what)) = differs.into_iter().find(|(differs, _)| *differs) {
        return Err(MemberRefusal::OtherCard { node, what });
    }
    // An old card does not undo a newer one.
    if after.made <= before.made { Err(MemberRefusal::OldCard(node)) } else { Ok(()) }
}
