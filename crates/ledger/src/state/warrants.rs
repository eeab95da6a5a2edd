//! Which warrants serve.

use std::collections::BTreeMap;

use theta_agreement::Member;

use super::LedgerState;
use super::members::member_of;
use crate::sitting::Sitting;
use crate::{MemberChange, Warrant, WarrantRefusal};

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
        self.under_warrants(core::slice::from_ref(warrant)).map(drop)
    }

    /// The members that decide the next entry, and the machines that vote in the place of some. Each warrant is for the same members.
    pub(crate) fn under_warrants(&self, warrants: &[Warrant]) -> Result<Sitting, WarrantRefusal> {
        let mut sitting = self.sitting();
        for warrant in warrants {
            self.check_seats(warrant)?;
            self.pending_stand_ins(warrant)?.into_iter().for_each(|member| sitting.stand_in(member));
            self.check_signatures(warrant)?;
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
            self.check_member_change(&MemberChange::Replace { node: node.get(), card }).map_err(refused)?;
            pending.push(member);
        }
        let (got, most) = (pending.len(), self.most_stand_ins());
        if got == 0 {
            return Err(WarrantRefusal::Done);
        }
        if got > most {
            return Err(WarrantRefusal::TooMany { got, most });
        }
        Ok(pending)
    }

    /// Whether a warrant is for this ledger, and not for later.
    pub(super) fn check_warrant_place(&self, warrant: &Warrant) -> Result<(), WarrantRefusal> {
        if warrant.ledger() != self.id() {
            return Err(WarrantRefusal::Ledger);
        }
        if warrant.from_height() > self.height().saturating_add(1) {
            return Err(WarrantRefusal::Early(warrant.from_height()));
        }
        Ok(())
    }

    fn check_seats(&self, warrant: &Warrant) -> Result<(), WarrantRefusal> {
        self.check_warrant_place(warrant)?;
        let (got, needed) = (warrant.signatures().len(), self.quorum());
        if got < needed { Err(WarrantRefusal::TooFew { got, needed }) } else { Ok(()) }
    }

    fn check_signatures(&self, warrant: &Warrant) -> Result<(), WarrantRefusal> {
        let signed = warrant.signed();
        for (node, signature) in warrant.signatures() {
            let card = self.seats().get(node).and_then(|seat| seat.card());
            if !card.is_some_and(|card| card.content().operator_key.vartime_verify(&signed, signature)) {
                return Err(WarrantRefusal::Signature(*node));
            }
        }
        Ok(())
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
                    let signed = change.signed_by_operator(self.id());
                    current.content().operator_key.vartime_verify(&signed, &signature)
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

/// The members that may vote with two keys, and the second ones.
pub(crate) type StandIns = BTreeMap<theta_rounds::PartyId, Vec<theta_agreement::Member>>;
