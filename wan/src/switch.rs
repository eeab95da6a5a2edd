//! All links of a network, and the packets that are under way. It knows no clock and no device, so that it can be tested without.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, HashMap},
    net::Ipv4Addr,
};

use serde::Serialize;

use crate::{
    link::{Fate, Link},
    profile::{MAX_NODES, Profile},
};

/// The network of RFC 2544, which no real network uses: whoever sees it knows that it is a measurement.
const NETWORK: [u8; 3] = [198, 18, 0];
/// The client's place in it.
const CLIENT: u8 = 254;
/// The most bytes under way. More is dropped, and counted.
const MAX_BYTES: usize = 256 << 20;
/// Buffers that are kept for later packets.
const MAX_SPARE: usize = 4_096;

/// The address of a node, or of the client, which has the number 0. `None` for numbers over [`MAX_NODES`].
pub fn address(node: u16) -> Option<Ipv4Addr> {
    let [a, b, c] = NETWORK;
    let last = match u8::try_from(node).ok()? {
        0 => CLIENT,
        node if u16::from(node) <= MAX_NODES => node,
        _ => return None,
    };
    Some(Ipv4Addr::new(a, b, c, last))
}

/// Whom an IPv4 packet is for.
fn receiver(packet: &[u8]) -> Option<u16> {
    let (first, to) = (packet.first()?, packet.get(16..20)?);
    let node = match to.strip_prefix(NETWORK.as_slice())? {
        [CLIENT] => 0,
        [node] => u16::from(*node),
        _ => return None,
    };
    (first >> 4 == 4).then_some(node)
}

/// What has become of all packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// They have left their node.
    pub sent: u64,
    /// They have reached another.
    pub delivered: u64,
    /// The profile has it so.
    pub lost: u64,
    /// They would have waited too long for their line.
    pub dropped: u64,
    /// More was under way than the program keeps: the profile was not kept.
    pub overflowed: u64,
    /// For nobody here: broadcasts, other protocols, other addresses.
    pub strays: u64,
    /// The system did not take them at their end.
    pub refused: u64,
}

/// A packet under way.
#[derive(Debug)]
struct Flight {
    due: u64,
    order: u64,
    to: u16,
    packet: Vec<u8>,
}

impl PartialEq for Flight {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Flight {}

impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Flight {
    /// The greatest is the first that is due, as a heap wants it; of two at once, the first that came.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.order).cmp(&(self.due, self.order))
    }
}

/// A packet that has arrived.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it was due.
    pub due: u64,
    /// At whom; 0 is the client.
    pub to: u16,
    /// Its bytes. Give them back to [`Switch::recycle`].
    pub packet: Vec<u8>,
}

/// The links between all nodes, and what is under way on them.
#[derive(Debug)]
pub struct Switch {
    profile: Profile,
    nodes: u16,
    seed: u64,
    links: HashMap<(u16, u16), Link>,
    flights: BinaryHeap<Flight>,
    held: usize,
    order: u64,
    spare: Vec<Vec<u8>>,
    counters: Counters,
}

