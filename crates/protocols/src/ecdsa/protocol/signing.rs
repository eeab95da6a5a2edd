//! Signatures: from presignatures and their signers' shares, and who is told of them.

use theta_mpc::ecdsa::Blinded;
use theta_rounds::{Action, Outgoing, PartyId, Recipient, Slot};

use super::{ElementOf, GroupOf, RobustEcdsa, State};
use crate::ecdsa::{
    Majority, Security,
    collected::Complete,
    curves::{AnyPresignature, StockCurve},
    message::{Body, EcdsaMessage, SIGNATURE, Signed},
    stock,
};

impl<C: StockCurve> RobustEcdsa<C> {
    /// Takes a presignature out of the stock's answer, and sends this party's share. Returns whether it serves this key; one that does not is
    /// wiped.
    pub(super) fn sign(&mut self, presignature: AnyPresignature) -> bool {
        let (Some(presignature), Some(message)) = (C::of(presignature), self.setting.message()) else { return false };
        // A stock belongs to a key, whose security never changes: this is for mistakes of ours, which could cost the key.
        if presignature.is_active() != (self.setting.security == Security::Active) {
            return false;
        }
        let (id, element) = (presignature.id(), *presignature.element());
        let signers = presignature.signers().iter().copied().map(PartyId::of_share).collect();
        self.collected.know(id, element, signers, PartyId::of_share(presignature.owner()));
        if let Some((share, blinded)) = presignature.share(&message) {
            self.blinded = Some((element, blinded));
            // From here on it is public.
            let share = *share.expose();
            self.send(Recipient::All, Body::Share { id, element, share });
            // This party names no more than it has turns.
            let _ = self.collected.add(self.setting.local, id, element, share);
        }
        self.combine(&id, &element, self.setting.local);
        true
    }

    /// Makes the signature, if a party's share of a presignature was the last that it lacked.
    pub(super) fn combine(&mut self, id: &[u8; 32], element: &ElementOf<C>, from: PartyId) {
        let needed = self.setting.needed();
        for Complete { first, shares, of_signers } in self.collected.complete(id, element, from, needed) {
            let signers: Vec<PartyId> = shares.iter().map(|(party, _)| *party).collect();
            let sum = shares.into_iter().map(|(_, share)| share);
            let blinded = self.blinded(element);
            let public_key = self.setting.public.fixed_public_key();
            match blinded.and_then(|blinded| blinded.vartime_combine(public_key, sum)) {
                Some(signature) => {
                    let indices = signers.iter().map(|party| party.share()).collect();
                    let signed = Signed { bytes: self.setting.encode(signature), signers: indices };
                    self.ask(stock::Ask::Trust(signers));
                    return self.announce(signed);
                }
                // Whoever is no signer can send a share, too. Nothing is known of this attempt, and its coordinator may be honest: were it given up here,
                // one liar would have each holder believe in another coordinator.
                None if !of_signers => {}
                // One of them has lied, and it cannot be told which: the masks hide it. The coordinator has done what it should.
                None => {
                    self.tell_of_a_false_share(&signers);
                    self.doubt(signers);
                    if self.setting.coordinator(self.attempt) == first {
                        self.next_attempt();
                    }
                }
            }
        }
    }

    /// What programs with active security and an honest majority have made is right, so that a signature that is not tells of its signers. Without security
    /// against cheats a presignature may have been false from the start, and whoever made it so need not be among them.
    fn tell_of_a_false_share(&mut self, signers: &[PartyId]) {
        let setting = &self.setting;
        if setting.security == Security::Active && setting.majority == Majority::Honest {
            let (local, liars) = (setting.local, setting.threshold.t());
            self.ask(stock::Ask::Spoiled { local, signers: signers.to_vec(), liars });
        }
    }

    /// R, re-randomised for what is signed here. Who is a signer has it from its own share; of what is named, the last is kept.
    fn blinded(&mut self, element: &ElementOf<C>) -> Option<Blinded<GroupOf<C>>> {
        if let Some((_, blinded)) = self.blinded.filter(|(of, _)| of == element) {
            return Some(blinded);
        }
        let blinded = Blinded::vartime_of(self.setting.public.public_key(), element, &self.setting.message()?)?;
        self.blinded = Some((*element, blinded));
        Some(blinded)
    }

    /// Ends with a signature, which whoever lacks it can have.
    pub(super) fn announce(&mut self, signed: Signed) {
        self.send(Recipient::OnRequest, Body::Signature(signed.clone()));
        self.end(State::Signed(signed));
    }

    /// Tells those who had no part in a program: they wait for the signature. Holders end with the program; before that, they would not keep what it
    /// has made.
    pub(super) fn tell_others(&mut self, signed: &Signed) {
        let others: Vec<PartyId> =
            self.setting.others().filter(|party| !signed.signers.contains(&party.share())).collect();
        let slot = Slot { kind: SIGNATURE, number: self.number.wrapping_add(1) };
        for party in others {
            // The same message for all of them, and for who asks for it: see `announce`.
            let message = EcdsaMessage { slot, body: Body::Signature(signed.clone()) };
            self.out.push(Action::Send(Outgoing { to: Recipient::Party(party), message }));
        }
    }
}
