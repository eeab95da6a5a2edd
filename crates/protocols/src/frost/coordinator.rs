//! A party as a coordinator: it opens sessions with the signers that respond, in the manner of ROAST.

use std::collections::{BTreeMap, BTreeSet};

use rand_core::CryptoRng;
use theta_rounds::{Bug, PartyId};
use theta_schemes::signatures::frost::{
    AggregateError, FrostSuite, SignatureShare, SigningPackage, aggregate, commit, sign, verify_share,
};

use super::message::{Numbered, Offer, PackageMessage, Signed, encode_list, parties_of};
use super::setting::{Setting, count, most_packages};
use super::stock::Ask;
use super::suites::{AnyNumbered, StockSuite};
use crate::Misbehaviour;

/// A session's number, and the package for each of its signers.
type Opened = (u16, Vec<(PartyId, PackageMessage)>);

/// How often one party may offer commitments other than with a share: once, and again for every restart of that party
/// or of the coordinator. Each offer lets it hold up one session more.
pub(super) const MOST_OFFERS: usize = 16;

/// The sessions that a party coordinates. It takes part in all of them.
pub(super) struct Coordinator<C: FrostSuite> {
    /// Whether any party, this one included, has asked this one to coordinate.
    asked: bool,
    retired: bool,
    /// Whether a session was held up. Then every k signers that respond make a new one, as in ROAST. Before, there is
    /// one session at a time, which is nearly always enough.
    hurried: bool,
    /// Signers that respond, with their commitments, in the order in which they came.
    ready: Vec<(PartyId, Numbered<C>)>,
    offers: BTreeMap<PartyId, usize>,
    /// How many shares each party sent for sessions that this coordinator has not opened, or not since it was started.
    foreign: BTreeMap<PartyId, usize>,
    /// The parties that were called to a session.
    called: BTreeSet<PartyId>,
    /// The number of the next session. The first is random.
    next: u16,
    /// The open sessions, a handful at most.
    sessions: Vec<Session<C>>,
    /// The parties that were asked for commitments; `requests` has those to which the request is still to be sent.
    requested: BTreeSet<PartyId>,
    requests: Vec<PartyId>,
    /// Whether time has passed since the start.
    late: bool,
    /// Whether time has passed, with a session open, since signers were last drawn from those with commitments made in
    /// advance.
    overdue: bool,
    /// The parties that still owe shares to sessions that are over.
    over: BTreeMap<u16, BTreeSet<PartyId>>,
    /// What to ask of the stock, or to give it.
    asks: Vec<Ask>,
    /// Whether the stock was asked for commitments and has not answered.
    drawing: bool,
    /// How many commitments of each signer the stock holds, as far as is known.
    held: BTreeMap<PartyId, usize>,
    /// How often each signer has failed since it last signed, as far as is known.
    doubts: BTreeMap<PartyId, u32>,
    /// The signers that have failed in this instance. That counts once, however often it happens and however long it lasts.
    failed: BTreeSet<PartyId>,
    /// The signers that gave new commitments in this instance while they owed a share, as one does after a restart.
    renewed: BTreeSet<PartyId>,
}

struct Session<C: FrostSuite> {
    number: u16,
    package: SigningPackage<C>,
    shares: Vec<SignatureShare<C>>,
    awaited: BTreeSet<PartyId>,
}

/// Why a complete session gives no signature.
pub(super) enum Spoiled {
    /// These parties sent something false.
    By(Vec<PartyId>),
    /// A mistake of this program.
    Bug(Bug),
}

impl<C: StockSuite> Coordinator<C> {
    pub(super) const fn new(first_session: u16) -> Self {
        Self {
            asked: false,
            retired: false,
            hurried: false,
            ready: Vec::new(),
            offers: BTreeMap::new(),
            foreign: BTreeMap::new(),
            called: BTreeSet::new(),
            next: first_session,
            sessions: Vec::new(),
            requested: BTreeSet::new(),
            requests: Vec::new(),
            late: false,
            overdue: false,
            over: BTreeMap::new(),
            asks: Vec::new(),
            drawing: false,
            held: BTreeMap::new(),
            doubts: BTreeMap::new(),
            failed: BTreeSet::new(),
            renewed: BTreeSet::new(),
        }
    }

