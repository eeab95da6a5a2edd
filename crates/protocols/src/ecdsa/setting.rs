//! What does not change while a request runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand_core::{Rng, SeedableRng};
use theta_groups::{Secret, Transcript};
use theta_mpc::ecdsa::{Message, Presigning, SetUps};
use theta_names::Epoch;
use theta_rounds::PartyId;
use theta_schemes::Statement;
use theta_schemes::keys::{KeyShare, PublicKeySet};
use theta_sharing::{ShareIndex, Threshold};

use super::choices::Choices;
use super::curves::StockCurve;
use super::elimination::MOST_LIARS;
use super::failures::{Failure, Failures, Known};
use super::{
    Filling, Majority, Making, Options, Quarantine, Rehearsals, Security, made_at_once, most_at_once, most_kept,
    stock_is_kept,
};

/// What a holder is chosen by, the lowest first: whether it is silent, where that counts; programs that failed with it; late; doubted; its place.
type Rank = ((u32, bool), u32, bool, bool, u32, PartyId);

/// What to sign with which key, and what follows from that.
pub(super) struct Setting<C: StockCurve> {
    pub(super) local: PartyId,
    pub(super) threshold: Threshold,
    pub(super) public: Arc<PublicKeySet<C::Group>>,
    pub(super) key: Arc<KeyShare<C::Group>>,
    /// The digest to sign; `None` if presignatures are made and nothing else.
    pub(super) digest: Option<[u8; 32]>,
    /// What distinguishes this request from others of the key, the same at all parties.
    session: [u8; 32],
    pub(super) epoch: Epoch,
    /// The number of presignatures that a stock should have; 0 if none are kept.
    level: usize,
    /// Parties that a program of this party's should do without.
    pub(super) avoided: Vec<PartyId>,
    /// The day on which the request began: presignatures that it makes are of that day or later.
    pub(super) day: u32,
    /// How many holders of a program may cheat.
    pub(super) majority: Majority,
    /// What they may do.
    pub(super) security: Security,
    /// Sets of holders in which somebody cheated before this request.
    pub(super) quarantined: Vec<Quarantine>,
    /// What programs of a dishonest majority leave to later ones.
    pub(super) set_ups: Arc<SetUps>,
    /// What programs that make presignatures are counted by.
    pub(super) making: Making,
    /// How often programs are done again; `None` if none is.
    pub(super) rehearsals: Option<Rehearsals>,
    /// The place of the first coordinator in the rotation, 0 to n - 1.
    first: u16,
}

impl<C: StockCurve> Setting<C> {
    pub(super) fn new(
        public: Arc<PublicKeySet<C::Group>>,
        key: Arc<KeyShare<C::Group>>,
        statement: &Statement<'_>,
        digest: [u8; 32],
        options: &Options,
    ) -> Self {
        let session = Transcript::new("theta/ecdsa/session/v1")
            .with("key id", public.key_id().as_bytes())
            .with("epoch", &options.epoch.to_be_bytes())
            .with("operation", statement.operation().as_bytes())
            .with("statement", statement.bytes())
            .finish32();
        Self::of(public, key, Some(digest), session, options)
    }

    fn of(
        public: Arc<PublicKeySet<C::Group>>,
        key: Arc<KeyShare<C::Group>>,
        digest: Option<[u8; 32]>,
        session: [u8; 32],
        options: &Options,
    ) -> Self {
        let threshold = public.threshold();
        let [a, b, ..] = Transcript::new("theta/ecdsa/coordinator/v1").with("session", &session).finish32();
        let first = u16::from_be_bytes([a, b]).checked_rem(threshold.n()).unwrap_or(0);
        let local = PartyId::of_share(key.index());
        let Options { level, day, epoch, majority, security, quarantined, set_ups, making, rehearsals } =
            options.clone();
        set_ups.note_day(day);
        let avoided = Vec::new();
        Self {
            local,
            threshold,
            public,
            key,
            digest,
            session,
            epoch,
            level,
            avoided,
            day,
            majority,
            security,
            quarantined,
            set_ups,
            making,
            rehearsals,
            first,
        }
    }

    /// The setting in which presignatures are made and nothing is signed. Whoever has begun it is its first coordinator.
    pub(super) fn filling(
        public: Arc<PublicKeySet<C::Group>>,
        key: Arc<KeyShare<C::Group>>,
        filling: Filling,
        options: &Options,
    ) -> Self {
        let Filling { initiator, session, avoided } = filling;
        let session = Transcript::new("theta/ecdsa/filling/v1")
            .with("key id", public.key_id().as_bytes())
            .with("epoch", &options.epoch.to_be_bytes())
            .with("initiator", &initiator.get().to_be_bytes())
            .with("session", &session)
            .finish32();
        let first = initiator.get().saturating_sub(1);
        Self { first, avoided, ..Self::of(public, key, None, session, options) }
    }

