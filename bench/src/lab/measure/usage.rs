//! What nodes have used so far: CPU, memory, and what their metrics say.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use crate::{process, wan::Reach};

/// How long a node may take to show its metrics.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sums of a node's metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Traffic {
    /// Peers that it is connected to.
    pub(crate) connected: usize,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// The messages between custodians and their bytes, by what they are about.
    pub(crate) about: BTreeMap<String, (u64, u64)>,
    /// By stage and scheme: seconds, and how many.
    pub(crate) stages: BTreeMap<(String, String), (f64, u64)>,
}

/// Asks a node; `None` if it does not answer.
pub(crate) fn traffic(reach: &Reach, node: u16, address: SocketAddr) -> Option<Traffic> {
    reach.within(node, || fetch(address)).ok().map(|text| parse(&text))
}

fn fetch(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

fn parse(text: &str) -> Traffic {
    let mut sum = Traffic::default();
    for line in text.lines() {
        let (Some(name), Some(value)) = (line.split('{').next(), line.split_whitespace().last()) else { continue };
        if let Some(place) = sum.stage(line, name) {
            match (name, value.parse::<f64>()) {
                ("theta_stage_seconds_sum", Ok(seconds)) => place.0 += seconds,
                ("theta_stage_seconds_count", _) => place.1 += value.parse::<u64>().unwrap_or(0),
                _ => {}
            }
            continue;
        }
        let Ok(value) = value.parse::<u64>() else { continue };
        match name {
            "theta_peer_connected" => sum.connected += usize::from(value == 1),
            "theta_peer_messages_sent_total" => sum.messages = sum.messages.saturating_add(value),
            "theta_peer_sent_bytes_total" => sum.bytes = sum.bytes.saturating_add(value),
            "theta_custody_messages_total" => sum.about(line).0 += value,
            "theta_custody_message_bytes_total" => sum.about(line).1 += value,
            _ => {}
        }
    }
    sum
}

/// The value of a label in a line of metrics.
fn label<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("{name}=\""))?;
    rest.split('"').next()
}

impl Traffic {
    fn about(&mut self, line: &str) -> &mut (u64, u64) {
        self.about.entry(label(line, "about").unwrap_or_default().to_owned()).or_default()
    }

    fn stage(&mut self, line: &str, name: &str) -> Option<&mut (f64, u64)> {
        if !matches!(name, "theta_stage_seconds_sum" | "theta_stage_seconds_count") {
            return None;
        }
        let (stage, scheme) = (label(line, "stage")?.to_owned(), label(line, "scheme")?.to_owned());
        Some(self.stages.entry((stage, scheme)).or_default())
    }

    /// Seconds and number of a stage of a scheme since an earlier moment.
    pub(crate) fn stage_since(&self, before: &Self, stage: &str, scheme: &str) -> (f64, u64) {
        let key = (stage.to_owned(), scheme.to_owned());
        let of = |traffic: &Self| traffic.stages.get(&key).copied().unwrap_or_default();
        let (now, then) = (of(self), of(before));
        (now.0 - then.0, now.1.saturating_sub(then.1))
    }
}

/// The CPU time that this whole machine was busy for, of all cores, since it started; `None` if the system does not say.
pub(super) fn machine_busy() -> Option<Duration> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    parse_busy(text.lines().next()?)
}

/// user, nice, system, irq and softirq of the first line of `/proc/stat`; idle, waiting for disks and stolen time are none of it.
fn parse_busy(line: &str) -> Option<Duration> {
    let fields: Vec<u64> = line.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _waiting, irq, soft, ..] = fields.as_slice() else { return None };
    Some(Duration::from_millis((user + nice + system + irq + soft) * process::MILLISECONDS_PER_TICK))
}

/// How many processes wanted to run in the last minute.
pub(crate) fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_over_all_peers() {
        let text = "# TYPE theta_peer_connected gauge\ntheta_peer_connected{peer=\"1\"} 1\ntheta_peer_connected{peer=\"2\"} 0\n\
                    theta_peer_messages_sent_total{peer=\"1\"} 3\ntheta_peer_messages_sent_total{peer=\"2\"} 4\n\
                    theta_peer_sent_bytes_total{peer=\"1\"} 100\ntheta_peer_sent_bytes_total{peer=\"2\"} 11\n\
                    theta_custody_messages_total{about=\"stores\"} 5\ntheta_custody_message_bytes_total{about=\"stores\"} 60\n";
        let about = BTreeMap::from([("stores".to_owned(), (5, 60))]);
        let expected = Traffic { connected: 1, messages: 7, bytes: 111, about, ..Traffic::default() };
        assert_eq!(parse(text), expected);
    }

    #[test]
    fn stages_are_known_by_scheme() {
        let text = |sum: f64, count: u64| {
            format!(
                "theta_stage_seconds_sum{{stage=\"received\",scheme=\"a\"}} {sum}\ntheta_stage_seconds_count{{stage=\"received\",scheme=\"a\"}} \
                 {count}\ntheta_stage_seconds_bucket{{le=\"0.1\",stage=\"received\",scheme=\"a\"}} 7\n"
            )
        };
        let (before, after) = (parse(&text(0.5, 2)), parse(&text(1.25, 5)));
        assert_eq!(after.stage_since(&before, "received", "a"), (0.75, 3));
        assert_eq!(after.stage_since(&before, "received", "b"), (0.0, 0));
        assert_eq!(after.stages.len(), 1);
    }

    #[test]
    fn what_the_machine_does_is_read() {
        assert_eq!(parse_busy("cpu  100 20 30 5000 700 4 6 0 0 0"), Some(Duration::from_millis(1_600)));
        assert_eq!(parse_busy("cpu  100"), None);
        assert!(machine_busy().is_some() && load_average().is_some());
    }
}
