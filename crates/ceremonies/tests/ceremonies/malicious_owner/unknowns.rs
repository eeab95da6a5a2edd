//! Computes what the owner and its helpers learn, by linear algebra: the coefficients of the key's polynomial and of
//! honest helpers' masks are the unknowns, and each value that the attackers can open is an equation.

use std::collections::{BTreeMap, BTreeSet};

use theta_groups::{RistrettoScalar, Scalar};
use theta_rounds::simulator::{SimRng, below, for_each_seed};

use super::*;
use crate::support::parties;

type Row = Vec<RistrettoScalar>;

fn number(of: impl Into<u64>) -> RistrettoScalar {
    RistrettoScalar::from_u64(of.into())
}

/// The helper that answered, the attempt, and the helpers that the request listed.
type Told<'a> = (PartyId, u32, &'a [PartyId]);

/// The order of the unknowns: k of the key's polynomial, then k - 1 of each honest mask's quotient by X - r.
struct Unknowns {
    k: usize,
    lost: RistrettoScalar,
    masks: BTreeMap<(u32, PartyId), usize>,
}

impl Unknowns {
    fn width(&self) -> usize {
        self.k + self.masks.len() * (self.k - 1)
    }

    /// The key's polynomial at a point.
    fn share(&self, at: RistrettoScalar) -> Row {
        let mut row = vec![RistrettoScalar::ZERO; self.width()];
        let mut power = RistrettoScalar::ONE;
        for coefficient in &mut row[..self.k] {
            *coefficient = power;
            power = power * at;
        }
        row
    }

    /// Adds an honest mask at a point to a row.
    fn add_mask(&self, row: &mut Row, mask: (u32, PartyId), at: RistrettoScalar) {
        let from = self.k + self.masks[&mask] * (self.k - 1);
        let mut power = at - self.lost;
        for coefficient in &mut row[from..from + self.k - 1] {
            *coefficient += power;
            power = power * at;
        }
    }

