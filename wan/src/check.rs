//! `theta-wan check`: what real sockets see of what was asked for.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde::Serialize;
use theta_wan::{Fate, Line, Link, Profile, Refusal, Report, Wan, address};

const SEED: u64 = 1;
const PORT: u16 = 7_000;
/// How long a socket waits for what should have come long ago.
const PATIENCE: Duration = Duration::from_secs(10);

/// One figure.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Figure {
    /// What was measured.
    pub(crate) what: &'static str,
    /// What was asked for.
    pub(crate) wanted: f64,
    /// What came of it.
    pub(crate) measured: f64,
    /// Between what it should be.
    pub(crate) bounds: (f64, f64),
    /// Its unit.
    pub(crate) unit: &'static str,
}

impl Figure {
    /// Whether it is within its bounds.
    pub(crate) fn holds(&self) -> bool {
        (self.bounds.0..=self.bounds.1).contains(&self.measured)
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount {
    pings: u32,
    packets: u32,
    bytes: usize,
    storm: Duration,
}

impl Amount {
    pub(crate) const WHOLE: Self =
        Self { pings: 2_000, packets: 20_000, bytes: 12_000_000, storm: Duration::from_secs(3) };
    pub(crate) const SHORT: Self =
        Self { pings: 500, packets: 20_000, bytes: 3_000_000, storm: Duration::from_millis(500) };
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("a socket of the measurement: {0}")]
    Socket(#[from] io::Error),
    #[error("the router ended without a report: a bug of theta-wan")]
    NoReport,
}

/// Measures everything.
pub(crate) fn figures(amount: Amount) -> Result<Vec<Figure>, CheckError> {
    let mut figures = round_trips(amount)?.to_vec();
    figures.extend(losses(amount)?);
    figures.extend(throughput(amount)?);
    figures.extend(storm(amount)?);
    Ok(figures)
}

/// Two nodes with this line between them.
fn pair(line: Line) -> Result<Wan, CheckError> {
    Ok(Wan::new(&Profile::uniform("check", line), 2, SEED)?)
}

fn socket_address(node: u16) -> SocketAddr {
    SocketAddr::from((address(node).unwrap_or([0, 0, 0, 0].into()), PORT))
}

/// Opens something in a node's network.
fn open<T: Send>(wan: &Wan, node: u16, open: impl FnOnce(SocketAddr) -> io::Result<T> + Send) -> io::Result<T> {
    let place = wan.place(node).ok_or(io::ErrorKind::NotFound)?;
    place.within(|| open(socket_address(node)))
}

fn udp(wan: &Wan, node: u16) -> io::Result<UdpSocket> {
    let socket = open(wan, node, UdpSocket::bind)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// The mean, the deviation and the median of some numbers.
fn moments(numbers: &mut [f64]) -> (f64, f64, f64) {
    numbers.sort_by(f64::total_cmp);
    let count = f64::from(u32::try_from(numbers.len()).unwrap_or(u32::MAX)).max(1.0);
    let mean = numbers.iter().sum::<f64>() / count;
    let variance = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt(), numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN))
}

/// Round trips of 20 ms that differ by 4 ms at most, each after the other.
fn round_trips(amount: Amount) -> Result<[Figure; 3], CheckError> {
    let line = Line { delay: Duration::from_millis(10), jitter: Duration::from_millis(2), ..Line::IDEAL };
    let wan = pair(line)?;
    let (asks, answers) = (udp(&wan, 1)?, udp(&wan, 2)?);
    let times = thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 64];
            while let Ok((length, from)) = answers.recv_from(&mut bytes) {
                if length == 0 || answers.send_to(bytes.get(..length).unwrap_or_default(), from).is_err() {
                    return;
                }
            }
        });
        let times = pings(&asks, amount.pings);
        // Ends the other thread.
        asks.send_to(&[], socket_address(2))?;
        times
    });
    let mut times = times?;
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let (_, deviation, median) = moments(&mut times);
    // The delay of each direction lies between two values of a uniform distribution (link.rs); two directions add up.
    // Each has the variance 2/9 J^2 with J = 2 ms.
    let wanted = (2.0 * 2.0 / 9.0 * 4.0_f64).sqrt();
    Ok([
        Figure { what: "UDP round trip, median", wanted: 20.0, measured: median, bounds: (19.5, 21.0), unit: "ms" },
        Figure { what: "UDP round trip, least", wanted: 16.0, measured: least, bounds: (16.0, 18.5), unit: "ms" },
        Figure {
            what: "UDP round trip, deviation",
            wanted,
            measured: deviation,
            bounds: (0.8 * wanted, 1.4 * wanted),
            unit: "ms",
        },
    ])
}

