//! A member that contradicts itself without end in the ceremonies that are held, under its true signature.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU16,
    time::Duration,
};

use theta_ceremonies::{CeremonyId, CeremonyKeys, Kind, Statement, StatementSlot, rewrite};
use theta_client::{Client, KeyChange};
use theta_statements::Digest;
use theta_store::{SealingKey, Store};
use tokio::{task::JoinHandle, time};

use crate::{
    attack::{Attack, Effort, Field, Happened, Trouble, Who},
    group::{Group, NODES},
    member::{Member, TAKEN},
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "contradictions",
    promise: "A member that contradicts itself without end is proven to lie, and the ceremony ends well",
    who: Who::Member,
    short: true,
    commit: |field| Box::pin(commit(field)),
};

const KEY: &str = "beacon";
/// The version of custodians' messages, and their tag for items (spec/custody.md).
const FORMAT: u8 = 1;
const ITEMS: u8 = 1;
/// Statements in a message: fewer bytes than items may have.
const TOGETHER: u32 = 500;
/// A ceremony may take so long meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a ceremony ended: who reports that, and who is proven to have lied.
struct Ended {
    reporters: usize,
    liars: BTreeSet<u16>,
}

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    let mut member = Member::take(field.group_mut()).await?;
    let keys = identity(field.group())?;
    let client = field.group().client()?;
    let ceremonies: usize = field.size(10, 2);
    let (mut well, mut proven, mut problems, mut statements) = (0, 0, BTreeSet::new(), 0_u32);
    for _ in 0..ceremonies {
        let held = hold(client.clone());
        let mut seen = BTreeMap::new();
        while !held.is_finished() {
            for heard in member.listen(Duration::from_millis(50)).await {
                if let Some([FORMAT, ITEMS, rest @ ..]) = heard.custody().map(|payload| &payload[..])
                    && let Some((id, items)) = rest.split_first_chunk::<32>()
                {
                    seen.insert(*id, items.to_vec());
                }
            }
            for (id, items) in &seen {
                if let Some(lies) = contradict(&keys, id, items, statements) {
                    member.tell_custodians(None, [&[FORMAT, ITEMS], &id[..], &lies[..]].concat().into());
                    statements = statements.wrapping_add(TOGETHER);
                }
            }
        }
        match held.await.map_err(|error| Trouble::new(format!("bug: a client ended: {error}")))? {
            Ok(ended) => {
                well += usize::from(ended.reporters >= usize::from(NODES) - 1);
                proven += usize::from(ended.liars.contains(&TAKEN));
                if ended.liars.iter().any(|liar| *liar != TAKEN) {
                    problems.insert(format!("proven to lie: {:?}", ended.liars));
                }
            }
            Err(problem) => drop(problems.insert(problem)),
        }
    }
    if statements == 0 || (proven == 0 && problems.is_empty()) {
        return Err(Trouble::new(format!("{statements} statements, of which none was taken as a contradiction")));
    }
    let problems = problems.into_iter().collect::<Vec<_>>().join(", ");
    Ok(Happened {
        kept: well == ceremonies && problems.is_empty(),
        words: format!(
            "{statements} statements against each other, signed by node {TAKEN}; {well} of {ceremonies} ceremonies ended well, with \
             proof against it in {proven}{}{problems}",
            if problems.is_empty() { "" } else { ": " }
        ),
        effort: Effort { connections: usize::from(NODES) - 1, bytes: member.sent },
    })
}

/// The identity that the taken node signs ceremonies with, from its own store.
fn identity(group: &Group) -> Result<CeremonyKeys, Trouble> {
    let dir = group.node_dir(TAKEN);
    let key = SealingKey::from_file(&dir.join("store.key")).map_err(|error| Trouble::new(error.to_string()))?;
    let store = Store::open(&dir.join("theta.redb"), &key).map_err(|error| Trouble::new(error.to_string()))?;
    let master = store.identity().map_err(|error| Trouble::new(error.to_string()))?;
    let master = master.ok_or_else(|| Trouble::new("the taken node has no identity"))?;
    let party = NonZeroU16::new(TAKEN).ok_or_else(|| Trouble::new("bug: no node has number zero"))?;
    Ok(CeremonyKeys::new(party.into(), master))
}

/// Renews the shares of the key.
fn hold(client: Client) -> JoinHandle<Result<Ended, String>> {
    tokio::spawn(async move {
        let refresh = KeyChange::Refresh { key: KEY.parse().map_err(|_| "no name of a key")?, version: 0 };
        let held = time::timeout(PATIENCE, client.hold(refresh, |_| {})).await;
        let outcome = held.map_err(|_| "a ceremony did not end")?.map_err(|error| error.to_string())?;
        let liars = outcome.evidence.iter().map(|evidence| evidence.node.get()).collect();
        Ok(Ended { reporters: outcome.agreed.len(), liars })
    })
}

/// Votes for one thing and another in the same views, in the place of what a message of somebody else's says.
fn contradict(keys: &CeremonyKeys, id: &[u8; 32], items: &[u8], from: u32) -> Option<Vec<u8>> {
    let ceremony = CeremonyId::from_bytes(*id);
    let mut lies = Vec::new();
    for number in from..from.saturating_add(TOGETHER) {
        let slot =
            StatementSlot::new(if number.is_multiple_of(2) { Kind::Prevote } else { Kind::Precommit }, number / 2 % 4);
        lies.push(Statement::sign(&ceremony, keys, slot, Digest::of(&number.to_be_bytes()).0.to_vec()));
    }
    rewrite(items, |_| core::mem::take(&mut lies)).filter(|_| lies.is_empty())
}
