//! Where a name leads, and which of its places answers.

use core::time::Duration;
use std::{io, net::SocketAddr};

use tokio::{
    net::{TcpStream, ToSocketAddrs, lookup_host},
    task::JoinSet,
    time::sleep,
};

/// The most addresses of one name that are used.
const MOST_PLACES: usize = 16;
/// For how long an address is tried alone before the next one is tried beside it (RFC 8305, Section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// The addresses of `host:port`, at most 16, in the order in which the system would have them tried; addresses are their own.
///
/// # Errors
/// The system's error, if it cannot look the name up.
pub async fn lookup(address: impl ToSocketAddrs) -> io::Result<Vec<SocketAddr>> {
    Ok(lookup_host(address).await?.take(MOST_PLACES).collect())
}

/// Connects to the first of these addresses that answers. Each gets a head start of 250 ms before the next one is tried, too: one that
/// swallows packets, such as that of a family for which there is no route, must not use up the time in which another would answer.
///
/// # Errors
/// The error of the attempt that failed last; [`io::ErrorKind::NotFound`] if there is no address.
pub async fn connect(places: &[SocketAddr]) -> io::Result<TcpStream> {
    let (mut attempts, mut untried) = (JoinSet::new(), places.iter());
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    loop {
        if let Some(place) = untried.next() {
            attempts.spawn(TcpStream::connect(*place));
        }
        let ended = tokio::select! {
            ended = attempts.join_next() => ended,
            () = sleep(HEAD_START), if untried.len() > 0 => continue,
        };
        match ended {
            // Whatever else was tried ends with the set.
            Some(Ok(Ok(tcp))) => return Ok(tcp),
            Some(Ok(Err(error))) => failure = error,
            Some(Err(broken)) => failure = io::Error::other(broken),
            None => return Err(failure),
        }
    }
}

/// Connects to the first address of `host:port`, or of several addresses, that answers, as [`connect`] does.
///
/// # Errors
/// As [`lookup`] and [`connect`].
pub async fn connect_to(address: impl ToSocketAddrs) -> io::Result<TcpStream> {
    connect(&lookup(address).await?).await
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    /// An address that answers nothing: its listener takes no connection, and its queue is full.
    async fn swallowing() -> (TcpListener, Vec<TcpStream>, SocketAddr) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = Vec::new();
        // Where there is room, the system connects at once: only a machine that stood still for so long would be taken for a full queue.
        while let Ok(tcp) = tokio::time::timeout(Duration::from_secs(3), TcpStream::connect(address)).await {
            waiting.push(tcp.unwrap());
        }
        (listener, waiting, address)
    }

    /// The system would try the address that swallows packets for two minutes.
    const IN_TIME: Duration = Duration::from_secs(60);

    /// A name has the addresses that the system finds for it, of which a test cannot know that there are two: these are given in its place.
    #[tokio::test]
    async fn a_place_whose_first_address_swallows_packets_is_reached_at_the_next() {
        let (_listener, _waiting, silent) = swallowing().await;
        let there = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = there.local_addr().unwrap();
        let connected = tokio::time::timeout(IN_TIME, connect_to(&[silent, place][..])).await;
        assert_eq!(connected.expect("in time").unwrap().peer_addr().unwrap(), place);
        let named = connect_to(&format!("localhost:{}", place.port())).await.unwrap();
        assert_eq!(named.peer_addr().unwrap(), place);
    }

    #[tokio::test]
    async fn an_address_that_swallows_packets_keeps_nobody_from_the_next() {
        let (_listener, _waiting, silent) = swallowing().await;
        let there = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = there.local_addr().unwrap();
        for places in [&[silent, place][..], &[silent, silent, place], &[place, silent]] {
            let connected = tokio::time::timeout(IN_TIME, connect(places)).await;
            assert_eq!(connected.expect("in time").unwrap().peer_addr().unwrap(), place);
        }
    }

    #[tokio::test]
    async fn an_address_that_refuses_passes_its_turn_on_at_once() {
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let there = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = there.local_addr().unwrap();
        assert_eq!(connect(&[gone, gone, place]).await.unwrap().peer_addr().unwrap(), place);
        assert_eq!(connect(&[gone, gone]).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(connect(&[]).await.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
