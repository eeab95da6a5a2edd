//! All dealings that a party has seen, and its verdicts on them.

use core::ops::RangeInclusive;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::Group;
use theta_rounds::{Malformed, PartyId};
use theta_sharing::pedersen::Blinding;
use theta_sharing::{ShareIndex, interpolate_at, vartime_false_shares};

use crate::bulletin_board::{BulletinBoard, Item};
use crate::dealing::{Announced, Dealing, Form, Judgement, Values, split_digest};
use crate::encryption::EncryptionKey;
use crate::evidence::CeremonyEvidence;
use crate::machine::Outbox;
use crate::participant::Participant;
use crate::statement::{Digest, Kind, Statement, StatementSlot};
use crate::typed::TypedPlan;

/// The value of a dealing for this party.
enum Mine<G: Group> {
    Unchecked,
    /// It is boxed, since moving it would leave an unwiped copy behind.
    Right(Box<Values<G::Scalar>>),
    /// Something false: to be complained about.
    Wrong,
    /// This party was left out: its key came late, or the dealer excluded it.
    LeftOut,
    /// This party is no recipient.
    Nothing,
}

/// A dealing with its statement.
pub(crate) struct Entry<G: Group> {
    pub(crate) statement: Statement,
    pub(crate) dealing: Dealing<G>,
    mine: Mine<G>,
}

impl<G: Group> Entry<G> {
    pub(crate) const fn mine(&self) -> Option<&Values<G::Scalar>> {
        if let Mine::Right(values) = &self.mine { Some(values) } else { None }
    }
}

/// What others have released of a dealing that is false for this party.
struct Releases<G: Group> {
    seen: BTreeSet<PartyId>,
    shares: Vec<(ShareIndex, Values<G::Scalar>)>,
}

impl<G: Group> Default for Releases<G> {
    fn default() -> Self {
        Self { seen: BTreeSet::new(), shares: Vec::new() }
    }
}

/// Dealings by digest.
pub(crate) struct Dealings<G: Group> {
    plan: Arc<TypedPlan<G>>,
    own: Arc<Participant>,
    /// The encryption keys that members have announced, and the order in which they came.
    announced: Announced,
    arrivals: Vec<ShareIndex>,
    /// Keys that were seen to be signed, in a dealing if not by themselves: each is looked at once, however many dealings repeat it.
    signed: Announced,
    blinding: Blinding<G>,
    entries: BTreeMap<Digest, Entry<G>>,
    /// The first dealing of each dealer in each dealing slot.
    first: BTreeMap<(StatementSlot, PartyId), Digest>,
    /// Dealings that were proven false.
    disputed: BTreeSet<Digest>,
    convicted: BTreeSet<PartyId>,
    /// Complaints that need no second look.
    judged: BTreeSet<(StatementSlot, PartyId)>,
    /// Who has complained falsely: no other complaint of theirs is looked at, so that each costs one look at a lie.
    slanderers: BTreeSet<PartyId>,
    /// What was released of a false dealing and is true, and whose releases were looked at.
    released: BTreeMap<Digest, Releases<G>>,
    /// By complainer: the dealings that it complains about and that are not here, of dealers that are not convicted.
    unseen: BTreeMap<PartyId, BTreeSet<Digest>>,
}

impl<G: Group> Dealings<G> {
    pub(crate) fn new(plan: Arc<TypedPlan<G>>, own: Arc<Participant>) -> Self {
        Self {
            plan,
            own,
            announced: Announced::new(),
            arrivals: Vec::new(),
            signed: Announced::new(),
            blinding: Blinding::new(),
            entries: BTreeMap::new(),
            first: BTreeMap::new(),
            disputed: BTreeSet::new(),
            convicted: BTreeSet::new(),
            judged: BTreeSet::new(),
            unseen: BTreeMap::new(),
            slanderers: BTreeSet::new(),
            released: BTreeMap::new(),
        }
    }

    pub(crate) const fn blinding(&self) -> &Blinding<G> {
        &self.blinding
    }

    /// Takes a member's key.
    pub(crate) fn announce(&mut self, statement: &Statement) -> Result<(), Malformed> {
        let key = EncryptionKey::of(statement)?;
        self.signed.insert(statement.author(), key.clone());
        if self.announced.insert(statement.author(), key).is_none() {
            self.arrivals.extend(self.plan.index_of(statement.author()));
        }
        Ok(())
    }

    pub(crate) const fn announced(&self) -> &Announced {
        &self.announced
    }

    /// Of how many members the keys are here.
    pub(crate) const fn arrived(&self) -> usize {
        self.arrivals.len()
    }

