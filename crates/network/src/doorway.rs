//! Connections that have not shown yet who they are: few, short-lived, and never in the way of those that will.
//!
//! Whoever connects may be silent for ever, and costs a socket until it is not. So those whose handshake is unfinished are
//! bounded; and at the bound it is not the newest that is refused, which an attacker would keep out for as long as it likes,
//! but the *oldest* that is ended: an honest handshake takes milliseconds, and so outlives only few newcomers. Among the
//! candidates those go first that have not said a word, since an honest side speaks at once; and strangers' go before those
//! from a familiar address. What is left to an attacker is to bring more newcomers in these milliseconds than there are places.

use core::{
    fmt,
    net::{IpAddr, SocketAddr},
    num::NonZeroUsize,
    time::Duration,
};
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::oneshot,
    time::{Instant, timeout},
};

/// Connections that the system has and this process has not taken yet. As many as Linux allows by default: when they are too
/// many, the system drops the newest without a word, and these come again after a second at the earliest.
const QUEUE: u32 = 4096;

/// Listens at an address, with room for many who come at the same time. Must be called on a runtime with I/O.
///
/// # Errors
/// The system's, if it does not give the address.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A node that was killed comes back at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(QUEUE)
}

/// How many unfinished handshakes there are at most, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoorwayLimits {
    /// In all.
    pub all: NonZeroUsize,
    /// From one address.
    pub per_address: NonZeroUsize,
    /// From connecting to the end of the handshake.
    pub patience: Duration,
}

impl DoorwayLimits {
    /// So many in all, three quarters of them from one address: on a machine with many nodes, and behind a router, friends
    /// share one.
    #[must_use]
    pub fn of(all: NonZeroUsize, patience: Duration) -> Self {
        let quarter = all.get() / 4;
        let per_address = NonZeroUsize::new(all.get().saturating_sub(quarter)).unwrap_or(all);
        Self { all, per_address, patience }
    }
}

/// Where connections are until their handshake is done.
#[derive(Debug)]
pub struct Doorway {
    limits: DoorwayLimits,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    shed: u64,
    /// By age, the oldest first.
    places: BTreeMap<u64, Place>,
}

#[derive(Debug)]
struct Place {
    address: IpAddr,
    familiar: bool,
    speaks: bool,
    /// Dropping it ends the handshake.
    _end: oneshot::Sender<()>,
}

/// One unfinished handshake: dropping it gives its place back.
#[derive(Debug)]
pub struct Handshake {
    doorway: Arc<Doorway>,
    number: u64,
    shed: oneshot::Receiver<()>,
}

/// Why a handshake was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// Newer ones needed its place.
    #[error("too many connections are in the handshake, and this one was the oldest of them")]
    Shed,
    /// It took too long.
    #[error("no handshake within {0:?}")]
    Late(Duration),
}

impl Doorway {
    /// An empty one.
    #[must_use]
    pub fn new(limits: DoorwayLimits) -> Arc<Self> {
        Arc::new(Self { limits, waiting: Mutex::default() })
    }

    /// Gives a new connection its place, if need be that of another one. `familiar`: whether friends are known to come from
    /// there, which is no proof that this is one.
    pub fn enter(self: &Arc<Self>, address: IpAddr, familiar: bool) -> Handshake {
        let (end, shed) = oneshot::channel();
        let mut waiting = self.waiting();
        waiting.make_room(&self.limits, address);
        let number = waiting.next;
        waiting.next = number.wrapping_add(1);
        waiting.places.insert(number, Place { address, familiar, speaks: false, _end: end });
        drop(waiting);
        Handshake { doorway: Arc::clone(self), number, shed }
    }

    /// Handshakes that were ended for newer ones, so far.
    #[must_use]
    pub fn shed(&self) -> u64 {
        self.waiting().shed
    }

    /// Handshakes under way.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.waiting().places.len()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn make_room(&mut self, limits: &DoorwayLimits, address: IpAddr) {
        let here = self.places.values().filter(|place| place.address == address).count();
        if here >= limits.per_address.get() {
            self.end(|place| place.address == address);
        } else if self.places.len() >= limits.all.get() {
            self.end(|_| true);
        }
    }

    /// Ends one of these: a stranger's before a friend's, a silent one before one that speaks, the oldest of those.
    fn end(&mut self, candidate: impl Fn(&Place) -> bool) {
        let candidates = self.places.iter().filter(|(_, place)| candidate(place));
        let worst = candidates.min_by_key(|(number, place)| (place.familiar, place.speaks, **number));
        if let Some(number) = worst.map(|(number, _)| *number) {
            self.places.remove(&number);
            self.shed = self.shed.saturating_add(1);
        }
    }
}

