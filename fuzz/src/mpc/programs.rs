//! Programs on the black boxes: a key, a nonce, a tuple and a signature, with one party that lies.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::future::Future;
use std::sync::{LazyLock, Mutex};

use theta_groups::{Group, P256};
use theta_mpc::ecdsa::{Request, bind, generate, prepare_nonces, sign};
use theta_mpc::{
    ActiveRep3, ActiveShamir, BlackBox, Mascot, MascotMinus, MascotSetUps, Party, PassiveRep3, PassiveShamir, Program,
    SemiOt, SemiOtSetUps, Stop,
};
use theta_names::Epoch;
use theta_rounds::{Driver, Effect, Input, LockStep, Machine, PartyId, Recipient, Slot};
use theta_sharing::{ShareIndex, Threshold};

use super::script::{Script, seeds};
use crate::rng;

type Point = <P256 as Group>::Element;

/// What is signed.
const DIGEST: [u8; 32] = [5; 32];
/// The most messages of a run: three parties, some hundred rounds. More would be a program that does not end.
const MOST_MESSAGES: usize = 10_000;

/// A black box among as few parties as can be.
trait Fuzzed: BlackBox<Group = P256> {
    const PARTIES: (u16, u16);

    fn make(party: &Party) -> impl Future<Output = Result<Self, Stop>> + Send;

    /// The program has ended well.
    fn leave(&self) {}
}

macro_rules! honest_majority {
    ($($name:ident),*) => { $(
        impl Fuzzed for $name<P256> {
            const PARTIES: (u16, u16) = (2, 3);

            fn make(party: &Party) -> impl Future<Output = Result<Self, Stop>> + Send {
                Self::new(party)
            }
        }
    )* };
}

/// Set-ups are left to later executions as long as they end well: base OTs take far longer than all that follows.
macro_rules! on_transfers {
    ($($name:ident, $set_ups:ident;)*) => { $(
        impl Fuzzed for $name<P256> {
            const PARTIES: (u16, u16) = (2, 2);

            fn make(party: &Party) -> impl Future<Output = Result<Self, Stop>> + Send {
                static SET_UPS: LazyLock<[$set_ups; 2]> = LazyLock::new(Default::default);
                async {
                    let whose: Vec<ShareIndex> = party.threshold().indices().collect();
                    let set_ups = SET_UPS.get(party.position()).expect("two parties");
                    Self::on(party, set_ups, &whose).await
                }
            }

            fn leave(&self) {
                self.end_well();
            }
        }
    )* };
}

honest_majority!(PassiveShamir, ActiveShamir, PassiveRep3, ActiveRep3);
on_transfers! {
    SemiOt, SemiOtSetUps;
    Mascot, MascotSetUps;
    MascotMinus, MascotSetUps;
}

/// One of the boxes with an honest majority, which the first byte chooses.
pub fn honest_majority(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    match first % 4 {
        0 => check::<PassiveShamir<P256>>(rest),
        1 => check::<ActiveShamir<P256>>(rest),
        2 => check::<PassiveRep3<P256>>(rest),
        _ => check::<ActiveRep3<P256>>(rest),
    }
}

/// One of the boxes on oblivious transfer, which the first byte chooses.
pub fn on_transfers(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    match first % 3 {
        0 => check::<SemiOt<P256>>(rest),
        1 => check::<Mascot<P256>>(rest),
        _ => check::<MascotMinus<P256>>(rest),
    }
}

/// For each of so many boxes and each of so many liars, a change in each of the first rounds, or each so many of them: where executions are slow, many
/// seeds would take all of a short run.
pub fn program_seeds(boxes: u8, liars: u8, rounds: u8, step: usize) -> Vec<Vec<u8>> {
    let of = move |name, liar| seeds(&[name, liar], (1..=rounds).step_by(step));
    (0..boxes).flat_map(|name| (0..liars).flat_map(move |liar| of(name, liar))).collect()
}

