//! The model of one direction between two nodes. Time is given to it, in nanoseconds from any beginning.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use serde::Serialize;

/// How long delay goes from one drawn value to the next, at least.
const LEAST_STRIDE: u64 = 10_000_000;
/// The stride in multiples of the jitter. Two neighbouring values differ by two jitters at most, so that delay falls by half as
/// fast as time goes by, and no packet overtakes another.
const STRIDE_IN_JITTERS: u64 = 4;

/// What one direction between two nodes is like.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Line {
    /// From the last bit sent to the last bit received, on average.
    pub delay: Duration,
    /// The most by which the delay differs from that; at most the delay.
    pub jitter: Duration,
    /// The fraction of packets that are lost, each by itself.
    pub loss: f64,
    /// In bits a second, counting whole IP packets; `None` for no bound.
    pub rate: Option<u64>,
    /// How long a packet may wait for those before it; who would wait longer is dropped.
    pub queue: Duration,
}

impl Line {
    /// A line that changes nothing.
    pub const IDEAL: Self =
        Self { delay: Duration::ZERO, jitter: Duration::ZERO, loss: 0.0, rate: None, queue: Duration::from_millis(50) };
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at this time.
    Arrives(u64),
    /// It is lost on its way.
    Lost,
    /// It would have waited too long for the line.
    Dropped,
}

/// One direction between two nodes, as it goes by.
#[derive(Debug)]
pub struct Link {
    line: Line,
    losses: ChaCha8Rng,
    delays: ChaCha8Rng,
    /// When the line has sent all that it has taken.
    free_at: u64,
    /// Which stride of the delay the values below are for.
    stride: Option<u64>,
    /// What is added to the least delay at the stride's ends.
    ends: (u64, u64),
}

impl Link {
    /// The line from a node to another. The same seed and nodes give the same losses, by the number of the packet, and the
    /// same delays, by the time.
    pub fn new(line: Line, seed: u64, from: u16, to: u16) -> Self {
        let stream = u64::from(from) << 17 | u64::from(to) << 1;
        let generator = |which: u64| {
            let mut generator = ChaCha8Rng::seed_from_u64(seed);
            generator.set_stream(stream | which);
            generator
        };
        Self { line, losses: generator(0), delays: generator(1), free_at: 0, stride: None, ends: (0, 0) }
    }

    /// Sends a packet of so many bytes. Time never goes back from one call to the next.
    pub fn send(&mut self, now: u64, bytes: usize) -> Fate {
        let begins = now.max(self.free_at);
        if begins - now > nanoseconds(self.line.queue) {
            return Fate::Dropped;
        }
        let sent = begins.saturating_add(self.line.rate.map_or(0, |rate| time_for(bytes, rate)));
        self.free_at = sent;
        // Drawn for every packet on the line, also where none is lost: one profile's losses do not depend on another's.
        let draw = f64::from(self.losses.next_u32()) / f64::from(u32::MAX);
        if draw < self.line.loss { Fate::Lost } else { Fate::Arrives(sent.saturating_add(self.delay_at(sent))) }
    }

    /// The delay of what is sent at this time. It goes straight from one drawn value to the next: delays of packets that follow
    /// each other closely are alike, as those of real networks, and their order stays.
    fn delay_at(&mut self, time: u64) -> u64 {
        let (delay, jitter) = (nanoseconds(self.line.delay), nanoseconds(self.line.jitter));
        if jitter == 0 {
            return delay;
        }
        let length = LEAST_STRIDE.max(jitter.saturating_mul(STRIDE_IN_JITTERS));
        let (stride, within) = (time / length, time % length);
        if self.stride != Some(stride) {
            self.delays.set_word_pos(u128::from(stride));
            self.ends = (self.draw_delay(jitter), self.draw_delay(jitter));
            self.stride = Some(stride);
        }
        let (from, to) = (u128::from(self.ends.0), u128::from(self.ends.1));
        let (within, length) = (u128::from(within), u128::from(length));
        let added = (from * (length - within) + to * within) / length;
        delay.saturating_sub(jitter).saturating_add(u64::try_from(added).unwrap_or(u64::MAX))
    }

