//! Many requests in one call.
//!
//! Those of one call are decided together, which takes one commit of the audit log, and then carried out each by itself. The call
//! counts as all of them in its caller's quota, and its bytes count until the last answer has left.

use std::sync::Arc;

use bytes::Bytes;
use theta_authority::{Granted, KeyRequest, Presented, Refusal, Request as KeyUse, Seed};
use theta_wire::v1::{self, batch_answer::Answer, batch_item::Request as Item};
use tonic::{Request, Response, Status};

use super::{Performed, Protocol, to_sign, waiting};
use crate::grpc::{
    door::{self, Answers},
    gate::Arrival,
    refusal,
};

/// The most requests in one call.
const MOST_ITEMS: usize = 256;

/// The call of a batch without its items, for what comes with each request: metadata, and what the connection shows.
type Call = Arc<Request<()>>;

/// One request of a batch, decoded.
struct Asked {
    /// Its number among the items.
    number: u32,
    key_use: KeyUse,
    wait: v1::Wait,
    form: Form,
    enclosed: (Bytes, Vec<Bytes>),
}

/// What the answer to a request looks like.
enum Form {
    Decapsulated,
    Signed(Option<Seed>),
    Coin,
}

impl Protocol {
    /// Decides about all requests of a batch and begins to carry them out.
    pub(super) async fn answer_batch(&self, request: Request<v1::BatchRequest>) -> Result<Response<Answers>, Status> {
        let (metadata, extensions, v1::BatchRequest { items }) = request.into_parts();
        let call: Call = Arc::new(Request::from_parts(metadata, extensions, ()));
        let place = self.place_for(&call, items.len())?;
        let bytes = items.iter().map(held_by).fold(0, usize::saturating_add);
        let mut answers = Answers::new(place, bytes);
        let mut together = Vec::with_capacity(items.len());
        for (number, item) in (0..).zip(items) {
            match self.decoded_item(number, item) {
                // Whoever waits for the host's order waits alone.
                Ok(asked) if self.may_race(&asked) => {
                    let (this, call) = (self.clone(), Arc::clone(&call));
                    answers.spawn(async move { this.answer_alone(&call, asked).await });
                }
                Ok(asked) => together.push(asked),
                Err(status) => answers.push(refused(number, &status)),
            }
        }
        for (asked, granted) in self.decide_together(&call, together).await {
            match granted {
                Ok(granted) => {
                    let (this, call) = (self.clone(), Arc::clone(&call));
                    answers.spawn(async move { this.answer_item(&call, asked, granted).await });
                }
                Err(status) => answers.push(refused(asked.number, &status)),
            }
        }
        Ok(Response::new(answers))
    }

    /// Counts the call as all of its requests.
    fn place_for(&self, call: &Call, count: usize) -> Result<Option<Arrival>, Status> {
        if count == 0 || count > MOST_ITEMS {
            return Err(refusal::invalid(format!("a batch has 1 to {MOST_ITEMS} requests, this one has {count}")));
        }
        if self.node.authority.recognise(&door::presented(call)).is_none() {
            return Err(Status::unauthenticated(
                "a batch is for callers that a certificate or a token identifies: send signed requests one by one",
            ));
        }
        let place = call.extensions().get::<Arrival>().cloned();
        if let Some(place) = &place {
            place.counts_as(count)?;
        }
        Ok(place)
    }

    fn decoded_item(&self, number: u32, item: v1::BatchItem) -> Result<AskedItem, Status> {
        let (key, asked, slot, wait, form, enclosed) = match item.request {
            Some(Item::Decapsulate(request)) => {
                let asked = KeyRequest::Decapsulate(own(&request.header));
                let enclosed = (request.signed_request, request.approvals);
                (request.key, asked, None, request.wait, Form::Decapsulated, enclosed)
            }
            Some(Item::Sign(request)) => {
                let request =
                    v1::SignRequest { message: own(&request.message), digest: own(&request.digest), ..request };
                let (asked, seed) = to_sign(&request)?;
                let enclosed = (request.signed_request, request.approvals);
                (request.key, asked, request.slot, request.wait, Form::Signed(seed), enclosed)
            }
            Some(Item::FlipCoin(request)) => {
                let asked = KeyRequest::FlipCoin(own(&request.name));
                let enclosed = (request.signed_request, request.approvals);
                (request.key, asked, request.slot, request.wait, Form::Coin, enclosed)
            }
            None => return Err(refusal::invalid("an item of a batch has no request that this node knows")),
        };
        let (wait, key_use) = (waiting(wait)?, self.node.key_use(&key, asked, slot)?);
        self.node.may_take_slots(&key_use)?;
        Ok(Box::new(Asked { number, key_use, wait, form, enclosed }))
    }