    /// What is signed.
    pub(super) fn message(&self) -> Option<Message> {
        Some(Message { digest: self.digest?, session: self.session })
    }

    /// k.
    pub(super) fn needed(&self) -> usize {
        usize::from(self.threshold.k())
    }

    /// The number of holders in a program: 2t + 1, or k.
    pub(super) fn members(&self) -> usize {
        self.majority.members(self.threshold)
    }

    /// Whether holders look for who has lied in a program that has failed: with few holders, where nothing but lies has checks fail.
    fn finds_liars(&self) -> bool {
        let is_meant = self.majority == Majority::Honest && self.security == Security::Active;
        is_meant && usize::from(self.threshold.t()) <= MOST_LIARS
    }

    /// Whether they show each other what they know of it.
    pub(super) fn shows_views(&self) -> bool {
        self.finds_liars() && self.rehearsals.is_some()
    }

    /// How many presignatures the program of an attempt makes that this party coordinates, which has so many left: none where there may be no room for them,
    /// when those come that are being made. So holders that follow the protocol throw none away, which they would not do alike. Others make as many with it,
    /// whatever their own stocks should have.
    ///
    /// With a dishonest majority a request for which everybody has had a turn makes none any more: what its programs send has bounds, and they fail.
    pub(super) fn count(&self, attempt: u16, left: usize) -> u16 {
        if self.majority == Majority::Dishonest && self.round_of(attempt) > 0 {
            return 0;
        }
        let count = made_at_once(self.level, self.majority).min(self.most_at_once());
        let coming = count.saturating_mul(self.making.of(self.local).saturating_add(1));
        let has_room = self.digest.is_none() || left.saturating_add(coming) <= self.most_of_owner(0);
        if has_room { u16::try_from(count).unwrap_or(u16::MAX) } else { 0 }
    }

    /// The most presignatures that any program makes: none where no stock is kept. With a dishonest majority one that signs makes fewer beside, the more
    /// of its holders may be liars, as all that these let fail at its end has to find room in what an instance takes of a peer.
    pub(super) fn most_at_once(&self) -> usize {
        let most = most_at_once(self.majority);
        match self.majority {
            _ if !stock_is_kept(self.majority, self.security, self.threshold) => 0,
            Majority::Dishonest if self.digest.is_some() => most.checked_div(self.threshold.t().into()).unwrap_or(0),
            _ => most,
        }
    }

    /// Whether a program that signs makes presignatures beside, so that who comes while one is under way may wait for it.
    pub(super) fn shares_programs(&self) -> bool {
        self.most_at_once() > 0
    }

    /// Whether this party keeps presignatures.
    pub(super) fn keeps_stock(&self) -> bool {
        self.most_of_owner(0) > 0
    }

    /// Whether all of the holders sign with each presignature.
    pub(super) fn is_fixed(&self) -> bool {
        self.majority == Majority::Dishonest && self.members() == usize::from(self.threshold.n())
    }

    /// The most presignatures of one owner that are kept when a program has made so many; 0 if none are. What two programs make finds room.
    pub(super) fn most_of_owner(&self, made: usize) -> usize {
        if self.level == 0 {
            return 0;
        }
        let part = most_kept(self.level).checked_div(self.threshold.n().into()).unwrap_or(0);
        part.max(2 * made_at_once(self.level, self.majority).max(made))
    }

    /// The coordinator of an attempt. The request selects the first, so that work spreads and all parties know it without a message; the others
    /// follow in order.
    pub(super) fn coordinator(&self, attempt: u16) -> PartyId {
        let place = (u32::from(self.first) + u32::from(attempt)).checked_rem(u32::from(self.threshold.n()));
        let index = place.and_then(|place| ShareIndex::at(usize::try_from(place).ok()?));
        index.map_or(self.local, PartyId::of_share)
    }

    /// All parties but this one.
    pub(super) fn others(&self) -> impl Iterator<Item = PartyId> {
        let parties = self.threshold.indices().map(PartyId::of_share);
        parties.filter(move |party| *party != self.local)
    }

    /// How often all have had their turn before an attempt.
    pub(super) fn round_of(&self, attempt: u16) -> u16 {
        attempt.checked_div(self.threshold.n()).unwrap_or(0)
    }

