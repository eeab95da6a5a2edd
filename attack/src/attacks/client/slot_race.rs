//! Two messages for one slot of a signing rule, sent to different nodes or to all at once.

use std::collections::{BTreeMap, BTreeSet};

use theta_client::Client;
use theta_network::group::GroupNode;
use tokio::task::JoinSet;

use crate::{
    ask::{Asked, reason},
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    group::{SLOTS, SLOTS_RULE, THRESHOLD},
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "slot-race",
    promise: "One slot of a signing rule never has two messages, whoever asks whom for what, and every request ends",
    who: Who::Client,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

/// The two messages.
const TEXTS: [&str; 2] = ["one", "another"];

/// How the messages are sent to the nodes.
#[derive(Clone, Copy)]
enum Way {
    /// The first to half of the nodes, the second to the other half.
    Split,
    /// Both to all nodes.
    Race,
    /// Both to all nodes, for bare shares that the attacker combines.
    Shares,
}

/// The outcome of one slot.
#[derive(Default)]
struct Slot {
    /// The signatures, or shares, given for each message.
    given: [usize; 2],
    /// How many of these it takes to sign a message.
    enough: usize,
    refused: BTreeMap<String, usize>,
}

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    field.group().begin_policies_with(SLOTS_RULE).await?;
    let client = field.group().client()?;
    let nodes = field.group().nodes();
    field.group().signs_slots(&client, 0).await?;
    let each: u64 = field.size(60, 8);
    let mut effort = Effort { connections: nodes.len(), bytes: 0 };
    let mut others = BTreeSet::new();
    let (mut twice, mut once, mut void, mut undecided) = (0_usize, 0_usize, 0_usize, 0_usize);
    for number in 1..=each * 3 {
        let way = match number % 3 {
            0 => Way::Split,
            1 => Way::Race,
            _ => Way::Shares,
        };
        let slot = attempt(&client, nodes, number, way, &mut effort).await?;
        let signed = slot.given.iter().filter(|given| **given >= slot.enough).count();
        twice += usize::from(signed > 1);
        once += usize::from(signed == 1);
        let said = |word: &str| slot.refused.contains_key(word);
        void += usize::from(signed == 0 && said("slot-void"));
        // The second is a request that was still undecided at its caller's deadline.
        undecided += usize::from(said("slot-undecided") || said("DeadlineExceeded"));
        others.extend(slot.refused.into_keys().filter(|word| !word.starts_with("slot-")));
    }
    if let Some(other) = others.first()
        && twice + undecided == 0
    {
        return Err(Trouble::new(format!("a request was not decided by the rule: {other}")));
    }
    Ok(Happened {
        kept: twice == 0 && undecided == 0,
        words: format!(
            "of {} slots {once} have one message, {twice} have two, {void} are void; {undecided} were left undecided",
            each * 3
        ),
        effort,
    })
}

async fn attempt(
    client: &Client,
    nodes: &[GroupNode],
    number: u64,
    way: Way,
    effort: &mut Effort,
) -> Result<Slot, Trouble> {
    let mut asked = JoinSet::new();
    for (place, node) in nodes.iter().enumerate() {
        for (which, text) in TEXTS.into_iter().enumerate() {
            let other_half = usize::from(place >= nodes.len() / 2);
            if matches!(way, Way::Split) && which != other_half {
                continue;
            }
            let (client, node) = (client.clone(), node.clone());
            let request = Asked::new(SLOTS, format!("{text} {number}")).for_slot(number);
            effort.bytes += request.message.len();
            asked.spawn(async move {
                let answer = match way {
                    Way::Split | Way::Race => request.sign(&client, &node).await,
                    Way::Shares => request.share(&client, &node).await,
                };
                (which, answer)
            });
        }
    }
    let enough = if matches!(way, Way::Shares) { usize::from(THRESHOLD) } else { 1 };
    let mut slot = Slot { enough, ..Slot::default() };
    while let Some(ended) = asked.join_next().await {
        let (which, answer) = ended.map_err(|error| Trouble::new(format!("bug: a request ended: {error}")))?;
        match answer {
            Ok(_) => slot.given.iter_mut().skip(which).take(1).for_each(|given| *given += 1),
            Err(status) => *slot.refused.entry(reason(&status)).or_default() += 1,
        }
    }
    Ok(slot)
}
