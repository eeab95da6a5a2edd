//! What a node's metrics say about its connections.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Sums over all peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) connected: usize,
    pub(super) messages: u64,
    pub(super) bytes: u64,
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
            _ => {}
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_over_all_peers() {
        let text = "# TYPE theta_peer_connected gauge\ntheta_peer_connected{peer=\"1\"} 1\ntheta_peer_connected{peer=\"2\"} 0\n\
                    theta_peer_messages_sent_total{peer=\"1\"} 3\ntheta_peer_messages_sent_total{peer=\"2\"} 4\n\
                    theta_peer_sent_bytes_total{peer=\"1\"} 100\ntheta_peer_sent_bytes_total{peer=\"2\"} 11\n";
        assert_eq!(parse(text), Traffic { connected: 1, messages: 7, bytes: 111 });
    }
}
