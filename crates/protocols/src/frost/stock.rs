//! Nonces and commitments that one party keeps in advance for signatures with one key.
//!
//! A signer makes pairs of nonces for one coordinator and sends it the commitments ahead of time. The coordinator uses
//! one pair of a signer for each session, the oldest first. A shelf holds both sides, for one peer. A machine [asks](Ask) and is
//! [supplied](Supply) from the [stock](crate::Stock) of the key's epoch, of which the shelves are a part. See
//! `docs/adr/0010-precomputed-nonces.md`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use theta_rounds::PartyId;

use super::suites::{AnyNonces, AnyNumbered};
use crate::Served;

/// What a machine asks of the stock of its key's epoch, or gives it to keep.
#[derive(Debug)]
pub enum Ask {
    /// Whether that coordinator has commitments of this party that it has not used. The answer is [`Supply::Given`].
    Given {
        /// The coordinator.
        to: PartyId,
    },
    /// Keep these nonces for a coordinator; if there are too many, its oldest are wiped. No answer.
    Keep {
        /// The coordinator.
        coordinator: PartyId,
        /// By their numbers, oldest first.
        nonces: Vec<(u64, AnyNonces)>,
        /// The most nonces that are kept for that coordinator.
        most: usize,
        /// The day on which they were drawn, or an earlier one, in days since 1970.
        day: u32,
    },
    /// Take out the nonces of that number, for good. The answer is [`Supply::Nonces`].
    Take {
        /// The coordinator that names them.
        coordinator: PartyId,
        /// Their number.
        number: u64,
    },
    /// These nonces of this instance are about to sign; a caller that records used nonces does so now. The answer is
    /// [`Supply::Nonces`], with the nonces if they may sign.
    Use(Used),
    /// Forget all nonces for a coordinator, which does not need them. No answer.
    Withdraw {
        /// The coordinator.
        coordinator: PartyId,
    },
    /// Keep commitments that a signer gave; if there are too many, its oldest are dropped. No answer.
    Shelve {
        /// The signer.
        from: PartyId,
        /// Oldest first.
        commitments: Vec<AnyNumbered>,
        /// The most commitments that are kept of that signer.
        most: usize,
    },
    /// Complete a session of `count` signers with one pair of commitments of each that is missing, or draw none at all. Who is doubted least comes
    /// first, of these who is ready. The answer is [`Supply::Drawn`].
    Draw {
        /// How many signers.
        count: usize,
        /// Signers whose commitments the coordinator has: if they are chosen, nothing is drawn of them.
        ready: BTreeSet<PartyId>,
        /// The search for the others starts here and goes round the circle of parties.
        start: PartyId,
        /// Signers that are not to be drawn.
        without: BTreeSet<PartyId>,
    },
    /// Drop what a signer gave: it does not answer, lies, or has lost its nonces. No answer.
    Forget {
        /// The signer.
        party: PartyId,
    },
    /// This signer has held up a session, or spoiled one: others are drawn before it. No answer.
    Doubt {
        /// The signer.
        party: PartyId,
    },
    /// These parties have just signed: nothing that was before is held against them. No answer.
    Trust(Vec<PartyId>),
}

impl Ask {
    /// Whether a [`Supply`] answers it.
    #[must_use]
    pub const fn is_question(&self) -> bool {
        matches!(self, Self::Given { .. } | Self::Take { .. } | Self::Use(_) | Self::Draw { .. })
    }
}

/// What the stock answers.
#[derive(Debug)]
pub enum Supply {
    /// To [`Ask::Given`].
    Given {
        /// The coordinator.
        to: PartyId,
        /// Whether it has any unused commitments.
        any: bool,
    },
    /// To [`Ask::Take`] and [`Ask::Use`].
    Nonces {
        /// The coordinator that named them.
        coordinator: PartyId,
        /// Their number.
        number: u64,
        /// The nonces, if they are there and may sign.
        nonces: Option<AnyNonces>,
        /// Whether they were made in advance.
        in_advance: bool,
    },
    /// To [`Ask::Draw`].
    Drawn {
        /// One pair of each signer that was missing; empty if there were too few.
        commitments: Vec<(PartyId, AnyNumbered)>,
        /// How many pairs are left of each signer.
        held: BTreeMap<PartyId, usize>,
        /// How often each signer has failed since it last signed; those that have not are left out.
        doubts: BTreeMap<PartyId, u32>,
    },
}

