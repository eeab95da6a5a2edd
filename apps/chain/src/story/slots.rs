//! Two callers want different messages signed for one height of the chain, and half of the nodes hear of either first.

use std::time::Duration;

use theta::exit::Failure;
use theta_client::{Client, KeyChange};
use theta_cluster::Show;
use theta_names::{Delivery, NodeId};
use theta_schemes::Suite;
use theta_wire::v1;
use tokio::{task::JoinSet, time::sleep};
use tonic::{Code, Request, Status};

use crate::net::{Network, ORDERED_KEY, THRESHOLD, UNORDERED_KEY, VALIDATORS};

/// How long a caller waits: blocks on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);
/// How much later a caller asks the second half of the nodes, so that all hear of one message first.
const LATER: Duration = Duration::from_millis(300);

/// What became of the two messages: how many nodes signed each, and how many said why not, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Race {
    signed: [usize; 2],
    void: usize,
    taken: usize,
}

/// Shows the race without an order, which nobody wins, and with one.
pub(super) async fn race(network: &Network, show: &Show) -> Result<(), Failure> {
    show.act("Two messages for one slot: half of the nodes hear of either first");
    make_key(network.operator(), UNORDERED_KEY).await?;
    make_key(network.operator(), ORDERED_KEY).await?;
    let without = run(network.operator(), UNORDERED_KEY).await?;
    if without.signed != [0, 0] || without.void == 0 {
        return Err(Failure::Failed(format!("without an order the slot should be void: {without:?}")));
    }
    show.good("without an order the slot is void: no message has the promises of enough nodes, and none is signed");
    let with = run(network.operator(), ORDERED_KEY).await?;
    let nodes = usize::from(VALIDATORS);
    if !matches!(with.signed, [0, won] | [won, 0] if won == nodes) || with.taken != nodes {
        return Err(Failure::Failed(format!("with an order one message should win at all nodes: {with:?}")));
    }
    show.good(format_args!(
        "with the validators' order the first message is signed, by all {nodes} nodes, and the other refused: safety is the certificates' in both cases"
    ));
    Ok(())
}

async fn make_key(operator: &Client, name: &str) -> Result<(), Failure> {
    let (key, suite) = (name.parse().map_err(Failure::internal)?, Suite::FrostEd25519.into());
    let holders = (1..=VALIDATORS).collect();
    operator.hold(KeyChange::Create { key, suite, delivery: Delivery::All, k: THRESHOLD, holders }, |_| ()).await?;
    Ok(())
}

/// Asks the first half of the nodes for message 0 first, and the second half for message 1.
async fn run(operator: &Client, key: &'static str) -> Result<Race, Failure> {
    const SLOT: u64 = 1;
    let mut asked = JoinSet::new();
    for number in 1..=VALIDATORS {
        let first = usize::from(number > VALIDATORS / 2);
        for (message, delay) in [(first, Duration::ZERO), (1 - first, LATER)] {
            let node = NodeId::try_from(number).map_err(Failure::internal)?;
            let mut node = operator.protocol(node)?;
            let text = format!("checkpoint {SLOT}, version {message}");
            let mut request = Request::new(v1::SignRequest {
                key: key.to_owned(),
                message: text.into_bytes().into(),
                slot: Some(SLOT),
                ..v1::SignRequest::default()
            });
            request.set_timeout(PATIENCE);
            asked.spawn(async move {
                sleep(delay).await;
                (message, node.sign(request).await.map(drop))
            });
        }
    }
    let mut race = Race::default();
    while let Some(answered) = asked.join_next().await {
        let (message, answer) = answered.map_err(Failure::internal)?;
        match answer {
            Ok(()) => {
                if let Some(signed) = race.signed.get_mut(message) {
                    *signed = signed.saturating_add(1);
                }
            }
            Err(status) => match reason(&status) {
                Some("slot-void") => race.void = race.void.saturating_add(1),
                Some("slot-taken") => race.taken = race.taken.saturating_add(1),
                _ => {
                    return Err(Failure::Failed(format!(
                        "a node neither signs nor says why the slot is another's: {status}"
                    )));
                }
            },
        }
    }
    Ok(race)
}

fn reason(status: &Status) -> Option<&str> {
    let reason = status.metadata().get("theta-reason").filter(|_| status.code() == Code::PermissionDenied);
    reason.and_then(|reason| reason.to_str().ok())
}
