//! A name server of the test's own. Its signatures are written from RFC 8945, without the agent's code.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::hmac;

/// The secret, and the line that has it.
pub(crate) const SECRET: &[u8] = b"an example's secret, of 32 bytes";
pub(crate) const LINE: &str = "hmac-sha256 Transfer. YW4gZXhhbXBsZSdzIHNlY3JldCwgb2YgMzIgYnl0ZXM=\n";
const NAME: &[u8] = b"\x08transfer\0";
const ALGORITHM: &[u8] = b"\x0bhmac-sha256\0";
const ORIGIN: &[u8] = b"\x07example\0";
const IXFR: u16 = 251;
const AXFR: u16 = 252;

/// What is wrong with what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    Nothing,
    /// All but the last message are covered by its signature: that is allowed.
    SignedAtTheEnd,
    OtherSecret,
    /// A bit of the message with this number is changed after it was signed.
    Bent(usize),
    /// The first message is not signed.
    Unsigned,
    /// The last one is not.
    EndUnsigned,
    /// One message is left out.
    Missing,
    /// Two change places.
    Swapped,
    /// It ends after the first message.
    Cut,
    /// The signatures are an hour old.
    Old,
    Refused,
    OtherId,
    Empty,
    /// It knows of no IXFR (NOTIMP).
    NoDifferences,
    /// A bit of the first message with differences is changed after it was signed.
    BentDifferences,
}

/// What it has.
#[derive(Debug)]
pub(crate) struct Said {
    /// The records of each message.
    pub(crate) messages: Vec<Vec<Vec<u8>>>,
    /// What it answers if it is asked for differences; otherwise that is the whole zone.
    pub(crate) differences: Option<Vec<Vec<Vec<u8>>>>,
    /// Since which serials it was asked for these.
    pub(crate) serials: Vec<u32>,
    /// The answer to a question about the serial.
    pub(crate) start: Vec<u8>,
    pub(crate) lie: Lie,
    /// How many whole transfers were asked for.
    pub(crate) transfers: usize,
}

pub(crate) fn record(owner: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    record_for(owner, kind, 300, data)
}

/// A record with this time to live.
pub(crate) fn record_for(owner: &[u8], kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap().to_be_bytes();
    [owner, &kind.to_be_bytes(), &1_u16.to_be_bytes(), &ttl.to_be_bytes(), &length, data].concat()
}

/// The start of authority; the names point to that of the question.
pub(crate) fn start(serial: u32) -> Vec<u8> {
    start_for(serial, 86_400)
}

/// The same; copies expire after so many seconds.
pub(crate) fn start_for(serial: u32, expire: u32) -> Vec<u8> {
    let numbers = [serial, 3_600, 60, expire, 60].map(u32::to_be_bytes).concat();
    record(b"\xc0\x0c", 6, &[&b"\x02ns\xc0\x0c\x05admin\xc0\x0c"[..], &numbers].concat())
}

pub(crate) fn address(name: &str, address: [u8; 4]) -> Vec<u8> {
    let name = [&[u8::try_from(name.len()).unwrap()], name.as_bytes(), b"\xc0\x0c"].concat();
    record(&name, 1, &address)
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) said: Arc<Mutex<Said>>,
}

impl Server {
    /// A zone of two messages, or more.
    pub(crate) fn start(lie: Lie) -> Self {
        let messages = vec![
            vec![start(7), address("www", [192, 0, 2, 1])],
            vec![address("WWW", [192, 0, 2, 2])],
            vec![address("mail", [192, 0, 2, 7]), start(7)],
        ];
        let said = Arc::new(Mutex::new(Said {
            messages,
            differences: None,
            serials: vec![],
            start: start(7),
            lie,
            transfers: 0,
        }));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, shared) = (listener.local_addr().unwrap(), Arc::clone(&said));
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &shared);
            }
        });
        Self { address, said }
    }
}

fn message(id: [u8; 2], code: u8, records: &[Vec<u8>], kind: u16) -> Vec<u8> {
    let count = u16::try_from(records.len()).unwrap().to_be_bytes();
    let header = [id, [0x84, code], [0, 1], count, [0; 2], [0; 2]].concat();
    [&header, ORIGIN, &kind.to_be_bytes(), &[0, 1], &records.concat()[..]].concat()
}

