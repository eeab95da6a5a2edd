//! The host beside the node, and what the node does with its order: it says which of several messages for a slot the node promises.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prometheus_client::{metrics::counter::Counter, registry::Registry};
use theta_custody::{Races, SlotRace, claim_of};
use theta_names::NodeId;
use theta_network::{
    doorway::Occasionally,
    tob_proxy::{Ordered, TobProxy},
};
use theta_statements::Name;
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, timeout_at},
};

/// How many heights a node that has just begun wants again, so that it knows the races that go on.
pub(crate) const WANTED_HEIGHTS: u64 = 256;

/// A host as its node has it.
pub(crate) struct Host {
    client: Name,
    local: NodeId,
    proxy: Arc<TobProxy>,
    races: Mutex<Races>,
    changed: Notify,
    /// Messages in the order that are no claims. Any validator can have as many ordered as it likes.
    foreign: Counter,
    warnings: Occasionally,
}

/// Why a message is not first for its slot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotFirst {
    #[error(
        "slot {} of key {} belongs to another message, which was first in the host's order: signing rule {} allows one",
        .0.slot, .0.key, .0.rule
    )]
    Another(SlotRace),
    #[error(
        "the host's order has not said in time which message has slot {} of key {}, as signing rule {} wants: is the host connected, does \
         its chain go on, and are enough nodes asked?",
        .0.slot, .0.key, .0.rule
    )]
    Undecided(SlotRace),
}

impl Host {
    /// The host that this client of the policy is, beside node `local` of a group in which any k act. Reads its order until it is
    /// dropped. Within a Tokio runtime.
    pub(crate) fn start(client: Name, local: NodeId, k: u16, registry: &mut Registry) -> Arc<Self> {
        let (proxy, ordered) = TobProxy::new(local);
        let (races, changed) = (Mutex::new(Races::new(k)), Notify::new());
        let (foreign, warnings) = (Counter::default(), Occasionally::every(Duration::from_secs(60)));
        let help = "Messages in the host's order that are no claims of slots";
        registry.register("theta_order_foreign_messages", help, foreign.clone());
        let host = Arc::new(Self { client, local, proxy, races, changed, foreign, warnings });
        tokio::spawn(read(Arc::downgrade(&host), ordered));
        host
    }

    /// What the policy calls it.
    pub(crate) const fn client(&self) -> &Name {
        &self.client
    }

    /// What it brings and takes.
    pub(crate) const fn proxy(&self) -> &Arc<TobProxy> {
        &self.proxy
    }

    fn races(&self) -> MutexGuard<'_, Races> {
        self.races.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the order says that this message is the first for each of these slots, for which the node makes its claims.
    ///
    /// # Errors
    /// [`NotFirst`].
    pub(crate) async fn is_first(&self, races: Vec<SlotRace>, patience: Duration) -> Result<(), NotFirst> {
        let deadline = Instant::now().checked_add(patience);
        for race in races {
            if !self.races().has_claimed(self.local, &race) {
                // A claim is short.
                let _ = self.proxy.outgoing().add(claim_of(&race));
            }
            loop {
                // Registered before looking, so that nothing is missed in between.
                let mut changed = std::pin::pin!(self.changed.notified());
                changed.as_mut().enable();
                match self.races().winner(&race) {
                    Some(winner) if winner == race.digest => break,
                    Some(_) => return Err(NotFirst::Another(race)),
                    None => {}
                }
                let late = match deadline {
                    Some(deadline) => timeout_at(deadline, changed).await.is_err(),
                    None => {
                        changed.await;
                        false
                    }
                };
                if late {
                    return Err(NotFirst::Undecided(race));
                }
            }
        }
        Ok(())
    }
}

