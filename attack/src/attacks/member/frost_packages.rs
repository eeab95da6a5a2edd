//! FROST packages that are far too long or have wrong lengths, for every running signature.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use theta_client::Client;
use tokio::{
    sync::watch,
    time::{self, Instant},
};

use crate::{
    ask::Asked,
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    group::NODES,
    honest::{AT_LEAST, nearly_all},
    member::{Heard, Member, TAKEN},
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "frost-packages",
    promise: "A member's packages, however long, cost its peers no more than reading them, and signatures are made all the same",
    who: Who::Member,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

const KEY: &str = "sign-ed25519";
/// The kinds of FROST's messages (spec/frost.md).
const KINDS: [u32; 5] = [1, 2, 3, 4, 5];
const PACKAGE: u32 = 2;
/// The longest message of the mesh, in bytes.
const LONG: usize = 16 << 20;
/// Wrong lengths: a package of four signers on Ed25519 has 9 bytes, and 66 for each signer.
const WRONG: [usize; 6] = [0, 9, 9 + 65, 9 + 66 * 4 + 1, 9 + 66 * 1_000, 2 << 20];
/// How long the member listens between two rounds of messages.
const LISTENING: Duration = Duration::from_millis(50);
/// Instances that are attacked at once.
const AT_ONCE: usize = 8;
/// What the honest nodes together may hold for this member, in MiB: for each 64 of long messages that wait to be read and 8
/// in the router (SECURITY.md), and as much again for the allocator.
const MOST_MIB: u64 = (NODES as u64 - 1) * 2 * (64 + 8);

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    let mut member = Member::take(field.group_mut()).await?;
    let (client, group) = (field.group().client()?, field.group());
    let before = group.memory();
    let until = Instant::now() + field.size(Duration::from_secs(40), Duration::from_secs(8));
    let (mut running, mut most, mut told, mut number) = (VecDeque::new(), before, 0_usize, 0_usize);
    let (stop, stopping) = watch::channel(false);
    let signing = tokio::spawn(sign(client.clone(), stopping));
    let long = Bytes::from(vec![2; LONG]);
    while Instant::now() < until {
        // A request that only one node receives cannot end: it waits for messages of the member.
        let node = group.node(u16::try_from(number % usize::from(TAKEN - 1)).unwrap_or_default() + 1)?;
        if let Ok(id) = Asked::new(KEY, format!("in vain {number}")).submit(&client, node).await {
            running.push_back(id);
        }
        running.extend(member.listen(LISTENING).await.iter().filter_map(Heard::instance).cloned());
        running.drain(..running.len().saturating_sub(AT_ONCE));
        for (place, id) in running.iter().enumerate() {
            let to = u16::try_from(place % usize::from(TAKEN - 1)).unwrap_or_default() + 1;
            let kind = u32::try_from((number + place) % 60_000).unwrap_or_default();
            told += member.tell_instance(Some(to), id, PACKAGE, kind, long.clone());
            for (round, length) in KINDS.iter().zip(WRONG.iter().cycle().skip(number % WRONG.len())) {
                told += member.tell_instance(Some(to), id, *round, kind, long.slice(..*length));
            }
        }
        number += 1;
        most = most.max(group.memory());
    }
    stop.send_replace(true);
    let signatures = signing.await.map_err(|error| Trouble::new(format!("bug: a client ended: {error}")))?;
    most = most.max(field.group().memory());
    if told == 0 {
        return Err(Trouble::new("no message of the taken node was sent"));
    }
    let asked = signatures.len();
    if asked == 0 {
        return Err(Trouble::new("no honest client asked for anything meanwhile"));
    }
    let signed = signatures.iter().flatten().count();
    let slowest = signatures.into_iter().flatten().max().unwrap_or_default();
    let grown = most.saturating_sub(before) >> 20;
    Ok(Happened {
        kept: nearly_all(signed, asked) && grown <= MOST_MIB,
        words: format!(
            "{told} messages of up to 16 MiB in the name of node {TAKEN}; {signed} of {asked} signatures were made, the slowest in \
             {slowest:.1?}; the honest nodes grew by {grown} MiB at most, {MOST_MIB} are their word"
        ),
        effort: Effort { connections: usize::from(NODES) - 1, bytes: member.sent },
    })
}

/// Makes one signature after another, until it is told to stop and has asked often enough. Returns how long each took, or `None` where there was none.
async fn sign(client: Client, stop: watch::Receiver<bool>) -> Vec<Option<Duration>> {
    let mut took = Vec::new();
    while took.len() < AT_LEAST || !*stop.borrow() {
        let at = Instant::now();
        let signed = client.sign(KEY, format!("honest {}", took.len()).into()).await;
        took.push(signed.is_ok().then(|| at.elapsed()));
        time::sleep(LISTENING).await;
    }
    took
}
