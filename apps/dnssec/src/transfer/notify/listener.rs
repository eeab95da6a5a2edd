//! Where a primary tells it: UDP, and TCP, which some primaries use.

use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use theta_names::WallTime;

use super::{News, Said, hear};
use crate::{
    owner::Owner,
    transfer::{
        framing::{fill, send},
        tsig::Key,
    },
};

/// The longest message: a question with a record of SOA as a hint, and a signature, has a few hundred bytes.
const MOST: usize = 4_096;
/// So many connections are served at once; others are closed.
const MOST_CONNECTIONS: usize = 8;
/// How long a connection may take, and how many messages it may bring.
const LONGEST: Duration = Duration::from_secs(5);
const MOST_MESSAGES: usize = 16;
/// Somebody who sends what is not believed is complained of so often at most.
const COMPLAINTS_APART: Duration = Duration::from_secs(60);
/// After a failure of the system it waits so long, rather than fail as fast as it can.
const PAUSE: Duration = Duration::from_millis(100);

/// Nothing can be told there.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for what a primary tells: {reason}")]
pub struct ListenError {
    /// Where.
    pub address: SocketAddr,
    /// The system's reason.
    pub reason: io::Error,
}

/// Who listens.
struct Ear {
    zone: Owner,
    key: Key,
    news: Arc<News>,
    /// When somebody was complained of last.
    complained: Mutex<Option<Instant>>,
    connections: AtomicUsize,
}

/// Listens from now on, for as long as the program runs. The address, of which the port may have been chosen by the system.
pub(in crate::transfer) fn listen(
    address: SocketAddr,
    zone: Owner,
    key: Key,
    news: Arc<News>,
) -> Result<SocketAddr, ListenError> {
    let failed = |reason| ListenError { address, reason };
    let tcp = TcpListener::bind(address).map_err(failed)?;
    let bound = tcp.local_addr().map_err(failed)?;
    let udp = UdpSocket::bind(bound).map_err(failed)?;
    let complained = Mutex::default();
    let ear = Arc::new(Ear { zone, key, news, complained, connections: AtomicUsize::new(0) });
    let other = Arc::clone(&ear);
    // They wait for sockets: no threads of those that answer nodes.
    thread::spawn(move || other.datagrams(&udp));
    thread::spawn(move || ear.accept(&tcp));
    Ok(bound)
}

/// One of the connections that are served at once.
struct Place(Arc<Ear>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Ear {
    /// What is answered to a message, if anything is.
    fn take(&self, message: &[u8], from: SocketAddr) -> Option<Vec<u8>> {
        let Said { answer, objection } = hear(message, &self.zone, &self.key, WallTime::now().seconds())?;
        match objection {
            None => self.news.tell(),
            Some(objection) => self.complain(from, &objection),
        }
        Some(answer)
    }

    fn complain(&self, from: SocketAddr, objection: &str) {
        let mut complained = self.complained.lock().unwrap_or_else(PoisonError::into_inner);
        if complained.is_none_or(|last| last.elapsed() >= COMPLAINTS_APART) {
            *complained = Some(Instant::now());
            tracing::warn!("what {from} tells about {} is not believed: {objection}", self.zone);
        }
    }

    fn datagrams(&self, socket: &UdpSocket) {
        // One byte more, by which a message that is too long is told.
        let mut buffer = [0; MOST + 1];
        loop {
            match socket.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    let message = buffer.get(..length).filter(|message| message.len() <= MOST);
                    if let Some(answer) = message.and_then(|message| self.take(message, from)) {
                        // Whoever is not reached tells it again.
                        let _ = socket.send_to(&answer, from);
                    }
                }
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        loop {
            let Ok((stream, from)) = listener.accept() else {
                thread::sleep(PAUSE);
                continue;
            };
            if self.connections.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
                self.connections.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let place = Place(Arc::clone(&self));
            let serve = move || {
                // It ends as whoever sends ends it.
                let _ = place.0.serve(stream, from);
            };
            // Without a thread the place is given back, and whoever was to be heard tells it again.
            if thread::Builder::new().spawn(serve).is_err() {
                thread::sleep(PAUSE);
            }
        }
    }

    fn serve(&self, mut stream: TcpStream, from: SocketAddr) -> io::Result<()> {
        let deadline = Instant::now().checked_add(LONGEST).ok_or(io::ErrorKind::TimedOut)?;
        stream.set_write_timeout(Some(LONGEST))?;
        for _ in 0..MOST_MESSAGES {
            let mut length = [0; 2];
            fill(&mut stream, &mut length, deadline)?;
            let length = usize::from(u16::from_be_bytes(length));
            if length > MOST {
                return Ok(());
            }
            let mut message = vec![0; length];
            fill(&mut stream, &mut message, deadline)?;
            let Some(answer) = self.take(&message, from) else { return Ok(()) };
            send(&mut stream, &answer)?;
        }
        Ok(())
    }
}
