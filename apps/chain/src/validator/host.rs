//! The host's part of total-order broadcast: brings this validator's node what the chain has ordered, and has ordered what the node wants.
//!
//! Only decided blocks are brought, read from this validator's own CometBFT, and each message under the number of the node whose validator
//! signed it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use prost::Message as _;
use theta_client::{Client, ClientError};
use theta_names::{NodeId, WallTime};
use theta_wire::v1::{self, total_order_client::TotalOrderClient};
use tokio::time::{sleep, timeout};
use tonic::{Request, Status};

use super::{Rpc, Validator, ValidatorFile, files::secret_of, trouble::Trouble};
use crate::market::{Market, OrderedMessage, Trader, Transaction};

/// After how long without anything new the node is asked again for all that is not in the order: a transaction may be lost.
const AGAIN: Duration = Duration::from_secs(30);
/// How long to wait after a failure, and for news at most.
const PAUSE: Duration = Duration::from_millis(250);
/// How many heights go into one delivery, and about how many bytes: nodes take 32 MiB at once, unless they are told otherwise.
const MOST_HEIGHTS: u64 = 64;
const MOST_BYTES: usize = 1 << 20;

/// Brings the order, for ever.
pub(super) async fn bring_the_order(validator: Arc<Validator>, client: Client, file: ValidatorFile) {
    let (rpc, trouble) = (Rpc::new(&file.rpc), Trouble::default());
    loop {
        if let Err(error) = bring(&validator, &client, &file, &rpc).await {
            trouble.warn("the order is not brought now", &error);
        }
        sleep(PAUSE).await;
    }
}

/// Brings all blocks from where the node is, and those that come, until something fails. Then the node is asked again where it is: it may have begun anew.
async fn bring(validator: &Validator, client: &Client, file: &ValidatorFile, rpc: &Rpc) -> Result<(), Status> {
    let mut node = order_of(client, file.node)?;
    let position = node.get_order_position(v1::GetOrderPositionRequest {}).await?.into_inner();
    let mut after = if position.unknown {
        let newest = validator.market().map_or(0, |market| market.height());
        newest.saturating_sub(position.wanted)
    } else {
        position.height
    };
    loop {
        let ordered = validator.ordered.notified();
        let market = validator.market();
        let newest = market.as_ref().map_or(0, Market::height);
        let Some(market) = market.filter(|_| newest > after) else {
            tokio::select! {
                () = ordered => {}
                () = sleep(PAUSE) => {}
            }
            continue;
        };
        let through = newest.min(after.saturating_add(MOST_HEIGHTS));
        let (mut blocks, mut bytes, mut reached) = (Vec::new(), 0_usize, after);
        for height in after.saturating_add(1)..=through {
            if bytes >= MOST_BYTES {
                break;
            }
            let txs = rpc.block(height).await.map_err(|error| Status::unavailable(error.to_string()))?;
            let messages: Vec<_> = txs.into_iter().filter_map(|tx| message(&market, tx)).collect();
            if !messages.is_empty() {
                let block = v1::OrderedBlock { height, messages };
                bytes = bytes.saturating_add(block.encoded_len());
                blocks.push(block);
            }
            reached = height;
        }
        after = node.deliver(v1::DeliverRequest { after, through: reached, blocks }).await?.into_inner().height;
    }
}

/// The message in a transaction, with the node of the validator that signed it.
fn message(market: &Market, tx: Vec<u8>) -> Option<v1::OrderedMessage> {
    let Ok(Transaction::Ordered(OrderedMessage { validator, message, .. })) = Transaction::decode(&tx.into()) else {
        return None;
    };
    // Blocks have true signatures only. The genesis has validators in the order of their nodes' numbers.
    market.terms().validator(validator)?;
    Some(v1::OrderedMessage { from: u32::from(validator).saturating_add(1), message })
}

/// Has ordered what the node wants, for ever.
pub(super) async fn collect_for_the_order(validator: Arc<Validator>, client: Client, file: ValidatorFile) {
    let (rpc, trouble) = (Rpc::new(&file.rpc), Trouble::default());
    loop {
        if let Err(error) = collect(&validator, &client, &file, &rpc).await {
            trouble.warn("nothing is collected now", &error);
        }
        sleep(PAUSE).await;
    }
}

async fn collect(validator: &Validator, client: &Client, file: &ValidatorFile, rpc: &Rpc) -> Result<(), Status> {
    let signer = secret_of(&file.secret).ok().and_then(|secret| Trader::from_seed(&secret));
    let signer = signer.ok_or_else(|| Status::internal("the validator's secret is refused"))?;
    let mut messages = order_of(client, file.node)?.collect(Request::new(v1::CollectRequest {})).await?.into_inner();
    // Above the numbers of an earlier run whose transactions may still be on their way.
    let mut number = WallTime::now().milliseconds();
    while let Ok(next) = timeout(AGAIN, messages.message()).await {
        let (Some(v1::CollectedMessage { message }), Some(market)) = (next?, validator.market()) else { return Ok(()) };
        number = number.max(market.last_number(file.place)).saturating_add(1);
        let tx = ordered(&signer, market.terms().chain(), (file.place, number), message);
        // The stream begins again with everything that is not in the order.
        match rpc.broadcast(&tx).await {
            Ok((0, _)) => {}
            Ok((_, log)) => return Err(Status::unavailable(log)),
            Err(error) => return Err(Status::unavailable(error.to_string())),
        }
    }
    Ok(())
}

pub(super) fn ordered(signer: &Trader, chain: &str, (validator, number): (u16, u64), message: Bytes) -> Bytes {
    let signature = signer.sign(&OrderedMessage::signed(chain, validator, number, &message));
    Transaction::Ordered(OrderedMessage { validator, number, message, signature }).encode()
}

fn order_of(client: &Client, node: u16) -> Result<TotalOrderClient, Status> {
    let node = NodeId::try_from(node).map_err(|error| Status::internal(error.to_string()))?;
    client.total_order(node).map_err(|error: ClientError| Status::internal(error.to_string()))
}
