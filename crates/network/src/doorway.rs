//! Bounds the connections whose handshake is unfinished, so that they keep no honest one out.
//!
//! A party that connects may stay silent for ever, and costs a socket meanwhile. So the number of unfinished handshakes
//! is bounded. At the bound the newest connection is not refused, since an attacker could keep honest ones out for as
//! long as it likes; instead the *oldest* is ended: an honest handshake takes milliseconds, and so only few newcomers
//! arrive during it. Connections from unfamiliar addresses are ended before those from familiar ones; among these,
//! silent connections before those that have sent something, since an honest side sends at once; and among those the
//! oldest. An attacker has to bring more newcomers in these milliseconds than there are places.

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
    time::Instant,
};

use theta_names::Seldom;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::oneshot,
    time::timeout,
};

/// The most connections that the system has accepted and this process has not taken yet, which is Linux's default
/// limit. When there are more, the system silently drops the newest, and these try again after a second at the
/// earliest.
const QUEUE: u32 = 4096;

/// Listens at an address, with room for many connections that come at the same time. Must be called on a runtime with
/// I/O.
///
/// # Errors
/// The system's error, if the address is not available.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A node that was killed can listen again at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(QUEUE)
}

/// Whether the process has no file descriptor left for a connection. The connection waits in the system meanwhile; whoever accepts has to close
/// another one, or nobody gets in until somebody leaves. (Where the whole system has none left, what one process gives up another one takes.)
#[must_use]
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    /// `EMFILE`, which has this number on every Unix.
    const FULL: i32 = 24;
    error.raw_os_error() == Some(FULL)
}

/// How long to wait before accepting again when no connection could be accepted: longer if nothing was closed for it, which would spin.
#[must_use]
pub const fn pause(gave_way: bool) -> Duration {
    Duration::from_millis(if gave_way { 5 } else { 100 })
}

/// The limits of unfinished handshakes: how many, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoorwayLimits {
    /// The most in all.
    pub all: NonZeroUsize,
    /// The most from one address.
    pub per_address: NonZeroUsize,
    /// The time from connecting to the end of the handshake.
    pub patience: Duration,
}

impl DoorwayLimits {
    /// At most `all`, three quarters of them from one address: nodes on one machine, or behind one router, share an
    /// address.
    #[must_use]
    pub fn of(all: NonZeroUsize, patience: Duration) -> Self {
        let quarter = all.get() / 4;
        let per_address = NonZeroUsize::new(all.get().saturating_sub(quarter)).unwrap_or(all);
        Self { all, per_address, patience }
    }
}

/// The place of connections until their handshake is done.
#[derive(Debug)]
pub struct Doorway {
    patience: Duration,
    waiting: Mutex<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    limits: DoorwayLimits,
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

/// One unfinished handshake. Dropping it gives its place back.
#[derive(Debug)]
pub struct Handshake {
    doorway: Arc<Doorway>,
    number: u64,
    shed: oneshot::Receiver<()>,
}

/// Why a handshake was ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// Newer connections needed its place.
    #[error("too many connections are in the handshake, and this one was the oldest of them")]
    Shed,
    /// It took too long.
    #[error("no handshake within {0:?}")]
    Late(Duration),
}

impl Doorway {
    /// A doorway without connections.
    #[must_use]
    pub fn new(limits: DoorwayLimits) -> Arc<Self> {
        let waiting = Waiting { limits, next: 0, shed: 0, places: BTreeMap::new() };
        Arc::new(Self { patience: limits.patience, waiting: Mutex::new(waiting) })
    }

    /// Gives a new connection a place, if necessary that of another one. `familiar`: whether the address is one of a
    /// known peer or client, which does not prove that this connection is theirs.
    pub fn enter(self: &Arc<Self>, address: IpAddr, familiar: bool) -> Handshake {
        let (end, shed) = oneshot::channel();
        let mut waiting = self.waiting();
        waiting.make_room(address);
        let number = waiting.next;
        waiting.next = number.wrapping_add(1);
        waiting.places.insert(number, Place { address, familiar, speaks: false, _end: end });
        drop(waiting);
        Handshake { doorway: Arc::clone(self), number, shed }
    }

    /// Has so many places from now on, three quarters of them for one address. The handshakes that have none any more are ended, those first
    /// that would be ended first for newer ones.
    pub fn resize(&self, all: NonZeroUsize) {
        let mut waiting = self.waiting();
        waiting.limits = DoorwayLimits::of(all, self.patience);
        while waiting.places.len() > all.get() && waiting.end(|_| true) {}
    }