/// Reads what the host brings.
async fn read(host: std::sync::Weak<Host>, mut ordered: mpsc::Receiver<Ordered>) {
    while let Some(Ordered { height, message }) = ordered.recv().await {
        let Some(host) = host.upgrade() else { return };
        if host.races().take(message.from, &message.bytes) {
            host.changed.notify_waiters();
        } else {
            host.foreign.inc();
            let node = message.from;
            host.warnings.warn(format_args!(
                "the order has something of node {node} at height {height} that is no claim of a slot"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use theta_network::tob_proxy::Block;
    use theta_statements::Digest;

    use super::*;

    const SOON: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_secs(20);

    fn node(number: u16) -> NodeId {
        NodeId::try_from(number).unwrap()
    }

    fn race(digest: u8) -> SlotRace {
        SlotRace { key: "chain".to_owned(), rule: "heights".parse().unwrap(), slot: 7, digest: Digest([digest; 32]) }
    }

    fn begun(number: u16) -> Arc<Host> {
        Host::start("host".parse().unwrap(), node(number), 2, &mut Registry::default())
    }

    async fn order(hosts: &[&Arc<Host>], height: u64, messages: &[(u16, Bytes)]) {
        let messages = messages.iter().map(|(from, bytes)| (node(*from), bytes.clone())).collect();
        let block = Block { height, messages };
        for host in hosts {
            let _ = host.proxy().tell_position();
            host.proxy().deliver(height - 1, height, vec![block.clone()]).await.unwrap();
        }
    }

    /// Two nodes are asked for one message first and two for another: without an order the slot would be void.
    #[tokio::test]
    async fn four_nodes_follow_one_order() {
        let hosts: Vec<_> = (1..=4).map(begun).collect();
        let asked = [[1, 2], [2, 1], [1, 2], [2, 1]];
        let mut waiting = Vec::new();
        for (host, messages) in hosts.iter().zip(asked) {
            for digest in messages {
                let host = Arc::clone(host);
                waiting.push((digest, tokio::spawn(async move { host.is_first(vec![race(digest)], LONG).await })));
                tokio::task::yield_now().await;
            }
        }
        // What the hosts collect is ordered: the claims of nodes 4, 2, 3 and 1.
        let mut claims = Vec::new();
        for number in [4_usize, 2, 3, 1] {
            let (_, claim) = hosts[number - 1].proxy().outgoing().next(0).await;
            claims.push((u16::try_from(number).unwrap(), claim));
        }
        let all: Vec<_> = hosts.iter().collect();
        order(&all, 1, &[(3, Bytes::from_static(b"noise"))]).await;
        order(&all, 2, &claims).await;
        for (digest, waiting) in waiting {
            let expected = if digest == 2 { Ok(()) } else { Err(NotFirst::Another(race(1))) };
            assert_eq!(waiting.await.unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn who_waits_in_vain_is_told_in_time() {
        let host = begun(1);
        assert_eq!(host.is_first(vec![race(1)], SOON).await, Err(NotFirst::Undecided(race(1))));
        // The claim waits for the host, once.
        assert_eq!(host.is_first(vec![race(1)], SOON).await, Err(NotFirst::Undecided(race(1))));
        assert_eq!(host.proxy().outgoing().len(), 1);
        order(&[&host], 1, &[(1, claim_of(&race(1))), (4, claim_of(&race(9)))]).await;
        assert!(host.proxy().outgoing().is_empty(), "it is ordered");
        assert_eq!(
            host.is_first(vec![race(1)], SOON).await,
            Err(NotFirst::Undecided(race(1))),
            "one claim is not enough"
        );
        order(&[&host], 2, &[(2, claim_of(&race(1)))]).await;
        assert_eq!(host.is_first(vec![race(1)], SOON).await, Ok(()));
    }

    /// Any validator can have as much ordered as it likes: it is counted, and does not fill the log.
    #[tokio::test]
    async fn what_is_no_claim_is_counted() {
        let host = begun(1);
        let noise = vec![(3, Bytes::from_static(b"noise")); 500];
        order(&[&host], 1, &[&noise[..], &[(2, claim_of(&race(1)))]].concat()).await;
        while !host.races().has_claimed(node(2), &race(1)) {
            tokio::task::yield_now().await;
        }
        assert_eq!(host.foreign.get(), 500);
        assert_eq!(host.warnings.left_out(), 499);
    }
}
