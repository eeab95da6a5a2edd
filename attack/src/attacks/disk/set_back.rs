//! A node's store is copied, the node goes on, and the copy is put back and opened more than once.

use std::{fs, time::Duration};

use theta_client::Client;
use tokio::time;

use crate::{
    ask::{Asked, reason},
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    group::{Group, NODES, SIGNER, SLOTS, SLOTS_RULE},
    until::until,
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "set-back",
    promise: "A store that was set back promises no slot again, however often it is opened, until a person says otherwise",
    who: Who::Disk,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

/// The node whose store is set back.
const NODE: u16 = 1;
/// The number of slots that are promised after the copy was made, and asked again for another message.
const PROMISED: u64 = 5;
/// Long enough for greetings, which nodes send every 8 ticks of 250 ms.
const GREETED: Duration = Duration::from_secs(3);

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    field.group().begin_policies_with(SLOTS_RULE).await?;
    let client = field.group().client()?;
    field.group().signs_slots(&client, 1).await?;
    let (store, copy) = (field.group().node_dir(NODE).join("theta.redb"), field.group().path("copy.redb"));
    field.group_mut().kill(NODE)?;
    fs::copy(&store, &copy)?;
    field.group_mut().start(NODE)?;
    // A slot takes three nodes of four, so with one away node 1 is among them.
    field.group_mut().kill(NODES)?;
    for slot in 2..2 + PROMISED {
        field.group().signs_slots(&client, slot).await?;
    }
    time::sleep(GREETED).await;
    field.group_mut().kill(NODE)?;
    fs::copy(&copy, &store)?;
    let openings: usize = field.size(6, 2);
    let (mut asked, mut given) = (0, 0);
    for _ in 0..openings {
        field.group_mut().start(NODE)?;
        let tries = again(field.group(), &client).await?;
        asked += tries.0;
        given += tries.1;
        field.group_mut().kill(NODE)?;
    }
    // The operator of the store is told as well.
    let dir = field.group().node_dir(NODE);
    let told = field.group().tool(&["keys", "trust-store", "--json", "--dir", &dir.to_string_lossy()])?;
    let told: serde_json::Value = serde_json::from_str(&told).map_err(|error| Trouble::new(error.to_string()))?;
    let claims = told.get("overruled").and_then(serde_json::Value::as_array).map_or(0, Vec::len);
    for node in [NODE, NODES] {
        field.group_mut().start(node)?;
    }
    field.group().serves().await?;
    Ok(Happened {
        kept: given == 0 && claims > 0,
        words: format!(
            "a copy was put back and opened {openings} times: it promised {given} slots of {asked} that it was asked for; {claims} \
             peers' claims are shown to its operator"
        ),
        effort: Effort { connections: usize::from(NODES), bytes: 0 },
    })
}

/// Asks for new slots, and for the old ones with other messages. Returns how many were asked for and how many were given.
async fn again(group: &Group, client: &Client) -> Result<(usize, usize), Trouble> {
    let (node, patience) = (group.node(NODE)?, Duration::from_millis(1_500));
    let up = until(Duration::from_secs(30), || async { Asked::new(SIGNER, "is it up?").share(client, node).await });
    up.await
        .map_err(|status| Trouble::new(format!("the node does not come up with the copy of its store: {status}")))?;
    let (mut asked, mut given) = (0, 0);
    for slot in 2..2 + PROMISED + 3 {
        // Only this node is asked: with its second promise and that of one more liar the other message would have enough.
        let request = Asked { patience, ..Asked::new(SLOTS, format!("another {slot}")).for_slot(slot) };
        asked += 1;
        match request.share(client, node).await {
            Ok(_) => given += 1,
            // The node has promised, and learnt from its peers that it should not have.
            Err(status) if reason(&status).starts_with("slot-") => given += 1,
            Err(_) => {}
        }
    }
    // The peers' complaints reach the node's operator with their next greetings.
    time::sleep(GREETED).await;
    Ok((asked, given))
}
