//! Which warrants serve.

use std::collections::{BTreeMap, BTreeSet};

use theta_agreement::Member;
use theta_names::NodeId;

use super::LedgerState;
use super::members::member_of;
use crate::sitting::Sitting;
use crate::{MOST_WARRANTS, MemberChange, StandIn, Warrant, WarrantRefusal};

impl LedgerState {
    /// How many members can be stood in for at once: 2q - n - t - 1 where n < 3t + 1, and none where the honest members are a quorum.
    ///
    /// Two machines of one member may say two things, as a liar does. Any two quorums of q have 2q - n members in common. Of these one is
    /// honest, and is one machine, if at most t lie and so many are stood in for. In a group of 2t + 1 to 3t members it is 3t + 1 - n: as
    /// many as its honest members are short of a quorum. In a smaller one it is n - t - 1, which is 0 where k = n.
    #[must_use]
    pub fn most_stand_ins(&self) -> usize {
        let (n, t) = (self.members().len(), self.faulty());
        if self.is_small() {
            self.quorum().saturating_mul(2).saturating_sub(n.saturating_add(t).saturating_add(1))
        } else {
            0
        }
    }

    /// Whether a warrant serves for the next entry. In variable time: all of it is public.
    ///
    /// # Errors
    /// [`WarrantRefusal`].
    pub fn check_warrant(&self, warrant: &Warrant) -> Result<(), WarrantRefusal> {
        self.check_warrant_at(warrant, self.time())
    }

    /// The same for an entry of this time, in seconds since 1970.
    ///
    /// # Errors
    /// [`WarrantRefusal`].
    pub fn check_warrant_at(&self, warrant: &Warrant, time: u64) -> Result<(), WarrantRefusal> {
        self.under_warrants(core::slice::from_ref(warrant), time).map(drop)
    }

    /// The members that decide the next entry if it is of this time, and the machines that vote in the place of some. Of any two warrants one is
    /// for all the members that the other is for: an operator that signed both has signed for no more than one of them is for.
    pub(crate) fn under_warrants(&self, warrants: &[Warrant], time: u64) -> Result<Sitting, WarrantRefusal> {
        if warrants.len() > MOST_WARRANTS {
            return Err(WarrantRefusal::Full);
        }
        let (mut sitting, mut known) = (self.sitting(), Vec::<BTreeSet<NodeId>>::new());
        for warrant in warrants {
            if warrant.until() < time {
                return Err(WarrantRefusal::Ended(warrant.until()));
            }
            let (got, needed) = (warrant.signatures().len(), self.quorum());
            if got < needed {
                return Err(WarrantRefusal::TooFew { got, needed });
            }
            self.check_warrant_place(warrant)?;
            let pending = self.pending_stand_ins(warrant)?;
            let nodes: BTreeSet<NodeId> = pending.iter().map(Member::node).collect();
            if !known.iter().all(|other| other.is_subset(&nodes) || nodes.is_subset(other)) {
                return Err(WarrantRefusal::Besides);
            }
            self.check_signatures(warrant)?;
            known.push(nodes);
            pending.into_iter().for_each(|member| sitting.stand_in(member));
        }
        Ok(sitting)
    }

    /// The machines of a warrant that have not replaced those that are gone yet, as far as the members allow them, whoever has signed.
    pub(super) fn pending_stand_ins(&self, warrant: &Warrant) -> Result<Vec<Member>, WarrantRefusal> {
        let mut pending = Vec::new();
        for stand_in in warrant.stand_ins() {
            let (node, card) = (stand_in.node, stand_in.card.clone());
            let current = self.seats().get(&node).and_then(|seat| seat.card());
            let Some(current) = current.filter(|card| card.content().ceremony_key == stand_in.gone) else {
                continue;
            };
            let refused = |refusal| WarrantRefusal::StandIn { node, refusal: Box::new(refusal) };
            if current.content().operator_key != card.content().operator_key {
                let refusal = super::MemberRefusal::OtherCard { node: node.get(), what: "operator's key" };
                return Err(refused(refusal.into()));
            }
            let member = member_of(node, &card).map_err(refused)?;
            if card.content().until < warrant.until() {
                return Err(refused(super::MemberRefusal::Ended.into()));
            }
            self.check_member_change(&MemberChange::Replace { node: node.get(), card }).map_err(refused)?;
            pending.push(member);
        }
        check_distinct(warrant)?;
        let (got, most) = (pending.len(), self.most_stand_ins());
        if got == 0 {
            return Err(WarrantRefusal::Done);
        }
        if got > most {
            return Err(WarrantRefusal::TooMany { got, most });
        }
        Ok(pending)
    }

