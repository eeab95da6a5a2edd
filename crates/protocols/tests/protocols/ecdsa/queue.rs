//! Requests that wait for presignatures have them in the order in which they came, whoever else comes.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_protocols::ecdsa::{AnyPresignature, Ask, Supply, most_kept};
use theta_protocols::{Served, Stock, Supply as AnySupply, Used};
use theta_rounds::Input;
use theta_schemes::Suite;

use super::support::{Group, LEVEL, id};
use crate::supplied::SuppliedMachine;

type Answer = Served<AnySupply, Used, Ask>;

/// A request that comes.
fn draw(stock: &Stock) -> Answer {
    stock.presignatures(Ask::Draw { owner: id(1), without: BTreeSet::new(), waits: true, place: None })
}

fn presignature(answer: Answer) -> Option<AnyPresignature> {
    if let Served::Used(Used::Presignature(used)) = answer { Some(used.presignature) } else { None }
}

#[track_caller]
fn waits(answer: Answer) -> Ask {
    let Served::Later(ask) = answer else { panic!("it does not wait") };
    ask
}

/// One presignature comes into a stock.
fn bring(stock: &Stock, presignature: AnyPresignature) {
    let ask = Ask::Keep { presignatures: vec![presignature], most: most_kept(LEVEL), day: 0, made: None };
    assert!(matches!(stock.presignatures(ask), Served::Done));
}

/// A group whose first holder has no presignature of its own left, but those; and a program that makes some there.
fn making() -> (Group, Vec<AnyPresignature>, SuppliedMachine) {
    let group = Group::warm(Suite::EcdsaP256, 2, 3);
    let made: Vec<AnyPresignature> = core::iter::from_fn(|| presignature(draw(&group.stocks[0]))).collect();
    assert!(made.len() >= 3, "{} presignatures", made.len());
    let message = group.message_of(1);
    let mut maker = group.maker(1, &message);
    drop(maker.handle(Input::Start, &mut ChaCha8Rng::seed_from_u64(1)));
    (group, made, maker)
}

#[test]
fn who_waits_is_served_before_who_comes() {
    let (group, mut made, _maker) = making();
    let stock = &group.stocks[0];
    let first = waits(draw(stock));
    let second = waits(draw(stock));
    bring(stock, made.pop().unwrap());
    let third = waits(draw(stock));
    let second = waits(stock.presignatures(second));
    assert!(presignature(stock.presignatures(first)).is_some());
    bring(stock, made.pop().unwrap());
    let third = waits(stock.presignatures(third));
    // Whoever ends waits no more.
    drop(second);
    assert!(presignature(stock.presignatures(third)).is_some());
    bring(stock, made.pop().unwrap());
    assert!(presignature(draw(stock)).is_some(), "nobody waits");
}

/// As many as there are have one each, in any order; and what comes to nothing keeps nobody.
#[test]
fn who_need_not_wait_does_not() {
    let (group, mut made, maker) = making();
    let stock = &group.stocks[0];
    let [first, second, third] = [(); 3].map(|()| waits(draw(stock)));
    bring(stock, made.pop().unwrap());
    bring(stock, made.pop().unwrap());
    assert!(presignature(stock.presignatures(second)).is_some());
    assert!(presignature(stock.presignatures(first)).is_some());
    drop(maker);
    let answer = stock.presignatures(third);
    assert!(matches!(answer, Served::Supply(AnySupply::Presignature(Supply::Drawn { presignature: None, .. }))));
}

