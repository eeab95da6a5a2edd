//! The executor, without any black box.

use theta_mpc::{LONGEST_MESSAGE, Party, Stop, both};
use theta_rounds::{Abort, Bug};

use crate::group::{GroupOf, Recorder, Sent, same};

/// Tells all others the position, so many times.
async fn tell(party: &Party, times: usize) -> Result<usize, Stop> {
    let mut sum = 0;
    for _ in 0..times {
        let byte = vec![u8::try_from(party.position()).unwrap()];
        let got = party.exchange(&vec![byte; party.n()], &vec![1; party.n()])?.await?;
        sum += got
            .iter()
            .enumerate()
            .map(|(i, bytes)| if i == party.position() { i } else { bytes[0].into() })
            .sum::<usize>();
    }
    Ok(sum)
}

#[test]
fn parts_that_wait_together_share_messages() {
    let sent = Sent::default();
    let report = GroupOf::new(3, 1)
        .liar(2, Recorder(sent.clone()))
        .run(same(|party| async move { both(both(tell(&party, 1), tell(&party, 3)), tell(&party, 2)).await }));
    assert_eq!(report.agreed(|sums| *sums).unwrap(), ((3, 9), 6));
    let mut lengths: Vec<(u16, u16, usize)> =
        sent.lock().unwrap().iter().map(|(to, round, bytes)| (*round, *to, bytes.len())).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [(1, 1, 3), (1, 3, 3), (2, 1, 2), (2, 3, 2), (3, 1, 1), (3, 3, 1)]);
}

#[test]
fn a_batch_that_is_too_large_is_the_caller_s_mistake() {
    let report = GroupOf::new(3, 1).run(same(|party| async move {
        party.exchange(&vec![vec![0; LONGEST_MESSAGE + 1]; 3], &[0; 3])?.await.map(|_| ())
    }));
    assert!(report.honest().all(|(_, party)| matches!(party.result, Some(Err(Abort::Input(_))))));
    let report = GroupOf::new(3, 1).run(same(|party| async move {
        // Each message is short enough, but an instance does not keep them all.
        for _ in 0..3 {
            let len = LONGEST_MESSAGE;
            party.exchange(&vec![vec![0; len]; 3], &[len; 3])?.await?;
        }
        Ok(())
    }));
    assert!(report.honest().all(|(_, party)| matches!(party.result, Some(Err(Abort::Input(_))))));
}

#[test]
fn nothing_is_sent_after_going_on_without_all() {
    let report = GroupOf::new(3, 1).run(same(|party| async move {
        party.gather(&vec![vec![1]; 3], &[1; 3])?.next().await?;
        tell(&party, 1).await
    }));
    assert!(report.honest().all(|(_, party)| matches!(party.result, Some(Err(Abort::Bug(Bug(_)))))));
}

#[test]
fn whoever_waits_for_a_banned_party_stops() {
    use theta_rounds::simulator::Behaviour;
    let report = GroupOf::new(3, 1).liar(2, Behaviour::Empty).run(same(|party| async move { tell(&party, 2).await }));
    let stopped = |party: &Option<Result<usize, Abort>>| {
        matches!(party, Some(Err(Abort::TooFewHonest { remaining: 2, needed: 3 })))
    };
    assert!(report.honest().all(|(_, party)| stopped(&party.result)));
}