/// Nonces that are taken out to sign.
#[derive(Debug)]
pub struct Used {
    /// The coordinator that named them.
    pub coordinator: PartyId,
    /// Their number.
    pub number: u64,
    /// The day on which they were drawn, or an earlier one, in days since 1970.
    pub day: u32,
    /// The nonces.
    pub nonces: AnyNonces,
    /// Whether they were made in advance.
    pub in_advance: bool,
}

impl From<Used> for Supply {
    fn from(Used { coordinator, number, nonces, in_advance, .. }: Used) -> Self {
        Self::Nonces { coordinator, number, nonces: Some(nonces), in_advance }
    }
}

impl Used {
    /// The answer that these nonces may not sign; they are wiped.
    #[must_use]
    pub fn refused(self) -> Supply {
        let Self { coordinator, number, in_advance, .. } = self;
        Supply::Nonces { coordinator, number, nonces: None, in_advance }
    }
}

/// Nonces and commitments by peer. They start empty.
#[derive(Default)]
pub(crate) struct Shelves(BTreeMap<PartyId, Shelf>);

/// What this party and one peer have given each other in advance.
#[derive(Default)]
struct Shelf {
    /// Nonces that the peer may use as a coordinator, oldest first: number, day, nonces.
    given: VecDeque<(u64, u32, AnyNonces)>,
    /// Commitments that this party may use as a coordinator, oldest first.
    held: VecDeque<AnyNumbered>,
    /// In how many instances of this party the peer has held up or spoiled a session since it last signed in one.
    doubts: u32,
}

impl Shelves {
    /// How many commitments of peers wait.
    pub(crate) fn ready(&self) -> usize {
        self.0.values().map(|shelf| shelf.held.len()).sum()
    }

    /// Does what is asked for.
    pub(crate) fn serve(&mut self, ask: Ask) -> Served<Supply, Used> {
        match ask {
            Ask::Given { to } => {
                let any = self.0.get(&to).is_some_and(|shelf| !shelf.given.is_empty());
                return Served::Supply(Supply::Given { to, any });
            }
            Ask::Keep { coordinator, nonces, most, day } => {
                let given = &mut self.0.entry(coordinator).or_default().given;
                given.extend(nonces.into_iter().map(|(number, nonces)| (number, day, nonces)));
                given.drain(..given.len().saturating_sub(most));
            }
            Ask::Take { coordinator, number } => return self.take(coordinator, number),
            Ask::Use(used) => return Served::Used(used),
            Ask::Withdraw { coordinator } => {
                if let Some(shelf) = self.0.get_mut(&coordinator) {
                    shelf.given.clear();
                }
            }
            Ask::Shelve { from, commitments, most } => {
                let held = &mut self.0.entry(from).or_default().held;
                held.extend(commitments);
                held.drain(..held.len().saturating_sub(most));
            }
            Ask::Draw { count, ready, start, without } => {
                let commitments = self.draw(count, &ready, start, &without);
                let held = self.0.iter().map(|(party, shelf)| (*party, shelf.held.len())).collect();
                let doubted = self.0.iter().filter(|(_, shelf)| shelf.doubts > 0);
                let doubts = doubted.map(|(party, shelf)| (*party, shelf.doubts)).collect();
                return Served::Supply(Supply::Drawn { commitments, held, doubts });
            }
            Ask::Forget { party } => {
                if let Some(shelf) = self.0.get_mut(&party) {
                    shelf.held.clear();
                }
            }
            Ask::Doubt { party } => {
                let doubts = &mut self.0.entry(party).or_default().doubts;
                *doubts = doubts.saturating_add(1);
            }
            Ask::Trust(parties) => {
                for party in parties {
                    if let Some(shelf) = self.0.get_mut(&party) {
                        shelf.doubts = 0;
                    }
                }
            }
        }
        Served::Done
    }

    fn take(&mut self, coordinator: PartyId, number: u64) -> Served<Supply, Used> {
        let found = self.0.get_mut(&coordinator).and_then(|shelf| {
            let place = shelf.given.iter().position(|(given, ..)| *given == number)?;
            shelf.given.remove(place)
        });
        match found {
            Some((_, day, nonces)) => Served::Used(Used { coordinator, number, day, nonces, in_advance: true }),
            None => Served::Supply(Supply::Nonces { coordinator, number, nonces: None, in_advance: true }),
        }
    }