    /// Takes a dealing. Returns whether it has a place for this party under a key that this party has signed but does
    /// not know: it signed it before it lost its journal.
    pub(crate) fn take(&mut self, statement: &Statement) -> Result<bool, Malformed> {
        let dealing = Dealing::read_with(&self.plan, statement, &self.signed)?;
        for (party, key) in dealing.recipients(&self.plan) {
            self.signed.entry(party).or_insert_with(|| key.clone());
        }
        let mut forgotten = false;
        let mine = match self.plan.index_of(self.own.party()) {
            None => Mine::Nothing,
            // The owner of the lost share gets no values of masks.
            Some(index) if !Form::of(&self.plan, statement.author()).is_some_and(|form| form.has_place(index)) => {
                Mine::Nothing
            }
            Some(index) => match dealing.key_of(index) {
                Some(key) if key.recipient().key == self.own.encryption_key() => Mine::Unchecked,
                key => {
                    forgotten = key.is_some();
                    Mine::LeftOut
                }
            },
        };
        let digest = statement.digest();
        self.first.entry((statement.slot(), statement.author())).or_insert(digest);
        self.entries.insert(digest, Entry { statement: statement.clone(), dealing, mine });
        Ok(forgotten)
    }

    pub(crate) fn convict(&mut self, party: PartyId) {
        self.convicted.insert(party);
    }

    pub(crate) fn is_convicted(&self, party: PartyId) -> bool {
        self.convicted.contains(&party)
    }

    pub(crate) fn is_disputed(&self, digest: &Digest) -> bool {
        self.disputed.contains(digest)
    }

    pub(crate) fn get(&self, digest: &Digest) -> Option<&Entry<G>> {
        self.entries.get(digest)
    }

    /// From how many dealers there is something.
    pub(crate) fn count(&self) -> usize {
        self.first.keys().map(|(_, dealer)| dealer).collect::<BTreeSet<_>>().len()
    }

    /// For how many of those whose keys came first a dealing has places, up to the first one that it leaves out.
    pub(crate) fn covered(&self, digest: &Digest) -> usize {
        let Some(entry) = self.get(digest) else { return 0 };
        self.arrivals.iter().take_while(|index| entry.dealing.key_of(**index).is_some()).count()
    }

    pub(crate) fn supply(&self, digest: &Digest) -> Option<Item> {
        self.get(digest).map(|entry| Item::Statement(entry.statement.clone()))
    }

    /// The first dealing of each dealer in each of these slots, by rising slot, if it is right for this party and its dealer is
    /// not convicted.
    pub(crate) fn good(&self, slots: RangeInclusive<StatementSlot>) -> impl Iterator<Item = (PartyId, Digest)> {
        let of_slots = self.first.iter().filter(move |((of, _), _)| slots.contains(of));
        of_slots.map(|((_, dealer), digest)| (*dealer, *digest)).filter(|(dealer, digest)| {
            let right = self.get(digest).is_some_and(|entry| matches!(entry.mine, Mine::Right(_) | Mine::Nothing));
            right && !self.is_convicted(*dealer)
        })
    }

    /// Decrypts and checks all dealings that have not been checked, together.
    pub(crate) fn check(&mut self, rng: &mut impl CryptoRng) {
        let Some(index) = self.plan.index_of(self.own.party()) else { return };
        let mut opened = Vec::new();
        for (digest, entry) in &mut self.entries {
            if matches!(entry.mine, Mine::Unchecked) {
                match entry.dealing.open(&self.plan, &entry.statement, &self.own) {
                    Some(values) => opened.push((*digest, Box::new(values))),
                    None => entry.mine = Mine::Wrong,
                }
            }
        }
        let claim = |(digest, values)| Some(self.get(digest)?.dealing.claim(index, values, self.blinding));
        let claims: Vec<_> = opened.iter().map(|(digest, values)| (digest, &**values)).filter_map(claim).collect();
        let wrong: BTreeSet<usize> = vartime_false_shares(&claims, rng).into_iter().collect();
        for (position, (digest, values)) in opened.into_iter().enumerate() {
            if let Some(entry) = self.entries.get_mut(&digest) {
                entry.mine = if wrong.contains(&position) { Mine::Wrong } else { Mine::Right(values) };
            }
        }
    }

    /// Whether it is here and was checked, if this party has something to check in it.
    pub(crate) fn is_checked(&self, digest: &Digest) -> bool {
        self.get(digest).is_some_and(|entry| !matches!(entry.mine, Mine::Unchecked))
    }

    /// Whether it has no place for this party.
    pub(crate) fn leaves_out(&self, digest: &Digest) -> bool {
        self.get(digest).is_some_and(|entry| matches!(entry.mine, Mine::LeftOut))
    }

