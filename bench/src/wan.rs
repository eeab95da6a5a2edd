//! Groups whose nodes are far from each other, by a profile of `theta-wan`; and how to reach nodes, wherever they are.

use std::{io, net::IpAddr};
#[cfg(target_os = "linux")]
use std::{
    net::{Ipv4Addr, SocketAddr},
    process::{Child, Command},
    sync::Arc,
};

use theta::exit::Failure;
#[cfg(target_os = "linux")]
use theta::{group::plan::Addresses, output};
use theta_cluster::{Loopback, Site};
use theta_wan::Profile;
#[cfg(target_os = "linux")]
use theta_wan::Wan;

/// Nodes have networks of their own, so that all have the same ports.
#[cfg(target_os = "linux")]
mod port {
    pub(super) const PEER: u16 = 7_000;
    pub(super) const API: u16 = 7_001;
    pub(super) const METRICS: u16 = 7_002;
}
/// Decides which packets are lost. Always the same, so that runs can be compared.
#[cfg(target_os = "linux")]
const SEED: u64 = 1;

/// Where the nodes are.
#[derive(Clone)]
pub(crate) enum Reach {
    /// Here, over the loopback device as it is.
    Here,
    /// Each in a network of its own.
    #[cfg(target_os = "linux")]
    Far(Arc<Wan>),
}

impl Reach {
    /// Does something where a node is (0: the client), such as opening a connection to its loopback device.
    pub(crate) fn within<T: Send>(&self, node: u16, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        match self {
            Self::Here => {
                let _ = node;
                work()
            }
            #[cfg(target_os = "linux")]
            Self::Far(wan) => wan.place(node).ok_or(io::ErrorKind::NotFound)?.within(work),
        }
    }

    /// Moves the calling thread to where a node is.
    pub(crate) fn enter(&self, node: u16) -> io::Result<()> {
        match self {
            Self::Here => {
                let _ = node;
                Ok(())
            }
            #[cfg(target_os = "linux")]
            Self::Far(wan) => wan.place(node).ok_or(io::ErrorKind::NotFound)?.enter(),
        }
    }

    /// Whether each node has a network of its own.
    pub(crate) const fn is_far(&self) -> bool {
        !matches!(self, Self::Here)
    }

    /// The address of a node.
    pub(crate) fn address(&self, node: u16) -> Option<IpAddr> {
        match self {
            Self::Here => {
                let _ = node;
                Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST))
            }
            #[cfg(target_os = "linux")]
            Self::Far(_) => theta_wan::address(node).map(IpAddr::V4),
        }
    }

    /// The site for a cluster.
    pub(crate) fn site(&self) -> Box<dyn Site> {
        match self {
            Self::Here => Box::new(Loopback),
            #[cfg(target_os = "linux")]
            Self::Far(wan) => Box::new(Far(Arc::clone(wan))),
        }
    }
}

/// The networks of a group.
#[cfg(target_os = "linux")]
struct Far(Arc<Wan>);

/// Makes networks for so many nodes by a profile. To be called while the process has one thread.
#[cfg(target_os = "linux")]
pub(crate) fn wires(profile: &Profile, nodes: u16) -> Result<Reach, Failure> {
    if nodes > theta_wan::MAX_NODES {
        return Err(Failure::Usage(format!("profiles have room for {} nodes, not {nodes}", theta_wan::MAX_NODES)));
    }
    theta_wan::with_privileges().map_err(|refusal| Failure::Failed(refusal.to_string()))?;
    let wan = Wan::new(profile, nodes, SEED).map_err(|refusal| Failure::Failed(refusal.to_string()))?;
    Ok(Reach::Far(Arc::new(wan)))
}

/// See there; here the system has no such networks.
#[cfg(not(target_os = "linux"))]
pub(crate) fn wires(_: &Profile, _: u16) -> Result<Reach, Failure> {
    Err(Failure::Failed("profiles take Linux".to_owned()))
}

/// Makes networks for so many nodes, and moves the client, which is this process, into its own. To be called while the process
/// has one thread: those that are started later are there, too.
pub(crate) fn lay(profile: &str, nodes: u16) -> Result<Reach, Failure> {
    let profile = Profile::find(profile).map_err(|error| Failure::Usage(error.to_string()))?;
    let reach = wires(&profile, nodes)?;
    reach.enter(0).map_err(Failure::internal)?;
    Ok(reach)
}

#[cfg(target_os = "linux")]
/// The same, and says so.
pub(crate) fn lay_aloud(name: &str, nodes: u16) -> Result<Reach, Failure> {
    let reach = lay(name, nodes)?;
    if let Reach::Far(wan) = &reach {
        output::note(format_args!("network: {} ({})", wan.profile().name(), wan.profile().description()));
    }
    Ok(reach)
}

#[cfg(target_os = "linux")]
impl Site for Far {
    fn addresses(&self, nodes: u16) -> Result<Vec<Addresses>, Failure> {
        let of_node = |node| {
            let address = theta_wan::address(node)?;
            Some(Addresses {
                peer: SocketAddr::from((address, port::PEER)),
                api: SocketAddr::from((address, port::API)),
                metrics: SocketAddr::from((Ipv4Addr::LOCALHOST, port::METRICS)),
            })
        };
        let addresses = (1..=nodes).map(of_node).collect::<Option<_>>();
        addresses.ok_or_else(|| Failure::internal("more nodes than addresses"))
    }

    fn spawn(&self, node: u16, command: &mut Command) -> io::Result<Child> {
        let place = self.0.place(node).ok_or(io::ErrorKind::NotFound)?;
        place.within(|| command.spawn())
    }
}
