//! Members hold ceremonies of a key without enough of its holders: fewer than the key's k, and more than the group's.

use std::collections::BTreeSet;

use theta_client::{Client, KeyChange};
use tokio::{
    task::JoinHandle,
    time::{self, Duration, Instant},
};

use crate::{
    ask::Asked,
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    group::Group,
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "few-tellers",
    promise: "A key whose k is above the group's is moved, renewed or made by as many of its holders as its own k, or not at all",
    who: Who::Member,
    short: true,
    shape: Shape::FIVE,
    commit: |field| Box::pin(commit(field)),
};

const KEY: &str = "vault";
/// A second key of the same kind, because one ceremony of a key runs at a time.
const OTHER: &str = "other-vault";
/// The key's k, in a group of 2 of 5.
const K: u16 = 4;
/// The malicious members: k - 1 of the key's holders, and more than the group's t.
const LIARS: [u16; 3] = [3, 4, 5];
const HONEST: [u16; 2] = [1, 2];
/// The malicious members' client, which no honest node knows.
const MALLORY: &str = "mallory";
const RULE: &str = "[[rule]]\nname = \"mallory-may\"\neffect = \"allow\"\nclients = [\"mallory\"]\nkeys = [\"*\"]\n\
                    operations = [\"keys.*\", \"sign\"]\n";

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    let group = field.group();
    let client = group.client()?;
    for key in [KEY, OTHER] {
        client.hold(create(key)?, |_| {}).await?;
    }
    client.sign(KEY, "before".into()).await?;
    let lines = group.add_client(MALLORY)?;
    // The malicious members write the policies of their own nodes.
    group.begin_policies_of(LIARS.into_iter(), &format!("{lines}\n{RULE}")).await?;
    let mallory = group.client_of(MALLORY)?;
    let known = ids(&client, &HONEST).await;
    let changes = [reshare()?, refresh()?, create("hoard")?];
    let asked = changes.len();
    let held: Vec<_> = changes.into_iter().map(|change| hold(&mallory, change)).collect();
    let until = Instant::now() + field.size(Duration::from_secs(120), Duration::from_secs(7));
    let mut joined = BTreeSet::new();
    while Instant::now() < until {
        joined.extend(ids(&client, &HONEST).await.difference(&known).cloned());
        time::sleep(Duration::from_millis(500)).await;
    }
    held.iter().for_each(JoinHandle::abort);
    let begun = ids(&client, &LIARS).await.difference(&known).count();
    if begun == 0 {
        return Err(Trouble::new("the liars' own nodes hold none of their ceremonies"));
    }
    let alone = sign_alone(field.group(), &mallory).await?;
    let still = client.sign(KEY, "after".into()).await;
    let lost = still.as_ref().err().map(|error| format!("; the key signs no more: {error}")).unwrap_or_default();
    Ok(Happened {
        kept: joined.is_empty() && alone == 0 && still.is_ok(),
        words: format!(
            "nodes {LIARS:?} of 5 were asked for {asked} ceremonies of keys of {K} of 5, and began {begun}; the honest ones joined {}; \
             signatures by the liars alone: {alone}{lost}",
            joined.len()
        ),
        effort: Effort { connections: LIARS.len(), bytes: 0 },
    })
}

/// Starts a ceremony at the nodes that allow their own client.
fn hold(mallory: &Client, change: KeyChange) -> JoinHandle<()> {
    let mallory = mallory.clone();
    // The result is ignored: the attack looks at the nodes where the ceremony should not have begun.
    tokio::spawn(async move { drop(mallory.hold(change, |_| {}).await) })
}

/// Ceremonies of these nodes as they report them: id and aim.
async fn ids(client: &Client, nodes: &[u16]) -> BTreeSet<(Vec<u8>, String)> {
    let (listed, _) = client.ceremonies().await;
    let of = listed.into_iter().filter(|(node, _)| nodes.contains(&node.get()));
    of.flat_map(|(_, all)| all).map(|ceremony| (ceremony.id.to_vec(), ceremony.aim)).collect()
}

/// How many of the malicious nodes return a signature when they alone are asked.
async fn sign_alone(group: &Group, mallory: &Client) -> Result<usize, Trouble> {
    let mut signed = 0;
    for number in LIARS {
        let asked = Asked { patience: Duration::from_secs(2), ..Asked::new(KEY, "for the liars alone") };
        signed += usize::from(asked.sign(mallory, group.node(number)?).await.is_ok());
    }
    Ok(signed)
}

fn create(key: &str) -> Result<KeyChange, Trouble> {
    let all = HONEST.into_iter().chain(LIARS).collect();
    Ok(KeyChange::Create {
        key: name(key)?,
        suite: name("bls04-bls12381-min-sig")?,
        delivery: Default::default(),
        k: K,
        holders: all,
    })
}

/// A reshare to the malicious members alone, with k = 2.
fn reshare() -> Result<KeyChange, Trouble> {
    Ok(KeyChange::Reshare { key: name(KEY)?, version: None, k: 2, holders: LIARS.to_vec() })
}

fn refresh() -> Result<KeyChange, Trouble> {
    Ok(KeyChange::Refresh { key: name(OTHER)?, version: None })
}

fn name<T: core::str::FromStr>(word: &str) -> Result<T, Trouble> {
    word.parse().map_err(|_| Trouble::new(format!("bug: {word} is no name")))
}
