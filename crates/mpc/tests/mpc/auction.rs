//! An example that is not ECDSA: a sealed-bid second-price auction (Vickrey, "Counterspeculation, Auctions, and Competitive Sealed
//! Tenders", 1961) among five parties, or three. The highest bidder wins and pays the second-highest bid; nothing else is shown.
//!
//! Bids are numbers of a few bits. Each party enters its bid as bits b, which are checked: b (1 - b) = 0. So no party can bid what
//! is no number. All pairs of bids are compared at once, from the highest bit down. The winner is marked by a product of
//! comparisons, and the price is the highest bid among the others.

use theta_groups::{P256, Scalar, Secret};
use theta_mpc::{Active, BlackBox, Misbehaviour, Party, SemiOt, Shamir, Stop};
use theta_rounds::{
    Abort,
    simulator::{Report, Tamper},
};

use crate::group::{GroupOf, Made};

type S = <P256 as theta_groups::Group>::Scalar;
type Shared<B> = theta_mpc::Shared<B>;

/// Bits of a bid.
const BITS: usize = 8;

/// Winner, from 1, and price.
type Result = core::result::Result<(u64, u64), Stop>;

/// One for each value.
fn ones<B: BlackBox<Group = P256>>(black_box: &B, count: usize) -> Shared<B> {
    black_box.constants(&vec![S::ONE; count])
}

/// a and b, as bits in one list, lowest bit of each number first: which a are higher than their b?
///
/// From the highest bit down: higher = higher or (equal so far and a_i > b_i). One product for a_i b_i of all bits at once, one
/// round for each bit after that, for all pairs together.
async fn compare<B: BlackBox<Group = P256>>(
    black_box: &B,
    a: &[Shared<B>],
    b: &[Shared<B>],
) -> core::result::Result<Shared<B>, Stop> {
    let pairs = a.first().map_or(0, Shared::len);
    let (mut higher, mut equal) = (black_box.constants(&vec![S::ZERO; pairs]), ones(black_box, pairs));
    for (a, b) in a.iter().zip(b).rev() {
        let both = black_box.multiply(a, b).await?;
        // a and not b; and equal: 1 - a - b + 2 a b.
        let greater = a - &both;
        let same = &(&ones(black_box, pairs) - &(a + b)) + &both.times(&S::from_u64(2));
        let next = black_box.multiply(&equal.then(&equal), &greater.then(&same)).await?;
        let (gained, still) = next.split(pairs);
        (higher, equal) = (&higher + &gained, still);
    }
    Ok(higher)
}

/// The number whose bits these are.
fn number<B: BlackBox<Group = P256>>(bits: &Shared<B>) -> Shared<B> {
    let powers: Vec<S> = (0..BITS).map(|i| S::from_u64(1 << i)).collect();
    bits.times_each(&powers).sum()
}

/// The bits of some bids, each as a list, as lists of one bit of all of them.
fn by_place<B: BlackBox<Group = P256>>(bids: &[&Shared<B>]) -> Vec<Shared<B>> {
    (0..BITS).filter_map(|place| bids.iter().map(|bid| bid.at(place)).reduce(|list, bit| list.then(&bit))).collect()
}

async fn auction<B: Made<Group = P256>>(party: Party, bid: Vec<u64>) -> Result {
    let black_box = B::make(&party).await?;
    let mut bids = Vec::new();
    for dealer in party.threshold().indices() {
        let own = (dealer.position() == party.position())
            .then(|| Secret::new(bid.iter().map(|bit| S::from_u64(*bit)).collect::<Vec<_>>()));
        bids.push(black_box.input(dealer, BITS, own.as_ref()).await?);
    }
    // Every bit is one: b (1 - b) = 0, opened for all at once. Products with random numbers would be needed if an honest party's
    // bit could fail; then nothing but zeros is opened.
    let all = bids.iter().skip(1).fold(bids[0].part(0..BITS), |all, bid| all.then(bid));
    let checks = black_box.multiply(&all, &(&ones(&black_box, all.len()) - &all)).await?;
    if black_box.open(&checks).await?.iter().any(|check| *check != S::ZERO) {
        return Err(Stop::Cheated("a bid that is no number"));
    }

    // i < j: does the bid of j exceed that of i? If not, i is ahead: the first of equal bids wins.
    let n = bids.len();
    let pairs: Vec<(usize, usize)> = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).collect();
    let later: Vec<&Shared<B>> = pairs.iter().map(|(_, j)| &bids[*j]).collect();
    let earlier: Vec<&Shared<B>> = pairs.iter().map(|(i, _)| &bids[*i]).collect();
    let exceeds = compare(&black_box, &by_place(&later), &by_place(&earlier)).await?;
    let ahead = |i: usize, j: usize| {
        let (low, high) = (i.min(j), i.max(j));
        let place = pairs.iter().position(|pair| *pair == (low, high)).unwrap();
        let exceeds = exceeds.at(place);
        if i == low { &ones(&black_box, 1) - &exceeds } else { exceeds }
    };
    // How many others are behind: n - 1 for the winner, n - 2 for who bid the price. All differ, as ahead() orders strictly.
    // The number is one of 0 to n - 1, so a polynomial of degree n - 1 shows whether it is the wanted one.
    let behind: Vec<Shared<B>> = (0..n)
        .map(|i| (0..n).filter(|j| *j != i).map(|j| ahead(i, j)).reduce(|sum, one| &sum + &one).unwrap())
        .collect();
    let behind = behind.iter().skip(1).fold(behind[0].at(0), |all, one| all.then(one));
    let is = |wanted: usize| {
        let (black_box, behind) = (&black_box, &behind);
        async move {
            let mut product = ones(black_box, n);
            for other in (0..n).filter(|other| *other != wanted) {
                let (wanted, other) = (S::from_u64(wanted as u64), S::from_u64(other as u64));
                let factor = behind - &black_box.constants(&vec![other; n]);
                product = black_box.multiply(&product, &factor.times(&(wanted - other).invert())).await?;
            }
            Ok(product)
        }
    };
    let (wins, pays) = theta_mpc::both(is(n - 1), is(n - 2)).await?;
    let numbers: Vec<Shared<B>> = bids.iter().map(number).collect();
    let numbers = numbers.iter().skip(1).fold(numbers[0].at(0), |all, one| all.then(one));
    let places: Vec<S> = (1..=n).map(|place| S::from_u64(place as u64)).collect();
    let price = black_box.multiply(&pays, &numbers).await?.sum();
    let opened = black_box.open(&wins.times_each(&places).sum().then(&price)).await?;
    Ok((small(&opened[0]), small(&opened[1])))
}

