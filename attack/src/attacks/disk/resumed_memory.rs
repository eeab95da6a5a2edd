//! A machine is resumed from a snapshot: its random number generators are in the state that they had before, and its store
//! is what it was.
//!
//! The attack restores the states of all ChaCha generators in a running node's memory, since it cannot resume a whole
//! machine. Nonces that were in memory would be there twice, as spec/frost.md says, and are not considered. The store draws
//! the secrets of ceremonies from the operating system; that two ceremonies share nothing, whatever is drawn, is tested
//! elsewhere (`theta-custody` `forward::the_secret_of_a_ceremony_goes_with_it`).

mod memory;

use std::{collections::BTreeSet, fs, time::Duration};

use bytes::Bytes;
use theta_client::Client;
use theta_network::group::GroupNode;
use tokio::time::Instant;

use self::memory::Generators;
use crate::{
    ask::Asked,
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    member::Member,
    until::until,
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "resumed-memory",
    promise: "A node whose generators or store are what they were before makes no nonce a second time",
    who: Who::Disk,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

/// The node that is resumed.
const NODE: u16 = 1;
/// A key of FROST.
const KEY: &str = "sign-ed25519";
/// Kinds of FROST's messages (spec/frost.md): commitments to a coordinator, and a coordinator's request for them.
const COMMITMENTS: u32 = 1;
const REQUEST: u32 = 5;
/// The number of commitments in one request.
const WANTED: u8 = 32;
/// The lengths of the parts of a commitment: its number, then D and E.
const NUMBER: usize = 8;
const POINT: usize = 32;
/// Instances in which nonces are requested before and after the snapshot is resumed: some for every CPU thread.
const INSTANCES: usize = 12;
const PATIENCE: Duration = Duration::from_secs(60);

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    let mut member = Member::take(field.group_mut()).await?;
    let (client, node) = (field.group().client()?, field.group().node(NODE)?.clone());
    // The first draws fill the generators' buffers.
    let mut seen = nonces(&mut member, &client, &node, "first").await?;
    let resumptions: usize = field.size(20, 2);
    let (mut generators, mut twice) = (usize::MAX, 0);
    for number in 0..resumptions {
        let pid = field.group().pid(NODE)?;
        let snapshot = tokio::task::spawn_blocking(move || Generators::of(pid));
        let snapshot = snapshot.await.map_err(|error| Trouble::new(format!("bug: {error}")))??;
        generators = generators.min(snapshot.len());
        for life in ["before", "resumed"] {
            let made = nonces(&mut member, &client, &node, &format!("{life} {number}")).await?;
            twice += made.intersection(&seen).count();
            seen.extend(made);
            snapshot.put_back()?;
        }
    }
    if generators == 0 {
        return Err(Trouble::new("no generator was found in the node's memory"));
    }
    let (store, copy) = (field.group().node_dir(NODE).join("theta.redb"), field.group().path("resumed.redb"));
    field.group_mut().kill(NODE)?;
    fs::copy(&store, &copy)?;
    let starts: usize = field.size(6, 2);
    for start in 0..starts {
        fs::copy(&copy, &store)?;
        field.group_mut().start(NODE)?;
        let up = until(PATIENCE, || async { Asked::new(KEY, format!("up {start}")).submit(&client, &node).await });
        up.await.map_err(|status| Trouble::new(format!("the node does not come up: {status}")))?;
        let made = nonces(&mut member, &client, &node, &format!("start {start}")).await?;
        twice += made.intersection(&seen).count();
        seen.extend(made);
        if start + 1 < starts {
            field.group_mut().kill(NODE)?;
        }
    }
    Ok(Happened {
        kept: twice == 0,
        words: format!(
            "{generators} generators of node {NODE} were put back to an earlier state {resumptions} times, and its store {starts} \
             times; of {} commitments to nonces, {twice} were made before",
            seen.len()
        ),
        effort: Effort { connections: 1, bytes: member.sent },
    })
}

/// Commitments that the node makes from now on: points, each of which belongs to one nonce.
async fn nonces(
    member: &mut Member,
    client: &Client,
    node: &GroupNode,
    name: &str,
) -> Result<BTreeSet<Vec<u8>>, Trouble> {
    // Nodes repeat their messages in instances that do not end, so one message of each instance counts.
    let (mut made, mut answered) = (BTreeSet::new(), 0);
    for number in 0..INSTANCES {
        let submitted = Asked::new(KEY, format!("{name} {number}")).submit(client, node).await;
        let id = submitted.map_err(|status| Trouble::new(format!("a request was not taken: {status}")))?;
        let deadline = Instant::now() + Duration::from_secs(3);
        member.tell_instance(Some(NODE), &id, REQUEST, 1, Bytes::from(vec![WANTED]));
        let before = made.len();
        while made.len() == before && Instant::now() < deadline {
            for heard in member.listen(Duration::from_millis(30)).await {
                if heard.from == NODE && heard.instance() == Some(&id) && heard.envelope.kind == COMMITMENTS {
                    made.extend(points(&heard.envelope.payload));
                }
            }
        }
        answered += usize::from(made.len() > before);
    }
    if answered == 0 {
        return Err(Trouble::new("the node makes no commitments"));
    }
    Ok(made)
}

/// D and E of all commitments in an offer.
fn points(offer: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let entries = offer.get(1..).unwrap_or_default().chunks_exact(NUMBER + 2 * POINT);
    entries.flat_map(|entry| entry.get(NUMBER..).unwrap_or_default().chunks_exact(POINT)).map(<[u8]>::to_vec)
}