    /// Ends the handshake that would be ended first, so that its file descriptor is free; `false` if there is none.
    pub fn give_way(&self) -> bool {
        self.waiting().end(|_| true)
    }

    /// How many handshakes were ended for newer ones so far.
    #[must_use]
    pub fn shed(&self) -> u64 {
        self.waiting().shed
    }

    /// How many handshakes are under way.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.waiting().places.len()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn make_room(&mut self, address: IpAddr) {
        let limits = self.limits;
        let here = self.places.values().filter(|place| place.address == address).count();
        if here >= limits.per_address.get() {
            let _ = self.end(|place| place.address == address);
        } else if self.places.len() >= limits.all.get() {
            let _ = self.end(|_| true);
        }
    }

    /// Ends one of the candidates: an unfamiliar one before a familiar one, then a silent one before one that has sent
    /// something, then the oldest. Returns whether there was one.
    fn end(&mut self, candidate: impl Fn(&Place) -> bool) -> bool {
        let candidates = self.places.iter().filter(|(_, place)| candidate(place));
        let worst = candidates.min_by_key(|(number, place)| (place.familiar, place.speaks, **number));
        let Some(number) = worst.map(|(number, _)| *number) else { return false };
        self.places.remove(&number);
        self.shed = self.shed.saturating_add(1);
        true
    }
}

impl Handshake {
    /// Waits until the other side has sent something, then does `work`, all within the doorway's time limit. Nothing is
    /// set up for a silent connection.
    ///
    /// # Errors
    /// [`Ended`]; otherwise the result of `work`.
    pub async fn run<F: Future>(
        mut self,
        connection: TcpStream,
        work: impl FnOnce(TcpStream) -> F,
    ) -> Result<F::Output, Ended> {
        let patience = self.doorway.patience;
        let (doorway, number) = (Arc::clone(&self.doorway), self.number);
        let all = async {
            // If something is wrong with the connection, `work` finds it, too.
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

/// Log lines that strangers can cause: at most one a second, or in another time, with the number of those that were left out, so that
/// nobody fills a disk from outside.
#[derive(Debug)]
pub struct Occasionally(Mutex<Seldom>);

impl Default for Occasionally {
    fn default() -> Self {
        Self::every(Duration::from_secs(1))
    }
}

impl Occasionally {
    /// At most one line in this time.
    #[must_use]
    pub const fn every(period: Duration) -> Self {
        Self(Mutex::new(Seldom::every(period)))
    }

    /// Logs a warning, or counts it as left out.
    pub fn warn(&self, message: fmt::Arguments<'_>) {
        if let Some(left_out) = self.may_speak() {
            tracing::warn!(left_out, "{message}");
        }
    }

    /// Logs what is no fault, or counts it as left out.
    pub fn info(&self, message: fmt::Arguments<'_>) {
        if let Some(left_out) = self.may_speak() {
            tracing::info!(left_out, "{message}");
        }
    }

    /// How many lines were left out since the last one.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).left_out()
    }

    fn may_speak(&self) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_time(Instant::now())
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
    fn a_doorway_that_shrinks_ends_those_that_would_go_first() {
        let doorway = doorway(8, 8);
        let (mut friend, mut stranger) = (doorway.enter(HERE, true), doorway.enter(there(1), false));
        let mut newer: Vec<_> = (2..6).map(|last| doorway.enter(there(last), false)).collect();
        doorway.resize(NonZeroUsize::new(4).unwrap());
        assert!(is_shed(&mut stranger) && is_shed(&mut newer[0]) && !is_shed(&mut friend));
        assert!(!newer[1..].iter_mut().any(is_shed));
        assert_eq!((doorway.shed(), doorway.unfinished()), (2, 4));
        let _next = doorway.enter(there(9), false);
        assert_eq!(doorway.unfinished(), 4, "there are no more places from then on");
        doorway.resize(NonZeroUsize::new(8).unwrap());
        let _more = doorway.enter(there(10), false);
        assert_eq!(doorway.unfinished(), 5);
    }

    #[test]
    fn whoever_would_go_first_gives_way() {
        let doorway = doorway(8, 8);
        let (mut friend, mut stranger) = (doorway.enter(HERE, true), doorway.enter(there(1), false));
        assert!(doorway.give_way() && is_shed(&mut stranger) && !is_shed(&mut friend));
        assert!(doorway.give_way() && is_shed(&mut friend) && !doorway.give_way());
        let out = |number| is_out_of_descriptors(&io::Error::from_raw_os_error(number));
        assert!(out(24) && !out(23) && !out(11));
    }
}
