use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use tempfile::TempDir;
use theta_client::ClientOptions;
use theta_keypool::LogTo;
use theta_look_ahead::{Answer, Listing, Question, serve};
use theta_schemes::{
    Suite,
    groups::Secret,
    keys::{AnyPublicKey, import_any},
};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

fn key() -> LiveKey {
    let threshold = theta_sharing::Threshold::new(2, 3).unwrap();
    let mut rng = <rand_chacha::ChaCha20Rng as rand_chacha::rand_core::SeedableRng>::from_seed([7; 32]);
    let public: AnyPublicKey = import_any(Suite::EcdsaP256, threshold, &Secret::new(vec![1; 32]), &mut rng).unwrap().0;
    LiveKey::new("zone".to_owned(), "zone@1".to_owned(), public, true).unwrap()
}

/// A host of a group of which no node can be reached.
struct Host {
    folder: TempDir,
    client: Client,
    key: LiveKey,
    ahead: LookAhead,
}

impl Host {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let node = |id: u16| {
            format!(
                "[[node]]\nid = {id}\npeer_address = \"127.0.0.1:{}\"\napi_address = \"127.0.0.1:{id}\"\ncertificate = \"{}\"\n",
                id + 3,
                format!("0{id}").repeat(32)
            )
        };
        fs::write(folder.path().join("group.toml"), format!("name = \"g\"\nthreshold = 1\n{}{}", node(1), node(2)))
            .unwrap();
        let options = ClientOptions { timeout: Duration::from_millis(200), ..ClientOptions::default() };
        let client = Client::open_with(folder.path(), options).unwrap();
        let log = Log::new(LogTo::File(folder.path().join("log")));
        let ahead = LookAhead::new(folder.path().join("socket"), Duration::from_millis(400), log);
        Self { folder, client, key: key(), ahead }
    }

    fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join("socket")
    }

    fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Asks for signatures until the log has these words.
    fn asks_until(&self, words: &str) {
        let deadline = Instant::now() + PATIENCE;
        for number in 0_u64.. {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_be_bytes());
            let began = Instant::now();
            assert_eq!(self.ahead.signature(&self.client, &self.key, &digest), None);
            assert!(began.elapsed() < Duration::from_secs(8), "the host waits for {:?}", began.elapsed());
            if self.said().contains(words) {
                return;
            }
            assert!(Instant::now() < deadline, "{words:?} is not said in {:?}", self.said());
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn workers(&self) -> usize {
        self.ahead.of(*self.key.public.key_id()).unwrap().event().workers
    }
}

#[test]
fn without_a_service_everything_is_signed_as_it_is_asked_for() {
    let host = Host::new();
    host.asks_until("signatures with zone@1 are not made ahead: nobody answers at ");
    assert!(host.said().contains("No such file"), "{}", host.said());
    // Nothing is tried for a while, and the log has one line.
    for byte in 0..100 {
        assert_eq!(host.ahead.signature(&host.client, &host.key, &[byte; 32]), None);
    }
    assert_eq!(host.said().lines().count(), 1, "{}", host.said());
    // The thread that has said so ends.
    let deadline = Instant::now() + PATIENCE;
    while host.workers() > 0 {
        assert!(Instant::now() < deadline, "a thread stays");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A service that says something else.
fn talks(socket: &Path, talk: impl Fn(UnixStream) + Send + Sync + 'static) {
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || listener.incoming().for_each(|stream| talk(stream.unwrap())));
}

#[test]
fn what_is_no_answer_is_none() {
    for (bytes, words) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "another version of the answer"),
        (&[1, 0, 0xff, 0xff], "more digests than were wanted"),
        (&[1, 1, 0xff, 0xff], "too many words"),
        (&[1, 0, 0, 9, 1, 2, 3], "failed to fill whole buffer"),
        (&[1, 1, 0, 11, b'n', b'o', b' ', b'r', b'e', b'c', b'o', b'r', b'd', 10, 27], "socket: no record"),
    ] {
        let host = Host::new();
        talks(&host.socket(), move |mut stream| {
            let mut question = [0; 37];
            stream.read_exact(&mut question).unwrap();
            stream.write_all(bytes).unwrap();
        });
        host.asks_until(words);
    }
}