impl Switch {
    /// Links between so many nodes and the client.
    pub fn new(profile: Profile, nodes: u16, seed: u64) -> Self {
        Self {
            profile,
            nodes,
            seed,
            links: HashMap::new(),
            flights: BinaryHeap::new(),
            held: 0,
            order: 0,
            spare: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Takes an IP packet from a node. Time never goes back from one call to the next.
    pub fn take(&mut self, now: u64, from: u16, packet: &[u8]) {
        let to = receiver(packet).filter(|to| *to <= self.nodes && *to != from);
        let Some((to, line)) = to.and_then(|to| Some((to, self.profile.between(from, to)?))) else {
            self.counters.strays += 1;
            return;
        };
        self.counters.sent += 1;
        let seed = self.seed;
        let link = self.links.entry((from, to)).or_insert_with(|| Link::new(line, seed, from, to));
        match link.send(now, packet.len()) {
            Fate::Lost => self.counters.lost += 1,
            Fate::Dropped => self.counters.dropped += 1,
            Fate::Arrives(_) if self.held + packet.len() > MAX_BYTES => self.counters.overflowed += 1,
            Fate::Arrives(due) => {
                let mut kept = self.spare.pop().unwrap_or_default();
                kept.clear();
                kept.extend_from_slice(packet);
                self.held += packet.len();
                self.order += 1;
                self.flights.push(Flight { due, order: self.order, to, packet: kept });
            }
        }
    }

    /// When the next packet is due.
    pub fn next_due(&self) -> Option<u64> {
        self.flights.peek().map(|flight| flight.due)
    }

    /// The next packet, if it is due by now.
    pub fn arrival(&mut self, now: u64) -> Option<Arrival> {
        self.next_due().filter(|due| *due <= now)?;
        let Flight { due, to, packet, .. } = self.flights.pop()?;
        self.held -= packet.len();
        Some(Arrival { due, to, packet })
    }

    /// Notes whether the system took a packet at its end, and keeps its buffer.
    pub fn recycle(&mut self, packet: Vec<u8>, taken: bool) {
        if taken {
            self.counters.delivered += 1;
        } else {
            self.counters.refused += 1;
        }
        if self.spare.len() < MAX_SPARE {
            self.spare.push(packet);
        }
    }

    /// What has become of all packets until now.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::link::Line;

    fn packet(to: u16, bytes: usize) -> Vec<u8> {
        let mut packet = vec![0; bytes];
        packet[0] = 0x45;
        packet[16..20].copy_from_slice(&address(to).unwrap().octets());
        packet
    }

    fn switch(line: Line) -> Switch {
        Switch::new(Profile::uniform("test", line), 3, 1)
    }

    #[test]
    fn packets_arrive_in_the_order_of_their_time_at_whom_they_are_for() {
        let slow = Line { rate: Some(8_000_000), ..Line::IDEAL };
        let mut switch = switch(Line { delay: Duration::from_nanos(10), ..slow });
        switch.take(0, 1, &packet(2, 1_000));
        switch.take(1, 1, &packet(0, 100));
        switch.take(2, 0, &packet(3, 100));
        assert_eq!(switch.next_due(), Some(100_011));
        assert_eq!(switch.arrival(100_010), None, "not before its time");
        let arrivals: Vec<(u16, u64)> =
            std::iter::from_fn(|| switch.arrival(u64::MAX)).map(|arrival| (arrival.to, arrival.due)).collect();
        assert_eq!(arrivals, [(0, 100_011), (3, 100_012), (2, 1_000_010)], "each link has a line of its own");
    }

    #[test]
    fn strays_are_counted_and_go_nowhere() {
        let mut switch = switch(Line::IDEAL);
        let mut six = packet(2, 60);
        six[0] = 0x60;
        let mut elsewhere = packet(2, 60);
        elsewhere[16] = 10;
        let mut nobody = packet(2, 60);
        nobody[19] = 4;
        for stray in [six, elsewhere, nobody, packet(1, 60), vec![], vec![0x45; 19]] {
            switch.take(0, 1, &stray);
        }
        assert_eq!(switch.counters(), Counters { strays: 6, ..Counters::default() });
        assert_eq!(switch.next_due(), None);
    }

    #[test]
    fn what_is_under_way_is_bounded() {
        let mut switch = switch(Line { delay: Duration::from_secs(1), ..Line::IDEAL });
        let large = packet(2, 65_000);
        (0..5_000).for_each(|now| switch.take(now, 1, &large));
        let Counters { sent, overflowed, .. } = switch.counters();
        assert_eq!((sent, sent - overflowed), (5_000, 256 * 1024 * 1024 / 65_000));
        let arrival = switch.arrival(u64::MAX).unwrap();
        switch.recycle(arrival.packet, true);
        switch.take(6_000, 1, &large);
        assert_eq!(switch.counters().overflowed, overflowed, "there is room again");
    }

    #[test]
    fn addresses_are_distinct_and_lead_back() {
        for node in 0..=MAX_NODES {
            assert_eq!(receiver(&packet(node, 20)), Some(node));
        }
        assert_eq!(address(MAX_NODES + 1), None);
        assert_eq!(address(254), None, "the client's");
    }
}
