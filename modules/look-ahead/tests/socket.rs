//! Questions and answers over a socket.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests are test code, too"
)]

use std::{
    io::{Read as _, Write as _},
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixListener, UnixStream},
    },
    path::Path,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use socket2::{Domain, SockAddr, Socket, Type};
use theta_look_ahead::{Answer, AskError, Digest, Listing, Question, ask, is_served, serve};

const PATIENCE: Duration = Duration::from_secs(20);

/// Knows digests of one byte, repeated.
struct Bytes;

impl Listing for Bytes {
    fn list(&self, question: &Question) -> Answer {
        match question.digest[0] {
            0 => Err("no record set".to_owned()),
            // The service goes on after one that was answered by nothing.
            255 => panic!("a test"),
            first => Ok((first + 1..=254).map(|byte| [byte; 32]).take(question.most.into()).collect()),
        }
    }
}

fn question(byte: u8, most: u16) -> Question {
    Question { digest: [byte; 32], before: 0, most }
}

fn asked(socket: &Path, question: &Question) -> Result<Vec<Digest>, AskError> {
    ask(socket, question, PATIENCE)
}

#[test]
fn a_question_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let service = serve(&socket, Bytes).unwrap();
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o660);
    assert_eq!(asked(&socket, &question(7, 2)).unwrap(), [[8; 32], [9; 32]]);
    assert_eq!(asked(&socket, &question(252, 4_096)).unwrap(), [[253; 32], [254; 32]]);
    let words = asked(&socket, &question(0, 2)).unwrap_err();
    assert!(matches!(&words, AskError::Unknown { words, .. } if words == "no record set"), "{words}");
    assert!(matches!(asked(&socket, &question(255, 2)), Err(AskError::Absent { .. })));
    is_served(&socket, PATIENCE).unwrap();
    // What is asked for nothing is not looked for.
    assert_eq!(asked(&socket, &question(255, 0)).unwrap(), [[0; 32]; 0]);
    drop(service);
    assert!(!socket.exists());
    let words = is_served(&socket, PATIENCE).unwrap_err().to_string();
    assert!(words.starts_with("nobody answers at ") && words.contains("No such file"), "{words}");
}

/// Whoever sends nothing, or something else, keeps nobody from asking; those who only wait are few.
#[test]
fn whoever_says_nothing_is_no_hindrance() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _service = serve(&socket, Bytes).unwrap();
    for bytes in [&b"GET / HTTP/1.1\r\nhost: agent.example\r\n\r\n"[..], &[1, 0, 0, 255, 255], &[]] {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = Vec::new();
        // It may end before all was read.
        let _ = stream.read_to_end(&mut said);
        assert_eq!(said, b"");
    }
    let mut waiting: Vec<UnixStream> = (0..16).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let deadline = Instant::now() + PATIENCE;
    while asked(&socket, &question(7, 1)).is_ok() {
        assert!(Instant::now() < deadline, "there is a place for everybody");
    }
    waiting.pop();
    while asked(&socket, &question(7, 1)).is_err() {
        assert!(Instant::now() < deadline, "a place that is free is given to nobody");
    }
}

/// An answer that does not come in time, drips, or has no end.
#[test]
fn no_answer_is_waited_for_longer_than_was_said() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let bytes: &[u8] = if number == 0 { b"" } else { &[1, 0, 0, 2] };
                let _ = stream.write_all(bytes);
                while number != 1 || stream.write_all(&[7]).is_ok() {
                    thread::sleep(Duration::from_millis(20));
                }
            });
        }
    });
    for _ in 0..3 {
        let began = Instant::now();
        let words = ask(&socket, &question(7, 2), Duration::from_millis(200)).unwrap_err().to_string();
        assert!(words.contains("timed out"), "{words}");
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}

/// Whoever serves takes no connections, and its queue is full.
#[test]
fn no_place_in_a_queue_is_waited_for_longer_than_was_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let busy = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    busy.bind(&SockAddr::unix(&path).unwrap()).unwrap();
    busy.listen(0).unwrap();
    let waiting: Vec<Socket> = (0..8).map(|_| Socket::new(Domain::UNIX, Type::STREAM, None).unwrap()).collect();
    for socket in &waiting {
        socket.set_nonblocking(true).unwrap();
        let _ = socket.connect(&SockAddr::unix(&path).unwrap());
    }
    let (said, answer) = mpsc::channel();
    thread::spawn(move || {
        let answer = ask(&path, &question(7, 2), Duration::from_millis(200)).map_err(|error| error.to_string());
        let _ = said.send(answer);
    });
    let words = answer.recv_timeout(Duration::from_secs(10)).expect("it waits without end").unwrap_err();
    assert!(words.contains("timed out"), "{words}");
}
