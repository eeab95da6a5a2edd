//! Each state of oblivious transfer and of the products on it, with the messages that it takes changed. The extension's set-up is made once; each execution
//! takes a run out of it.

use std::sync::LazyLock;

use rand_chacha::ChaCha20Rng;
use theta_groups::{P256Scalar, Ristretto255, Scalar as _, Secret};
use theta_names::ShareIndex;
use theta_ot::base::{Answer, Ask, Receiver, send};
use theta_ot::extension::{self, Extension, Grown, ReceivedTransfers, SentTransfers, Setup};
use theta_ot::{Choices, Session, copee, correlated, gilboa};

use super::script::{Script, seeds};
use super::triples;
use crate::rng;

type Base = Ristretto255;
type S = P256Scalar;

/// The bits of a tree of the extension: what MASCOT takes.
const K: u8 = 4;
/// Base OTs of one execution.
const FEW: usize = 8;
/// What can be chosen, but for set-ups.
const STATES: u8 = 12;
/// From this byte on a set-up is chosen, which takes ten times as long as others: rarely.
const SET_UPS: u8 = 0xfd;
/// The rounds of the longest of them, and some more.
const ROUNDS: u8 = 12;

/// The state that the first byte chooses takes the message of the honest other side, as the rest of the input changes it.
pub fn transfers(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let mut script = Script::read(rest);
    let script = &mut script;
    match *first {
        SET_UPS => drop(extension_answer(script)),
        0xfe => drop(extension_finish(script)),
        0xff => drop(triples::set_up(script)),
        other => match other % STATES {
            0 => drop(base_send(script)),
            1 => drop(base_receive(script)),
            2 => drop(extend(script)),
            3 => drop(multiply(script)),
            4 => drop(correlate(script)),
            5 => drop(open(script)),
            6 => drop(give_macs(script)),
            state => triples::run(state - OF_TWO, script),
        },
    }
}

/// The first of the states of both parties.
const OF_TWO: u8 = 7;

/// Some scripts for each state.
pub fn transfer_seeds() -> Vec<Vec<u8>> {
    let rounds = |state: &u8| match state {
        0xff => 3,
        state if (OF_TWO..STATES).contains(state) => ROUNDS,
        _ => 1,
    };
    (0..STATES).chain(SET_UPS..=0xff).flat_map(|state| seeds(&[state], 1..=rounds(&state))).collect()
}

pub(super) fn party(number: u16) -> ShareIndex {
    ShareIndex::try_from(number).expect("not zero")
}

fn session() -> Session {
    Session::new([9; 32], party(1), party(2)).expect("two parties")
}

/// The one message of an execution: round 1.
fn changed(script: &mut Script<'_>, honest: &[u8]) -> Option<Vec<u8>> {
    script.sent(1, 1, honest)
}

fn base_send(script: &mut Script<'_>) -> Option<()> {
    let mut rng = rng();
    let (_, ask) = Receiver::<Base>::new(session(), Choices::random(FEW, &mut rng), &mut rng).expect("few");
    let (seeds, answer) = send::<Base>(session(), FEW, &Ask(changed(script, &ask.0)?), &mut rng).ok()?;
    assert_eq!((seeds.len(), answer.0.len()), (FEW, Answer::length::<Base>(FEW)));
    Some(())
}

fn base_receive(script: &mut Script<'_>) -> Option<()> {
    let mut rng = rng();
    let (receiver, ask) = Receiver::<Base>::new(session(), Choices::random(FEW, &mut rng), &mut rng).expect("few");
    let (_, answer) = send::<Base>(session(), FEW, &ask, &mut rng).expect("an honest question");
    let seeds = receiver.finish(&Answer(changed(script, &answer.0)?)).ok()?;
    assert_eq!(seeds.expose().len(), FEW);
    Some(())
}

/// The messages of a set-up, and what it ends with.
struct Ends {
    ask: Ask,
    grown: Grown,
    sender: extension::Sender,
    receiver: extension::Receiver,
}

static ENDS: LazyLock<Ends> = LazyLock::new(|| {
    let mut rng = rng();
    let (setup, ask) = Setup::<Base>::new(session(), K, &mut rng).expect("parameters");
    let made = extension::Receiver::new::<Base>(session(), K, &ask, &mut rng);
    let (receiver, grown) = made.expect("an honest question");
    let sender = setup.finish(&grown).expect("an honest answer");
    Ends { ask, grown, sender, receiver }
});