/// A program ends at its coordinator first, which names what it has made at once: the others wait for that until they have it, too. What comes after they
/// have gone on is of no use, and neither counts nor is drawn.
#[test]
fn what_is_named_before_it_is_made_is_waited_for() {
    let (group, mut made, maker) = making();
    let stock = &group.stocks[0];
    let owner = id(1);
    let take = |id: [u8; 32], waits: bool| stock.presignatures(Ask::Take { owner, id, waits, again: false });
    let is_none = |answer: Answer| {
        matches!(answer, Served::Supply(AnySupply::Presignature(Supply::Taken { presignature: None, .. })))
    };
    let [one, two, three] = [(); 3].map(|()| made.pop().unwrap());
    let names = [&one, &two, &three].map(AnyPresignature::id);
    let first = waits(take(names[0], true));
    let second = waits(take(names[1], true));
    let ready = stock.presignatures_ready();
    bring(stock, one);
    bring(stock, two);
    assert_eq!(stock.presignatures_ready(), ready, "they are named");
    assert_eq!(presignature(stock.presignatures(first)).unwrap().id(), names[0]);
    drop(second);
    bring(stock, three);
    assert_eq!(presignature(draw(stock)).unwrap().id(), names[2], "nobody draws what its owner has named");
    waits(draw(stock));
    // Whoever has waited long enough goes on, and so does whoever asks when nobody makes any.
    assert!(is_none(take([7; 32], false)));
    drop(maker);
    assert!(is_none(take([8; 32], true)));
    // What nobody waited for any more is there for who comes late.
    assert_eq!(presignature(take(names[1], true)).unwrap().id(), names[1]);
}

/// Only a program of its own, or one for all, brings an owner anything: nobody waits for others. One waits for each name, and 64 for each owner.
#[test]
fn who_waits_for_what_is_bounded() {
    let (group, _made, maker) = making();
    let stock = &group.stocks[0];
    let take = |owner: u16, number: u8| {
        stock.presignatures(Ask::Take { owner: id(owner), id: [number; 32], waits: true, again: false })
    };
    let is_none = |answer: Answer| {
        matches!(answer, Served::Supply(AnySupply::Presignature(Supply::Taken { presignature: None, .. })))
    };
    // The maker's program is one for its own request.
    assert!(is_none(take(2, 1)));
    let of_other =
        || stock.presignatures(Ask::Draw { owner: id(2), without: BTreeSet::new(), waits: true, place: None });
    let mut drawn = of_other();
    while matches!(drawn, Served::Used(_)) {
        drawn = of_other();
    }
    assert!(matches!(drawn, Served::Supply(_)), "it does not wait");
    let again = waits(take(1, 0));
    assert!(is_none(take(1, 0)), "somebody waits for it");
    let again = waits(stock.presignatures(again));
    (1..64).for_each(|number| drop(waits(take(1, number))));
    assert!(is_none(take(1, 64)), "there is no more room");
    drop(waits(stock.presignatures(again)));
    drop(maker);
    assert!(is_none(take(1, 1)));
}

/// Two programs end in one order here and in another there, and there is no room for all: the same are left.
#[test]
fn what_is_left_does_not_depend_on_the_order() {
    let group = Group::warm(Suite::EcdsaP256, 2, 3);
    for seed in 0..3 {
        drop(group.fill((1, seed), &[], Vec::new()));
    }
    let ask = |owner: u16| Ask::Draw { owner: id(owner), without: BTreeSet::new(), waits: false, place: None };
    let drain = |stock: &Stock, owner: u16| -> Vec<AnyPresignature> {
        core::iter::from_fn(|| presignature(stock.presignatures(ask(owner)))).collect()
    };
    let left = |holder: usize, turned: bool| {
        let mut made: Vec<AnyPresignature> = (1..=3).flat_map(|owner| drain(&group.stocks[holder], owner)).collect();
        made.sort_by_key(AnyPresignature::id);
        let second = made.split_off(made.len() / 2);
        let mut programs = [made, second];
        if turned {
            programs.reverse();
        }
        let other = Stock::default();
        for presignatures in programs {
            drop(other.presignatures(Ask::Keep { presignatures, most: 5, day: 0, made: None }));
        }
        [1, 2, 3].map(|owner| drain(&other, owner).iter().map(AnyPresignature::id).collect::<BTreeSet<_>>())
    };
    let [one, two, three] = [(0, false), (1, true), (2, false)].map(|(holder, turned)| left(holder, turned));
    assert!(one == two && two == three);
    assert!(one.iter().all(|names| names.len() == 5), "{one:?}");
}
