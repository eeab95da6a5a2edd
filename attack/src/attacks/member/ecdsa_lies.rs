//! A member's shares of ECDSA signatures are false, and what it says where presignatures are made is none of it.

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;
use theta_client::{Client, KeyChange};
use theta_names::Delivery;
use tokio::{sync::watch, time};
use tonic::Code;

use crate::{
    ask::Asked,
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who, random},
    group::{Group, NODES},
    honest::{AT_LEAST, nearly_all},
    member::{Member, TAKEN},
    until::until,
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "ecdsa-lies",
    promise: "A member that lies where ECDSA is computed is named and stops nobody else; with a dishonest majority its set of holders is left alone, also after a restart",
    who: Who::Member,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

/// A key of all nodes, by malicious Shamir.
const KEY: &str = "gold";
/// A key of the liar and one other node, by MASCOT.
const PAIR: &str = "pair";
/// That other node.
const PARTNER: u16 = 3;
/// The kinds of ECDSA's messages (spec/ecdsa.md); of programs any from this one on.
const SHARE: u32 = 1;
const PREPARE: u32 = 3;
const PROGRAM: u32 = 40_000;
/// The lengths of a presignature's name and R, which come before a share, and of the share without its highest byte.
const NAMED: usize = 32 + 33;
const REST: usize = 31;
/// How long the member listens between two rounds of messages.
const LISTENING: Duration = Duration::from_millis(50);
/// The longest wait for what nodes do by themselves.
const LATEST: Duration = Duration::from_secs(90);

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    let client = field.group().client()?;
    let all: Vec<u16> = field.group().numbers().collect();
    client.hold(create(KEY, Delivery::All, &all)?, |_| {}).await?;
    client.hold(create(PAIR, Delivery::DishonestMajority, &[PARTNER, TAKEN])?, |_| {}).await?;
    for key in [KEY, PAIR] {
        client.sign(key, "before".into()).await?;
    }
    let member = Member::take(field.group_mut()).await?;
    let (stop, stopping) = watch::channel(false);
    let lying = tokio::spawn(lie(member, stopping));
    // A node that has just started has no presignatures, and begins to make some with the liar.
    restart(field.group_mut())?;
    let noticed = until(LATEST, || in_quarantine(&client)).await.is_ok();
    // Any two of four sign in rounds of three: with a liar and a node that is just restarting there are not as many, so nobody signs meanwhile.
    let (enough, signing_stops) = watch::channel(false);
    // A liar that programs wait for costs a request some programs (spec/ecdsa.md), which take seconds on a busy machine. The
    // promise is that the signature comes.
    let patient = field.group().patient_client(LATEST)?;
    let signing = tokio::spawn(sign(patient, signing_stops));
    time::sleep(field.size(Duration::from_secs(20), Duration::from_secs(4))).await;
    enough.send_replace(true);
    let ended = |error: &dyn core::fmt::Display| Trouble::new(format!("bug: a task ended: {error}"));
    let (asked, signed) = signing.await.map_err(|error| ended(&error))?;
    let named = || async {
        let named = culprits(&client).await;
        if named.is_empty() { Err(Trouble::new("nobody is named")) } else { Ok(named) }
    };
    let named = until(LATEST, named).await.unwrap_or_default();
    restart(field.group_mut())?;
    let remembered = until(LATEST, || in_quarantine(&client)).await.is_ok();
    let group = field.group();
    let refused = until(LATEST, || is_refused(&client, group)).await.is_ok();
    stop.send_replace(true);
    let (shares, rounds, bytes) = lying.await.map_err(|error| ended(&error))??;
    if shares == 0 || rounds == 0 || asked == 0 {
        return Err(Trouble::new("the liar had no part in anything, or nobody asked for a signature"));
    }
    let only_the_liar = named == BTreeSet::from([u32::from(TAKEN)]);
    Ok(Happened {
        kept: noticed && remembered && refused && only_the_liar && nearly_all(signed, asked),
        words: format!(
            "{shares} false shares and {rounds} false rounds of node {TAKEN}; {signed} of {asked} signatures of the key of all were made; \
             named were nodes {named:?}; of the key of two the set was {} by the other node, {} after its restart, and a request {}",
            if noticed { "left alone" } else { "not left alone" },
            if remembered { "still so" } else { "forgotten" },
            if refused { "refused at once" } else { "not refused" },
        ),
        effort: Effort { connections: usize::from(NODES) - 1, bytes },
    })
}