fn extension_answer(script: &mut Script<'_>) -> Option<()> {
    let ask = Ask(changed(script, &ENDS.ask.0)?);
    let (_, grown) = extension::Receiver::new::<Base>(session(), K, &ask, &mut rng()).ok()?;
    assert_eq!(grown.0.len(), Grown::length::<Base>(K).expect("parameters"));
    Some(())
}

fn extension_finish(script: &mut Script<'_>) -> Option<()> {
    // From the same generator, the same question.
    let (setup, _) = Setup::<Base>::new(session(), K, &mut rng()).expect("parameters");
    setup.finish(&Grown(changed(script, &ENDS.grown.0)?)).ok().map(drop)
}

/// Transfers of a run, with the bits of a scalar as choices.
fn transferred(rng: &mut ChaCha20Rng) -> (ReceivedTransfers, SentTransfers, Extension) {
    let choices = Choices::of_scalars(&[S::random(rng)]);
    let count = choices.len();
    let (_, message, received) = ENDS.receiver.for_run(&[1; 32]).extend(choices, rng).expect("few");
    let (_, sent) = ENDS.sender.for_run(&[1; 32]).extend(count, &message).expect("an honest batch");
    (received, sent, message)
}

fn extend(script: &mut Script<'_>) -> Option<()> {
    let (received, _, message) = transferred(&mut rng());
    let message = changed(script, &message.0)?;
    let (_, sent) = ENDS.sender.for_run(&[1; 32]).extend(received.len(), &message).ok()?;
    assert_eq!(sent.len(), received.len());
    Some(())
}

fn multiply(script: &mut Script<'_>) -> Option<()> {
    let mut rng = rng();
    let (received, sent, _) = transferred(&mut rng);
    let (corrections, _) = gilboa::send(sent, &[S::random(&mut rng)]).expect("as many transfers as it takes");
    let summands = gilboa::receive::<S>(received, &changed(script, corrections.as_ref())?).ok()?;
    assert_eq!(summands.expose().len(), 1);
    Some(())
}

fn correlate(script: &mut Script<'_>) -> Option<()> {
    let mut rng = rng();
    let (received, sent, _) = transferred(&mut rng);
    let differences: Vec<S> = (0..sent.len()).map(|_| S::random(&mut rng)).collect();
    let (corrections, _) = correlated::send(sent, &differences).expect("a difference for each");
    let corrections = correlated::Corrections(changed(script, &corrections.0)?);
    let values = correlated::receive::<S>(received, &corrections).ok()?;
    assert_eq!(values.expose().len(), differences.len());
    Some(())
}

/// A party's factor, and the other's products with it, before its trees are opened.
fn fixed(script: Option<&mut Script<'_>>) -> Option<(copee::Sender, copee::Receiver)> {
    /// The bits of a digit: what MASCOT takes.
    const DIGIT: u8 = 3;
    let mut rng = rng();
    let delta = Secret::new(S::random(&mut rng));
    // The transfers' choices are the bits of a scalar from the same generator.
    let (received, sent, _) = transferred(&mut crate::rng());
    let (sender, opening) = copee::Sender::new(&session(), DIGIT, &sent.into_seeds()).expect("256 transfers");
    let opening = match script {
        Some(script) => changed(script, &opening.0)?,
        None => opening.0,
    };
    let opening = copee::Opening(opening);
    let receiver = copee::Receiver::new(&session(), DIGIT, &delta, received.into_seeds(), &opening);
    Some((sender, receiver.ok()?))
}

fn open(script: &mut Script<'_>) -> Option<()> {
    fixed(Some(script)).map(drop)
}

fn give_macs(script: &mut Script<'_>) -> Option<()> {
    let values = [2, 3].map(S::from_u64);
    let (sender, receiver) = fixed(None).expect("an honest opening");
    let (_, corrections, _) = sender.extend(&values).expect("few");
    let (_, macs) = receiver.extend::<S>(values.len(), &changed(script, &corrections.0)?).ok()?;
    assert_eq!(macs.expose().len(), values.len());
    Some(())
}
