//! The states of MASCOT between two parties: what the second one sends in each round is changed, and the first one takes it.

use std::sync::LazyLock;

use rand_chacha::ChaCha20Rng;
use theta_groups::{P256Scalar, Scalar as _, Secret};
use theta_ot::mascot::{Extending, FalseOpenings, Fault, Made, Mesh, Messages, Parties, Party, Transfers};

use super::script::Script;
use super::transfers::party;
use crate::rng;

type S = P256Scalar;
/// Something of each party.
type Both<T> = [T; 2];
/// What begins a batch.
type Begin = fn(Party<S>, &mut ChaCha20Rng) -> Option<(Extending<S>, Messages)>;

/// Values of a batch.
const COUNT: usize = 1;

/// The rounds of a run, with their number and the liar's script. The second party lies; nothing goes on when the first one has stopped, or the second
/// has kept a message back.
struct Rounds<'a, 'b> {
    script: &'a mut Script<'b>,
    round: u16,
}

impl Rounds<'_, '_> {
    /// What each party has received, by its sender.
    fn swap(&mut self, [first, second]: Both<Messages>) -> Option<Both<Messages>> {
        self.round += 1;
        let to_first = second.into_values().next().unwrap_or_default();
        let to_first = self.script.sent(1, self.round, &to_first)?;
        let to_second = first.into_values().next().unwrap_or_default();
        Some([Messages::from([(party(2), to_first)]), Messages::from([(party(1), to_second)])])
    }

    /// One round of both.
    fn step<T, U>(
        &mut self,
        states: Both<T>,
        sent: Both<Messages>,
        mut step: impl FnMut(T, &Messages) -> Result<(U, Messages), Fault>,
    ) -> Option<(Both<U>, Both<Messages>)> {
        let ([first, second], [for_first, for_second]) = (states, self.swap(sent)?);
        let (first, answer) = step(first, &for_first).ok()?;
        let (second, other) = step(second, &for_second).ok()?;
        Some(([first, second], [answer, other]))
    }
}

fn parties(me: u16, other: u16) -> Parties {
    Parties::new([8; 32], party(me), [party(other)].into()).expect("two parties")
}

/// The set-up of both, with the second one's messages changed.
fn mesh(script: &mut Script<'_>, rng: &mut ChaCha20Rng) -> Option<Both<Transfers>> {
    let mut rounds = Rounds { script, round: 0 };
    let mut begin = |me, other| Mesh::<S>::begin(parties(me, other), rng).expect("two parties");
    let ((first, to_second), (second, to_first)) = (begin(1, 2), begin(2, 1));
    let (states, sent) = rounds.step([first, second], [to_second, to_first], |state, it| state.handle(it, rng))?;
    let (states, sent) = rounds.step(states, sent, |state, it| state.handle(it))?;
    let (made, _) = rounds.step(states, sent, |state, it| Ok((state.handle(it)?.1, Messages::new())))?;
    let [first, second] = made;
    Some([first?, second?])
}

static TRANSFERS: LazyLock<Both<Transfers>> =
    LazyLock::new(|| mesh(&mut Script::honest(), &mut rng()).expect("honest parties"));

/// A run on the transfers: both parties with their MAC keys.
fn keyed(rounds: &mut Rounds<'_, '_>, rng: &mut ChaCha20Rng) -> Option<Both<Party<S>>> {
    let [first, second] = &*TRANSFERS;
    let mut begin = |transfers: &Transfers| transfers.key::<S>([1; 32], rng).expect("two parties");
    let ((first, to_second), (second, to_first)) = (begin(first), begin(second));
    let (states, sent) = rounds.step([first, second], [to_second, to_first], |state, it| state.handle(it))?;
    let (states, _) = rounds.step(states, sent, |state, it| Ok((state.handle(it)?.0, Messages::new())))?;
    Some(states)
}

