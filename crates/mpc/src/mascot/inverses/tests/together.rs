//! Two of three that lie together: both show other summands than their own, in the same opening, and their own machines go on with them. Nothing
//! contradicts them but the MACs. Where their lies cancel out nothing is false; where they do not, nobody goes on.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use theta_groups::{Group, P256, Scalar as _};
use theta_names::ShareIndex;
use theta_rounds::simulator::{Adversary, Report, SimRng, Tamper};
use theta_rounds::{Abort, Slot};

use super::S;
use crate::program::{among, among_with};
use crate::{BlackBox, Mascot, Misbehaviour, Party, Shared, Stop};

/// What the first two of three add to what they show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lies {
    Nothing,
    /// The sum is what it was.
    CancelOut,
    /// The sum is another one.
    Shift,
    /// The same, and they add to their MACs what their own keys make of the difference. What the third one's key makes of it they do not know.
    ShiftWithMacs,
}

impl Lies {
    fn of(self, position: usize) -> S {
        match (self, position) {
            (Self::Nothing, _) | (_, 2..) => S::ZERO,
            (_, 0) => S::from_u64(5),
            (Self::CancelOut, _) => -S::from_u64(5),
            (Self::Shift | Self::ShiftWithMacs, _) => S::from_u64(2),
        }
    }

    fn in_all(self) -> S {
        (0..3).map(|position| self.of(position)).sum()
    }
}

const MACS: &str = "the MACs of what was opened fail their check";

/// Whether what is opened with lies is what was opened without.
async fn opened(party: Party, lies: Lies) -> Result<bool, Stop> {
    let black_box = Mascot::<P256>::new(&party).await?;
    let values = black_box.random(2).await?;
    let right = black_box.open(&values).await?;
    let of_mac = if lies == Lies::ShiftWithMacs && party.position() < 2 {
        lies.in_all() * *black_box.key()?.expose()
    } else {
        S::ZERO
    };
    let lie = lies.of(party.position());
    let told = Shared::from_cells(values.cells().iter().map(|[value, mac]| [*value + lie, *mac + of_mac]));
    Ok(black_box.open(&told).await? == right)
}

/// What the third party comes to.
fn honest<O>(report: Report<O, Misbehaviour>) -> Option<Result<O, Abort>> {
    report.parties.into_iter().find(|(id, _)| id.get() == 3).and_then(|(_, party)| party.result)
}

#[test]
fn what_two_of_three_open_falsely_is_right_or_nobody_has_it() {
    for lies in [Lies::Nothing, Lies::CancelOut] {
        let report = among((3, 3), 1, move |party| Box::pin(opened(party, lies)));
        assert_eq!(honest(report), Some(Ok(true)), "{lies:?}");
    }
    for lies in [Lies::Shift, Lies::ShiftWithMacs] {
        let report = among((3, 3), 1, move |party| Box::pin(opened(party, lies)));
        assert_eq!(honest(report), Some(Err(Abort::Cheated(MACS))), "{lies:?}");
    }
}

/// A key x, a nonce 1 / a, whose R both liars show falsely, and then s = a + a x, which is that of e = r = 1. Whether it is right for R.
async fn signed(party: Party, lies: Lies) -> Result<bool, Stop> {
    let black_box = Mascot::<P256>::new(&party).await?;
    let x = black_box.random(1).await?;
    let public = black_box.open_points(&x.part(0..1).convert()).await?;
    let mut masked = black_box.make(1, 1).await?;
    masked.expose_mut()[0].mask += lies.of(party.position());
    let elements = black_box.show_inverses(masked.expose()).await?;
    let inverse = Shared::from_cells(masked.expose().iter().map(|it| [it.factor.value, it.factor.mac]));
    let product = black_box.multiply_by(&inverse, &x).await?;
    let fits = |s: &S| elements[0] * *s == P256::generator() + public[0];
    black_box.open_recognised(&(&inverse + &product), fits).await.map(|_| true)
}

/// How a party ends, and of each message that it has sent the round and the length.
type Seen = (Option<Result<bool, Abort>>, Vec<(u16, usize)>);

/// What is seen of the third party.
fn seen(lies: Lies) -> Seen {
    let sent: Arc<Mutex<Vec<(u16, usize)>>> = Arc::default();
    let spy = |index: ShareIndex| {
        let sent = sent.clone();
        let note = Tamper(move |_: &mut SimRng, _, slot: Slot, payload: Bytes| {
            sent.lock().unwrap().push((slot.number, payload.len()));
            vec![(slot, payload)]
        });
        (index.get() == 3).then(|| Box::new(note) as Box<dyn Adversary>)
    };
    let report = among_with((3, 3), 1, spy, move |party| Box::pin(signed(party, lies)));
    let sent = sent.lock().unwrap().clone();
    (honest(report), sent)
}

#[test]
fn no_share_of_s_leaves_after_an_r_that_two_of_three_have_made_false() {
    /// An element, and a commitment to coins: the key, and then R.
    const ELEMENT: usize = 33 + 32;
    let (end, all) = seen(Lies::Nothing);
    assert_eq!(end, Some(Ok(true)));
    let last = |sent: &[(u16, usize)]| sent.iter().map(|(round, _)| *round).max().unwrap();
    let of_r = last(&all.iter().copied().filter(|(_, bytes)| *bytes == ELEMENT).collect::<Vec<_>>());
    let signs = last(&all);
    assert_eq!(seen(Lies::CancelOut), (Some(Ok(true)), all));
    let (end, sent) = seen(Lies::Shift);
    assert_eq!(end, Some(Err(Abort::Cheated(MACS))));
    // Elements, coins, commitments to sigma, sigma.
    assert_eq!(last(&sent), of_r + 3, "shares of s leave in round {signs}");
    assert!(of_r + 3 < signs);
}
