//! What a node's metrics say about its connections.

use std::{collections::BTreeMap, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Sums over all peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) connected: usize,
    pub(super) messages: u64,
    pub(super) bytes: u64,
    /// The messages between custodians and their bytes, by what they are about.
    pub(super) about: BTreeMap<String, (u64, u64)>,
}

/// Asks a node; `None` if it does not answer.
pub(super) async fn traffic(address: SocketAddr) -> Option<Traffic> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n").await.ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.ok()?;
    Some(parse(&text))
}

fn parse(text: &str) -> Traffic {
    let mut sum = Traffic::default();
    for line in text.lines() {
        let (Some(name), Some(value)) = (line.split('{').next(), line.split_whitespace().last()) else { continue };
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

impl Traffic {
    fn about(&mut self, line: &str) -> &mut (u64, u64) {
        self.about.entry(line.split('"').nth(1).unwrap_or_default().to_owned()).or_default()
    }
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
        assert_eq!(parse(text), Traffic { connected: 1, messages: 7, bytes: 111, about });
    }
}
