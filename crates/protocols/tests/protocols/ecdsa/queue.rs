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
