//! The thread that carries packets between the devices of all nodes.

use std::{
    num::NonZeroU64,
    os::fd::{AsFd, OwnedFd},
    thread,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use rustix::{
    buffer::spare_capacity,
    event::{PollFd, PollFlags, Timespec, epoll, poll},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    process::setpriority_process,
    thread::set_current_timer_slack,
};

use super::place::Refusal;
use crate::switch::{Counters, Switch};

/// What the router stops by, among the numbers of nodes.
const STOP: u64 = u64::MAX;
/// How many packets of one device are read before others have their turn.
const TURN: usize = 32;
/// The thread's priority, as of `nice`: it needs little time, at once.
const PRIORITY: i32 = -15;
const LARGEST_PACKET: usize = 65_536;

/// What a router did.
#[derive(Debug)]
pub struct Report {
    /// What has become of all packets.
    pub counters: Counters,
    /// By how much later than due packets were delivered, in nanoseconds.
    pub lateness: Histogram<u64>,
}

impl Report {
    /// Mean, 99th percentile and maximum of how late packets were.
    pub fn late(&self) -> [Duration; 3] {
        let (p99, most) = (self.lateness.value_at_quantile(0.99), self.lateness.max());
        let mean = Duration::from_secs_f64((self.lateness.mean() / 1e9).max(0.0));
        [mean, Duration::from_nanos(p99), Duration::from_nanos(most)]
    }
}

/// A running router. It stops when this is dropped.
#[derive(Debug)]
pub(crate) struct Router {
    stop: OwnedFd,
    thread: thread::JoinHandle<Report>,
}

impl Router {
    /// Carries packets between devices; the first is the client's, the others belong to the nodes 1, 2, ....
    pub(crate) fn start(switch: Switch, devices: Vec<OwnedFd>) -> Result<Self, Refusal> {
        let failed = Refusal::failed("start the router");
        let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC).map_err(&failed)?;
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(&failed)?;
        let readable = epoll::EventFlags::IN;
        epoll::add(&ready, &stopped, epoll::EventData::new_u64(STOP), readable).map_err(&failed)?;
        for (node, device) in (0..).zip(&devices) {
            epoll::add(&ready, device, epoll::EventData::new_u64(node), readable).map_err(&failed)?;
        }
        let lateness = Histogram::new_with_bounds(1, 60_000_000_000, 3);
        let lateness = lateness.map_err(|_| failed(Errno::INVAL))?;
        let work = Work { switch, devices, ready, _stopped: stopped, lateness, begin: Instant::now() };
        let thread = thread::Builder::new().name("wan-router".to_owned()).spawn(move || work.run());
        let thread = thread.map_err(|error| Refusal::Failed { what: "start the router", error })?;
        Ok(Self { stop, thread })
    }

    /// Ends it; what is under way is lost.
    pub(crate) fn stop(self) -> Option<Report> {
        drop(self.stop);
        self.thread.join().ok()
    }
}

struct Work {
    switch: Switch,
    devices: Vec<OwnedFd>,
    ready: OwnedFd,
    /// Reports the end of its other side, which the owner has.
    _stopped: OwnedFd,
    lateness: Histogram<u64>,
    begin: Instant,
}

impl Work {
    fn run(mut self) -> Report {
        // Threads may otherwise wake 50 us late, or wait for others. Without these everything works, later: the report says so.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let _ = setpriority_process(None, PRIORITY);
        let mut buffer = vec![0; LARGEST_PACKET];
        let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
        loop {
            self.deliver();
            self.wait();
            events.clear();
            // An interruption leaves the list empty.
            let _ = epoll::wait(&self.ready, spare_capacity(&mut events), Some(&Timespec::default()));
            for event in &events {
                let node = event.data.u64();
                if node == STOP {
                    return Report { counters: self.switch.counters(), lateness: self.lateness };
                }
                self.read(node, &mut buffer);
            }
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Waits until something can be read or is due. `epoll_wait` knows milliseconds only.
    fn wait(&self) {
        let left = self.switch.next_due().map(|due| Duration::from_nanos(due.saturating_sub(self.now())));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let _ = poll(&mut [PollFd::new(&self.ready, PollFlags::IN)], left.as_ref());
    }

    fn read(&mut self, node: u64, buffer: &mut [u8]) {
        let place = usize::try_from(node).unwrap_or(usize::MAX);
        let Some((device, node)) = self.devices.get(place).zip(u16::try_from(node).ok()) else { return };
        let mut taken = 0;
        while taken < TURN {
            // Nothing more to read, or no more device: then its end is due anyway.
            let Ok(bytes) = rustix::io::read(device.as_fd(), &mut *buffer) else { return };
            let now = u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.switch.take(now, node, buffer.get(..bytes).unwrap_or_default());
            taken += 1;
        }
    }

    fn deliver(&mut self) {
        // What becomes due meanwhile waits for the next turn, so that reading is never kept waiting.
        let now = self.now();
        while let Some(arrival) = self.switch.arrival(now) {
            let device = self.devices.get(usize::from(arrival.to));
            let taken = device.is_some_and(|device| rustix::io::write(device, &arrival.packet).is_ok());
            self.lateness.saturating_record(self.now().saturating_sub(arrival.due));
            self.switch.recycle(arrival.packet, taken);
        }
    }
}
