//! Hosts that replay, skip, reorder, change the past and invent.

use super::*;

fn node(number: u16) -> NodeId {
    NodeId::try_from(number).unwrap()
}

/// A node whose host has asked it where it is.
fn begun() -> (Arc<TobProxy>, mpsc::Receiver<Ordered>) {
    let (proxy, out) = TobProxy::new(node(1));
    assert_eq!(proxy.tell_position(), None);
    (proxy, out)
}

fn block(height: u64, messages: &[(u16, &'static str)]) -> Block {
    let message = |(from, text): &(u16, &'static str)| (node(*from), Bytes::from_static(text.as_bytes()));
    Block { height, messages: messages.iter().map(message).collect() }
}

fn drain(receiver: &mut mpsc::Receiver<Ordered>) -> Vec<(u64, u16, String)> {
    core::iter::from_fn(|| receiver.try_recv().ok())
        .map(|Ordered { height, message: Inbound { from, channel, bytes } }| {
            assert_eq!(channel, Channel::Ordered);
            (height, from.get(), String::from_utf8(bytes.to_vec()).unwrap())
        })
        .collect()
}

fn message(height: u64, from: u16, text: &str) -> (u64, u16, String) {
    (height, from, text.to_owned())
}

#[tokio::test]
async fn messages_come_in_their_order_once() {
    let (proxy, mut out) = begun();
    assert_eq!(proxy.position(), None);
    // The host begins where it likes.
    let blocks = vec![block(11, &[(2, "a"), (1, "b")]), block(13, &[(3, "c")])];
    assert_eq!(proxy.deliver(10, 13, blocks.clone()).await, Ok(13));
    assert_eq!(drain(&mut out), [message(11, 2, "a"), message(11, 1, "b"), message(13, 3, "c")]);
    // It replays all, and adds something; then it replays everything.
    let more = [blocks.clone(), vec![block(14, &[(2, "d")])]].concat();
    assert_eq!(proxy.deliver(10, 14, more).await, Ok(14));
    assert_eq!(proxy.deliver(10, 13, blocks).await, Ok(14));
    assert_eq!(drain(&mut out), [message(14, 2, "d")]);
    // Heights without messages count.
    assert_eq!(proxy.deliver(14, 20, Vec::new()).await, Ok(20));
    assert_eq!(proxy.position(), Some(20));
}

/// The node has restarted, and its host goes on from where the process before was.
#[tokio::test]
async fn a_host_that_has_not_asked_since_the_node_began_is_told_to() {
    let (proxy, mut out) = TobProxy::new(node(1));
    assert_eq!(proxy.position(), None, "to look is not to be asked");
    let blocks = vec![block(901, &[(2, "new")])];
    assert_eq!(proxy.deliver(900, 901, blocks.clone()).await, Err(OrderError::Unasked));
    assert_eq!((proxy.position(), drain(&mut out)), (None, vec![]));
    assert_eq!(proxy.tell_position(), None);
    let all = [vec![block(700, &[(3, "lately")])], blocks].concat();
    assert_eq!(proxy.deliver(645, 901, all).await, Ok(901));
    assert_eq!(drain(&mut out), [message(700, 3, "lately"), message(901, 2, "new")]);
}

#[tokio::test]
async fn a_gap_is_told_and_nothing_of_the_delivery_is_taken() {
    let (proxy, mut out) = begun();
    proxy.deliver(0, 5, Vec::new()).await.unwrap();
    let gap = proxy.deliver(7, 8, vec![block(8, &[(2, "x")])]).await;
    assert_eq!(gap, Err(OrderError::Gap { position: 5, after: 7 }));
    assert_eq!(drain(&mut out), []);
    assert_eq!(proxy.deliver(5, 8, vec![block(8, &[(2, "x")])]).await, Ok(8));
}

#[tokio::test]
async fn another_past_is_refused_until_it_is_taken_back() {
    let (proxy, mut out) = begun();
    let past = vec![block(2, &[(2, "a")]), block(3, &[(3, "b")])];
    proxy.deliver(0, 4, past.clone()).await.unwrap();
    drain(&mut out);
    for (blocks, height) in [
        (vec![block(2, &[(2, "A")]), block(3, &[(3, "b")])], 2),
        (vec![block(2, &[(4, "a")]), block(3, &[(3, "b")])], 2),
        (vec![block(2, &[(2, "a")])], 3),
        (vec![block(2, &[(2, "a")]), block(3, &[(3, "b")]), block(4, &[(1, "new")])], 4),
        (vec![block(2, &[(2, "a"), (2, "a")]), block(3, &[(3, "b")])], 2),
    ] {
        let blocks = [blocks, vec![block(5, &[(1, "next")])]].concat();
        assert_eq!(proxy.deliver(0, 5, blocks).await, Err(OrderError::OtherPast(height)));
    }
    assert_eq!(drain(&mut out), []);
    assert_eq!(proxy.deliver(0, 5, [past, vec![block(5, &[(1, "next")])]].concat()).await, Ok(5));
    assert_eq!(drain(&mut out), [message(5, 1, "next")]);
}

#[tokio::test]
async fn heights_rise_and_sizes_are_bounded() {
    let (proxy, mut out) = begun();
    for (after, through, blocks, height) in [
        (0, 5, vec![block(3, &[]), block(3, &[])], 3),
        (0, 5, vec![block(3, &[]), block(2, &[])], 2),
        (3, 5, vec![block(3, &[])], 3),
        (0, 5, vec![block(6, &[])], 6),
        (5, 4, vec![], 4),
    ] {
        assert_eq!(proxy.deliver(after, through, blocks).await, Err(OrderError::Heights { after, through, height }));
    }
    let long = Block { height: 1, messages: vec![(node(2), vec![0; MOST_MESSAGE + 1].into())] };
    let many = Block { height: 1, messages: vec![(node(2), Bytes::new()); MOST_AT_HEIGHT + 1] };
    for block in [long, many] {
        assert_eq!(proxy.deliver(0, 1, vec![block]).await, Err(OrderError::TooLarge));
    }
    assert_eq!((proxy.position(), drain(&mut out)), (None, vec![]));
}

#[tokio::test]
async fn a_node_that_does_not_read_slows_its_host_down_and_one_that_has_ended_says_so() {
    let (proxy, mut out) = begun();
    let many = Block { height: 1, messages: vec![(node(2), Bytes::from_static(b"x")); INBOX + 1] };
    let delivering = tokio::spawn({
        let (proxy, many) = (Arc::clone(&proxy), many.clone());
        async move { proxy.deliver(0, 1, vec![many]).await }
    });
    tokio::time::sleep(core::time::Duration::from_millis(50)).await;
    assert!(!delivering.is_finished() && proxy.position().is_none());
    out.recv().await.unwrap();
    assert_eq!(delivering.await.unwrap(), Ok(1));
    drop(out);
    assert_eq!(proxy.deliver(1, 2, vec![block(2, &[(2, "x")])]).await, Err(OrderError::Closed));
}

#[tokio::test]
async fn what_is_to_be_ordered_is_offered_until_it_is() {
    let (proxy, _out) = begun();
    let outgoing = proxy.outgoing();
    for text in ["a", "b", "a"] {
        outgoing.add(Bytes::from_static(text.as_bytes())).unwrap();
    }
    assert_eq!(outgoing.len(), 2, "one that waits is not added again");
    let (first, a) = outgoing.next(0).await;
    let (second, b) = outgoing.next(first + 1).await;
    assert_eq!((a.as_ref(), b.as_ref()), (&b"a"[..], &b"b"[..]));
    assert_eq!(outgoing.next(0).await, (first, a.clone()), "a host that came again gets all of it");
    // Another node's message of the same words does not count, its own does.
    proxy.deliver(0, 1, vec![block(1, &[(2, "a"), (1, "b")])]).await.unwrap();
    assert_eq!(outgoing.next(0).await.1, a);
    assert_eq!(outgoing.len(), 1);
    let waiting = tokio::spawn({
        let proxy = Arc::clone(&proxy);
        async move { proxy.outgoing().next(second + 1).await.1 }
    });
    tokio::task::yield_now().await;
    outgoing.add(Bytes::from_static(b"c")).unwrap();
    assert_eq!(waiting.await.unwrap().as_ref(), b"c");
    assert!(outgoing.add(vec![0; MOST_MESSAGE + 1].into()).is_err());
    for number in 0..3_000_u32 {
        outgoing.add(number.to_be_bytes().to_vec().into()).unwrap();
    }
    assert_eq!(outgoing.len(), 1_024);
}
