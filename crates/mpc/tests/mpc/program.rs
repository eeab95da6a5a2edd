//! The executor, without any black box.

use theta_mpc::{LONGEST_MESSAGE, Party, Stop, all, both};
use theta_rounds::{Abort, Bug, EARLY_BYTES, EARLY_MESSAGES, KEPT_BYTES};

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
    let report = GroupOf::new(3, 1)
        .run(same(|party| async move { both(long(&party, 0, LONGEST_MESSAGE), long(&party, 0, 1)).await.map(|_| ()) }));
    assert!(report.honest().all(|(_, party)| matches!(party.result, Some(Err(Abort::Input(_))))), "both together");
}

/// Each tells all the others so many bytes of a round, and sees that theirs are of it.
async fn long(party: &Party, round: u8, len: usize) -> Result<(), Stop> {
    let got = party.exchange(&vec![vec![round; len]; party.n()], &vec![len; party.n()])?.await?;
    let others = got.iter().enumerate().filter(|(position, _)| *position != party.position());
    assert!(others.map(|(_, bytes)| bytes).all(|bytes| bytes.len() == len && bytes.iter().all(|byte| *byte == round)));
    Ok(())
}

#[test]
fn a_program_of_many_rounds_takes_more_than_an_instance_keeps() {
    const ROUNDS: u8 = 7;
    const { assert!(ROUNDS as usize * LONGEST_MESSAGE > 3 * KEPT_BYTES) };
    for seed in 0..4 {
        let report = GroupOf::new(3, 1).seed(seed).all_twice().run(same(|party| async move {
            for round in 1..=ROUNDS {
                long(&party, round, LONGEST_MESSAGE).await?;
            }
            Ok(ROUNDS)
        }));
        assert_eq!(report.agreed(|rounds| *rounds).unwrap(), ROUNDS);
    }
}

/// The first tells the others so many bytes in each of so many rounds, and waits for nothing.
async fn alone(party: &Party, rounds: u16, len: usize) -> Result<(), Stop> {
    let is_first = party.position() == 0;
    let out = vec![vec![1; if is_first { len } else { 0 }]; party.n()];
    let mut expected = vec![0; party.n()];
    expected[0] = if is_first { 0 } else { len };
    for _ in 0..rounds {
        party.exchange(&out, &expected)?.await?;
    }
    Ok(())
}

#[test]
fn a_party_that_waits_for_nobody_sends_what_can_wait_for_its_round() {
    const LEN: usize = 1_000;
    let run = |rounds, len| {
        GroupOf::new(3, 1).run(same(move |party| async move {
            alone(&party, rounds, len).await?;
            // They tell it something: it is not ahead of them any more.
            tell(&party, 1).await?;
            alone(&party, rounds, len).await
        }))
    };
    let most = u16::try_from(EARLY_MESSAGES - 1).unwrap();
    assert!(run(most, LEN).honest().all(|(_, party)| matches!(party.result, Some(Ok(())))));
    let whole = u16::try_from(EARLY_BYTES / (100 * LEN)).unwrap();
    assert!(run(whole, 100 * LEN).honest().all(|(_, party)| matches!(party.result, Some(Ok(())))));
    for (rounds, len) in [(most + 2, LEN), (whole + 1, 100 * LEN)] {
        let refused = run(rounds, len);
        let of_those_who_take_it = refused.honest().skip(1).collect::<Vec<_>>();
        assert_eq!(of_those_who_take_it.len(), 2);
        assert!(of_those_who_take_it.iter().all(|(_, party)| matches!(party.result, Some(Err(Abort::Input(_))))));
    }
}

/// Each gathers the byte of one other, whoever comes first.
async fn first(party: &Party) -> Result<u8, Stop> {
    let byte = vec![u8::try_from(party.position()).unwrap()];
    let mut gather = party.gather(&vec![byte; party.n()], &vec![1; party.n()])?;
    let (position, bytes) = gather.next().await?;
    assert_eq!(usize::from(bytes[0]), position);
    Ok(bytes[0])
}

#[test]
fn several_parts_go_on_without_all_in_one_round() {
    let report = GroupOf::new(3, 1)
        .run(same(|party| async move { both(both(first(&party), tell(&party, 1)), first(&party)).await }));
    let all: Vec<_> = report.honest().map(|(_, party)| party.result.as_ref().unwrap().as_ref().unwrap()).collect();
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|((first, sum), second)| first == second && *sum == 3));
    // One of the next round comes too late.
    let report = GroupOf::new(3, 1).run(same(|party| async move { both(first(&party), tell(&party, 2)).await }));
    assert!(report.honest().all(|(_, party)| matches!(party.result, Some(Err(Abort::Bug(Bug(_)))))));
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

#[test]
fn many_parts_share_rounds_and_messages() {
    const PARTS: usize = 5_000;
    let sent = Sent::default();
    let report = GroupOf::new(3, 1)
        .liar(2, Recorder(sent.clone()))
        .run(same(|party| async move { all((0..PARTS).map(|part| tell(&party, part % 3)).collect::<Vec<_>>()).await }));
    let sums = report.agreed(Clone::clone).unwrap();
    assert!(sums.len() == PARTS && sums.iter().enumerate().all(|(part, sum)| *sum == 3 * (part % 3)));
    let mut lengths: Vec<(u16, usize)> =
        sent.lock().unwrap().iter().map(|(_, round, bytes)| (*round, bytes.len())).collect();
    lengths.sort_unstable();
    lengths.dedup();
    assert_eq!(lengths, [(1, 3_333), (2, 1_666)]);
    // One that stops ends them all.
    let report = GroupOf::new(3, 1).run(same(|party| async move {
        all((0..3).map(|part| {
            let party = party.clone();
            async move { if part == 1 { Err(Stop::Input("this one stops")) } else { tell(&party, 1).await } }
        }))
        .await
    }));
    assert!(report.honest().all(|(_, party)| matches!(party.result, Some(Err(Abort::Input(_))))));
}
