//! A greeting that contradicts what every node knows about its own store.

use std::time::Duration;

use tokio::time;

use crate::{
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    custody::{FORMAT, GREETING, NOW},
    group::{NODES, SLOTS, SLOTS_RULE},
    member::Member,
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "greetings",
    promise: "A member that says of every store that it was set back stops no key with slots, also where a node restarts meanwhile",
    who: Who::Member,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

/// The bytes of an incarnation: store, session, link, generation, commit of the opening, commits.
const INCARNATION: usize = 88;
const SESSION: core::ops::Range<usize> = 16..32;
const GENERATION: core::ops::Range<usize> = 64..72;

type Incarnation = [u8; INCARNATION];

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    field.group().begin_policies_with(SLOTS_RULE).await?;
    let client = field.group().client()?;
    let mut slot = 1;
    field.group().signs_slots(&client, slot).await?;
    let mut member = Member::take(field.group_mut()).await?;
    let (mut told, mut signed, mut failed) = (0_usize, 0_usize, Vec::new());
    let mut stores = vec![None; usize::from(NODES)];
    let rounds: usize = field.size(60, 12);
    for round in 0..rounds {
        for heard in member.listen(Duration::from_millis(500)).await {
            if let Some([FORMAT, GREETING | NOW, rest @ ..]) = heard.custody().map(|payload| &payload[..])
                && let Some(store) = stores.get_mut(usize::from(heard.from) - 1)
            {
                *store = rest.first_chunk::<INCARNATION>().copied().or(*store);
            }
        }
        for (node, store) in (1..).zip(&stores) {
            let Some(store) = store else { continue };
            for lie in lies(store, round) {
                told += member.tell_custodians(Some(node), greeting(&lie, round));
            }
        }
        if round == rounds / 2 {
            field.group_mut().kill(1)?;
            field.group_mut().start(1)?;
            slot += 1;
            if let Err(trouble) = field.group().signs_slots(&client, slot).await {
                failed.push(format!("after a restart {trouble}"));
            }
        }
        slot += 1;
        match time::timeout(Duration::from_secs(10), client.sign_for_slot(SLOTS, format!("slot {slot}").into(), slot))
            .await
        {
            Ok(Ok(_)) => signed += 1,
            Ok(Err(error)) => failed.push(error.to_string()),
            Err(_) => failed.push(format!("slot {slot} got no answer")),
        }
    }
    if told == 0 {
        return Err(Trouble::new("the taken node was greeted by nobody, and could contradict nothing"));
    }
    let first = failed
        .iter()
        .flat_map(|problem| problem.lines())
        .next()
        .map(|problem| format!(": {problem}"))
        .unwrap_or_default();
    Ok(Happened {
        kept: failed.is_empty(),
        words: format!(
            "{told} greetings contradicted the stores of all; of {rounds} slots, with a restart among them, {signed} were signed, {} \
             not{first}",
            failed.len()
        ),
        effort: Effort { connections: usize::from(NODES) - 1, bytes: member.sent },
    })
}

/// False accounts of a node's store: a later one, another history of the same store, another store.
fn lies(store: &Incarnation, round: usize) -> [Incarnation; 3] {
    let [mut later, mut other_history, mut other_store] = [*store; 3];
    let mark = u8::try_from(round % 200).unwrap_or_default().wrapping_add(1);
    later.iter_mut().skip(GENERATION.start).take(4).for_each(|byte| *byte = 1);
    other_history.iter_mut().skip(SESSION.start).take(48).for_each(|byte| *byte ^= mark);
    other_store.iter_mut().for_each(|byte| *byte ^= mark);
    [later, other_history, other_store]
}

/// A greeting of a store, with the lie as what it remembers of the receiver's store.
fn greeting(lie: &Incarnation, round: usize) -> bytes::Bytes {
    let mut own = [9; INCARNATION];
    own.iter_mut().skip(INCARNATION - 8).for_each(|byte| *byte = u8::try_from(round % 250).unwrap_or_default());
    [&[FORMAT, GREETING], &own[..], &[1], &lie[..], &[1], &lie[..]].concat().into()
}