/// What is true whatever the liar sends: signatures are right, honest parties of a box with active security blame nobody but the liar and have the same
/// key, and nobody sends more than among honest parties.
fn check<B: Fuzzed>(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let liar = usize::from(*first) % usize::from(B::PARTIES.1);
    let most = *MOST_BYTES.lock().expect("no panic before").entry(B::NAME).or_insert_with(|| {
        let honest = run::<B>(None, &mut Script::honest());
        assert!(honest.iter().all(|end| end.result.is_some()), "{} makes a signature", B::NAME);
        honest.iter().map(|end| end.bytes).max().unwrap_or(0)
    });
    let mut ends = run::<B>(Some(liar), &mut Script::read(rest));
    let _ = ends.remove(liar);
    let mut keys = Vec::new();
    for end in ends {
        assert!(end.bytes <= most, "{}: {} bytes, honest parties send {most}", B::NAME, end.bytes);
        assert!(!B::ACTIVE || end.blamed.iter().all(|party| *party == liar), "{}: an honest party is blamed", B::NAME);
        if let Some((key, is_right)) = end.result {
            assert!(is_right, "{}: a false signature", B::NAME);
            keys.push(key);
        }
    }
    assert!(!B::ACTIVE || keys.windows(2).all(|two| two[0] == two[1]), "{}: different keys", B::NAME);
}

/// What honest parties send at most, by black box; the first execution makes the set-ups, too.
static MOST_BYTES: LazyLock<Mutex<BTreeMap<&'static str, usize>>> = LazyLock::new(Mutex::default);

/// The public key, and whether the signature verifies.
async fn program<B: Fuzzed>(party: Party) -> Result<(Point, bool), Stop> {
    let black_box = B::make(&party).await?;
    let key = generate(&black_box, Epoch::FIRST).await?;
    let nonces = prepare_nonces(&black_box, Epoch::FIRST, 1).await?;
    let tuple = bind(&black_box, nonces, &key).await?.pop().ok_or(Stop::Lost)?;
    let request = Request { tuple: tuple.id(), digest: DIGEST, session: [6; 32] };
    let signature = sign(&black_box, &key, tuple, request).await?;
    black_box.leave();
    Ok((*key.public_key(), signature.vartime_verifies(key.public_key(), &DIGEST)))
}

/// How a party ended.
#[derive(Default)]
struct End {
    result: Option<(Point, bool)>,
    blamed: Vec<usize>,
    bytes: usize,
}

/// Runs the program at all parties, without a network.
fn run<B: Fuzzed>(liar: Option<usize>, script: &mut Script<'_>) -> Vec<End> {
    let threshold = Threshold::new(B::PARTIES.0, B::PARTIES.1).expect("few parties");
    let machine = |index| {
        let program = Program::new(index, threshold, program::<B>).expect("a party");
        Driver::new(PartyId::of_share(index), threshold.indices().map(PartyId::of_share), LockStep::new(program))
    };
    let mut machines: Vec<_> = threshold.indices().map(machine).collect();
    let mut ends: Vec<End> = machines.iter().map(|_| End::default()).collect();
    let mut queue: VecDeque<(usize, Input<Infallible>)> = (0..machines.len()).map(|at| (at, Input::Start)).collect();
    let (mut rng, mut messages) = (rng(), 0);
    while let Some((at, input)) = queue.pop_front() {
        messages += 1;
        assert!(messages <= MOST_MESSAGES, "{} does not end", B::NAME);
        for effect in machines[at].handle(input, &mut rng) {
            match effect {
                Effect::Send { to, slot, channel, payload } => {
                    let Recipient::Party(to) = to else { panic!("programs send to one party at a time") };
                    ends[at].bytes += payload.len();
                    let payload = if Some(at) == liar { lie(script, to, slot, &payload) } else { Some(payload) };
                    let from = machine_id(at);
                    let message = payload.map(|payload| Input::Message { from, slot, channel, payload });
                    queue.extend(message.map(|message| (to.share().position(), message)));
                }
                Effect::Finished(result) => ends[at].result = result.ok(),
                Effect::Blame(blame) => ends[at].blamed.push(blame.party.share().position()),
                Effect::Ask(never) => match never {},
            }
        }
    }
    ends
}

fn lie(script: &mut Script<'_>, to: PartyId, slot: Slot, payload: &[u8]) -> Option<bytes::Bytes> {
    script.sent(to.get(), slot.number, payload).map(bytes::Bytes::from)
}

fn machine_id(position: usize) -> PartyId {
    PartyId::of_share(ShareIndex::at(position).expect("few parties"))
}
