//! Programs on set-ups that programs before have left, and what takes a set-up away.

use std::future::Future;
use std::sync::Arc;

use theta_groups::{P256, Scalar as _};
use theta_mpc::{BlackBox, Mascot, MascotSetUps, Misbehaviour, Party, Scalar, SemiOt, SemiOtSetUps, Stop};
use theta_names::ShareIndex;
use theta_rounds::simulator::{Behaviour, Report};

use crate::cheating::instead;
use crate::group::{GroupOf, Recorder, Sent};

/// A black box with set-ups that outlive it.
trait Leaves: BlackBox {
    type SetUps: Default + Send + Sync + 'static;
    /// The rounds that a set-up from before saves.
    const SAVED: u16;
    fn on(
        party: &Party,
        set_ups: &Self::SetUps,
        whose: &[ShareIndex],
    ) -> impl Future<Output = Result<Self, Stop>> + Send;
    fn end_well(&self);
    fn ready(set_ups: &Self::SetUps) -> usize;
}

macro_rules! leaves {
    ($box:ty, $set_ups:ty, $saved:literal) => {
        impl Leaves for $box {
            type SetUps = $set_ups;
            const SAVED: u16 = $saved;
            fn on(
                party: &Party,
                set_ups: &Self::SetUps,
                whose: &[ShareIndex],
            ) -> impl Future<Output = Result<Self, Stop>> + Send {
                Self::on(party, set_ups, whose)
            }
            fn end_well(&self) {
                self.end_well();
            }
            fn ready(set_ups: &Self::SetUps) -> usize {
                set_ups.ready()
            }
        }
    };
}

leaves!(Mascot<P256>, MascotSetUps, 1);
leaves!(SemiOt<P256>, SemiOtSetUps, 2);

/// What each party keeps, by number.
type Kept<B> = Vec<Arc<<B as Leaves>::SetUps>>;

fn kept<B: Leaves>(n: u16) -> Kept<B> {
    (0..n).map(|_| Arc::default()).collect()
}

fn ready<B: Leaves>(kept: &Kept<B>) -> Vec<usize> {
    kept.iter().map(|set_ups| B::ready(set_ups)).collect()
}

/// A product of 6 and 7, opened, on what the parties keep for `whose`.
fn product_of<B: Leaves>(group: GroupOf, kept: &Kept<B>, whose: u16) -> Report<bool, Misbehaviour> {
    group.run(|number| {
        let set_ups = Arc::clone(&kept[usize::from(number) - 1]);
        Box::new(move |party: Party| async move {
            let whose = [ShareIndex::try_from(whose).unwrap()];
            let black_box = B::on(&party, &set_ups, &whose).await?;
            let [a, b] = [6, 7].map(|value| black_box.constants(&[Scalar::<B>::from_u64(value)]));
            let opened = black_box.open(&black_box.multiply(&a, &b).await?).await?;
            black_box.end_well();
            Ok(opened == [Scalar::<B>::from_u64(42)])
        })
    })
}

/// The same; returns in how many rounds.
fn rounds<B: Leaves>(n: u16, kept: &Kept<B>, whose: u16) -> u16 {
    let sent = Sent::default();
    let report = product_of::<B>(GroupOf::new(n, n - 1).liar(1, Recorder(sent.clone())), kept, whose);
    assert!(report.agreed(|right| *right).unwrap(), "the product is right at all");
    let sent = sent.lock().unwrap();
    sent.iter().map(|(_, round, _)| *round).max().unwrap()
}

fn serve_many<B: Leaves>(n: u16) {
    let mut kept = kept::<B>(n);
    let first = rounds::<B>(n, &kept, 1);
    assert_eq!(ready::<B>(&kept), vec![1; n.into()]);
    for _ in 0..3 {
        assert_eq!(rounds::<B>(n, &kept, 1), first - B::SAVED);
    }
    assert_eq!(ready::<B>(&kept), vec![1; n.into()], "the same one all the time");
    assert_eq!(rounds::<B>(n, &kept, 2), first, "of other parties it is of no use");
    // One has lost its own: all make a new one, and use that from then on, whatever else they have.
    kept[0] = Arc::default();
    assert_eq!(rounds::<B>(n, &kept, 1), first);
    assert_eq!(ready::<B>(&kept)[1..], vec![3; usize::from(n) - 1], "two of these parties, one of others");
    assert_eq!(rounds::<B>(n, &kept, 1), first - B::SAVED);
}