    /// Whether a warrant is for this ledger, not for later, and not over.
    pub(super) fn check_warrant_place(&self, warrant: &Warrant) -> Result<(), WarrantRefusal> {
        if warrant.ledger() != self.id() {
            return Err(WarrantRefusal::Ledger);
        }
        if warrant.until() < self.time() {
            return Err(WarrantRefusal::Ended(warrant.until()));
        }
        if warrant.from_height() > self.height().saturating_add(1) {
            return Err(WarrantRefusal::Early(warrant.from_height()));
        }
        Ok(())
    }

    /// The present members whose operators have truly signed a warrant. In variable time: all of it is public.
    #[must_use]
    pub fn vartime_signers(&self, warrant: &Warrant) -> BTreeSet<NodeId> {
        self.true_signatures(warrant).collect()
    }

    fn true_signatures<'a>(&'a self, warrant: &'a Warrant) -> impl Iterator<Item = NodeId> + 'a {
        let signed = warrant.signed();
        warrant.signatures().iter().filter_map(move |(node, signature)| {
            let card = self.seats().get(node).and_then(|seat| seat.card())?;
            card.content().operator_key.vartime_verify(&signed, signature).then_some(*node)
        })
    }

    /// Whether a quorum of the present operators has signed. Others' signatures do not count, and do not spoil it either: else one operator that
    /// has another key by now would have taken back what all the others still say.
    fn check_signatures(&self, warrant: &Warrant) -> Result<(), WarrantRefusal> {
        let needed = self.quorum();
        let found: BTreeSet<NodeId> = self.true_signatures(warrant).take(needed).collect();
        if found.len() >= needed {
            return Ok(());
        }
        match warrant.signatures().keys().find(|node| !found.contains(node)) {
            Some(node) => Err(WarrantRefusal::Signature(*node)),
            None => Err(WarrantRefusal::TooFew { got: found.len(), needed }),
        }
    }

    /// Whether a change of the members needs nobody's consent with this reason: a member renews its own card, its operator replaces its
    /// machine, or a quorum of the operators does. The reason is empty in the first case, the operator's signature in the second, and a
    /// warrant in the third. In variable time: all of it is public.
    #[must_use]
    pub fn vartime_proves(&self, change: &MemberChange, reason: &[u8]) -> bool {
        let Some(old) = change.node().and_then(|node| theta_names::NodeId::try_from(node).ok()) else { return false };
        let Some(current) = self.seats().get(&old).and_then(|seat| seat.card()) else { return false };
        match change {
            MemberChange::Renew { .. } => reason.is_empty(),
            MemberChange::Replace { card, .. } => match <[u8; 64]>::try_from(reason) {
                Ok(signature) => {
                    let current = current.content();
                    let signed = change.signed_by_operator(self.id(), &current.ceremony_key);
                    // Another operator is nobody's own business: it takes the members' consents.
                    card.content().operator_key == current.operator_key
                        && current.operator_key.vartime_verify(&signed, &signature)
                }
                Err(_) => Warrant::decode(reason).is_ok_and(|warrant| {
                    let same = |known: &crate::StandIn| known.node == old && known.card == *card;
                    warrant.stand_ins().iter().any(same) && self.check_warrant(&warrant).is_ok()
                }),
            },
            MemberChange::Add(_) | MemberChange::Remove { .. } => false,
        }
    }
}

/// Two members need two machines.
fn check_distinct(warrant: &Warrant) -> Result<(), WarrantRefusal> {
    let (mut keys, mut certificates) = (BTreeMap::new(), BTreeMap::new());
    for StandIn { node, card, .. } in warrant.stand_ins() {
        let content = card.content();
        let key = keys.insert(content.ceremony_key, *node).map(|first| (first, "key of ceremonies"));
        let same = key.or(certificates.insert(content.tls_key, *node).map(|first| (first, "TLS key")));
        if let Some((first, what)) = same {
            let refusal = super::MemberRefusal::Double { node: first.get(), what };
            return Err(WarrantRefusal::StandIn { node: *node, refusal: Box::new(refusal.into()) });
        }
    }
    Ok(())
}