    /// This party asks itself to coordinate.
    pub(super) const fn ask(&mut self) {
        self.asked = true;
    }

    /// Ends this coordinator's work: its own share was false, which only a broken machine brings about. Others
    /// coordinate.
    pub(super) fn retire(&mut self) {
        self.retired = true;
        self.sessions.clear();
    }

    /// Time passes: a session that is still open is held up, what the parties that owe it shares gave in advance is
    /// forgotten, and others are drawn before them.
    pub(super) fn expire(&mut self) {
        self.late = true;
        self.overdue = !self.sessions.is_empty();
        self.hurried |= self.overdue;
        let awaited: BTreeSet<PartyId> = self.awaited().collect();
        awaited.into_iter().for_each(|party| self.doubt(party));
    }

    /// Forgets what a signer gave in advance.
    fn forget(&mut self, party: PartyId) {
        self.held.insert(party, 0);
        self.asks.push(Ask::Forget { party });
    }

    /// A signer has held up a session, or spoiled one. What it gave in advance is forgotten. It can give more at once, so that it is doubted, too, until
    /// its share is in a signature.
    fn doubt(&mut self, party: PartyId) {
        self.forget(party);
        if self.failed.insert(party) {
            let doubts = self.doubts.entry(party).or_default();
            *doubts = doubts.saturating_add(1);
            self.asks.push(Ask::Doubt { party });
        }
    }

    /// Leaves with the stock what a signer gave in advance.
    fn shelve(&mut self, setting: &Setting<C>, from: PartyId, pooled: Vec<Numbered<C>>) {
        if pooled.is_empty() || setting.is_two_rounds() {
            return;
        }
        let most = setting.per_peer;
        let held = self.held.entry(from).or_default();
        *held = held.saturating_add(pooled.len()).min(most);
        let commitments = pooled.into_iter().map(C::any_numbered).collect();
        self.asks.push(Ask::Shelve { from, commitments, most });
    }

    /// What to ask of the stock, or to give it, in this order.
    pub(super) fn take_asks(&mut self) -> Vec<Ask> {
        core::mem::take(&mut self.asks)
    }

    fn awaited(&self) -> impl Iterator<Item = PartyId> {
        self.sessions.iter().flat_map(|session| session.awaited.iter().copied())
    }

    /// Takes what a signer sends other than with a share. A signer that owes a share offers commitments for this
    /// signature only if it has forgotten its nonces; then the sessions that wait for it are dropped.
    pub(super) fn offer(&mut self, setting: &Setting<C>, from: PartyId, offer: Offer<C>) -> Result<(), Misbehaviour> {
        count(&mut self.offers, from, MOST_OFFERS)?;
        if let Some(own) = offer.own {
            self.asked = true;
            if self.drop_sessions_of(from) {
                // Whoever was restarted has not failed; another restart in the same instance is taken for an excuse.
                if self.renewed.insert(from) { self.forget(from) } else { self.doubt(from) }
            }
            self.make_ready(from, own);
        }
        self.shelve(setting, from, offer.pooled);
        Ok(())
    }

    /// Drops the sessions that wait for `party`. Returns whether there were any.
    fn drop_sessions_of(&mut self, party: PartyId) -> bool {
        let before = self.sessions.len();
        let dropped = self.sessions.extract_if(.., |session| session.awaited.contains(&party));
        self.over.extend(dropped.map(|session| (session.number, session.awaited)));
        self.sessions.len() < before
    }

