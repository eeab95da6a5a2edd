//! libp2p's transport: TCP to members, by their addresses in the group, and from members, who show a pinned key.

use core::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use std::{
    io,
    net::SocketAddr,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use futures::{FutureExt as _, future::BoxFuture};
use libp2p_core::{
    Multiaddr, Transport,
    multiaddr::Protocol,
    muxing::StreamMuxerBox,
    transport::{DialOpts, ListenerId, TransportError, TransportEvent},
};
use libp2p_identity::PeerId;
use theta_network::{
    Identity,
    doorway::{self, Doorway, DoorwayLimits, Ended, Handshake, Occasionally},
    mesh::MeshPeer,
    places,
    tls::{self, UnpinnedCertificate},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::{Sleep, sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use yamux::Mode;

use super::{
    metered::{Metered, Traffic},
    muxer::Muxer,
};
use crate::{
    config::GossipLimits,
    members::{Members, key_of, peer_id},
    rate::Rate,
};

/// The application protocol that connections agree on, so that no other TLS service is mistaken for a neighbour.
const ALPN: &[u8] = b"theta-gossip/1";
/// A neighbour that does not confirm bytes for so long is gone.
const DEAD_AFTER: Duration = Duration::from_secs(10);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SocketError {
    #[error("there is no member of that name")]
    NoMember,
    #[error("it was left because of false messages")]
    Banned,
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("TLS handshake failed: {0}")]
    Handshake(io::Error),
    #[error("{0}; if it is a node of this group, give all nodes the same group file")]
    Unpinned(UnpinnedCertificate),
    #[error(transparent)]
    Ended(#[from] Ended),
    #[error("TLS cannot be configured: {0}")]
    Tls(#[from] rustls::Error),
}

/// Connections that did not prove to be a member's, and warnings of them.
#[derive(Debug, Default)]
pub(crate) struct Strangers {
    count: AtomicU64,
    warnings: Occasionally,
}

impl Strangers {
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }
}

type Connected = (PeerId, StreamMuxerBox);
type Connecting = BoxFuture<'static, Result<Connected, SocketError>>;

/// What connections are made with.
#[derive(Clone)]
struct Making {
    identity: Identity,
    members: Arc<Members>,
    traffic: Arc<Traffic>,
    rate: Rate,
    patience: Duration,
}

pub(crate) struct Socket {
    listener: TcpListener,
    address: SocketAddr,
    listening: Option<ListenerId>,
    announced: bool,
    pause: Option<Pin<Box<Sleep>>>,
    acceptor: TlsAcceptor,
    doorway: Arc<Doorway>,
    members: Arc<Members>,
    strangers: Arc<Strangers>,
    making: Making,
}

impl Socket {
    pub(crate) fn new(
        (listener, address): (TcpListener, SocketAddr),
        identity: &Identity,
        members: &Arc<Members>,
        (traffic, strangers): (&Arc<Traffic>, &Arc<Strangers>),
        limits: &GossipLimits,
    ) -> Result<(Self, Arc<Doorway>), rustls::Error> {
        let tls = tls::server_config_admitting(identity, Arc::clone(members) as _, &[ALPN])?;
        let handshakes = NonZeroUsize::new(limits.handshakes).unwrap_or(NonZeroUsize::MIN);
        let doorway = Doorway::new(DoorwayLimits::of(handshakes, limits.handshake_timeout));
        let making = Making {
            identity: identity.clone(),
            members: Arc::clone(members),
            traffic: Arc::clone(traffic),
            // However small, what is read at once counts as a KiB: many small frames cost more than their bytes.
            rate: Rate::shared(u32::MAX, limits.bytes_per_second, 1, Duration::from_millis(250)),
            patience: limits.handshake_timeout,
        };
        let socket = Self {
            listener,
            address,
            listening: None,
            announced: false,
            pause: None,
            acceptor: TlsAcceptor::from(tls),
            doorway: Arc::clone(&doorway),
            members: Arc::clone(members),
            strangers: Arc::clone(strangers),
            making,
        };
        Ok((socket, doorway))
    }

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<(TcpStream, SocketAddr)> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            match ready!(self.listener.poll_accept(cx)) {
                Ok(accepted) => return Poll::Ready(accepted),
                Err(error) => {
                    let gave_way = doorway::is_out_of_descriptors(&error) && self.doorway.give_way();
                    self.strangers.warnings.warn(format_args!("cannot accept connections from neighbours: {error}"));
                    self.pause = Some(Box::pin(sleep(doorway::pause(gave_way))));
                }
            }
        }
    }

    fn receive(&self, handshake: Handshake, tcp: TcpStream, from: SocketAddr) -> Connecting {
        let (acceptor, making, strangers) = (self.acceptor.clone(), self.making.clone(), Arc::clone(&self.strangers));
        async move {
            let work = |tcp: TcpStream| async {
                prepare(&tcp).map_err(SocketError::Connect)?;
                let stream = acceptor.accept(tcp).await.map_err(explain)?;
                let key = tls::peer_fingerprint(stream.get_ref().1).ok_or(SocketError::NoMember)?;
                let peer = peer_id(&key).ok_or(SocketError::NoMember)?;
                making.members.came(&key, from.ip());
                Ok((peer, making.mux(stream, Mode::Server)))
            };
            let connected = handshake.run(tcp, work).await.map_err(SocketError::from).flatten();
            if let Err(refused) = &connected {
                strangers.count.fetch_add(1, Relaxed);
                strangers.warnings.warn(format_args!("refused a connection from {from}: {refused}"));
            }
            connected
        }
        .boxed()
    }
}

impl Making {
    fn mux<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(&self, stream: S, mode: Mode) -> StreamMuxerBox {
        let metered = Metered::new(stream, Arc::clone(&self.traffic), self.rate);
        StreamMuxerBox::new(Muxer::new(metered, mode))
    }

    async fn connect(self, peer: PeerId, member: MeshPeer) -> Result<Connected, SocketError> {
        let tls = TlsConnector::from(tls::client_config(&self.identity, member.certificate, &[ALPN])?);
        let connecting = async {
            let addresses = places::lookup(&member.address).await.map_err(SocketError::Connect)?;
            self.members.found(&member, &addresses);
            let tcp = places::connect(&addresses).await.map_err(SocketError::Connect)?;
            prepare(&tcp).map_err(SocketError::Connect)?;
            let stream = tls.connect(tls::server_name(), tcp).await.map_err(explain)?;
            Ok((peer, self.mux(stream, Mode::Client)))
        };
        timeout(self.patience, connecting).await.map_err(|_| SocketError::Late(self.patience))?
    }
}

/// Small messages leave at once, and a neighbour whose machine is gone is noticed.
fn prepare(tcp: &TcpStream) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let socket = socket2::SockRef::from(tcp);
    let probes = socket2::TcpKeepalive::new().with_time(DEAD_AFTER / 2).with_interval(DEAD_AFTER / 5);
    socket.set_tcp_keepalive(&probes)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(DEAD_AFTER))?;
    Ok(())
}