/// A key of these holders, two of which use it.
fn create(key: &str, delivery: Delivery, holders: &[u16]) -> Result<KeyChange, Trouble> {
    Ok(KeyChange::Create {
        key: key.parse().map_err(|_| Trouble::new("bug: no name of a key"))?,
        suite: "ecdsa-p256".parse().map_err(|_| Trouble::new("bug: no suite"))?,
        delivery,
        k: 2,
        holders: holders.to_vec(),
    })
}

fn restart(group: &mut Group) -> Result<(), Trouble> {
    group.kill(PARTNER)?;
    group.start(PARTNER)
}

/// Answers whatever names the member, until it is told to stop. Returns how many false shares and false rounds were sent, and their bytes.
async fn lie(mut member: Member, stop: watch::Receiver<bool>) -> Result<(usize, usize, usize), Trouble> {
    let (mut shares, mut rounds, mut number) = (0, 0, 0_u32);
    while !*stop.borrow() {
        for heard in member.listen(LISTENING).await {
            let Some(id) = heard.instance() else { continue };
            let payload = &heard.envelope.payload;
            number = (number + 1) % 60_000;
            match (heard.envelope.kind, payload.get(..NAMED), payload.get(..2)) {
                (SHARE, Some(presignature), _) => {
                    let share = [presignature, &[0], &random::<REST>()?].concat();
                    shares += member.tell_instance(None, id, SHARE, number, share.into());
                }
                (PREPARE, _, Some(attempt)) => {
                    let round = [attempt, &[0, 1], b"nothing"].concat();
                    rounds += member.tell_instance(None, id, PROGRAM, number, round.into());
                }
                _ => {}
            }
        }
    }
    Ok((shares, rounds, member.sent))
}

/// Makes one signature of the key of all after another, until it is told to stop and has asked often enough. Returns how many were asked for, and how many came.
async fn sign(client: Client, stop: watch::Receiver<bool>) -> (usize, usize) {
    let (mut asked, mut signed) = (0, 0);
    while asked < AT_LEAST || !*stop.borrow() {
        let message = Bytes::from(format!("honest {asked}"));
        asked += 1;
        signed += usize::from(client.sign(KEY, message).await.is_ok());
        time::sleep(LISTENING).await;
    }
    (asked, signed)
}

/// Whether the liar's partner computes no more with it.
async fn in_quarantine(client: &Client) -> Result<(), Trouble> {
    let (listed, _) = client.list_keys().await;
    let mut sets = listed.iter().filter(|key| key.info.name == PAIR).flat_map(|key| &key.quarantined);
    let is_it = |node: u16, culprit: u32| node == PARTNER && culprit == u32::from(TAKEN);
    if sets.any(|(node, set)| is_it(node.get(), set.culprit)) {
        Ok(())
    } else {
        Err(Trouble::new("the liar's partner has noticed nothing"))
    }
}

/// Whether the liar's partner refuses a request for a signature by the two.
async fn is_refused(client: &Client, group: &Group) -> Result<(), Trouble> {
    match Asked::new(PAIR, "after").sign(client, group.node(PARTNER)?).await {
        Err(status) if status.code() == Code::FailedPrecondition => Ok(()),
        _ => Err(Trouble::new("a request of a set in quarantine is not refused")),
    }
}

/// The nodes that others name.
async fn culprits(client: &Client) -> BTreeSet<u32> {
    let statuses = client.status().await;
    let told = statuses.iter().filter_map(|status| status.status.as_ref().ok());
    told.flat_map(|(response, _)| &response.culprits).map(|culprit| culprit.node).collect()
}
