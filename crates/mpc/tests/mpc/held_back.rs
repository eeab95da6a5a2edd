//! A dealer that keeps its dealing back from one honest party, learns what the other one shows, and then chooses what it deals so
//! that the opened value is the one it wants.
//!
//! The network is the adversary's: these tests deliver every message by themselves. Malicious Shamir of three: the dealer is
//! party 1; party 2 derives its shares of the dealer's polynomials, party 3 is sent them, and is the victim.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_groups::{P256, Scalar, Secret};
use theta_mpc::{Active, BlackBox, Misbehaviour, Party, Program, Shamir, Stop};
use theta_names::ShareIndex;
use theta_rounds::{Abort, Channel, Driver, Effect, Input, LockStep, Machine, Recipient, Slot};
use theta_sharing::Threshold;

use crate::group::party;

type B = Shamir<P256, Active>;
type S = <P256 as theta_groups::Group>::Scalar;
type AnyMachine<O> = Box<dyn Machine<Output = O, Misbehaviour = Misbehaviour, Ask = Infallible, Supply = Infallible>>;

const DEALER: u16 = 1;
const OTHER: u16 = 2;
const VICTIM: u16 = 3;

/// A message under way.
#[derive(Clone, Debug)]
struct Letter {
    from: u16,
    to: u16,
    round: u16,
    payload: Vec<u8>,
}

impl Letter {
    fn scalar(&self) -> S {
        S::decode(&self.payload[..32]).unwrap()
    }

    /// The same letter with something added to the scalar at a place.
    fn plus(mut self, place: usize, more: S) -> Self {
        let scalar = &mut self.payload[32 * place..32 * (place + 1)];
        let sum = S::decode(scalar).unwrap() + more;
        scalar.copy_from_slice(sum.encode().as_ref());
        self
    }

    /// The same letter with another scalar.
    fn instead(self, scalar: S) -> Self {
        Self { payload: scalar.encode().as_ref().to_vec(), ..self }
    }
}

/// Delivers all letters, as the adversary passes them on.
fn run<O: Send + 'static, F>(
    program: impl Fn(Party) -> F + Copy + Send + 'static,
    mut pass: impl FnMut(Letter) -> Vec<Letter>,
) -> Vec<Option<Result<O, Abort>>>
where
    F: Future<Output = Result<O, Stop>> + Send + 'static,
{
    let threshold = Threshold::new(2, 3).unwrap();
    let machine = |number| {
        let program = Program::new(ShareIndex::try_from(number).unwrap(), threshold, program).unwrap();
        Box::new(Driver::new(party(number), (1..=3).map(party), LockStep::new(program))) as AnyMachine<O>
    };
    let mut machines: Vec<AnyMachine<O>> = (1..=3).map(machine).collect();
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let mut results: Vec<Option<Result<O, Abort>>> = (0..3).map(|_| None).collect();
    let mut waiting: VecDeque<(u16, Input<Infallible>)> = (1..=3).map(|number| (number, Input::Start)).collect();
    while let Some((number, input)) = waiting.pop_front() {
        for effect in machines[usize::from(number) - 1].handle(input, &mut rng) {
            match effect {
                Effect::Send { to: Recipient::Party(to), slot, payload, .. } => {
                    let letter = Letter { from: number, to: to.get(), round: slot.number, payload: payload.to_vec() };
                    waiting.extend(pass(letter).into_iter().map(|letter| {
                        let slot = Slot { number: letter.round, ..slot };
                        let payload = Bytes::from(letter.payload);
                        let from = party(letter.from);
                        (letter.to, Input::Message { from, slot, channel: Channel::Private, payload })
                    }));
                }
                Effect::Finished(result) => results[usize::from(number) - 1] = Some(result),
                Effect::Blame(blame) => panic!("{blame}"),
                Effect::Send { .. } => panic!("programs send to one party at a time"),
                Effect::Ask(never) => match never {},
            }
        }
    }
    results
}

/// The attack on one value that is dealt in one round and opened later.
struct Attack {
    /// The round of the dealing.
    dealt: u16,
    /// What the value shall be.
    wanted: S,
    /// What was kept back from the victim.
    held: Vec<Letter>,
    /// The dealer's own share, as its machine computed it, in what it sends; and the other party's.
    own: Vec<Letter>,
    shown: Option<Letter>,
    succeeded: bool,
}

impl Attack {
    fn new(dealt: u16, wanted: S) -> Self {
        Self { dealt, wanted, held: Vec::new(), own: Vec::new(), shown: None, succeeded: false }
    }