    /// Asks the stock for signers that have given commitments in advance, to complete the next session. To be
    /// called whenever something has happened. Only the coordinator that a request begins with does this: signers send
    /// to the others unasked.
    ///
    /// The stock gives all or none, and the session opens at once: other instances cannot use what one instance has
    /// drawn.
    pub(super) fn gather(&mut self, setting: &Setting<C>, excluded: &BTreeSet<PartyId>) {
        let due = self.sessions.is_empty() || self.overdue;
        let worthwhile = self.late || !setting.is_two_rounds();
        if !self.asked || self.retired || !due || !worthwhile || !setting.is_first() || self.drawing {
            return;
        }
        let enough = self.lacking(setting) == 0;
        if enough || setting.is_two_rounds() {
            return self.request(setting, excluded, enough);
        }
        let count = setting.needed().saturating_sub(1);
        let ready = self.ready.iter().map(|(party, _)| *party).collect();
        let without = self.unavailable(setting).chain(excluded.iter().copied()).collect();
        self.drawing = true;
        self.asks.push(Ask::Draw { count, ready, start: setting.spread, without });
    }

    /// Takes what the stock gave.
    pub(super) fn supply(
        &mut self,
        setting: &Setting<C>,
        excluded: &BTreeSet<PartyId>,
        drawn: Vec<(PartyId, AnyNumbered)>,
        (held, doubts): (BTreeMap<PartyId, usize>, BTreeMap<PartyId, u32>),
    ) {
        self.drawing = false;
        self.held = held;
        self.doubts = doubts;
        // Other signers may have responded in the meantime.
        let busy: BTreeSet<PartyId> = self.unavailable(setting).chain(excluded.iter().copied()).collect();
        let drawn = drawn.into_iter().filter(|(party, _)| !busy.contains(party));
        self.ready.extend(drawn.filter_map(|(party, numbered)| Some((party, C::numbered(numbered)?))));
        let enough = self.lacking(setting) == 0;
        self.request(setting, excluded, enough);
    }

    /// How many signers the next session lacks.
    fn lacking(&self, setting: &Setting<C>) -> usize {
        setting.needed().saturating_sub(self.ready.len() + 1)
    }

    /// The parties that cannot be asked to sign: this one, those that owe a share, and those that are ready.
    fn unavailable(&self, setting: &Setting<C>) -> impl Iterator<Item = PartyId> {
        self.awaited().chain(self.ready.iter().map(|(party, _)| *party)).chain([setting.local])
    }

    /// Asks the signers of which no commitments are held, unless there are `enough`; all of them if a session was open
    /// at the last tick.
    fn request(&mut self, setting: &Setting<C>, excluded: &BTreeSet<PartyId>, enough: bool) {
        if !enough || self.overdue {
            let busy: BTreeSet<PartyId> = self.unavailable(setting).chain(excluded.iter().copied()).collect();
            let none_held = |party: &PartyId| self.held.get(party).is_none_or(|held| *held == 0);
            let silent = setting.others().filter(|party| !busy.contains(party) && !self.requested.contains(party));
            let silent: Vec<PartyId> = silent.filter(|party| self.overdue || none_held(party)).collect();
            self.requested.extend(&silent);
            self.requests.extend(silent);
        }
        self.overdue = false;
    }

    /// The parties to ask for commitments. Each is returned once.
    pub(super) fn take_requests(&mut self) -> Vec<PartyId> {
        core::mem::take(&mut self.requests)
    }

    /// Whether there is a party, or the stock, to ask.
    pub(super) const fn has_requests(&self) -> bool {
        !self.requests.is_empty() || !self.asks.is_empty()
    }

    /// Keeps the latest commitments of a signer only: older ones have been used or forgotten. If messages overtook each
    /// other and the older ones are kept, the signer answers that it does not know them.
    fn make_ready(&mut self, from: PartyId, offered: Numbered<C>) {
        match self.ready.iter_mut().find(|(party, _)| *party == from) {
            Some((_, commitments)) => *commitments = offered,
            None => self.ready.push((from, offered)),
        }
    }

    /// Whether it is time for a session. This party is one of its k signers.
    pub(super) fn wants_session(&self, setting: &Setting<C>) -> bool {
        let idle = self.hurried || self.sessions.is_empty();
        self.asked && !self.retired && idle && self.ready.len() + 1 >= setting.needed()
    }

