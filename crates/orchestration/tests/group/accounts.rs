//! One peer or one client takes no more than its own room.

use std::{sync::Arc, time::Duration};

use crate::gated::Request;
use bytes::Bytes;
use theta_orchestration::{Asker, InstanceError, OrchestratorConfig};
use theta_schemes::Suite;
use theta_wire::peer::{Envelope, VERSION};
use tokio::time::timeout;

use crate::{
    group::{Group, PATIENCE, config, eventually},
    wire::seal,
};

const SUITE: Suite = Suite::Cks05Ristretto255;

/// The CPU thread of a request.
fn thread_of(group: &Group, request: &Request) -> u16 {
    let id = group.id(request).0;
    u16::from_be_bytes([id[0], id[1]]) % 2
}

/// A request for an instance of this thread.
fn request_for(group: &Group, thread: u16) -> Request {
    let mut requests = (0..).map(|number| group.request(SUITE, &format!("request {number}")));
    requests.find(|request| thread_of(group, request) == thread).unwrap()
}

fn asker(name: &str, result_bytes: usize) -> Asker {
    Asker { name: name.into(), result_bytes, place: Arc::new(()) }
}

/// The attack: while one thread is busy, a peer sends it ten times as much as its inbox holds. The router waited for
/// it, and so did all other threads and the custodian.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_full_inbox_does_not_stop_the_router() {
    let limits = OrchestratorConfig { inbox: 64, backlog_messages_per_peer: 200, ..config() };
    let group = Group::new(2, 4, &[SUITE], &limits);
    let gate = Arc::new(std::sync::Barrier::new(2));
    let (node, closed) = (Arc::clone(group.node(1)), Arc::clone(&gate));
    let (told, mut name) = tokio::sync::mpsc::channel(1);
    let held = tokio::spawn(async move {
        node.compute(move |_| {
            told.try_send(std::thread::current().name().unwrap().to_owned()).unwrap();
            closed.wait();
        })
        .await
    });
    let name = name.recv().await.unwrap();
    let busy: u16 = name.strip_prefix("theta-cpu-").unwrap().parse().unwrap();
    for number in 0..1_000_u32 {
        let mut id = [0; 32];
        id[..2].copy_from_slice(&busy.to_be_bytes());
        id[2..6].copy_from_slice(&number.to_be_bytes());
        let junk = Envelope {
            version: VERSION,
            instance_id: Bytes::copy_from_slice(&id),
            kind: 1,
            number: 1,
            payload: Bytes::from_static(&[7; 100]),
            ..Envelope::default()
        };
        timeout(PATIENCE, group.wire.inject(4, 1, seal(&junk))).await.expect("the router has stopped");
    }
    let request = request_for(&group, 1 - busy);
    let others = [2, 3].map(|node| (Arc::clone(group.node(node)), request.clone()));
    for (node, request) in others {
        node.submit(request).await.unwrap();
    }
    let answered = timeout(PATIENCE, group.node(1).run(request)).await.expect("the other thread hears nothing");
    answered.unwrap().1.unwrap();
    // A hundred messages for each thread fit into the peer's room; the rest is counted.
    assert!((group.metric(1, "theta_mail_dropped_total") - 900.0).abs() < 0.1);
    tokio::task::spawn_blocking(move || gate.wait()).await.unwrap();
    held.await.unwrap().unwrap();
    let request = request_for(&group, busy);
    group.run(&request).await;
}

/// An instance for which nobody waits, with nobody to answer, ends long before its time is over, and can be started
/// again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_in_vain_ends_early() {
    let limits = OrchestratorConfig { unattended: Duration::from_millis(300), ..config() };
    let mut group = Group::new(2, 4, &[SUITE], &limits);
    let request = group.request(SUITE, "in vain");
    // The peers are connected and send nothing: they may still be asked.
    let connected = group.node(1).submit(group.request(SUITE, "not in vain")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(group.node(1).load().running, 1);
    for node in 2..=4 {
        group.stop(node);
    }
    eventually("what nobody waits for ends", || group.node(1).load().running == 0).await;
    assert!(matches!(group.node(1).outcome(connected).await, Err(InstanceError::Expired(_))));
    // A caller waits for this one.
    let (node, asked) = (Arc::clone(group.node(1)), request.clone());
    let waiting = tokio::spawn(async move { node.run(asked).await });
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(group.node(1).load().running, 1);
    // Then the caller goes away.
    waiting.abort();
    eventually("who waited has gone", || group.node(1).load().running == 0).await;
    for node in 2..=4 {
        group.start(node, limits.clone());
    }
    group.run(&request).await;
}

/// A client that asks for a hundred things takes no room of another client's results.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_of_one_asker_make_room_for_its_own() {
    let limits = OrchestratorConfig { results_count: 60, results_bytes: 600_000, ..config() };
    let group = Group::new(2, 4, &[SUITE], &limits);
    let mut few = Vec::new();
    for number in 0..200 {
        let name = if number % 20 == 0 { "few" } else { "many" };
        let request = group.request(SUITE, &format!("result {number}"));
        for node in [2, 3] {
            group.node(node).submit(request.clone()).await.unwrap();
        }
        let run = group.node(1).run_for(request.clone(), asker(name, 200_000));
        let (id, outcome) = timeout(PATIENCE, run).await.unwrap().unwrap();
        outcome.unwrap();
        if name == "few" {
            few.push(id);
        }
    }
    let kept = group.node(1).load().results;
    assert!((40..=60).contains(&kept), "{kept}");
    // Ten of the other client's results are older than most of those.
    for id in few {
        group.node(1).outcome(id).await.unwrap();
    }
}

/// The place among the running instances is given back when the instance ends, and at once if none is started.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_is_held_as_long_as_its_instance_runs() {
    let group = Group::of_four(&[SUITE]);
    let request = group.request(SUITE, "a place");
    let place = Arc::new(());
    let asker = || Asker { name: "a".into(), result_bytes: 1 << 20, place: Arc::clone(&place) as _ };
    group.node(1).submit_for(request.clone(), asker()).await.unwrap();
    group.node(1).submit_for(request.clone(), asker()).await.unwrap();
    eventually("the second joins the first", || Arc::strong_count(&place) == 2).await;
    group.run(&request).await;
    eventually("it has ended", || Arc::strong_count(&place) == 1).await;
    let wrong = Request { key: "nobodys".to_owned(), ..request };
    group.node(1).submit_for(wrong, asker()).await.unwrap_err();
    assert_eq!(Arc::strong_count(&place), 1);
}