impl Handshake {
    /// Waits for the other side's first word, then does `work`, all within the patience of the doorway. Nothing is set up for
    /// a connection that is silent.
    ///
    /// # Errors
    /// [`Ended`]; the inner result is that of `work`.
    pub async fn run<F: Future>(
        mut self,
        connection: TcpStream,
        work: impl FnOnce(TcpStream) -> F,
    ) -> Result<F::Output, Ended> {
        let patience = self.doorway.limits.patience;
        let (doorway, number) = (Arc::clone(&self.doorway), self.number);
        let all = async {
            // Whatever is wrong with the connection, `work` finds it, too.
            let _ = connection.readable().await;
            if let Some(place) = doorway.waiting().places.get_mut(&number) {
                place.speaks = true;
            }
            work(connection).await
        };
        tokio::select! {
            done = timeout(patience, all) => done.map_err(|_| Ended::Late(patience)),
            _ = &mut self.shed => Err(Ended::Shed),
        }
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.doorway.waiting().places.remove(&self.number);
    }
}

/// Log lines that strangers can provoke: at most one a second, with the number of those that were left out, so that nobody
/// fills a disk from outside.
#[derive(Debug, Default)]
pub struct Occasionally(Mutex<(Option<Instant>, u64)>);

impl Occasionally {
    /// Warns, or counts that it did not.
    pub fn warn(&self, message: fmt::Arguments<'_>) {
        if let Some(left_out) = self.may_speak(Instant::now()) {
            tracing::warn!(left_out, "{message}");
        }
    }

    /// How many lines were left out since the last one, if this one may be written.
    fn may_speak(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, left_out) = &mut *state;
        if last.is_some_and(|last| now.saturating_duration_since(last) < Duration::from_secs(1)) {
            *left_out = left_out.saturating_add(1);
            return None;
        }
        let before = *left_out;
        *state = (Some(now), 0);
        Some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(core::net::Ipv4Addr::LOCALHOST);

    fn doorway(all: usize, per_address: usize) -> Arc<Doorway> {
        let size = |value| NonZeroUsize::new(value).unwrap();
        Doorway::new(DoorwayLimits {
            all: size(all),
            per_address: size(per_address),
            patience: Duration::from_secs(60),
        })
    }

    fn there(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn speaks(handshake: &Handshake) {
        handshake.doorway.waiting().places.get_mut(&handshake.number).unwrap().speaks = true;
    }

    fn is_shed(handshake: &mut Handshake) -> bool {
        handshake.shed.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn the_oldest_silent_stranger_goes_first() {
        let doorway = doorway(4, 4);
        let mut friend = doorway.enter(HERE, true);
        let mut speaking = doorway.enter(there(1), false);
        let mut silent = doorway.enter(there(2), false);
        let mut newer = doorway.enter(there(3), false);
        speaks(&speaking);
        let kept: Vec<_> = [&mut silent, &mut newer, &mut speaking]
            .into_iter()
            .map(|expected| {
                assert!(!is_shed(expected));
                let next = doorway.enter(there(4), true);
                assert!(is_shed(expected), "{expected:?}");
                next
            })
            .collect();
        assert!(!is_shed(&mut friend));
        assert_eq!((doorway.shed(), doorway.unfinished()), (3, 4));
        drop((kept, friend, silent, newer, speaking));
        assert_eq!(doorway.unfinished(), 0);
    }

    #[test]
    fn one_address_takes_its_own_places() {
        let doorway = doorway(8, 2);
        let mut honest = doorway.enter(there(1), false);
        let many: Vec<_> = (0..100).map(|_| doorway.enter(there(2), false)).collect();
        assert!(!is_shed(&mut honest));
        assert_eq!((doorway.shed(), doorway.unfinished()), (98, 3));
        drop(many);
        assert_eq!(doorway.unfinished(), 1, "what was shed gives nothing back twice");
    }

    #[test]
    fn lines_are_counted() {
        let (occasionally, start) = (Occasionally::default(), Instant::now());
        assert_eq!(occasionally.may_speak(start), Some(0));
        assert!((0..500).all(|_| occasionally.may_speak(start + Duration::from_millis(999)).is_none()));
        assert_eq!(occasionally.may_speak(start + Duration::from_millis(1_000)), Some(500));
    }
}
