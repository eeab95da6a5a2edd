//! The host's part of total-order broadcast: brings this validator's node what the chain has ordered, and has ordered what the node wants.
//!
//! Only decided blocks are brought, read from this validator's own CometBFT, and each message under the number of the node whose validator
//! signed it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use theta_client::{Client, ClientError};
use theta_names::NodeId;
use theta_wire::v1::{self, total_order_client::TotalOrderClient};
use tokio::time::sleep;
use tonic::{Request, Status};

use super::{Rpc, Validator, ValidatorFile, files::secret_of};
use crate::market::{Market, OrderedMessage, Trader, Transaction};

/// How long to wait after a failure, and for news at most.
const PAUSE: Duration = Duration::from_millis(250);
/// How many heights go into one delivery.
const MOST_HEIGHTS: u64 = 64;

/// Brings the order, for ever.
pub(super) async fn bring_the_order(validator: Arc<Validator>, client: Client, file: ValidatorFile) {
    let rpc = Rpc::new(&file.rpc);
    loop {
        if let Err(error) = bring(&validator, &client, &file, &rpc).await {
            tracing::warn!(code = ?error.code(), reason = error.message(), "the order is not brought now");
        }
        sleep(PAUSE).await;
    }
}

/// Brings all blocks from where the node is, and those that come, until something fails.
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
        let mut blocks = Vec::new();
        for height in after.saturating_add(1)..=through {
            let txs = rpc.block(height).await.map_err(|error| Status::unavailable(error.to_string()))?;
            let messages: Vec<_> = txs.into_iter().filter_map(|tx| message(&market, tx)).collect();
            if !messages.is_empty() {
                blocks.push(v1::OrderedBlock { height, messages });
            }
        }
        after = node.deliver(v1::DeliverRequest { after, through, blocks }).await?.into_inner().height;
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
    let rpc = Rpc::new(&file.rpc);
    loop {
        if let Err(error) = collect(&validator, &client, &file, &rpc).await {
            tracing::warn!(code = ?error.code(), reason = error.message(), "nothing is collected now");
        }
        sleep(PAUSE).await;
    }
}

async fn collect(validator: &Validator, client: &Client, file: &ValidatorFile, rpc: &Rpc) -> Result<(), Status> {
    let signer = secret_of(&file.secret).ok().and_then(|secret| Trader::from_seed(&secret));
    let signer = signer.ok_or_else(|| Status::internal("the validator's secret is refused"))?;
    let mut messages = order_of(client, file.node)?.collect(Request::new(v1::CollectRequest {})).await?.into_inner();
    while let Some(v1::CollectedMessage { message }) = messages.message().await? {
        let Some(market) = validator.market() else { return Ok(()) };
        let tx = ordered(&signer, market.terms().chain(), file.place, message);
        if let Err(error) = rpc.broadcast(&tx).await {
            // The stream begins again with everything that is not in the order.
            return Err(Status::unavailable(error.to_string()));
        }
    }
    Ok(())
}

fn ordered(signer: &Trader, chain: &str, validator: u16, message: Bytes) -> Bytes {
    let signature = signer.sign(&OrderedMessage::signed(chain, validator, &message));
    Transaction::Ordered(OrderedMessage { validator, message, signature }).encode()
}

fn order_of(client: &Client, node: u16) -> Result<TotalOrderClient, Status> {
    let node = NodeId::try_from(node).map_err(|error| Status::internal(error.to_string()))?;
    client.total_order(node).map_err(|error: ClientError| Status::internal(error.to_string()))
}
