//! Stocks of nonces and tuples that differ from party to party: by a confirmation that came to some only, by a refresh.

use std::sync::Mutex;

use theta_groups::P256;
use theta_mpc::ecdsa::{Curve, KeyShare, Nonces, Tuple, bind, generate, prepare_nonces};
use theta_names::Epoch;
use theta_rounds::{Abort, simulator::Report};

use crate::ecdsa::{material, request, sign_in};
use crate::group::{GroupOf, Made, Recorder, Sent, same, with_each};

/// One party's key share, of the epoch after [`Epoch::FIRST`], and nonces: two batches of that epoch and one of the epoch before.
type Kept<B> = (KeyShare<B>, [Nonces<B>; 3]);

fn kept<B: Made<Group: Curve>>(n: u16, t: u16) -> Vec<Kept<B>> {
    let report = GroupOf::new(n, t).run(same(|party| async move {
        let black_box = B::make(&party).await?;
        let epoch = Epoch::new(1);
        let key = generate(&black_box, epoch).await?;
        let first = prepare_nonces(&black_box, epoch, 2).await?;
        let second = prepare_nonces(&black_box, epoch, 2).await?;
        let old = prepare_nonces(&black_box, Epoch::FIRST, 2).await?;
        Ok((key, [first, second, old]))
    }));
    report.agreed(|(_, nonces)| nonces.each_ref().map(Nonces::id)).unwrap();
    report.parties.into_values().map(|party| party.result.unwrap().unwrap()).collect()
}

/// Party i binds the batch that `which` says; what party 2 sends is recorded.
fn bind_in<B: Made<Group: Curve>>(
    group: GroupOf,
    kept: Vec<Kept<B>>,
    which: impl Fn(usize) -> usize,
    sent: &Sent,
) -> Report<Vec<Tuple<B>>, theta_mpc::Misbehaviour> {
    let parts: Vec<_> = kept
        .into_iter()
        .enumerate()
        .map(|(i, (key, nonces))| Mutex::new(nonces.into_iter().nth(which(i)).map(|nonces| (key, nonces))))
        .collect();
    group.liar(2, Recorder(sent.clone())).run(|number| {
        let (key, nonces) = parts[usize::from(number) - 1].lock().unwrap().take().unwrap();
        Box::new(move |party| async move {
            let black_box = B::make(&party).await?;
            bind(&black_box, nonces, &key).await
        })
    })
}

/// Party 1 has lost a batch that the others have. Nothing leaves that depends on nonces or key but the hash of what each
/// party wants to bind: two products of one key with different nonces are an equation for it.
#[test]
fn different_nonces_are_not_bound() {
    fn test<B: Made<Group = P256>>(n: u16, t: u16) {
        let sent = Sent::default();
        let report = bind_in(GroupOf::new(n, t), kept::<B>(n, t), |i| usize::from(i == 0), &sent);
        for (number, party) in report.honest() {
            assert!(matches!(party.result, Some(Err(Abort::Cheated(_)))), "{}: {number}", B::NAME);
        }
        // After the set-up the hash, and no more; a product of two nonces would be two scalars.
        let sent = sent.lock().unwrap();
        let hashes: Vec<_> = sent.iter().filter(|(_, round, _)| *round > B::SET_UP).collect();
        assert!(!hashes.is_empty(), "{}", B::NAME);
        assert!(hashes.iter().all(|(_, round, bytes)| *round == B::SET_UP + 1 && bytes.len() == 32), "{}", B::NAME);
    }
    with_each!(P256, test);
}

#[test]
fn nonces_do_not_survive_a_refresh() {
    fn test<B: Made<Group = P256>>(n: u16, t: u16) {
        let sent = Sent::default();
        let report = bind_in(GroupOf::new(n, t), kept::<B>(n, t), |_| 2, &sent);
        assert!(report.honest().all(|(_, party)| matches!(party.result, Some(Err(Abort::Input(_))))), "{}", B::NAME);
        assert!(sent.lock().unwrap().iter().all(|(_, round, _)| *round <= B::SET_UP), "{}", B::NAME);
    }
    with_each!(P256, test);
}

#[test]
fn tuples_have_the_same_names_at_all_and_no_two_the_same() {
    fn test<B: Made<Group = P256>>(n: u16, t: u16) {
        let report = bind_in(GroupOf::new(n, t), kept::<B>(n, t), |_| 0, &Sent::default());
        let ids = report.agreed(|tuples| tuples.iter().map(Tuple::id).collect::<Vec<_>>()).unwrap();
        assert!(ids.len() == 2 && ids[0] != ids[1], "{}", B::NAME);
    }
    with_each!(P256, test);
}

/// Party 1's stock is one tuple ahead of the others'. Whoever has another tuple than the request names sends nothing: shares of s
/// with different R that go with one another are equations for the key.
#[test]
fn different_tuples_do_not_sign_together() {
    fn test<B: Made<Group = P256>>(n: u16, t: u16) {
        let mut material = material::<B>(n, t, 2, 5);
        material[0].1.remove(0);
        let sent = Sent::default();
        let group = GroupOf::new(n, t).liar(2, Recorder(sent.clone()));
        let report = sign_in(group, &mut material, request(b"one ahead"));
        for (number, party) in report.honest() {
            let refused = matches!(party.result, Some(Err(Abort::Input(_))));
            assert_eq!(refused, number.get() != 1, "{}: {number}", B::NAME);
        }
        assert!(sent.lock().unwrap().is_empty(), "{}", B::NAME);
    }
    with_each!(P256, test);
}