#[test]
fn set_ups_serve_many_programs() {
    serve_many::<Mascot<P256>>(2);
    serve_many::<Mascot<P256>>(3);
    serve_many::<SemiOt<P256>>(2);
    serve_many::<SemiOt<P256>>(3);
}

/// Whatever a party sends in the second program: whoever finds it false, or waits for what does not come, has no set-up of these parties left.
fn gone_after_lies<B: Leaves>(n: u16) {
    let recorded = {
        let (kept, sent) = (kept::<B>(n), Sent::default());
        rounds::<B>(n, &kept, 1);
        drop(product_of::<B>(GroupOf::new(n, n - 1).liar(1, Recorder(sent.clone())), &kept, 1));
        sent.lock().unwrap().clone()
    };
    // In two rounds the parties agree on the set-up: nothing hidden is used in them, and it stays.
    let mut gone = 0;
    for (to, round, payload) in &recorded {
        let kept = kept::<B>(n);
        rounds::<B>(n, &kept, 1);
        let mut lie = payload.clone();
        let last = lie.len() - 1;
        lie[last] ^= 1;
        let report = product_of::<B>(GroupOf::new(n, n - 1).liar(1, instead(*to, *round, lie)), &kept, 1);
        for (id, party) in report.honest() {
            let ended_well = matches!(party.result, Some(Ok(_)));
            let left = B::ready(&kept[id.share().position()]);
            // Who is told in these rounds that they have not begun together has used nothing; another one may wait for it, and has.
            let unused = *round <= 2 && left == 1;
            let where_ = format!("{}: party {id}, a lie to {to} in round {round}", B::NAME);
            assert!(unused || left == usize::from(ended_well), "{where_}");
            assert!(*round > 2 || id.get() != *to || left == 1, "{where_}");
            gone += 1 - left;
        }
    }
    assert!(gone > 0, "{}: no lie was found", B::NAME);
}

#[test]
fn a_set_up_is_gone_after_a_lie() {
    gone_after_lies::<Mascot<P256>>(2);
    gone_after_lies::<Mascot<P256>>(3);
    gone_after_lies::<SemiOt<P256>>(2);
}

/// Who falls silent may know alone that its guess was wrong: a program that waits for ever, and is given up, is no good end either.
fn gone_after_silence<B: Leaves>(n: u16) {
    let kept = kept::<B>(n);
    let all = rounds::<B>(n, &kept, 1);
    for round in [1, 3, all - B::SAVED] {
        let from = |first: u16| {
            theta_rounds::simulator::Tamper(
                move |_: &mut theta_rounds::simulator::SimRng,
                      _: theta_rounds::PartyId,
                      slot: theta_rounds::Slot,
                      payload: bytes::Bytes| {
                    if slot.number < first { vec![(slot, payload)] } else { Vec::new() }
                },
            )
        };
        rounds::<B>(n, &kept, 1);
        let before = ready::<B>(&kept);
        let report = product_of::<B>(GroupOf::new(n, n - 1).liar(1, from(round)), &kept, 1);
        assert!(report.honest().all(|(_, party)| party.result.is_none()), "they wait");
        drop(report);
        let left = ready::<B>(&kept);
        assert_eq!(left[1..] == before[1..], round == 1, "{}: silence from round {round}", B::NAME);
    }
    let silent = product_of::<B>(GroupOf::new(n, n - 1).liar(1, Behaviour::Silent), &kept, 1);
    assert!(silent.honest().all(|(_, party)| party.result.is_none()));
}

#[test]
fn a_set_up_is_gone_after_silence() {
    gone_after_silence::<Mascot<P256>>(2);
    gone_after_silence::<SemiOt<P256>>(3);
}