    /// The holders for a program that this party coordinates: itself, and the next of the others in order; `None` if too many are excluded.
    ///
    /// Those come last, in any order, who were in most programs that failed: each of these had a liar, or one that is down. Who was late or
    /// is doubted only comes after others that failed as often: liars can make honest holders late, which wait for them.
    ///
    /// Before all that it counts, where it does, who was missing when programs failed, and then who is late: whoever is silent is chosen no more after one of
    /// them, or after a turn of its own. A liar can have an honest holder missed by all others, by leaving out that one alone, and would be chosen for ever if
    /// nothing else counted.
    ///
    /// A set whose program failed comes after all others: somebody in it has lied or is down.
    ///
    /// A set in which somebody cheated is passed over. Whoever is named as a cheat is in none: there are too many sets with it to pass over.
    pub(super) fn choose(&self, known: &Known<'_>, rng: &mut impl Rng) -> Option<Vec<ShareIndex>> {
        let n = self.threshold.n();
        let distance = |party: PartyId| (party.get() + n - self.local.get()).checked_rem(n).unwrap_or(0);
        let is_named = |party: PartyId| self.quarantined.iter().any(|it| it.party == Some(party));
        let others = self.others().filter(|party| !known.excluded.contains(party) && !is_named(*party));
        let mut ranked: Vec<Rank> = others
            .map(|party| {
                let Failure { member, missing } = known.failures.of(party);
                let (late, doubted) = (known.late.contains(&party), known.doubted.contains(&party));
                let silent = if known.counts_missing { (missing, late) } else { (0, false) };
                let place = if member > 0 || late || doubted { rng.next_u32() } else { distance(party).into() };
                (silent, member, late, doubted, place, party)
            })
            .collect();
        ranked.sort_unstable();
        let ranked: Vec<ShareIndex> = ranked.into_iter().map(|(.., party)| party.share()).collect();
        let with_local = |chosen: Vec<ShareIndex>| {
            let mut holders = chosen;
            holders.push(self.local.share());
            holders.sort_unstable();
            holders
        };
        let sets =
            || Choices::of(&ranked, self.members() - 1).map(with_local).filter(|holders| self.may_run_with(holders));
        sets().find(|holders| !known.failures.is_of(holders)).or_else(|| sets().next())
    }

    /// Whether there is any set of holders for a program with this party.
    pub(super) fn has_any(&self, excluded: &BTreeSet<PartyId>) -> bool {
        let mut rng = rand_chacha::ChaCha20Rng::from_seed([0; 32]);
        let (failures, late) = (Failures::default(), BTreeSet::new());
        let known = Known { excluded, failures: &failures, late: &late, doubted: &[], counts_missing: false };
        self.choose(&known, &mut rng).is_some()
    }

    /// Whether a program of these holders may run with this party: nobody is known to have cheated among them.
    pub(super) fn may_run_with(&self, holders: &[ShareIndex]) -> bool {
        !self.quarantined.iter().any(|quarantine| quarantine.forbids(holders))
    }

    /// Whether so many can run a program.
    pub(super) fn can_run(&self, holders: &[ShareIndex]) -> bool {
        holders.len() == self.members() && holders.iter().all(|index| self.threshold.contains(*index))
    }

    /// What the program of an attempt does at this party.
    pub(super) fn presigning(&self, attempt: u16, holders: Vec<ShareIndex>, count: u16) -> Presigning<C::Group> {
        let point = |holder: &ShareIndex| self.public.verification_key(*holder).map(|key| *key.element());
        Presigning {
            points: if self.finds_liars() { holders.iter().filter_map(point).collect() } else { Vec::new() },
            holders,
            epoch: self.epoch,
            public_key: *self.public.public_key(),
            share: Secret::new(*self.key.secret().expose()),
            session: self.session,
            count: count.into(),
            digest: self.digest,
            owner: self.owner(attempt).map(PartyId::share),
        }
    }

    /// Who owns all that the program of an attempt makes. Whoever signs by one has used up what it owned, while others may have plenty; when nobody asks,
    /// all get their part.
    pub(super) fn owner(&self, attempt: u16) -> Option<PartyId> {
        (self.digest.is_some() && self.shares_programs()).then(|| self.coordinator(attempt))
    }

    /// The signature as results have it.
    pub(super) fn encode(&self, signature: theta_mpc::ecdsa::Signature<C::Group>) -> [u8; 64] {
        if C::LOW_S { signature.low_s().to_raw() } else { signature.to_raw() }
    }

    /// Whether it is the key's signature of the digest.
    pub(super) fn verifies(&self, signature: &[u8]) -> bool {
        use theta_schemes::SignatureScheme;
        use theta_schemes::signatures::ecdsa::Ecdsa;
        self.digest.is_some_and(|digest| Ecdsa::<C>::verify_digest(&self.public, &digest, signature).is_ok())
    }
}