/// A batch of triples or of masked products, with the second party's messages changed.
fn batch(script: &mut Script<'_>, begin: Begin) -> Option<()> {
    let mut rng = rng();
    let honest = &mut Script::honest();
    let [first, second] = keyed(&mut Rounds { script: honest, round: 0 }, &mut rng)?;
    let ((first, to_second), (second, to_first)) = (begin(first, &mut rng)?, begin(second, &mut rng)?);
    let mut rounds = Rounds { script, round: 0 };
    let (states, sent) = rounds.step([first, second], [to_second, to_first], |state, it| state.handle(it, &mut rng))?;
    let (states, sent) = rounds.step(states, sent, |state, it| state.handle(it))?;
    let (states, sent) = rounds.step(states, sent, |state, it| state.handle(it, &mut rng))?;
    let (states, sent) = rounds.step(states, sent, |state, it| state.handle(it))?;
    let (states, sent) = rounds.step(states, sent, |state, it| state.handle(it, &mut rng))?;
    let (states, sent) = rounds.step(states, sent, |state, it| state.handle(it))?;
    let (states, sent) = rounds.step(states, sent, |state, it| state.handle(it, &mut rng))?;
    let (states, sent) = rounds.step(states, sent, |state, it| state.handle(it))?;
    let (made, _) = rounds.step(states, sent, |state, it| Ok((state.finish(it)?.1, Messages::new())))?;
    if let [Made::Triples(first), Made::Triples(second)] = &made {
        assert_eq!((first.expose().len(), second.expose().len()), (COUNT, COUNT));
    }
    Some(())
}

/// Products with a factor that both have fixed, and MACs.
fn products(script: &mut Script<'_>) -> Option<()> {
    let mut rng = rng();
    let honest = &mut Script::honest();
    let parties = keyed(&mut Rounds { script: honest, round: 0 }, &mut rng)?;
    let mut rounds = Rounds { script, round: 0 };
    let values = [S::from_u64(7)];
    let [(first, mut one), (second, mut other)] = parties.map(|mut party| {
        let fixing = party.fix(Secret::new(S::random(&mut rng)), &mut rng).expect("a factor");
        (fixing, party)
    });
    let ((first, to_second), (second, to_first)) = (first, second);
    let [for_first, for_second] = rounds.swap([to_second, to_first])?;
    let (first, to_second) = first.handle(one.pairs(), &for_first).ok()?;
    let (second, to_first) = second.handle(other.pairs(), &for_second).ok()?;
    let wrong = |error| match error {
        FalseOpenings::Of(liars) => assert_eq!(liars, [party(2)]),
        FalseOpenings::Ours(misuse) => panic!("{misuse}"),
    };
    let [for_first, for_second] = rounds.swap([to_second, to_first])?;
    let first = first.handle(&for_first).map_err(wrong).ok()?;
    let second = second.handle(&for_second).expect("an honest opening");
    let ((first, to_second), (second, to_first)) = (first.multiply(&values).ok()?, second.multiply(&values).ok()?);
    let multiplied = rounds.step([first, second], [to_second, to_first], |state, it| {
        let (_, products) = state.handle(it)?;
        Ok((products.summands().expose().len(), Messages::new()))
    })?;
    assert_eq!(multiplied.0, [values.len(); 2]);
    let ((first, to_second), (second, to_first)) =
        (one.authenticate(&values).expect("few"), other.authenticate(&values).expect("few"));
    let macs = rounds.step([first, second], [to_second, to_first], |state, it| {
        let (_, shares) = state.handle(it)?;
        Ok((shares.expose().len(), Messages::new()))
    })?;
    assert_eq!(macs.0, [values.len(); 2]);
    Some(())
}

/// The set-up.
pub(super) fn set_up(script: &mut Script<'_>) -> Option<()> {
    mesh(script, &mut rng()).map(drop)
}

/// One of the five things that parties of MASCOT do on a set-up.
pub(super) fn run(which: u8, script: &mut Script<'_>) {
    let _ = match which {
        0 => keyed(&mut Rounds { script, round: 0 }, &mut rng()).map(drop),
        1 => batch(script, |party, rng| party.triples(COUNT, rng).ok()),
        2 => batch(script, |party, rng| party.unchecked_triples(COUNT, rng).ok()),
        3 => batch(script, |party, rng| party.masked(COUNT, COUNT, rng).ok()),
        _ => products(script),
    };
}
