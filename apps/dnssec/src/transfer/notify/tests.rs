use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream, UdpSocket},
    sync::Arc,
};

use theta_names::WallTime;

use super::*;
use crate::zone::Zone;

const NOW: u64 = 1_800_000_000;

fn zone() -> Owner {
    Zone::origin("example.").unwrap()
}

fn key(secret: &str) -> Key {
    Key::parse(&format!("hmac-sha256 transfer. {secret}")).unwrap()
}

/// A message of this opcode about a name, with a SOA record in the answer section or not.
fn message(opcode: u8, name: &str, hint: bool) -> Vec<u8> {
    let name = Zone::origin(name).unwrap().wire();
    let mut bytes =
        [&[7, 9, opcode << 3 | AUTHORITATIVE, 0, 0, 1, 0, u8::from(hint), 0, 0, 0, 0], &name[..], &SOA_IN].concat();
    if hint {
        let numbers = [0, 0, 0, 9].repeat(5);
        let data = [&[0, 0], &numbers[..]].concat();
        bytes.extend([&[0xc0, 12][..], &SOA_IN, &[0, 0, 0, 60, 0, 22], &data].concat());
    }
    bytes
}

fn signed(mut message: Vec<u8>, secret: &str, now: u64) -> Vec<u8> {
    let key = key(secret);
    Sequence::request(&key, &mut message, now);
    message
}

fn code(said: &Said) -> u8 {
    said.answer[3]
}

#[test]
fn a_primary_that_has_the_key_is_believed_and_answered() {
    for hint in [false, true] {
        let key = key("AAAA");
        let mut asked = message(4, "EXAMPLE.", hint);
        let mut sequence = Sequence::request(&key, &mut asked, NOW);
        let said = hear(&asked, &zone(), &key, NOW + 200).unwrap();
        assert_eq!(said.objection, None);
        assert_eq!(said.answer[..4], [7, 9, RESPONSE | NOTIFY | AUTHORITATIVE, GOOD]);
        assert!(said.answer.len() <= asked.len());
        // The answer is signed as RFC 8945 has it for answers.
        sequence.answer(&said.answer, NOW).unwrap();
        sequence.finish().unwrap();
    }
}

#[test]
fn whoever_else_tells_something_is_not_believed() {
    let cases = [
        (message(4, "example.", true), NOT_AUTHORISED, "a message is not signed"),
        (signed(message(4, "example.", true), "BBBB", NOW), NOT_AUTHORISED, "the signature of a message is wrong"),
        (signed(message(4, "example.", true), "AAAA", NOW - 301), NOT_AUTHORISED, "one of the two clocks is wrong"),
        (signed(message(4, "example.org.", true), "AAAA", NOW), NOT_AUTHORISED, "something else than the SOA record"),
        (signed(message(0, "example.", false), "AAAA", NOW), NOT_IMPLEMENTED, "it is no NOTIFY"),
        (signed(message(5, "example.", false), "AAAA", NOW), NOT_IMPLEMENTED, "it is no NOTIFY"),
    ];
    for (asked, expected, words) in cases {
        let said = hear(&asked, &zone(), &key("AAAA"), NOW).unwrap();
        let objection = said.objection.clone().unwrap();
        assert!(objection.contains(words), "{objection}");
        assert_eq!(code(&said), expected, "{objection}");
        assert!(said.answer.len() <= asked.len(), "nothing is amplified");
    }
}

#[test]
fn what_is_no_question_is_not_answered() {
    let good = signed(message(4, "example.", true), "AAAA", NOW);
    let mut answer = good.clone();
    answer[2] |= RESPONSE;
    assert_eq!(hear(&answer, &zone(), &key("AAAA"), NOW), None);
    for (place, byte) in [(5, 0), (5, 2), (4, 1), (12, 0xc0), (12, 64)] {
        let mut bent = good.clone();
        bent[place] = byte;
        assert_eq!(hear(&bent, &zone(), &key("AAAA"), NOW), None, "{place} {byte}");
    }
    // Of no part of it is it believed that it is the whole, and none of them is a panic.
    for end in 0..good.len() {
        let said = hear(&good[..end], &zone(), &key("AAAA"), NOW);
        assert!(said.is_none_or(|said| said.objection.is_some()), "{end}");
    }
    for place in 0..good.len() {
        let mut bent = good.clone();
        bent[place] ^= 1;
        // The lowest bit of a letter of a name or of the id of the signed message changes what is signed as well.
        let said = hear(&bent, &zone(), &key("AAAA"), NOW);
        assert!(place < 2 || said.is_none_or(|said| said.objection.is_some()), "{place}");
    }
}

#[test]
fn it_is_told_by_udp_and_tcp() {
    let news = Arc::new(News::default());
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let address = listen(anywhere, zone(), key("AAAA"), Arc::clone(&news)).unwrap();
    let are_there = || std::mem::take(&mut *news.are_there.lock().unwrap());
    let now = WallTime::now().seconds();
    let good = signed(message(4, "example.", true), "AAAA", now);
    let false_one = signed(message(4, "example.", true), "BBBB", now);

    let socket = UdpSocket::bind(anywhere).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut buffer = [0; 5_000];
    // The one that is too long is not answered, and the others are.
    for (sent, expected) in [(&vec![0; 4_097], None), (&false_one, Some(false)), (&good, Some(true))] {
        socket.send_to(sent, address).unwrap();
        let Some(is_news) = expected else { continue };
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!((from, buffer[3] == GOOD), (address, is_news), "{length}");
        assert_eq!(are_there(), is_news);
    }

    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    for sent in [&false_one, &good] {
        let length = u16::try_from(sent.len()).unwrap().to_be_bytes();
        // In two pieces.
        stream.write_all(&length).unwrap();
        stream.write_all(sent).unwrap();
        let mut length = [0; 2];
        stream.read_exact(&mut length).unwrap();
        let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..2], [7, 9]);
    }
    assert!(are_there());
    // As many as are served at once, which say nothing, keep nobody from the other way in.
    let silent: Vec<_> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    socket.send_to(&good, address).unwrap();
    socket.recv_from(&mut buffer).unwrap();
    assert!(are_there());
    drop(silent);
}

#[test]
fn news_are_waited_for_and_a_storm_of_them_is_one_question_a_second() {
    let news = Arc::new(News::default());
    let began = Instant::now();
    news.wait(Duration::from_millis(50), began);
    assert!(began.elapsed() >= Duration::from_millis(50), "without news it takes its time");
    let other = Arc::clone(&news);
    let storm = thread::spawn(move || {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(2_500) {
            other.tell();
            thread::sleep(Duration::from_millis(1));
        }
    });
    let (storming, mut questions) = (Instant::now(), 0_u64);
    while !storm.is_finished() {
        news.wait(Duration::from_secs(2), Instant::now());
        questions += 1;
    }
    storm.join().unwrap();
    let most = storming.elapsed().as_secs() + 2;
    assert!((1..=most).contains(&questions), "{questions}, and not more than {most}");
}
