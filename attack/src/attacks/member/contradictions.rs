//! A member contradicts itself without end in running ceremonies, under its true signature.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use theta_ceremonies::{CeremonyId, CeremonyKeys, Kind, Statement, StatementSlot, rewrite};
use theta_statements::Digest;

use crate::{
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    custody::{self, FORMAT, ITEMS, about},
    group::{NODES, THRESHOLD},
    member::{Member, TAKEN},
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "contradictions",
    promise: "A member that contradicts itself without end is proven to lie, and the ceremony ends well",
    who: Who::Member,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

const KEY: &str = "beacon";
/// The number of statements in a message; together they stay below the limit of a message.
const TOGETHER: u32 = 500;

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    let mut member = Member::take(field.group_mut()).await?;
    let keys = custody::identity(field.group(), TAKEN)?;
    let client = field.group().client()?;
    let ceremonies: usize = field.size(10, 2);
    let (mut well, mut proven, mut problems, mut statements) = (0, 0, BTreeSet::new(), 0_u32);
    for _ in 0..ceremonies {
        let held = custody::refresh(client.clone(), KEY);
        let mut seen = BTreeMap::new();
        while !held.is_finished() {
            for heard in member.listen(Duration::from_millis(50)).await {
                if let Some((id, items)) = heard.custody().and_then(|payload| about(ITEMS, payload)) {
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
                let liars: BTreeSet<u16> = ended.evidence.iter().map(|evidence| evidence.node.get()).collect();
                well += usize::from(ended.agreed.len() >= usize::from(THRESHOLD));
                proven += usize::from(liars.contains(&TAKEN));
                if liars.iter().any(|liar| *liar != TAKEN) {
                    problems.insert(format!("proven to lie: {liars:?}"));
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

/// Votes for two different things in the same views, shaped like the votes in another member's message.
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