fn pings(socket: &UdpSocket, count: u32) -> io::Result<Vec<f64>> {
    let mut bytes = [0; 64];
    (0..count)
        .map(|_| {
            let begin = Instant::now();
            socket.send_to(&[1], socket_address(2))?;
            socket.recv_from(&mut bytes)?;
            Ok(begin.elapsed().as_secs_f64() * 1e3)
        })
        .collect()
}

/// Which of the packets from node 1 to node 2 the model loses.
fn predicted(line: Line, packets: u32) -> Vec<u32> {
    let mut link = Link::new(line, SEED, 1, 2);
    (0..packets).filter(|number| link.send(u64::from(*number), 32) == Fate::Lost).collect()
}

/// Two in a hundred packets are lost, and exactly those that the seed says.
fn losses(amount: Amount) -> Result<[Figure; 2], CheckError> {
    const UNDER_WAY: u64 = 100;
    let line = Line { delay: Duration::from_millis(1), loss: 0.02, ..Line::IDEAL };
    let expected = predicted(line, amount.packets);
    let wan = pair(line)?;
    let (sends, receives) = (udp(&wan, 1)?, udp(&wan, 2)?);
    let arrived = AtomicU64::new(0);
    let awaited = u64::from(amount.packets).saturating_sub(u64::try_from(expected.len()).unwrap_or(0));
    let seen = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut bytes, mut seen) = ([0; 4], Vec::new());
            while arrived.load(Ordering::Relaxed) < awaited && receives.recv(&mut bytes).is_ok() {
                arrived.fetch_add(1, Ordering::Relaxed);
                seen.push(u32::from_be_bytes(bytes));
            }
            seen
        });
        let mut on_the_way = 0;
        for number in 0..amount.packets {
            // No more at once than the sockets hold, so that nothing is lost but by the router.
            while on_the_way > arrived.load(Ordering::Relaxed) + UNDER_WAY && !reader.is_finished() {
                thread::yield_now();
            }
            sends.send_to(&number.to_be_bytes(), socket_address(2))?;
            on_the_way += u64::from(expected.binary_search(&number).is_err());
        }
        reader.join().map_err(|_| io::Error::other("the reading thread failed"))
    })?;
    let missing: Vec<u32> = (0..amount.packets).filter(|number| seen.binary_search(number).is_err()).collect();
    let wrong = missing.iter().filter(|number| expected.binary_search(number).is_err()).count();
    let wrong = wrong + expected.iter().filter(|number| missing.binary_search(number).is_err()).count();
    let percent = |count: usize| 100.0 * number(count) / f64::from(amount.packets);
    Ok([
        Figure { what: "UDP loss", wanted: 2.0, measured: percent(missing.len()), bounds: (1.6, 2.4), unit: "%" },
        Figure {
            what: "packets lost but not by the seed, or the other way round",
            wanted: 0.0,
            measured: number(wrong),
            bounds: (0.0, 0.0),
            unit: "",
        },
    ])
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// A TCP stream over 50 Mbit/s with 10 ms of delay, without its beginning.
fn throughput(amount: Amount) -> Result<[Figure; 2], CheckError> {
    let line = Line { delay: Duration::from_millis(10), rate: Some(50_000_000), ..Line::IDEAL };
    let wan = pair(line)?;
    let listener = open(&wan, 2, TcpListener::bind)?;
    let mut sends = open(&wan, 1, |_| TcpStream::connect(socket_address(2)))?;
    let (mut receives, _) = listener.accept()?;
    receives.set_read_timeout(Some(PATIENCE))?;
    let started = Instant::now();
    let (rate, whole) = thread::scope(|scope| {
        scope.spawn(move || sends.write_all(&vec![0; amount.bytes]));
        let (mut bytes, mut read, mut begin) = (vec![0; 65_536], 0, None);
        let skipped = amount.bytes / 3;
        while read < amount.bytes {
            match receives.read(&mut bytes)? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                some => read += some,
            }
            if read > skipped && begin.is_none() {
                begin = Some((Instant::now(), read));
            }
        }
        let (begin, before) = begin.unwrap_or((Instant::now(), 0));
        let rate = |bytes, since: Instant| number(bytes) * 8.0 / 1e6 / since.elapsed().as_secs_f64();
        Ok((rate(read - before, begin), rate(read, started)))
    })?;
    // Of 1,500 bytes, 40 are headers and 12 the time stamp.
    let wanted = 50.0 * 1_448.0 / 1_500.0;
    Ok([
        Figure {
            what: "TCP over 50 Mbit/s",
            wanted,
            measured: rate,
            bounds: (0.85 * wanted, 1.02 * wanted),
            unit: "Mbit/s",
        },
        // No load of this machine can make it faster.
        Figure {
            what: "the same with its beginning, which is slower",
            wanted,
            measured: whole,
            bounds: (0.6 * wanted, wanted),
            unit: "Mbit/s",
        },
    ])
}

