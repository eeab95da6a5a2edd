//! Whose word an action takes beside the votes of the members.

use theta_names::KeyState;
use theta_statements::KeyChange;

use super::{Epochs, LedgerState, MemberRefusal, Refusal};
use crate::{Action, Consent, ConsentSubject, Demand, Entry, Outcome};

impl LedgerState {
    /// Whose consent an action takes here.
    ///
    /// What moves a key takes as many of its holders as it takes to use it: it was made so that one of these is honest. A new key takes
    /// as many members, and more than may lie, so that these do not fill the ledger. A change of the members that does not prove itself
    /// by its reason takes a quorum of them: each that joins counts in all quorums to come. That a lost share was found takes the node that
    /// lost it. New shares have the certificate of their ceremony, and what came to nothing the votes. To disable takes nobody's
    /// consent: safety does not wait.
    ///
    /// # Errors
    /// [`Refusal`]: the action cannot follow.
    pub fn demand(&self, action: &Action, reason: &[u8]) -> Result<Demand, Refusal> {
        let demand = match action {
            Action::Adopt(adopted) => match self.keys.get(&adopted.key).and_then(|line| line.known(adopted.version)) {
                Some(serving) => of_holders(serving),
                None => Demand { of: adopted.holders.clone(), needed: self.more_than_lie(adopted.k) },
            },
            Action::Begin(request) => {
                let begun = self.begun(request)?;
                match (&request.change, &begun.source) {
                    (KeyChange::Create { .. }, _) => {
                        Demand { of: self.everybody(), needed: self.more_than_lie(begun.k) }
                    }
                    (_, Some(source)) => Demand { of: source.holders.clone(), needed: usize::from(source.k) },
                    // The next version has the holders of the one before.
                    (_, None) => Demand { of: begun.holders, needed: usize::from(begun.k) },
                }
            }
            Action::End { ceremony, outcome } => {
                let begun = self.running.get(ceremony).ok_or(Refusal::NoCeremony(*ceremony))?;
                match (outcome, &begun.request.change) {
                    (Outcome::Recovered, KeyChange::Recover { node, .. }) => Demand { of: vec![*node], needed: 1 },
                    (Outcome::Recovered | Outcome::Aborted | Outcome::Activated { .. }, _) => Demand::nothing(),
                }
            }
            Action::Members(change) if change.claims_proof(reason) => {
                if !self.vartime_proves(change, reason) {
                    return Err(MemberRefusal::Unproven.into());
                }
                Demand::nothing()
            }
            Action::Members(_) => Demand { of: self.everybody(), needed: self.quorum() },
            Action::SetState(change) if change.state == KeyState::Disabled => Demand::nothing(),
            Action::SetState(change) => {
                let line = self.keys.get(&change.key);
                let serving = line.and_then(|line| match change.version {
                    Some(version) => line.versions.get(&version)?.serving(),
                    None => line.newest(),
                });
                serving.map_or_else(Demand::nothing, of_holders)
            }
        };
        Ok(demand)
    }

    fn everybody(&self) -> Vec<u16> {
        self.members().iter().map(|member| member.node().get()).collect()
    }

    fn more_than_lie(&self, k: u16) -> usize {
        usize::from(k).max(self.faulty.saturating_add(1))
    }

    /// What a consent to an action is to. After any other entry about its key it is to something else; one about members, after any
    /// other change of them.
    #[must_use]
    pub fn consent_subject(&self, action: &Action) -> ConsentSubject {
        let since = match action {
            Action::Members(_) => self.members_since(),
            _ => self.key_of(action).and_then(|key| self.moved.get(key)).copied().unwrap_or(0),
        };
        ConsentSubject { ledger: self.id, action: action.digest(), since }
    }

    /// Whether a consent counts for an action that takes this.
    #[must_use]
    pub fn is_consent(&self, demand: &Demand, subject: &ConsentSubject, consent: &Consent) -> bool {
        let member = self.members().iter().find(|member| member.node() == consent.node);
        demand.is_of(consent.node) && member.is_some_and(|member| consent.is_of(member, subject))
    }

    /// Whether an entry has the consents that it takes, and no others.
    pub(super) fn check_consents(&self, entry: &Entry) -> Result<(), Refusal> {
        let demand = self.demand(&entry.action, &entry.reason)?;
        let (needed, got) = (demand.needed, entry.consents.len());
        let subject = self.consent_subject(&entry.action);
        let counts = |consent: &Consent| consent.covers(entry.time) && self.is_consent(&demand, &subject, consent);
        if got < needed || (needed == 0 && got > 0) || !entry.consents.iter().all(counts) {
            return Err(Refusal::Consents { needed, got });
        }
        Ok(())
    }
}

fn of_holders(serving: &Epochs) -> Demand {
    Demand { of: serving.holders.clone(), needed: usize::from(serving.k) }
}
