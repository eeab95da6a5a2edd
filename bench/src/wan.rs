//! Groups whose nodes are far from each other, by a profile of `theta-wan`.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    process::{Child, Command},
};

use theta::{exit::Failure, group::plan::Addresses, output};
use theta_cluster::Site;
use theta_wan::{Profile, Wan};

/// Nodes have networks of their own, so that all have the same ports.
const PEER: u16 = 7_000;
const API: u16 = 7_001;
const METRICS: u16 = 7_002;
/// Decides which packets are lost. Always the same, so that runs can be compared.
const SEED: u64 = 1;

/// The networks of a group.
pub(crate) struct Far(Wan);

/// Makes networks for so many nodes, and moves the client, which is this process, into its own. To be called while the process
/// has one thread: those that are started later are there, too.
pub(crate) fn lay(profile: &str, nodes: u16) -> Result<Far, Failure> {
    let profile = Profile::find(profile).map_err(|error| Failure::Usage(error.to_string()))?;
    if nodes > theta_wan::MAX_NODES {
        return Err(Failure::Usage(format!("--wan has room for {} nodes, not {nodes}", theta_wan::MAX_NODES)));
    }
    theta_wan::with_privileges().map_err(|refusal| Failure::Failed(refusal.to_string()))?;
    let wan = Wan::new(&profile, nodes, SEED).map_err(|refusal| Failure::Failed(refusal.to_string()))?;
    let client = wan.place(0).ok_or_else(|| Failure::internal("a network without a client"))?;
    client.enter().map_err(Failure::internal)?;
    output::note(format_args!("network: {} ({})", profile.name(), profile.description()));
    Ok(Far(wan))
}

impl Site for Far {
    fn addresses(&self, nodes: u16) -> Result<Vec<Addresses>, Failure> {
        let of_node = |node| {
            let address = theta_wan::address(node)?;
            Some(Addresses {
                peer: SocketAddr::from((address, PEER)),
                api: SocketAddr::from((address, API)),
                metrics: SocketAddr::from((Ipv4Addr::LOCALHOST, METRICS)),
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