/// Small packets, 100,000 a second.
fn storm(amount: Amount) -> Result<[Figure; 3], CheckError> {
    const RATE: u32 = 100_000;
    let wan = pair(Line { delay: Duration::from_millis(10), ..Line::IDEAL })?;
    // Never read: what a full socket drops has been delivered before.
    let (sends, _receives) = (udp(&wan, 1)?, udp(&wan, 2)?);
    let begin = Instant::now();
    let mut sent = 0;
    while begin.elapsed() < amount.storm {
        let due = begin.elapsed().as_secs_f64() * f64::from(RATE);
        while f64::from(sent) < due {
            sends.send_to(&[0; 32], socket_address(2))?;
            sent += 1;
        }
        thread::sleep(Duration::from_micros(50));
    }
    let elapsed = begin.elapsed();
    // What is under way still.
    thread::sleep(Duration::from_millis(50));
    let report: Report = wan.stop().ok_or(CheckError::NoReport)?;
    let delivered = u32::try_from(report.counters.delivered).unwrap_or(u32::MAX);
    let [mean, p99, _] = report.late().map(|late| late.as_secs_f64() * 1e3);
    let rate = f64::from(delivered) / elapsed.as_secs_f64();
    Ok([
        Figure {
            what: "packets a second",
            wanted: f64::from(RATE),
            measured: rate,
            bounds: (0.95 * f64::from(RATE), 1.02 * f64::from(RATE)),
            unit: "1/s",
        },
        Figure { what: "lateness then, mean", wanted: 0.0, measured: mean, bounds: (0.0, 0.1), unit: "ms" },
        Figure { what: "lateness then, 99 in 100", wanted: 0.0, measured: p99, bounds: (0.0, 1.0), unit: "ms" },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_holds_within_its_bounds() {
        let figure = |measured| Figure { what: "", wanted: 1.0, measured, bounds: (0.9, 1.1), unit: "" };
        assert!(figure(0.9).holds() && figure(1.1).holds());
        assert!(!figure(0.89).holds() && !figure(1.11).holds() && !figure(f64::NAN).holds());
    }

    #[test]
    fn moments_are_those_of_the_numbers() {
        assert_eq!(moments(&mut [4.0, 2.0, 3.0]), (3.0, (2.0_f64 / 3.0).sqrt(), 3.0));
    }
}
