//! Decisions about many requests at once: each by itself, all recorded in one commit.

use std::sync::Arc;

use super::{Authority, Counted, audit::Ticket};
use crate::{Asks, Granted, Presented, Refusal};

/// What was decided, in the order of the requests, and the record to wait for.
type DecidedTogether<R> = (Vec<Counted<R>>, Option<Ticket>);

impl Authority {
    /// Decides about many requests, as [`decide`](Self::decide) does about each, and in their order: rates and slots that one takes
    /// count for the next. All records are written in one commit, for which this waits once.
    ///
    /// # Errors
    /// Inside, the refusal of each request.
    pub async fn decide_together<R: Asks + Send + 'static>(
        self: &Arc<Self>,
        requests: Vec<(Presented, R)>,
    ) -> Vec<Result<Granted<R>, Refusal>> {
        let requests = self.hear_all(requests).await;
        let (this, count) = (Arc::clone(self), requests.len());
        // It may verify signatures, wait for the disk to take slots and digest long statements.
        let decided = tokio::task::spawn_blocking(move || this.decide_together_now(requests)).await;
        let (decided, ticket) = decided.unwrap_or_else(|error| {
            tracing::error!(%error, "decisions panicked");
            ((0..count).map(|_| Err(Refusal::Panicked)).collect(), None)
        });
        let waits = decided.iter().any(|one| matches!(one, Ok((_, true))));
        let durable = match ticket.filter(|_| waits) {
            Some(ticket) => self.audit.durable(ticket).await,
            None => Ok(()),
        };
        let granted = |(granted, first): (Granted<R>, bool)| match &durable {
            Err(error) if first => Err(error.clone().into()),
            _ => Ok(granted),
        };
        decided.into_iter().map(|one| one.and_then(granted)).collect()
    }

    /// The same about many requests at once.
    async fn hear_all<R: Asks>(self: &Arc<Self>, requests: Vec<(Presented, R)>) -> Vec<(Presented, R)> {
        if !self.policy().has_agents() {
            return requests;
        }
        let each = requests.into_iter().map(|(presented, request)| async move {
            let asked = request.asked();
            (self.hear(presented, &asked).await, request)
        });
        futures::future::join_all(each).await
    }

    fn decide_together_now<R: Asks>(&self, requests: Vec<(Presented, R)>) -> DecidedTogether<R> {
        let mut records = Vec::with_capacity(requests.len());
        let decided: Vec<_> = requests
            .into_iter()
            .map(|(presented, request)| {
                let asked = request.asked();
                let judged = self.judge(&presented, request, &asked)?;
                let (record, decided) = self.counted(judged);
                records.extend(record);
                decided
            })
            .collect();
        let waits = decided.iter().any(|one| matches!(one, Ok((_, true))));
        let ticket = self.audit.append_all(records, waits);
        (decided, ticket)
    }
}
