use super::*;

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn connections() -> Arc<Connections> {
    Connections::new(ConnectionBounds {
        all: 8,
        client: 4,
        strangers: 4,
        idle: Duration::from_secs(600),
        stranger_idle: Duration::from_secs(10),
    })
}

fn there(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn name(name: &str) -> Option<Name> {
    Some(name.parse().unwrap())
}

fn is_ended(listed: &mut Listed) -> bool {
    listed.ended.try_recv() == Err(oneshot::error::TryRecvError::Closed)
}

#[test]
fn strangers_make_room_for_strangers() {
    let connections = connections();
    let mut client = connections.enter(name("client"), HERE).unwrap();
    let mut far = connections.enter(None, there(1)).unwrap();
    let mut near: Vec<_> = (0..100).map(|_| connections.enter(None, HERE).unwrap()).collect();
    assert!(!is_ended(&mut client) && !is_ended(&mut far), "one address has its share");
    assert!(near[..97].iter_mut().all(is_ended) && !near[97..].iter_mut().any(is_ended));
    assert_eq!((connections.count(), connections.ended()), (5, 97));
    let _more: Vec<_> = (2..9).map(|last| connections.enter(None, there(last)).unwrap()).collect();
    assert!(is_ended(&mut far) && !is_ended(&mut client));
    assert_eq!(connections.count(), 5);
    drop((near, far, client));
    assert_eq!(connections.count(), 4, "what was ended is not taken off twice");
}

#[test]
fn a_client_makes_room_for_itself_its_idle_ones_first() {
    let connections = connections();
    let mut all: Vec<_> = (0..4).map(|_| connections.enter(name("client"), HERE).unwrap()).collect();
    all[0].connection.begin();
    all.push(connections.enter(name("client"), HERE).unwrap());
    assert!(!is_ended(&mut all[0]) && is_ended(&mut all[1]) && !is_ended(&mut all[2]));
    assert_eq!(connections.count(), 4);
}

#[test]
fn when_all_are_taken_strangers_go_and_then_the_idle_of_who_has_most() {
    let connections = connections();
    let mut stranger = connections.enter(None, HERE).unwrap();
    let mut first: Vec<_> = (0..4).map(|_| connections.enter(name("first"), HERE).unwrap()).collect();
    let mut second: Vec<_> = (0..3).map(|_| connections.enter(name("second"), HERE).unwrap()).collect();
    let third = connections.enter(name("third"), HERE).unwrap();
    assert!(is_ended(&mut stranger));
    first[0].connection.begin();
    let fourth = connections.enter(name("fourth"), HERE).unwrap();
    assert!(!is_ended(&mut first[0]) && is_ended(&mut first[1]) && !second.iter_mut().any(is_ended));
    for listed in first[2..].iter().chain(&second).chain([&third, &fourth]) {
        listed.connection.begin();
    }
    assert_eq!(connections.enter(name("fifth"), HERE).unwrap_err(), TooMany, "all of them are at work");
    assert_eq!(connections.count(), 8);
}

#[test]
fn who_is_recognised_is_a_stranger_no_more() {
    let connections = connections();
    let mut token = connections.enter(None, HERE).unwrap();
    connections.recognise(&token.connection, &name("robot").unwrap());
    let _many: Vec<_> = (0..100).map(|_| connections.enter(None, HERE).unwrap()).collect();
    token.connection.end_unless_recognised();
    assert!(!is_ended(&mut token));
    let now = Instant::now();
    connections.patrol(now + Duration::from_secs(11));
    assert!(!is_ended(&mut token));
    assert_eq!(connections.count(), 1, "idle strangers go");
    token.connection.begin();
    connections.patrol(now + Duration::from_secs(700));
    assert!(!is_ended(&mut token), "it is at work");
    token.connection.finish(now);
    connections.patrol(now + Duration::from_secs(601));
    assert!(is_ended(&mut token));
}

#[test]
fn where_descriptors_end_a_stranger_gives_way_and_nobody_at_work() {
    let connections = connections();
    let (mut busy, mut idle) =
        (connections.enter(name("client"), HERE).unwrap(), connections.enter(name("client"), HERE).unwrap());
    busy.connection.begin();
    let mut stranger = connections.enter(None, HERE).unwrap();
    assert!(connections.give_way() && is_ended(&mut stranger) && !is_ended(&mut idle));
    assert!(connections.give_way() && is_ended(&mut idle) && !is_ended(&mut busy));
    assert!(!connections.give_way());
}

#[test]
fn where_there_is_room_for_fewer_even_those_at_work_are_closed_at_last() {
    let connections = connections();
    let mut all: Vec<_> = (0..4).map(|_| connections.enter(name("client"), HERE).unwrap()).collect();
    let mut stranger = connections.enter(None, HERE).unwrap();
    for listed in &all[..3] {
        listed.connection.begin();
    }
    connections.resize(2);
    assert!(is_ended(&mut stranger) && is_ended(&mut all[3]) && is_ended(&mut all[0]));
    assert!(!is_ended(&mut all[1]) && !is_ended(&mut all[2]));
    assert_eq!(connections.enter(name("another"), HERE).unwrap_err(), TooMany);
    connections.resize(3);
    connections.enter(name("another"), HERE).unwrap();
}