    fn may_race(&self, asked: &Asked) -> bool {
        let (key, operation) = (asked.key_use.key().name.as_str(), asked.key_use.operation());
        self.node.authority.policy().may_race(Some(key), operation)
    }

    /// Decides about requests, all on record in one commit. Their caller has its place already, whoever signed them.
    async fn decide_together(
        &self,
        call: &Call,
        asked: Vec<AskedItem>,
    ) -> Vec<(AskedItem, Result<Granted<KeyUse>, Status>)> {
        if let Err(status) = self.node.seated() {
            return asked.into_iter().map(|asked| (asked, Err(status.clone()))).collect();
        }
        let requests = asked.iter().map(|asked| (asked.presented(call), asked.key_use.clone())).collect();
        let decided = self.node.authority.decide_together(requests).await;
        let disputed: Vec<KeyUse> = (asked.iter().zip(&decided))
            .filter(|(_, one)| one.as_ref().is_err_and(Refusal::is_by_contents))
            .map(|(asked, _)| asked.key_use.clone())
            .collect();
        if !disputed.is_empty() {
            // What was granted does not wait for it.
            let node = Arc::clone(&self.node);
            tokio::spawn(async move {
                for asked in disputed {
                    node.orchestrator.refused(&asked).await;
                }
            });
        }
        let granted = decided.into_iter().map(|one| one.map_err(|refusal| refusal::gate(&refusal)));
        asked.into_iter().zip(granted).collect()
    }

    async fn answer_alone(&self, call: &Call, asked: AskedItem) -> v1::BatchAnswer {
        let presented = match self.node.first_in_the_order(call, asked.presented(call), &asked.key_use).await {
            Ok(presented) => presented,
            Err(status) => return refused(asked.number, &status),
        };
        let decided = match self.node.seated() {
            Ok(()) => self.node.authority.decide(presented, asked.key_use.clone()).await,
            Err(status) => return refused(asked.number, &status),
        };
        match decided {
            Ok(granted) => self.answer_item(call, asked, granted).await,
            Err(refusal) => refused(asked.number, &self.node.refused(&asked.key_use, &refusal).await),
        }
    }

    async fn answer_item(&self, call: &Call, asked: AskedItem, granted: Granted<KeyUse>) -> v1::BatchAnswer {
        let Asked { number, wait, form, key_use, enclosed } = *asked;
        // Both have been decided about. What was enclosed keeps the bytes of the whole call.
        drop((key_use, enclosed));
        let answer = async {
            let performed = self.carry_out(call, granted, wait).await?;
            Ok(match form {
                Form::Signed(seed) => Answer::Sign(self.signed(performed, seed).await?),
                Form::Decapsulated => Answer::Decapsulate(decapsulated(&performed)),
                Form::Coin => Answer::FlipCoin(coin(&performed)),
            })
        };
        match answer.await {
            Ok(answer) => v1::BatchAnswer { item: number, answer: Some(answer) },
            Err(status) => refused(number, &status),
        }
    }
}

impl Asked {
    /// What was presented with it, in a call of its caller.
    fn presented(&self, call: &Call) -> Presented {
        let (signed_request, approvals) = &self.enclosed;
        door::presented(call).with(signed_request, approvals)
    }
}

/// Boxed: hundreds of them move about.
type AskedItem = Box<Asked>;

fn decapsulated(performed: &Performed) -> v1::DecapsulateResponse {
    v1::DecapsulateResponse { instance_id: performed.instance_id(), outcome: performed.outcome() }
}

fn coin(performed: &Performed) -> v1::FlipCoinResponse {
    v1::FlipCoinResponse { instance_id: performed.instance_id(), outcome: performed.outcome() }
}

fn refused(item: u32, status: &Status) -> v1::BatchAnswer {
    v1::BatchAnswer { item, answer: Some(Answer::Refused(refusal::enclosed(status))) }
}

/// A copy with a buffer of its own: one request that waits long must not keep the bytes of all of its batch.
fn own(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

/// About how many bytes an item holds.
fn held_by(item: &v1::BatchItem) -> usize {
    let enclosed = |signed: &Bytes, approvals: &[Bytes]| {
        approvals.iter().map(Bytes::len).fold(signed.len(), usize::saturating_add)
    };
    match &item.request {
        Some(Item::Decapsulate(request)) => {
            request.header.len().saturating_add(enclosed(&request.signed_request, &request.approvals))
        }
        Some(Item::Sign(request)) => request
            .message
            .len()
            .saturating_add(request.digest.len())
            .saturating_add(enclosed(&request.signed_request, &request.approvals)),
        Some(Item::FlipCoin(request)) => {
            request.name.len().saturating_add(enclosed(&request.signed_request, &request.approvals))
        }
        None => 0,
    }
}