    /// Whether it was found false by this party.
    pub(crate) fn is_wrong(&self, digest: &Digest) -> bool {
        self.get(digest).is_some_and(|entry| matches!(entry.mine, Mine::Wrong))
    }

    /// Complains about dealings that were found false, once for each dealer, whether it was the dealer's first word or not: that suffices
    /// to convict it before everybody.
    pub(crate) fn complain(&self, outbox: &mut Outbox) {
        let wrong = self.entries.keys().filter(|digest| self.is_wrong(digest));
        wrong.for_each(|digest| self.complain_about(digest, Kind::Complaint, outbox));
    }

    /// The dealings that a party complains about and that are not here. It has them, if it is honest: then they are false, or their dealer has
    /// told other parties something else; so it is convicted when they come, whichever it is.
    pub(crate) fn unseen(&self, complainer: PartyId) -> impl Iterator<Item = &Digest> {
        self.unseen.get(&complainer).into_iter().flatten()
    }

    /// Complains about a dealing.
    pub(crate) fn complain_about(&self, digest: &Digest, kind: Kind, outbox: &mut Outbox) {
        if let Some(entry) = self.get(digest) {
            let slot = StatementSlot::about(kind, entry.statement.author());
            outbox.say(slot, || Some(entry.dealing.complain(&self.plan, &entry.statement, &self.own)));
        }
    }

    /// Judges the complaints that have come.
    pub(crate) fn judge(&mut self, board: &BulletinBoard, outbox: &mut Outbox) {
        self.unseen.clear();
        for complaint in [Kind::Complaint, Kind::LateComplaint].into_iter().flat_map(|kind| board.of_kind(kind)) {
            let key = (complaint.slot(), complaint.author());
            let Ok((digest, _)) = split_digest(complaint.body()) else { continue };
            if self.judged.contains(&key) || self.slanderers.contains(&complaint.author()) {
                continue;
            }
            let Some(entry) = self.entries.get(&digest) else {
                if complaint.slot().party().is_some_and(|dealer| !self.convicted.contains(&dealer)) {
                    self.unseen.entry(complaint.author()).or_default().insert(digest);
                }
                continue;
            };
            let judgement = entry.dealing.judge(&self.plan, self.blinding, &entry.statement, complaint);
            let Some(judgement) = judgement else { continue };
            let (dealing, complaint) = (entry.statement.clone(), complaint.clone());
            let culprit = match judgement {
                Judgement::DealerLies => dealing.author(),
                Judgement::ComplainerLies => complaint.author(),
            };
            if judgement == Judgement::DealerLies {
                self.disputed.insert(digest);
                outbox.faults.push(CeremonyEvidence::FalseDealing { dealing, complaint });
            } else {
                self.slanderers.insert(culprit);
                outbox.faults.push(CeremonyEvidence::FalseComplaint { dealing, complaint });
            }
            self.judged.insert(key);
            self.convicted.insert(culprit);
        }
    }

    /// Releases this party's values of a dealing that was proven false for another party.
    pub(crate) fn release(&self, digest: &Digest, outbox: &mut Outbox) {
        if let (true, Some(entry)) = (self.is_disputed(digest), self.get(digest))
            && let Some(values) = entry.mine()
        {
            outbox.say(StatementSlot::about(Kind::Release, entry.statement.author()), || {
                let mut body = digest.to_vec();
                body.extend_from_slice(values.encode().expose());
                Some(body)
            });
        }
    }

    /// Computes this party's values of a false dealing from those of k other members.
    pub(crate) fn reconstruct(&mut self, digest: &Digest, board: &BulletinBoard, outbox: &mut Outbox) {
        let Some(index) = self.plan.index_of(self.own.party()) else { return };
        let Some(entry) = self.entries.get_mut(digest).filter(|entry| matches!(entry.mine, Mine::Wrong)) else {
            return;
        };
        let slot = StatementSlot::about(Kind::Release, entry.statement.author());
        let releases = self.released.entry(*digest).or_default();
        for release in board.of_slot(slot).filter(|release| releases.seen.insert(release.author())) {
            match entry.dealing.released(&self.plan, self.blinding, &entry.statement, release) {
                Some(Ok(share)) => releases.shares.push(share),
                Some(Err(_)) => outbox.faults.push(CeremonyEvidence::FalseRelease {
                    dealing: entry.statement.clone(),
                    release: release.clone(),
                }),
                None => {}
            }
        }
        let Some(shares) = releases.shares.get(..usize::from(self.plan.threshold().k())) else { return };
        if let Some(values) = interpolate::<G>(shares, index) {
            entry.mine = Mine::Right(Box::new(values));
        }
    }
}

