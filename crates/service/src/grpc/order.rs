//! Serves the host of this node: it brings the order of all, and takes what this node wants ordered.

use std::sync::Arc;

use bytes::Bytes;
use theta_names::NodeId;
use theta_network::tob_proxy::{Block, OrderError};
use theta_wire::v1;
use tonic::{Request, Response, Status, codegen::BoxStream};

use super::{door, gate::Arrival, refusal, state::NodeState};
use crate::node::{Host, WANTED_HEIGHTS};

/// The most heights with messages in one delivery.
const MOST_BLOCKS: usize = 1_024;

/// Serves `theta.v1.TotalOrder`.
pub(crate) struct Order {
    node: Arc<NodeState>,
}

impl Order {
    pub(crate) const fn new(node: Arc<NodeState>) -> Self {
        Self { node }
    }

    /// The host, if that is who asks.
    fn host<T>(&self, request: &Request<T>) -> Result<&Arc<Host>, Status> {
        let Some(host) = &self.node.host else {
            return Err(Status::failed_precondition("this node has no host: name one by [order] in node.toml"));
        };
        match self.node.authority.recognise(&door::presented(request)) {
            Some(client) if client == *host.client() => Ok(host),
            Some(client) => Err(Status::permission_denied(format!(
                "client {client} is not the host of this node: node.toml names another"
            ))),
            None => {
                Err(Status::unauthenticated("the policy does not know the caller, who is not the host of this node"))
            }
        }
    }
}

#[tonic::async_trait]
impl v1::total_order_server::TotalOrder for Order {
    async fn get_order_position(
        &self,
        request: Request<v1::GetOrderPositionRequest>,
    ) -> Result<Response<v1::OrderPosition>, Status> {
        let position = self.host(&request)?.proxy().tell_position();
        Ok(Response::new(v1::OrderPosition {
            height: position.unwrap_or_default(),
            unknown: position.is_none(),
            wanted: WANTED_HEIGHTS,
        }))
    }

    async fn deliver(&self, request: Request<v1::DeliverRequest>) -> Result<Response<v1::OrderPosition>, Status> {
        let host = Arc::clone(self.host(&request)?);
        let v1::DeliverRequest { after, through, blocks } = request.into_inner();
        if blocks.len() > MOST_BLOCKS {
            return Err(refusal::invalid(format!("a delivery has {MOST_BLOCKS} heights with messages at most")));
        }
        let blocks = blocks.into_iter().map(block).collect::<Result<_, _>>()?;
        let height = host.proxy().deliver(after, through, blocks).await.map_err(|error| not_taken(&error))?;
        Ok(Response::new(v1::OrderPosition { height, unknown: false, wanted: WANTED_HEIGHTS }))
    }

    async fn collect(
        &self,
        request: Request<v1::CollectRequest>,
    ) -> Result<Response<BoxStream<v1::CollectedMessage>>, Status> {
        let host = Arc::clone(self.host(&request)?);
        let stream_place = self.node.stream(host.client())?;
        let arrival = request.extensions().get::<Arrival>().cloned();
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            let _places = (stream_place, arrival);
            let mut from = 0;
            loop {
                let next = tokio::select! {
                    next = host.proxy().outgoing().next(from) => next,
                    // The host has gone.
                    () = sender.closed() => return,
                };
                let (number, message) = next;
                from = number.wrapping_add(1);
                if sender.send(Ok(v1::CollectedMessage { message })).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(tokio_stream::wrappers::ReceiverStream::new(receiver))))
    }
}

/// Short messages get buffers of their own: a view would keep the whole delivery in memory.
fn block(block: v1::OrderedBlock) -> Result<Block, Status> {
    let v1::OrderedBlock { height, messages } = block;
    let message = |v1::OrderedMessage { from, message }: v1::OrderedMessage| {
        let node = u16::try_from(from).ok().and_then(|number| NodeId::try_from(number).ok());
        let node = node.ok_or_else(|| refusal::invalid(format!("there is no node {from}")))?;
        Ok((node, Bytes::copy_from_slice(&message)))
    };
    Ok(Block { height, messages: messages.into_iter().map(message).collect::<Result<_, Status>>()? })
}

fn not_taken(error: &OrderError) -> Status {
    let message = error.to_string();
    match error {
        OrderError::Gap { .. } | OrderError::Unasked => Status::failed_precondition(message),
        OrderError::OtherPast(_) => Status::data_loss(message),
        OrderError::Heights { .. } | OrderError::TooLarge => Status::invalid_argument(message),
        OrderError::Closed => Status::unavailable(message),
    }
}
