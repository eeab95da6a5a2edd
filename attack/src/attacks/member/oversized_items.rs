//! A custodian sends the longest messages that the mesh takes, about running ceremonies and about invented ones.

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;
use theta_statements::Digest;
use tokio::time::Instant;

use crate::{
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    custody::{self, ANSWER, FORMAT, ITEMS, LINEAGE, QUESTION, SUMMARY, about},
    group::{NODES, THRESHOLD},
    member::{Member, TAKEN},
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "oversized-items",
    promise: "A member's messages about ceremonies, however long and many, stop no honest node and no ceremony",
    who: Who::Member,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

const KEY: &str = "beacon";
/// The bytes of a long message, and of a short one.
const LONG: usize = 4 << 20;
const SHORT: usize = 512;
/// The number of invented ceremonies.
const UNKNOWN: usize = 1_000;
/// What the honest nodes together may hold for this member, in MiB (SECURITY.md): for each 64 of long messages that wait to
/// be read, 8 for the custodian, and 4 of ceremonies that it does not know.
const MOST_MIB: u64 = (NODES as u64 - 1) * (64 + 8 + 4);

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    let mut member = Member::take(field.group_mut()).await?;
    let client = field.group().client()?;
    let before = field.group().memory();
    let ceremonies: usize = field.size(6, 2);
    let at_least = field.size(Duration::from_secs(30), Duration::from_secs(6));
    let (mut ended, mut problems, mut most) = (0, BTreeSet::new(), before);
    let (mut known, mut number) = (BTreeSet::new(), 0_usize);
    let began = Instant::now();
    for round in 0.. {
        if round >= ceremonies && began.elapsed() > at_least {
            break;
        }
        let held = custody::refresh(client.clone(), KEY);
        while !held.is_finished() {
            hear(&mut member, &mut known).await;
            speak(&mut member, &known, &mut number);
            most = most.max(field.group().memory());
        }
        match held.await.map_err(|error| Trouble::new(format!("bug: a client ended: {error}")))? {
            Ok(outcome) if outcome.agreed.len() > usize::from(NODES - THRESHOLD - 1) => ended += 1,
            Ok(outcome) => drop(problems.insert(format!("only {} nodes report its end", outcome.agreed.len()))),
            Err(problem) => drop(problems.insert(problem)),
        }
        if ended + problems.len() > 50 {
            break;
        }
    }
    if known.is_empty() {
        return Err(Trouble::new("the taken node heard of no ceremony"));
    }
    let grown = most.saturating_sub(before) >> 20;
    let problems = problems.into_iter().collect::<Vec<_>>().join(", ");
    Ok(Happened {
        kept: problems.is_empty() && grown <= MOST_MIB,
        words: format!(
            "{number} messages in the name of node {TAKEN}; {ended} ceremonies ended well{}{problems}; the honest nodes grew by \
             {grown} MiB at most, {MOST_MIB} are their word",
            if problems.is_empty() { "" } else { ", others not: " }
        ),
        effort: Effort { connections: usize::from(NODES) - 1, bytes: member.sent },
    })
}

/// Learns the ids of the ceremonies that the other nodes have.
async fn hear(member: &mut Member, known: &mut BTreeSet<[u8; 32]>) {
    for heard in member.listen(Duration::from_millis(100)).await {
        let of_ceremony = |payload| about(ITEMS, payload).or_else(|| about(SUMMARY, payload));
        known.extend(heard.custody().and_then(|payload| of_ceremony(payload)).map(|(id, _)| *id));
    }
}

/// Sends one message of each kind about some known ceremonies and about invented ones.
fn speak(member: &mut Member, known: &BTreeSet<[u8; 32]>, number: &mut usize) {
    let made_up = Digest::of(&(*number % UNKNOWN).to_be_bytes()).0;
    // Ids are in no order of time, so a few are picked; some of them may still run.
    for id in known.iter().rev().take(3).chain([&made_up]) {
        for tag in [ITEMS, SUMMARY, QUESTION, ANSWER, LINEAGE] {
            // A statement of the member's own, in a slot of its own, as long as the message, with an invalid signature.
            // Each is different.
            let long = if number.is_multiple_of(2) { LONG } else { SHORT };
            member.tell_custodians(None, message(tag, id, *number, long));
            *number += 1;
        }
    }
}

/// Tag, ceremony, and items that begin as items do (spec/ceremonies.md).
fn message(tag: u8, id: &[u8; 32], number: usize, len: usize) -> Bytes {
    let mut message = vec![FORMAT, tag];
    message.extend_from_slice(id);
    if tag != QUESTION {
        let body = u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes();
        message.push(1);
        message.extend_from_slice(&TAKEN.to_be_bytes());
        message.extend_from_slice(&[6, 0, 0, 0, 0]);
        message.extend_from_slice(&body);
        message.extend_from_slice(&number.to_be_bytes());
        message.resize(len + message.len(), 7);
    }
    message.into()
}