/// Adds a signature of a message to it; what it is of besides, and its MAC.
fn sign(message: &mut Vec<u8>, before: &[u8], is_first: bool, secret: &[u8], time: u64) -> Vec<u8> {
    let timers = [&time.to_be_bytes()[2..], &300_u16.to_be_bytes()].concat();
    let variables = [NAME, &[0, 255, 0, 0, 0, 0], ALGORITHM, &timers, &[0; 4]].concat();
    let whole = [before, message, if is_first { &variables } else { &timers }].concat();
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), &whole);
    let data = [ALGORITHM, &timers, &[0, 32], mac.as_ref(), &message[..2], &[0; 4]].concat();
    let length = u16::try_from(data.len()).unwrap().to_be_bytes();
    message.extend([NAME, &[0, 250, 0, 255, 0, 0, 0, 0], &length, &data].concat());
    message[11] = 1;
    [&[0, 32], mac.as_ref()].concat()
}

fn receive(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message).unwrap();
    message
}

/// The kind of a question, the serial of the SOA record that it has if it is about differences (RFC 1995, section 3), and its MAC; its signature
/// has to be good.
fn question(bytes: &[u8], secret: &[u8]) -> (u16, Option<u32>, Vec<u8>) {
    let end = 12 + ORIGIN.len() + 4;
    let kind = u16::from_be_bytes([bytes[end - 4], bytes[end - 3]]);
    let records = u8::from(kind == IXFR);
    assert_eq!((&bytes[2..12], &bytes[12..end - 4]), (&[0, 0, 0, 1, 0, 0, 0, records, 0, 1][..], ORIGIN));
    let (serial, end) = if kind == IXFR { authority(bytes, end) } else { (None, end) };
    let mut own = bytes[..end].to_vec();
    own[11] = 0;
    let place = end + NAME.len() + 10 + ALGORITHM.len();
    let time = u64::from_be_bytes([&[0; 2], &bytes[place..place + 6]].concat().try_into().unwrap());
    let mac = sign(&mut own, &[], true, secret, time);
    assert_eq!(own, bytes, "the question is signed");
    (kind, serial, mac)
}

/// The serial of the SOA record at a place, and where it ends.
fn authority(bytes: &[u8], place: usize) -> (Option<u32>, usize) {
    let data = place + ORIGIN.len() + 10;
    let owner_and_type = [ORIGIN, &[0, 6, 0, 1]].concat();
    assert_eq!(bytes[place..data - 6], owner_and_type);
    let end = data + usize::from(u16::from_be_bytes([bytes[data - 2], bytes[data - 1]]));
    (Some(u32::from_be_bytes(bytes[end - 20..end - 16].try_into().unwrap())), end)
}

fn answer(mut stream: TcpStream, said: &Mutex<Said>) {
    let bytes = receive(&mut stream);
    let (kind, serial, mut before) = question(&bytes, SECRET);
    let (messages, lie) = {
        let mut said = said.lock().unwrap();
        said.transfers += usize::from(kind == AXFR);
        said.serials.extend(serial);
        let messages = match kind {
            AXFR => said.messages.clone(),
            IXFR => said.differences.clone().unwrap_or_else(|| said.messages.clone()),
            _ => vec![vec![said.start.clone()]],
        };
        (messages, said.lie)
    };
    let id = [bytes[0] ^ u8::from(lie == Lie::OtherId), bytes[1]];
    let secret = if lie == Lie::OtherSecret { b"another" } else { SECRET };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let time = if lie == Lie::Old { now - 3_600 } else { now };
    let (mut sent, mut is_first, last) = (Vec::new(), true, messages.len() - 1);
    for (place, records) in messages.iter().enumerate() {
        let (code, records) = match lie {
            Lie::Refused => (5, &[][..]),
            Lie::Empty if place == 1 => (0, &[][..]),
            Lie::NoDifferences if kind == IXFR => (4, &[][..]),
            _ => (0, &records[..]),
        };
        let mut message = message(id, code, records, kind);
        let is_signed = match lie {
            Lie::Unsigned => place > 0,
            Lie::EndUnsigned => place < last,
            Lie::SignedAtTheEnd => place == 0 || place == last,
            _ => true,
        };
        if is_signed {
            before = sign(&mut message, &before, is_first, secret, time);
            is_first = false;
        } else {
            before.extend(&message);
        }
        if lie == Lie::Bent(place) || (lie == Lie::BentDifferences && kind == IXFR && place == 0) {
            // In the data of the last record before the signature.
            let place = message.iter().rposition(|byte| *byte == 192).unwrap();
            message[place] ^= 1;
        }
        sent.push(message);
    }
    match lie {
        Lie::Missing if last > 0 => drop(sent.remove(1)),
        Lie::Swapped if last > 1 => sent.swap(1, 2),
        Lie::Cut => sent.truncate(1),
        _ => {}
    }
    for message in sent {
        let length = u16::try_from(message.len()).unwrap().to_be_bytes();
        // The other side may have heard enough.
        if stream.write_all(&[&length, &message[..]].concat()).is_err() {
            return;
        }
    }
}
