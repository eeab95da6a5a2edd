//! Admits requests: finds key, version and instance id, and makes the command for a shard.

use std::{sync::Arc, time};

use theta_authority::{Asker, InstanceId, ParsedStatement, Seed};
use theta_custody::KeyEntry;
use theta_names::Epoch;
use theta_schemes::{RequestError, keys::KeyId, signatures::frost::check_seed};
use tokio::sync::oneshot;

use super::{
    command::{Reply, Submission, Taken},
    shared::Shared,
};
use crate::{Certified, Stage, SubmitError, asked::Asked, quota::Permit, quota::Quota};

/// Longer statements are hashed on the CPU threads rather than on the caller's. In bytes.
const LONG_STATEMENT: usize = 32 << 10;

/// What the id of a request's instance follows from.
pub(crate) struct Identification {
    key: KeyId,
    epoch: Epoch,
    statement: ParsedStatement,
    seed: Option<Seed>,
}

impl Identification {
    pub(crate) fn new(key: &KeyEntry, statement: ParsedStatement, seed: Option<Seed>) -> Self {
        Self { key: key.key_id, epoch: key.epoch, statement, seed }
    }

    /// Whether hashing it is work for a CPU thread.
    pub(crate) const fn is_long(&self) -> bool {
        self.statement.len() > LONG_STATEMENT
    }

    pub(crate) fn id(&self) -> InstanceId {
        InstanceId::of(&self.key, self.epoch, &self.statement, self.seed.as_ref())
    }
}

/// A request that this node can answer and for which it has room.
pub(crate) struct Admitted {
    key: Arc<KeyEntry>,
    generation: u64,
    asked: Asked,
    asker: Option<Asker>,
    submitted: time::Instant,
    queued: Permit,
    bytes: Permit,
}

/// The shard's answer to a submission.
pub(crate) type Answer = oneshot::Receiver<Result<Taken, SubmitError>>;

impl Admitted {
    pub(crate) fn identification(&self) -> Identification {
        Identification::new(&self.key, self.asked.statement.clone(), self.asked.seed.clone())
    }

    /// The command for the instance's shard, and the receiver of its answer.
    pub(crate) fn into_submission(self, id: InstanceId, waits: bool) -> (Box<Submission>, Answer) {
        let Self { key, generation, asked, asker, submitted, queued, bytes } = self;
        let (reply, answer): (Reply, Answer) = oneshot::channel();
        (Box::new(Submission { id, key, generation, asked, asker, submitted, queued, bytes, waits, reply }), answer)
    }
}

impl Shared {
    /// Admits a request: makes the checks that cost nothing, and takes its part of the limits. Its key has been found;
    /// if the table changes, the shard looks it up again.
    pub(crate) fn admit(&self, certified: Certified, asker: Option<Asker>) -> Result<Admitted, SubmitError> {
        let submitted = time::Instant::now();
        if let Some(text) = self.failure.get() {
            return Err(SubmitError::Store(text));
        }
        if let Some(text) = self.departure.get() {
            return Err(SubmitError::Departed(text));
        }
        let (request, key, generation) = certified.into_parts();
        let asked = Asked::of(request, key.version);
        let (purpose, suited) = (asked.statement.as_statement().purpose(), key.suite.purpose());
        if purpose != suited {
            return Err(RequestError::Purpose { key: suited, asked: purpose }.into());
        }
        if let Some(seed) = &asked.seed {
            check_seed(key.suite, seed.expose().len())?;
        }
        self.metrics.suite(key.suite).stage(Stage::KeyFound, None, submitted.elapsed());
        let take = |quota: &Arc<Quota>, amount, label, text| {
            quota.take(amount).ok_or_else(|| {
                self.metrics.overloaded(label);
                SubmitError::Overloaded(text)
            })
        };
        let queued = take(&self.queued, 1, "queued", "waiting requests")?;
        let bytes = take(&self.statements, asked.len(), "statement_bytes", "memory for requests")?;
        Ok(Admitted { key, generation, asked, asker, submitted, queued, bytes })
    }
}