/// A service that says nothing holds up one thread, and no call of the host.
#[test]
fn a_slow_service_holds_up_no_host() {
    let host = Host::new();
    let (heard, hearing) = (Arc::new(AtomicUsize::new(0)), Arc::<Mutex<Vec<UnixStream>>>::default());
    let count = Arc::clone(&heard);
    talks(&host.socket(), move |stream| {
        hearing.lock().unwrap().push(stream);
        count.fetch_add(1, Ordering::Relaxed);
    });
    let deadline = Instant::now() + PATIENCE;
    while heard.load(Ordering::Relaxed) == 0 {
        assert!(Instant::now() < deadline, "nobody asks");
        (0..20).for_each(|byte| assert_eq!(host.ahead.signature(&host.client, &host.key, &[byte; 32]), None));
        thread::sleep(Duration::from_millis(10));
    }
    let began = Instant::now();
    (0..200).for_each(|byte| assert_eq!(host.ahead.signature(&host.client, &host.key, &[byte; 32]), None));
    assert!(began.elapsed() < Duration::from_secs(8));
    assert_eq!((heard.load(Ordering::Relaxed), host.workers()), (1, 1));
}

/// Knows digests by their number.
struct Numbers;

impl Listing for Numbers {
    fn list(&self, question: &Question) -> Answer {
        let number = u64::from_be_bytes(question.digest[..8].try_into().unwrap());
        let listed = number.saturating_sub(question.before.into())..number + 10_000;
        let digest = |number: u64| {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_be_bytes());
            digest
        };
        Ok(listed.map(digest).filter(|digest| *digest != question.digest).take(question.most.into()).collect())
    }
}

/// The nodes are away: what was to be signed ahead is not, and whoever waits for it does not wait for long.
#[test]
fn without_nodes_nothing_is_made_ahead() {
    let host = Host::new();
    let _service = serve(&host.socket(), Numbers).unwrap();
    host.asks_until("signatures with zone@1 are not made ahead: ");
    assert!(host.said().contains("node 1"), "{}", host.said());
}

#[test]
fn whoever_waits_gets_what_is_made_or_nothing() {
    let (ahead, digests) = (Arc::new(Ahead::default()), [[1; 32], [2; 32], [3; 32]]);
    let list = |ahead: &Ahead| {
        let mut event = ahead.event();
        let now = Instant::now();
        for byte in 100..120 {
            event.take(&[byte; 32], now);
        }
        event.workers += 1;
        let event::Step::Ask(question) = event.next(now) else { panic!("nothing is asked") };
        event.listed(&question, &[&(100..120).map(|byte| [byte; 32]).collect::<Vec<_>>()[..], &digests].concat());
        assert_eq!(event.next(now), event::Step::Sign(digests.to_vec()));
    };
    list(&ahead);
    let waiting = digests.map(|digest| {
        let ahead = Arc::clone(&ahead);
        thread::spawn(move || ahead.take(&digest, PATIENCE))
    });
    assert_eq!(ahead.take(&digests[0], Duration::ZERO), Taken::UnderWay, "whoever has no more time");
    thread::sleep(Duration::from_millis(50));
    let made = vec![(digests[0], Some(Bytes::from_static(b"signature"))), (digests[1], None)];
    ahead.event().made(made, Instant::now());
    ahead.changed.notify_all();
    let [one, two, three] = waiting;
    assert_eq!(one.join().unwrap(), Taken::Made(Bytes::from_static(b"signature")));
    assert_eq!(two.join().unwrap(), Taken::Unknown);
    // The key is destroyed, or the module ends.
    forgotten(&ahead);
    assert_eq!(three.join().unwrap(), Taken::Unknown);
}

#[test]
fn a_key_that_is_destroyed_has_no_signatures() {
    let host = Host::new();
    let id = *host.key.public.key_id();
    let ahead = host.ahead.of(id).unwrap();
    host.ahead.forget(&id);
    assert!(!Arc::ptr_eq(&ahead, &host.ahead.of(id).unwrap()));
    // Keys that nobody uses make room for others; those that are used do not.
    let others: Vec<KeyId> = (0..MOST_KEYS).map(|byte| other_id(u8::try_from(byte).unwrap())).collect();
    others.iter().for_each(|id| drop(host.ahead.of(*id)));
    let keys = host.ahead.keys().len();
    assert_eq!((keys, host.ahead.of(other_id(200)).is_none()), (MOST_KEYS, true));
    host.ahead.forget_all();
    assert!(host.ahead.of(other_id(200)).is_some());
}

fn other_id(byte: u8) -> KeyId {
    KeyId::new(Suite::EcdsaP256, &[byte])
}