    /// How many independent equations about the key's polynomial alone follow from what the attackers know: their own
    /// shares, the lost share, the values of honest masks at corrupt helpers, and the answers.
    fn learnt(&self, corrupt: &BTreeSet<PartyId>, answers: &[Told<'_>]) -> usize {
        let mut rows = vec![self.share(self.lost)];
        for who in corrupt {
            let at = number(who.get());
            rows.push(self.share(at));
            for mask in self.masks.keys() {
                let mut row = vec![RistrettoScalar::ZERO; self.width()];
                self.add_mask(&mut row, *mask, at);
                rows.push(row);
            }
        }
        for (helper, attempt, listed) in answers {
            let at = number(helper.get());
            let mut row = self.share(at);
            let honest = listed.iter().filter(|who| !corrupt.contains(who));
            honest.for_each(|who| self.add_mask(&mut row, (*attempt, *who), at));
            rows.push(row);
        }
        let masks_alone = rows.iter().map(|row| row[self.k..].to_vec()).collect();
        rank(rows) - rank(masks_alone)
    }
}

/// By Gaussian elimination.
fn rank(mut rows: Vec<Row>) -> usize {
    let width = rows.first().map_or(0, Vec::len);
    let mut done = 0;
    for column in 0..width {
        let Some(pivot) = (done..rows.len()).find(|row| rows[*row][column] != RistrettoScalar::ZERO) else { continue };
        rows.swap(done, pivot);
        let (head, rest) = rows.split_at_mut(done + 1);
        let pivot = &head[done];
        let inverse = pivot[column].invert();
        for row in rest {
            let factor = row[column] * inverse;
            if factor != RistrettoScalar::ZERO {
                row.iter_mut().zip(pivot).for_each(|(entry, of_pivot)| *entry = *entry - factor * *of_pivot);
            }
        }
        done += 1;
    }
    done
}

/// If all lists whose masks cancel were answered, they would give the whole polynomial of a key of 2; without the third
/// they do not.
#[test]
fn the_algebra_sees_masks_that_cancel() {
    let masks = (2..=5).map(|helper| (0, party(helper))).zip(0..).collect();
    let unknowns = Unknowns { k: 2, lost: number(1_u64), masks };
    let lists = [parties([2, 4]), parties([3, 5]), parties([2, 3, 4, 5])];
    let answers = [(2, 0), (3, 1), (5, 1), (4, 2)].map(|(helper, list)| (party(helper), 0, &lists[list][..]));
    assert_eq!(unknowns.learnt(&BTreeSet::new(), &answers), 2);
    assert_eq!(unknowns.learnt(&BTreeSet::new(), &answers[..3]), 1);
}

fn chosen<T: Copy>(rng: &mut SimRng, from: &[T]) -> T {
    from[usize::try_from(below(rng, from.len() as u64)).unwrap()]
}

fn some_of(rng: &mut SimRng, all: &[PartyId]) -> Vec<PartyId> {
    let list: Vec<_> = all.iter().copied().filter(|_| below(rng, 3) > 0).collect();
    if list.is_empty() { all.to_vec() } else { list }
}

/// An attempt with several requests. Each helper sees some of them in an order of its own; then everything is shown to
/// everybody, in any order.
fn one_attempt(attack: &mut Attack, attempt: u32, rng: &mut SimRng) {
    attack.call(attempt);
    let all: Vec<_> =
        attack.helpers.keys().chain(&attack.corrupt).copied().collect::<BTreeSet<_>>().into_iter().collect();
    let honest: Vec<_> = attack.helpers.keys().copied().collect();
    let requests: Vec<_> = (0..2 + below(rng, 3))
        .map(|_| {
            let list = some_of(rng, &all);
            attack.request(attempt, &list)
        })
        .collect();
    let agreed = (below(rng, 2) == 0).then(|| chosen(rng, &[0, 1]));
    for who in &honest {
        // About every second time helpers see the same request first, or those that are listed in it do.
        let first = agreed.map(|place| requests[place].clone());
        let own = requests.iter().filter(|request| attack.requests[&(attempt, request.digest())].contains(who));
        let shown: Vec<_> = first.into_iter().chain(own.cloned()).chain(requests.iter().cloned()).collect();
        attack.show(*who, &shown[..1]);
        attack.show(*who, &shown[1..=usize::try_from(below(rng, 3)).unwrap().min(shown.len() - 1)]);
    }
    for _ in 0..3 * requests.len() * honest.len() {
        let place = usize::try_from(below(rng, requests.len() as u64)).unwrap();
        attack.press(attempt, &requests[place], chosen(rng, &honest), below(rng, 40) == 0);
    }
}

/// Whatever an owner and t - 1 helpers ask for, in however many attempts, they learn nothing beyond their own shares
/// and the lost one.
#[test]
fn whatever_is_asked_the_key_stays_unknown() {
    let (mut answered, mut several, mut refused) = (0, 0, 0);
    let checked = for_each_seed(150, |seed| {
        let mut rng = test_rng(seed);
        let k = 2 + u16::try_from(seed % 3).unwrap();
        let n = k + 1 + u16::try_from(below(&mut rng, u64::from(8 - k))).unwrap();
        let setting = Setting::<Coin>::new(k, n, 1 + u16::try_from(below(&mut rng, u64::from(n))).unwrap(), 3);
        let (lost, mut corrupt) = (setting.lost, BTreeSet::new());
        for _ in 0..below(&mut rng, u64::from(k) - 1) {
            corrupt.insert(party(1 + u16::try_from(below(&mut rng, u64::from(n))).unwrap()));
        }
        corrupt.remove(&lost);
        let mut attack = Attack::new(setting, corrupt.clone());
        let attempts = 1 + u32::try_from(below(&mut rng, 3)).unwrap();
        (0..attempts).for_each(|attempt| one_attempt(&mut attack, attempt, &mut rng));

        let honest = attack.helpers.keys().flat_map(|who| (0..attempts).map(move |attempt| (attempt, *who)));
        let masks = honest.zip(0..).collect();
        let unknowns = Unknowns { k: usize::from(k), lost: number(lost.get()), masks };
        let told = attack.answered();
        let list_of =
            |(who, attempt, request): &Answered| (*who, *attempt, &attack.requests[&(*attempt, *request)][..]);
        let answers: Vec<Told<'_>> = told.iter().map(list_of).collect();
        for ((_, attempt, listed), (_, other_attempt, other)) in
            answers.iter().flat_map(|a| answers.iter().map(move |b| (a, b)))
        {
            let shared = listed.iter().filter(|who| other.contains(who)).any(|who| !corrupt.contains(who));
            if attempt == other_attempt && listed != other && shared {
                return Err(format!("an honest mask hides answers to {listed:?} and to {other:?}"));
            }
        }
        let learnt = unknowns.learnt(&corrupt, &answers);
        answered += usize::from(!answers.is_empty());
        several += usize::from(told.iter().map(|(_, _, request)| request).collect::<BTreeSet<_>>().len() > 1);
        refused += usize::from(
            told.iter().map(|(_, _, request)| request).collect::<BTreeSet<_>>().len() < attack.requests.len(),
        );
        if learnt == 1 + corrupt.len() { Ok(()) } else { Err(format!("{learnt} things are known of {k}: {answers:?}")) }
    });
    checked.unwrap();
    assert!(answered > 40 && several > 20 && refused > 40, "{answered} {several} {refused}");
}