fn explain(error: io::Error) -> SocketError {
    UnpinnedCertificate::cause(&error).map_or(SocketError::Handshake(error), SocketError::Unpinned)
}

/// An address as libp2p writes it.
fn written(address: SocketAddr) -> Multiaddr {
    Multiaddr::from(address.ip()).with(Protocol::Tcp(address.port()))
}

impl Transport for Socket {
    type Output = Connected;
    type Error = SocketError;
    type ListenerUpgrade = Connecting;
    type Dial = Connecting;

    /// There is one listener, whose address is bound already.
    fn listen_on(&mut self, id: ListenerId, _: Multiaddr) -> Result<(), TransportError<SocketError>> {
        self.listening = Some(id);
        Ok(())
    }

    fn remove_listener(&mut self, id: ListenerId) -> bool {
        self.listening.take_if(|listening| *listening == id).is_some()
    }

    /// Members are dialled by name; where they are is looked up in the group.
    fn dial(&mut self, address: Multiaddr, _: DialOpts) -> Result<Connecting, TransportError<SocketError>> {
        let Some(Protocol::P2p(peer)) = address.iter().last() else {
            return Err(TransportError::MultiaddrNotSupported(address));
        };
        let key = key_of(&peer);
        let member = key.and_then(|key| self.members.present().by_key(&key).cloned());
        let member = member.ok_or(TransportError::Other(SocketError::NoMember))?;
        if self.members.is_banned(&member.certificate) {
            return Err(TransportError::Other(SocketError::Banned));
        }
        Ok(self.making.clone().connect(peer, member).boxed())
    }

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<TransportEvent<Connecting, SocketError>> {
        let Some(listener_id) = self.listening else { return Poll::Pending };
        let local_addr = written(self.address);
        if !core::mem::replace(&mut self.announced, true) {
            return Poll::Ready(TransportEvent::NewAddress { listener_id, listen_addr: local_addr });
        }
        let (tcp, from) = ready!(self.poll_accept(cx));
        // In the order in which they came, since the oldest is ended first.
        let address = from.ip().to_canonical();
        let handshake = self.doorway.enter(address, self.members.is_somebody_at(address));
        let upgrade = self.receive(handshake, tcp, from);
        Poll::Ready(TransportEvent::Incoming { listener_id, upgrade, local_addr, send_back_addr: written(from) })
    }
}
