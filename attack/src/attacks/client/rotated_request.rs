//! Requests that one node receives before its key is rotated, and the others afterwards.

use std::time::Duration;

use bytes::Bytes;
use theta_client::KeyChange;
use theta_wire::v1::{self, threshold_protocol_client::ThresholdProtocolClient};
use tokio::time::{self, Instant};

use crate::{
    ask::Asked,
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    group::NODES,
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "rotated-request",
    promise: "A request is answered by the version that its key's name stood for when the policy was asked, or not at all",
    who: Who::Client,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

const KEY: &str = "beacon";
/// Requests for each rotation.
const EACH: usize = 20;

/// The outcomes of the requests.
#[derive(Default)]
struct Found {
    /// Of the requests from before the rotation: answered by the old version, by the new one, and not at all.
    by_old: usize,
    by_new: usize,
    unanswered: usize,
    /// Signatures of the new version, and those of them with a share of the node that was asked only before the rotation.
    signed: usize,
    with_old_node: usize,
}

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    let client = field.group().client()?;
    let nodes = field.group().nodes();
    let [first, others @ ..] = nodes else { return Err(Trouble::new("a group without nodes")) };
    let rotations: u32 = field.size(10, 1);
    let mut found = Found::default();
    for rotation in 0..rotations {
        let asked = |number: usize| Asked::new(KEY, format!("rotated {rotation} {number}"));
        let mut ids = Vec::new();
        for number in 0..EACH {
            let id = asked(number).submit(&client, first).await;
            ids.push(id.map_err(|status| Trouble::new(format!("a request was not taken: {status}")))?);
        }
        let change = KeyChange::Rotate { key: KEY.parse().map_err(|_| Trouble::new("bug: no name of a key"))? };
        let rotated = client.hold(change, |_| {}).await?;
        let public = client.public_key(&format!("{KEY}@{}", rotated.version)).await?;
        for number in 0..EACH {
            let request = asked(number);
            let Some(node) = others.get(number % others.len().max(1)) else { continue };
            for other in others.iter().filter(|other| other.id != node.id) {
                // Two of the three other nodes sign it. An error means that the node has the request already.
                drop(request.submit(&client, other).await);
            }
            let outcome = request.outcome(&client, node).await.unwrap_or_default();
            if public.verify(&request.message, &outcome.result, &[]).is_ok() {
                found.signed += 1;
                found.with_old_node += usize::from(outcome.contributors.contains(&u32::from(first.id.get())));
            }
        }
        for (number, id) in ids.into_iter().enumerate() {
            match result(client.protocol(first.id)?, id).await {
                Some(result) if public.verify(&asked(number).message, &result, &[]).is_ok() => found.by_new += 1,
                Some(_) => found.by_old += 1,
                None => found.unanswered += 1,
            }
        }
    }
    if found.signed == 0 {
        return Err(Trouble::new("nothing was signed by the new version: no share can be missed in it"));
    }
    let Found { by_old, by_new, unanswered, signed, with_old_node } = found;
    Ok(Happened {
        kept: by_new == 0 && with_old_node == 0,
        words: format!(
            "{rotations} rotations: of the requests before, the old version answered {by_old}, the new one {by_new}, none \
             {unanswered}; of {signed} signatures of the new version, {with_old_node} have a share of the node that was asked before \
             alone"
        ),
        effort: Effort { connections: usize::from(NODES), bytes: 0 },
    })
}

/// The result of an instance, if it has one within a few seconds.
async fn result(mut node: ThresholdProtocolClient, instance_id: Bytes) -> Option<Bytes> {
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        let asked = node.get_result(v1::GetResultRequest { instance_id: instance_id.clone() }).await;
        match asked.map(tonic::Response::into_inner) {
            Ok(status) if status.state() == v1::InstanceState::Running && Instant::now() < deadline => {
                time::sleep(Duration::from_millis(100)).await;
            }
            Ok(status) => return status.outcome.map(|outcome| outcome.result),
            Err(_) => return None,
        }
    }
}
