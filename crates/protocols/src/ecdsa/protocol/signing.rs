//! Signatures: from presignatures and their signers' shares, and who is told of them.

use core::mem;

use theta_mpc::ecdsa::vartime_combine;
use theta_rounds::{Action, Outgoing, PartyId, Recipient, Slot};
use theta_sharing::ShareIndex;

use super::{GroupOf, RobustEcdsa, State};
use crate::ecdsa::{
    Majority, Security,
    collected::Complete,
    curves::{AnyPresignature, StockCurve},
    message::{Body, EcdsaMessage, SIGNATURE, Signed},
    run::Run,
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
        if let Some(share) = presignature.share(&message) {
            // From here on it is public.
            let share = *share.expose();
            self.send(Recipient::All, Body::Share { id, element, share });
            // This party names no more than it has turns.
            let _ = self.collected.add(self.setting.local, id, element, share);
        }
        self.combine(&id);
        true
    }

    /// Makes the signature, if all shares of a presignature are there.
    pub(super) fn combine(&mut self, id: &[u8; 32]) {
        let Some(Complete { element, first, shares }) = self.collected.complete(id, self.setting.needed()) else {
            return;
        };
        let Some(message) = self.setting.message() else { return };
        let signers: Vec<PartyId> = shares.iter().map(|(party, _)| *party).collect();
        let public_key = self.setting.public.public_key();
        let sum = shares.into_iter().map(|(_, share)| share);
        match vartime_combine::<GroupOf<C>>(public_key, &element, &message, sum) {
            Some(signature) => {
                let indices = signers.iter().map(|party| party.share()).collect();
                let signed = Signed { bytes: self.setting.encode(signature), signers: indices };
                self.ask(stock::Ask::Trust(signers));
                self.announce(signed);
            }
            // One of them has lied, and it cannot be told which: the masks hide it.
            None => {
                self.doubt(signers);
                if self.setting.coordinator(self.attempt) == first {
                    self.advance();
                }
            }
        }
    }

    /// There is a signature, which whoever lacks it can have. This party ends with it, unless it [leaves](Self::leave) later; of several the first counts.
    pub(super) fn announce(&mut self, signed: Signed) {
        if self.is_running() {
            self.send(Recipient::OnRequest, Body::Signature(signed.clone()));
            self.end(State::Leaving(signed));
            self.leave();
        }
    }

    /// Ends with the signature that there is, as soon as no program goes on that would take its set-up along.
    ///
    /// Whoever has a signature can bring it at any moment, as a liar that made one in another program. If honest holders threw the program away in which
    /// they are, they would lose what they have set up; and to keep it after half a program is not safe, since one of them may have cheated in it and
    /// know already that it will be seen. So the program has its end first. One that stands still, or takes long, is not waited for.
    pub(super) fn leave(&mut self) {
        if self.setting.majority == Majority::Dishonest && self.runs.values().any(Run::goes_on) {
            return;
        }
        self.state = match mem::replace(&mut self.state, State::AwaitingStart) {
            State::Leaving(signed) => State::Signed(signed),
            other => other,
        };
    }

    /// Tells those who had no part in a program: they wait for the signature. Its holders end with the program; before that, they would not keep what
    /// it has made.
    pub(super) fn tell_others(&mut self, holders: &[ShareIndex]) {
        let (State::Leaving(signed) | State::Signed(signed)) = &self.state else { return };
        let signed = signed.clone();
        let others: Vec<PartyId> = self.setting.others().filter(|party| !holders.contains(&party.share())).collect();
        // Nothing with a number of its own is sent after the signature was announced.
        let slot = Slot { kind: SIGNATURE, number: self.number };
        for party in others {
            // The same message for all of them, and for who asks for it: see `announce`.
            let message = EcdsaMessage { slot, body: Body::Signature(signed.clone()) };
            self.out.push(Action::Send(Outgoing { to: Recipient::Party(party), message }));
        }
    }
}