/// A scalar that is known to be small.
fn small(scalar: &S) -> u64 {
    (0..1 << BITS).find(|value| S::from_u64(*value) == *scalar).unwrap()
}

fn bits(bid: u64) -> Vec<u64> {
    (0..BITS).map(|i| bid >> i & 1).collect()
}

/// The auction, with the bids of all parties as bits.
fn hold_on<B: Made<Group = P256>>(group: GroupOf, bids: Vec<Vec<u64>>) -> Report<(u64, u64), Misbehaviour> {
    group.run(move |number| {
        let bid = bids[usize::from(number) - 1].clone();
        Box::new(move |party| auction::<B>(party, bid))
    })
}

fn hold(group: GroupOf, bids: [Vec<u64>; 5]) -> Report<(u64, u64), Misbehaviour> {
    hold_on::<Shamir<P256, Active>>(group, bids.into())
}

#[test]
fn the_highest_bid_wins_at_the_second_price() {
    let auctions = [
        ([17, 200, 3, 99, 100], (2, 100)),
        ([0, 0, 0, 0, 1], (5, 0)),
        ([255, 254, 253, 252, 251], (1, 254)),
        // Of equal bids the first wins, and pays what it bid.
        ([7, 90, 12, 90, 4], (2, 90)),
        ([0, 0, 0, 0, 0], (1, 0)),
    ];
    for (bids, outcome) in auctions {
        assert_eq!(hold(GroupOf::new(5, 2), bids.map(bits)).agreed(|outcome| *outcome).unwrap(), outcome, "{bids:?}");
    }
}

/// Where all but one may put together what they have seen. Three parties: products of five would be more than an instance may send.
#[test]
fn the_highest_of_three_wins_with_a_dishonest_majority() {
    for (bids, outcome) in [([17, 200, 99], (2, 99)), ([5, 5, 4], (1, 5))] {
        let report = hold_on::<SemiOt<P256>>(GroupOf::new(3, 2), bids.map(bits).into());
        assert_eq!(report.agreed(|outcome| *outcome).unwrap(), outcome, "{bids:?}");
    }
}

#[test]
fn a_bid_that_is_no_number_is_refused() {
    let mut bids = [1, 2, 3, 4, 5].map(bits);
    bids[3][7] = 2;
    let report = hold(GroupOf::new(5, 2), bids);
    assert!(report.honest().all(|(_, party)| matches!(party.result, Some(Err(Abort::Cheated(_))))));
}

#[test]
fn a_party_that_lies_about_anything_changes_no_outcome() {
    let bids = || [17, 200, 3, 99, 100].map(bits);
    let mut caught = 0;
    for round in 1..120 {
        let lie = Tamper(move |_: &mut _, _, slot: theta_rounds::Slot, payload: bytes::Bytes| {
            let mut bytes = payload.to_vec();
            if slot.number == round
                && let Some(last) = bytes.last_mut()
            {
                *last ^= 1;
            }
            vec![(slot, bytes.into())]
        });
        let report = hold(GroupOf::new(5, 2).liar(4, lie), bids());
        for (number, party) in report.honest() {
            match party.result {
                // The lie may have been about its own bid's bits, as long as they are bits; or nothing was sent in this round.
                Some(Ok((winner, price))) => assert_eq!((winner, price), (2, 100), "party {number}, round {round}"),
                _ => caught += 1,
            }
        }
    }
    assert!(caught > 100, "{caught}");
}