    /// Draws one pair of each signer that those who are `ready` lack of `count`, all or none: those doubted least, among equals first who is ready
    /// and then round the circle from `start`.
    ///
    /// Whoever withholds its share can give new commitments at once. Without this order it would be drawn and waited for again and again.
    fn draw(
        &mut self,
        count: usize,
        ready: &BTreeSet<PartyId>,
        start: PartyId,
        without: &BTreeSet<PartyId>,
    ) -> Vec<(PartyId, AnyNumbered)> {
        let circle = self.0.range(start..).chain(self.0.range(..start));
        let stocked = circle
            .filter(|(party, shelf)| !shelf.held.is_empty() && !without.contains(party) && !ready.contains(party));
        let mut signers: Vec<PartyId> = ready.iter().copied().chain(stocked.map(|(party, _)| *party)).collect();
        // The order among equals stays.
        signers.sort_by_key(|party| self.0.get(party).map_or(0, |shelf| shelf.doubts));
        if signers.len() < count {
            return Vec::new();
        }
        let missing = signers.into_iter().take(count).filter(|party| !ready.contains(party));
        let drawn = missing.filter_map(|party| Some((party, self.0.get_mut(&party)?.held.pop_front()?)));
        drawn.collect()
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;
    use theta_schemes::Suite;
    use theta_schemes::keys::{TypedKeyShare, deal_any};
    use theta_schemes::signatures::frost::{Ed25519Sha512, commit_batch};
    use theta_sharing::{ShareIndex, Threshold};

    use super::super::{message::Numbered, suites::StockSuite};
    use super::*;

    type C = Ed25519Sha512;

    fn id(number: u16) -> PartyId {
        PartyId::of_share(ShareIndex::try_from(number).unwrap())
    }

    /// As many pairs, numbered from 1.
    fn pairs(count: usize) -> Vec<(u64, AnyNonces, AnyNumbered)> {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let (_, shares) = deal_any(Suite::FrostEd25519, Threshold::new(2, 4).unwrap(), &mut rng);
        let TypedKeyShare::Ed25519(key) = shares[0].typed() else { panic!("a share of another suite") };
        let made = commit_batch::<C>(key, count, &mut rng).into_iter();
        let pair = |(number, (nonces, commitments))| {
            (number, C::any_nonces(nonces), C::any_numbered(Numbered { number, commitments }))
        };
        (1..).zip(made).map(pair).collect()
    }

    fn is_taken(stock: &mut Shelves, coordinator: u16, number: u64) -> bool {
        match stock.serve(Ask::Take { coordinator: id(coordinator), number }) {
            Served::Used(used) => used.in_advance && used.day == 9 && used.number == number,
            _ => false,
        }
    }

    fn is_given(stock: &mut Shelves, to: u16) -> bool {
        matches!(stock.serve(Ask::Given { to: id(to) }), Served::Supply(Supply::Given { any: true, .. }))
    }

    #[test]
    fn nonces_come_out_once_and_the_oldest_are_forgotten() {
        let mut stock = Shelves::default();
        let nonces: Vec<_> = pairs(20).into_iter().map(|(number, nonces, _)| (number, nonces)).collect();
        stock.serve(Ask::Keep { coordinator: id(2), nonces, most: 8, day: 9 });
        assert!(is_given(&mut stock, 2) && !is_given(&mut stock, 3));
        assert!(!is_taken(&mut stock, 2, 12), "pushed out");
        assert!(!is_taken(&mut stock, 3, 20), "they are another coordinator's");
        assert!(is_taken(&mut stock, 2, 20) && !is_taken(&mut stock, 2, 20));
        assert!(is_taken(&mut stock, 2, 13));
        stock.serve(Ask::Withdraw { coordinator: id(2) });
        assert!(!is_taken(&mut stock, 2, 14) && !is_given(&mut stock, 2));
    }

    #[test]
    fn commitments_are_bounded_and_drawn_by_all_or_none() {
        let mut stock = Shelves::default();
        let commitments = |of: &[(u64, AnyNonces, AnyNumbered)]| of.iter().map(|pair| pair.2.clone()).collect();
        let drawn = |stock: &mut Shelves, count, start, without: &[u16]| {
            let without = without.iter().map(|party| id(*party)).collect();
            match stock.serve(Ask::Draw { count, ready: BTreeSet::new(), start: id(start), without }) {
                Served::Supply(Supply::Drawn { commitments, held, .. }) => {
                    let number = |numbered| C::numbered(numbered).unwrap().number;
                    let drawn: Vec<_> = commitments.into_iter().map(|(party, it)| (party.get(), number(it))).collect();
                    let held: Vec<_> = held.into_iter().map(|(party, held)| (party.get(), held)).collect();
                    (drawn, held)
                }
                other => panic!("{other:?}"),
            }
        };
        let made = pairs(6);
        stock.serve(Ask::Shelve { from: id(2), commitments: commitments(&made), most: 4 });
        assert_eq!(drawn(&mut stock, 2, 3, &[]), (vec![], vec![(2, 4)]), "nothing was taken");
        stock.serve(Ask::Shelve { from: id(4), commitments: commitments(&made[4..]), most: 4 });
        assert_eq!(drawn(&mut stock, 1, 1, &[2, 4]).0, []);
        // Round the circle from party 3, the oldest that is left of each.
        assert_eq!(drawn(&mut stock, 2, 3, &[]), (vec![(4, 5), (2, 3)], vec![(2, 3), (4, 1)]));
        stock.serve(Ask::Forget { party: id(2) });
        assert_eq!(drawn(&mut stock, 1, 1, &[]), (vec![(4, 6)], vec![(2, 0), (4, 0)]));
    }

    /// Whoever failed is drawn after all others, also after one that is ready, until it has signed.
    #[test]
    fn who_failed_is_drawn_last() {
        let mut stock = Shelves::default();
        let made = pairs(6);
        for from in [2, 3, 4] {
            let commitments = made.iter().map(|pair| pair.2.clone()).collect();
            stock.serve(Ask::Shelve { from: id(from), commitments, most: 8 });
        }
        let drawn = |stock: &mut Shelves, count, ready: &[u16]| {
            let ready = ready.iter().map(|party| id(*party)).collect();
            match stock.serve(Ask::Draw { count, ready, start: id(2), without: BTreeSet::new() }) {
                Served::Supply(Supply::Drawn { commitments, doubts, .. }) => {
                    let drawn: Vec<_> = commitments.into_iter().map(|(party, _)| party.get()).collect();
                    (drawn, doubts.into_iter().map(|(party, doubts)| (party.get(), doubts)).collect::<Vec<_>>())
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(drawn(&mut stock, 1, &[]), (vec![2], vec![]));
        stock.serve(Ask::Doubt { party: id(2) });
        assert_eq!(drawn(&mut stock, 2, &[]), (vec![3, 4], vec![(2, 1)]));
        assert_eq!(drawn(&mut stock, 3, &[]).0, [3, 4, 2], "there is nobody else");
        assert_eq!(drawn(&mut stock, 2, &[2]).0, [3, 4], "the one that is ready is doubted");
        assert_eq!(drawn(&mut stock, 2, &[4]).0, [3]);
        for party in [3, 3, 4] {
            stock.serve(Ask::Doubt { party: id(party) });
        }
        assert_eq!(drawn(&mut stock, 2, &[]), (vec![2, 4], vec![(2, 1), (3, 2), (4, 1)]));
        stock.serve(Ask::Trust(vec![id(1), id(3)]));
        assert_eq!(drawn(&mut stock, 1, &[]), (vec![3], vec![(2, 1), (4, 1)]));
    }

    /// What the machine has made for this instance goes through the stock as well, and comes back if nobody objects.
    #[test]
    fn nonces_of_an_instance_are_shown_before_they_sign() {
        let (number, nonces, _) = pairs(1).remove(0);
        let used = Used { coordinator: id(2), number, day: 9, nonces, in_advance: false };
        let Served::Used(used) = Shelves::default().serve(Ask::Use(used)) else { panic!("they do not come back") };
        let Supply::Nonces { nonces: Some(nonces), in_advance: false, .. } = Supply::from(used) else {
            panic!("without nonces")
        };
        assert_eq!(C::nonces(nonces).unwrap().index().get(), 1);
    }
}