    /// Opens a session with this party, whose share is added at once, and k - 1 signers that responded: those doubted least, of these the first.
    pub(super) fn open(&mut self, setting: &Setting<C>, rng: &mut dyn CryptoRng) -> Result<Opened, Bug> {
        self.ready.sort_by_key(|(party, _)| self.doubts.get(party).copied().unwrap_or(0));
        let others: Vec<_> = self.ready.drain(..setting.needed().saturating_sub(1).min(self.ready.len())).collect();
        let (nonces, own) = commit::<C>(&setting.key, rng);
        let list = others.iter().map(|(_, numbered)| numbered.commitments).chain([own]).collect();
        let package = setting.package(list).map_err(|_| Bug("k signers of one key make no package"))?;
        let encoded = encode_list(package.commitments());
        let share = sign(&package, nonces, &setting.key).map_err(|_| Bug("one's own package cannot be signed"))?;
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let awaited: BTreeSet<_> = others.iter().map(|(party, _)| *party).collect();
        self.called.extend(&awaited);
        self.sessions.push(Session { number, package, shares: vec![share], awaited });
        let addressed = others.into_iter().map(|(party, nonces)| {
            let held = self.held.get(&party).copied().unwrap_or(0);
            let wanted = if setting.is_first() { setting.wanted(held) } else { 0 };
            (party, PackageMessage { session: number, wanted, number: nonces.number, list: encoded.clone() })
        });
        Ok((number, addressed.collect()))
    }

    /// Takes a signer's share, and its commitments for a next session. Of shares for sessions that are over, or that
    /// were opened before a restart, only the commitments are of use.
    pub(super) fn take_share(
        &mut self,
        setting: &Setting<C>,
        from: PartyId,
        session: u16,
        share: SignatureShare<C>,
        offer: Offer<C>,
    ) -> Result<(), Misbehaviour> {
        match self.sessions.iter_mut().find(|open| open.number == session && open.awaited.contains(&from)) {
            Some(session) => {
                if self.hurried && !verify_share(&setting.public, &session.package, &share) {
                    return Err(Misbehaviour::InvalidShare);
                }
                session.awaited.remove(&from);
                session.shares.push(share);
            }
            None if self.over.get_mut(&session).is_some_and(|owing| owing.remove(&from)) => {}
            None => {
                count(&mut self.foreign, from, most_packages(setting.threshold))?;
                // A coordinator that was restarted may never get anything else from this signer.
                if self.called.contains(&from) {
                    return Ok(());
                }
                self.asked = true;
            }
        }
        self.shelve(setting, from, offer.pooled);
        if let Some(own) = offer.own {
            self.make_ready(from, own);
        }
        Ok(())
    }

    /// Ends the session if all its shares have come; `None` if not.
    pub(super) fn complete(
        &mut self,
        setting: &Setting<C>,
        session: u16,
        rng: &mut dyn CryptoRng,
    ) -> Option<Result<Signed, Spoiled>> {
        let place = self.sessions.iter().position(|open| open.number == session && open.awaited.is_empty())?;
        let Session { package, shares, .. } = self.sessions.swap_remove(place);
        Some(match aggregate(&setting.public, &package, &shares, rng) {
            Ok(signature) => {
                let signers: Vec<PartyId> = parties_of(package.commitments()).collect();
                self.asks.push(Ask::Trust(signers.clone()));
                Ok(Signed {
                    signature: signature.encode(),
                    signers,
                    commitments: setting.seed.as_ref().map_or_else(Vec::new, |_| package.encoded_commitments()),
                })
            }
            Err(AggregateError::FalseShares(culprits)) => {
                Err(Spoiled::By(culprits.into_iter().map(PartyId::of_share).collect()))
            }
            Err(AggregateError::InconsistentKeys) => Err(Spoiled::Bug(Bug("true shares give a false signature"))),
            Err(_) => Err(Spoiled::Bug(Bug("a session's shares are not those of its signers"))),
        })
    }

    /// Excludes a party: sessions that wait for it are dropped.
    pub(super) fn exclude(&mut self, party: PartyId) {
        self.doubt(party);
        self.ready.retain(|(ready, _)| *ready != party);
        self.drop_sessions_of(party);
    }

    /// The largest number of shares in one session.
    pub(super) fn contributions(&self) -> usize {
        self.sessions.iter().map(|session| session.shares.len()).max().unwrap_or(0)
    }
}