    /// Any value from 0 to twice the jitter.
    fn draw_delay(&mut self, jitter: u64) -> u64 {
        let drawn = (u128::from(jitter) * 2 * u128::from(self.delays.next_u32())) >> 32;
        u64::try_from(drawn).unwrap_or(u64::MAX)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// How long a line of so many bits a second sends so many bytes, in nanoseconds.
fn time_for(bytes: usize, rate: u64) -> u64 {
    let bits = u128::try_from(bytes).unwrap_or(u128::MAX).saturating_mul(8_000_000_000);
    bits.checked_div(u128::from(rate)).and_then(|time| u64::try_from(time).ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const FAR: Line = Line { delay: Duration::from_millis(40), ..Line::IDEAL };

    fn arrival(fate: Fate) -> u64 {
        match fate {
            Fate::Arrives(at) => at,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_packet_arrives_after_the_delay() {
        let mut link = Link::new(FAR, 1, 1, 2);
        assert_eq!(link.send(7, 1_500), Fate::Arrives(40 * MS + 7));
        assert_eq!(link.send(7, 1_500), Fate::Arrives(40 * MS + 7), "without a rate nothing waits");
    }

    #[test]
    fn delays_stay_within_the_jitter_use_all_of_it_and_keep_the_order() {
        let line = Line { jitter: Duration::from_millis(10), ..FAR };
        let mut link = Link::new(line, 1, 1, 2);
        // A packet each 50 us, for ten minutes.
        let times = (0..12_000_000_u64).map(|number| number * 50_000);
        let (mut before, mut sum, mut squares, mut least, mut most) = (0, 0.0, 0.0, u64::MAX, 0);
        for time in times {
            let arrives = arrival(link.send(time, 100));
            assert!(arrives > before, "one overtakes another at {time}");
            before = arrives;
            let delay = arrives - time;
            (least, most) = (least.min(delay), most.max(delay));
            let off = Duration::from_nanos(delay).as_secs_f64() * 1e3 - 40.0;
            (sum, squares) = (sum + off, squares + off * off);
        }
        assert!(least >= 30 * MS && most <= 50 * MS, "{least} {most}");
        assert!(least < 30 * MS + MS / 10 && most > 50 * MS - MS / 10, "{least} {most}");
        let (mean, deviation) = (sum / 12e6, (squares / 12e6).sqrt());
        // Values between two of a uniform distribution over 2 J: two thirds of its variance J^2 / 3.
        assert!(mean.abs() < 0.2 && (deviation - 10.0 * (2.0_f64 / 9.0).sqrt()).abs() < 0.1, "{mean} {deviation}");
    }

    #[test]
    fn the_rate_is_what_comes_out_and_the_queue_is_bounded() {
        // 12 Mbit/s: 1,500 bytes take a millisecond. Twice as much is sent.
        let line = Line { rate: Some(12_000_000), queue: Duration::from_millis(5), ..FAR };
        let mut link = Link::new(line, 1, 1, 2);
        let fates: Vec<Fate> = (0..2_000).map(|number| link.send(number * MS / 2, 1_500)).collect();
        let arrivals: Vec<u64> = fates
            .iter()
            .filter_map(|fate| match fate {
                Fate::Arrives(at) => Some(*at),
                Fate::Lost | Fate::Dropped => None,
            })
            .collect();
        assert!(arrivals.windows(2).all(|pair| pair[1] - pair[0] == MS), "one a millisecond, without a gap");
        assert_eq!(arrivals.len(), 1_005, "a second's worth, and what waits in the end");
        assert_eq!(arrivals[0], 41 * MS, "sending takes its time");
        let waits = fates.iter().enumerate().filter_map(|(number, fate)| match fate {
            Fate::Arrives(at) => Some(at - 41 * MS - u64::try_from(number).unwrap() * MS / 2),
            Fate::Lost | Fate::Dropped => None,
        });
        assert_eq!(waits.max(), Some(5 * MS));
        assert_eq!(link.send(2_000 * MS, 1_500), Fate::Arrives(2_041 * MS), "a line that was idle has nothing saved");
    }

    #[test]
    fn losses_are_as_many_as_wanted_and_the_seed_decides_which() {
        let line = Line { loss: 0.02, ..FAR };
        let lost = |seed, from, to| {
            let mut link = Link::new(line, seed, from, to);
            (0..100_000).filter(|time| link.send(*time, 100) == Fate::Lost).collect::<Vec<u64>>()
        };
        let some = lost(1, 1, 2);
        assert!((1_850..2_150).contains(&some.len()), "{}", some.len());
        let pairs = some.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        assert!((15..70).contains(&pairs), "each by itself: two in a row are 40 of 100,000, not {pairs}");
        assert_eq!(lost(1, 1, 2), some);
        for other in [lost(2, 1, 2), lost(1, 2, 1), lost(1, 1, 3)] {
            let both = other.iter().filter(|time| some.contains(time)).count();
            assert!(both < 100, "{both} of {} in common", some.len());
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_delays_by_the_time() {
        let line = Line { jitter: Duration::from_millis(3), ..FAR };
        let delay = |seed, skipped: u64| {
            let mut link = Link::new(line, seed, 1, 2);
            for time in 0..skipped {
                link.send(time * MS, 100);
            }
            arrival(link.send(5_000 * MS, 100))
        };
        assert_eq!(delay(1, 0), delay(1, 4_000), "whatever was sent before");
        assert_ne!(delay(1, 0), delay(2, 0));
    }

    #[test]
    fn extremes_neither_panic_nor_arrive_early() {
        let line = Line { delay: Duration::MAX, jitter: Duration::MAX, rate: Some(1), ..Line::IDEAL };
        assert!(arrival(Link::new(line, 1, u16::MAX, u16::MAX).send(u64::MAX / 2, usize::MAX)) >= u64::MAX / 2);
        let stuck = Line { rate: Some(0), ..Line::IDEAL };
        assert_eq!(Link::new(stuck, 1, 1, 2).send(0, 1), Fate::Arrives(u64::MAX));
    }
}