fn interpolate<G: Group>(shares: &[(ShareIndex, Values<G::Scalar>)], index: ShareIndex) -> Option<Values<G::Scalar>> {
    let values: Vec<_> = shares.iter().map(|(index, values)| (*index, &values.value)).collect();
    let blindings: Vec<_> =
        shares.iter().filter_map(|(index, values)| Some((*index, values.blinding.as_ref()?))).collect();
    let blinding = if blindings.is_empty() { None } else { Some(interpolate_at(&blindings, index).ok()?) };
    Some(Values { value: interpolate_at(&values, index).ok()?, blinding })
}

#[cfg(test)]
mod tests {
    use theta_groups::{Ristretto255, Secret};
    use theta_names::{Epoch, NodeId};
    use theta_schemes::coins::cks05::Cks05;
    use theta_schemes::keys::KeyScheme;

    use super::*;
    use crate::CeremonyKeys;
    use crate::plan::{Aim, CeremonyPlan, PlanParts};

    const FIRST: StatementSlot = StatementSlot::new(Kind::Dealing, 0);

    /// Parties 1 to 4 of a ceremony, with the dealings that 1 and 2 have made for all.
    fn group() -> (Arc<TypedPlan<Ristretto255>>, Vec<Arc<Participant>>, [Statement; 2]) {
        let keys: Vec<_> = (1..=4)
            .map(|number| Arc::new(CeremonyKeys::new(NodeId::try_from(number).unwrap(), Secret::new([3; 32]))))
            .collect();
        let parts = PlanParts {
            suite: Cks05::<Ristretto255>::SUITE.into(),
            group: Ristretto255::NAME,
            proof_of_possession: None,
            nonce: [1; 32],
            epoch: Epoch::FIRST,
            aim: Aim::Generate,
            k: 2,
            members: keys.iter().map(|keys| keys.party()).collect(),
            roster: keys.iter().map(|keys| keys.member().clone()).collect(),
            patience: 0,
        };
        let plan = Arc::new(TypedPlan::new(Arc::new(CeremonyPlan::new(parts).unwrap())).unwrap());
        let own = |keys| Arc::new(Participant::new(keys, *plan.id(), Secret::new([4; 32])));
        let parties: Vec<_> = keys.into_iter().map(own).collect();
        let key = |party: &Arc<Participant>| {
            let said = party.sign(crate::encryption::ENCRYPTION_KEY, party.encryption_key().bytes().to_vec());
            (party.party(), EncryptionKey::of(&said).unwrap())
        };
        let announced: Announced = parties.iter().map(key).collect();
        let dealing = |place: usize| {
            let party: &Arc<Participant> = &parties[place];
            let body = Dealing::deal(&plan, party, FIRST, None, &announced).unwrap();
            party.sign(FIRST, body)
        };
        let dealings = [dealing(0), dealing(1)];
        (plan, parties, dealings)
    }

    /// Each lie is looked at once, and of whoever complains falsely one.
    #[test]
    fn who_has_complained_falsely_is_not_listened_to_again() {
        let (plan, parties, dealings) = group();
        let mut seen = Dealings::new(plan, Arc::clone(&parties[3]));
        let (mut board, mut outbox) = (BulletinBoard::default(), Outbox::default());
        for dealing in &dealings {
            seen.take(dealing).unwrap();
            let body = [&dealing.digest()[..], &[7; 96]].concat();
            board.post(&parties[2].sign(StatementSlot::about(Kind::Complaint, dealing.author()), body));
        }
        seen.judge(&board, &mut outbox);
        assert_eq!(outbox.faults.len(), 1);
        seen.judge(&board, &mut outbox);
        assert_eq!(outbox.faults.len(), 1);
        assert!(seen.is_convicted(parties[2].party()));
    }

    #[test]
    fn what_is_released_is_looked_at_once() {
        let (plan, parties, [_, right]) = group();
        // Its last bytes are what is sealed to 4.
        let mut body = right.body().to_vec();
        *body.last_mut().unwrap() ^= 1;
        let dealing = parties[1].sign(FIRST, body);
        let mut seen = Dealings::new(plan, Arc::clone(&parties[3]));
        seen.take(&dealing).unwrap();
        seen.check(&mut parties[3].rng("weights", b""));
        assert!(seen.is_wrong(&dealing.digest()));
        let (mut board, mut outbox) = (BulletinBoard::default(), Outbox::default());
        let body = [&dealing.digest()[..], &[0; 64]].concat();
        board.post(&parties[2].sign(StatementSlot::about(Kind::Release, dealing.author()), body));
        for _ in 0..2 {
            seen.reconstruct(&dealing.digest(), &board, &mut outbox);
            assert_eq!(outbox.faults.len(), 1);
        }
        assert!(seen.is_wrong(&dealing.digest()));
    }
}