    fn pass(&mut self, letter: Letter) -> Vec<Letter> {
        let is_share = letter.payload.len() == 32 && letter.round > self.dealt;
        match (letter.from, letter.to) {
            // The dealer's machine must believe in the wanted value: its shares are on a line with its own.
            (VICTIM, DEALER) if self.shown.as_ref().is_some_and(|shown| shown.round == letter.round) => {
                let own = self.own[0].scalar();
                let three = S::from_u64(3);
                return vec![letter.instead(own * three - self.wanted * S::from_u64(2))];
            }
            _ if self.succeeded => return vec![letter],
            (DEALER, _) if is_share => self.own.push(letter),
            (DEALER, VICTIM) if letter.round >= self.dealt => self.held.push(letter),
            (OTHER, DEALER) if is_share && self.shown.is_none() => self.shown = Some(letter),
            _ => return vec![letter],
        }
        self.release()
    }

    /// When it knows its own share f(1) and the other's f(2) of the line f, deals the victim what makes the line through the
    /// other's share one with the wanted value at 0.
    fn release(&mut self) -> Vec<Letter> {
        let (Some(shown), [own, _]) = (&self.shown, &self.own[..]) else { return Vec::new() };
        let (first, second) = (own.scalar(), shown.scalar());
        let (two, three) = (S::from_u64(2), S::from_u64(3));
        let third = (second * three - self.wanted) * two.invert();
        self.succeeded = true;
        let more = third - (second * two - first);
        let dealing = self.held.drain(..).enumerate().map(|(i, held)| if i == 0 { held.plus(0, more) } else { held });
        let own = self.own.iter().cloned().map(|own| own.instead(second * two - third));
        dealing.chain(own).chain([shown.clone().instead(first * two - self.wanted)]).collect()
    }
}

/// Parties 2 and 1 enter 5 and 3, the latter in round 3; the sum is opened.
#[test]
fn no_input_is_chosen_after_the_sum_is_seen() {
    let program = |party: Party| async move {
        let black_box = B::new(&party).await?;
        let mut sum = black_box.constants(&[S::ZERO]);
        for (number, value) in [(OTHER, 5), (DEALER, 3)] {
            let own = (party.position() + 1 == usize::from(number)).then(|| Secret::new(vec![S::from_u64(value)]));
            sum = &sum + &black_box.input(ShareIndex::try_from(number).unwrap(), 1, own.as_ref()).await?;
        }
        black_box.open(&sum).await
    };
    let honest = run(program, |letter| vec![letter]);
    assert!(honest.iter().all(|result| matches!(result, Some(Ok(sum)) if *sum == [S::from_u64(8)])));

    let wanted = S::from_u64(1000);
    let mut attack = Attack::new(3, wanted);
    let results = run(program, |letter| attack.pass(letter));
    assert_eq!(attack.held.first().map(|held| held.round), Some(3), "the dealing was kept back: {results:?}");
    assert!(!attack.succeeded && attack.shown.is_none(), "the other party showed its share: {results:?}");
    assert!(results.iter().all(Option::is_none), "{results:?}");
}

/// Two random values and their product, which the dealer makes false by one in round 4. The coin of the verification is dealt in
/// round 5; were it 0, everything would pass.
#[test]
fn no_coin_is_chosen_by_who_deals_late() {
    const PRODUCT: u16 = 4;
    const COIN: u16 = 5;
    let program = |party: Party| async move {
        let black_box = B::new(&party).await?;
        let (a, b) = black_box.random(2).await?.split(1);
        let c = black_box.multiply(&a, &b).await?;
        black_box.open(&a.then(&b).then(&c)).await
    };
    let lie = |letter: Letter| match letter.round {
        PRODUCT if letter.from == DEALER => letter.plus(0, S::ONE),
        // Its share of the product in the last opening, which its machine knows without the lie.
        _ if letter.from == DEALER && letter.payload.len() == 96 && letter.round > COIN + 3 => letter.plus(2, S::ONE),
        _ => letter,
    };
    // The lie alone is noticed.
    let noticed = run(program, |letter| vec![lie(letter)]);
    assert!(noticed.iter().skip(1).all(|result| matches!(result, Some(Err(Abort::Cheated(_))))), "{noticed:?}");

    let mut attack = Attack::new(COIN, S::ZERO);
    let results = run(program, |letter| attack.pass(lie(letter)));
    for result in results.iter().skip(1).flatten() {
        assert!(!matches!(result, Ok(values) if values[0] * values[1] != values[2]), "a false product passed");
    }
    assert_eq!(attack.held.first().map(|held| held.round), Some(COIN), "the dealing was kept back");
    assert!(!attack.succeeded && attack.shown.is_none(), "the other party showed its share of the coin");
}
