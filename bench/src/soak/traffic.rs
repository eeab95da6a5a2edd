//! Sends requests at a fixed rate until it is stopped.

use std::{collections::VecDeque, sync::Arc, thread, time::Duration};

use bytes::Bytes;
use theta::{exit::Failure, keys::NamedKey};
use theta_client::Client;
use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::{JoinHandle, JoinSet},
    time::{self, Instant},
};

use super::{
    super::requests::{Job, Operation},
    SIZE,
};

/// The most requests under way; beyond this none are sent.
const MAX_UNDER_WAY: usize = 5_000;
/// How many requests of each kind are made at a time.
const BATCH: usize = 64;
/// One request of this many is sent again,
const REPEAT: u64 = 100;
/// this much later,
const LATER: Duration = Duration::from_secs(60);
/// unless this many requests wait for that already.
const MAX_KEPT: usize = 2_000;

/// One request and its outcome.
pub(super) struct Sample {
    /// When it was due.
    pub(super) due: Instant,
    /// The time from then to the answer.
    pub(super) latency: Duration,
    /// The outcome.
    pub(super) end: End,
}

/// The outcome of a request.
pub(super) enum End {
    /// A good answer.
    Answered,
    /// The same good answer as before.
    SameAgain,
    /// A good answer that differs from the earlier one: two results for one request.
    Contradiction,
    /// There was no good answer.
    Failed(String),
    /// Too many requests were under way.
    NotSent,
}

/// Sends requests and collects samples. Dropping it stops it.
pub(super) struct Traffic {
    rate: watch::Sender<f64>,
    samples: mpsc::UnboundedReceiver<Sample>,
    sender: JoinHandle<()>,
}

impl Traffic {
    pub(super) fn start(client: &Client, keys: &[(Operation, NamedKey)], rate: f64) -> Result<Self, Failure> {
        let (jobs, ready) = mpsc::channel(8 * BATCH);
        let keys = keys.to_vec();
        thread::Builder::new()
            .name("requests".into())
            .spawn(move || make(&keys, &jobs))
            .map_err(|error| Failure::Internal(format!("cannot start a thread: {error}")))?;
        let (rate, rates) = watch::channel(rate);
        let (out, samples) = mpsc::unbounded_channel();
        let sender = tokio::spawn(send(client.clone(), ready, rates, out));
        Ok(Self { rate, samples, sender })
    }

    pub(super) fn set_rate(&self, rate: f64) {
        self.rate.send_replace(rate);
    }

    pub(super) async fn next(&mut self) -> Result<Sample, Failure> {
        self.samples.recv().await.ok_or_else(|| Failure::internal("no more requests could be made"))
    }

    /// Sends nothing more and waits for the rest.
    pub(super) async fn stop(mut self) -> Result<Vec<Sample>, Failure> {
        self.rate.send_replace(0.0);
        let mut rest = Vec::new();
        while let Some(sample) = self.samples.recv().await {
            rest.push(sample);
        }
        Ok(rest)
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.sender.abort();
    }
}

/// Makes requests of all kinds in turn until the receiver is gone.
fn make(keys: &[(Operation, NamedKey)], jobs: &mpsc::Sender<Job>) {
    loop {
        let batches: Result<Vec<_>, _> =
            keys.iter().map(|(operation, key)| Job::make(*operation, key, SIZE, BATCH)).collect();
        // Without randomness there are no more requests; the receiver notices.
        let Ok(batches) = batches else { return };
        let mut batches: Vec<_> = batches.into_iter().map(Vec::into_iter).collect();
        for _ in 0..BATCH {
            for job in batches.iter_mut().filter_map(Iterator::next) {
                if jobs.blocking_send(job).is_err() {
                    return;
                }
            }
        }
    }
}

/// A request to be sent again, and the answer that it must have.
struct Kept {
    from: Instant,
    job: Job,
    answer: Bytes,
}

async fn send(
    client: Client,
    mut jobs: mpsc::Receiver<Job>,
    rates: watch::Receiver<f64>,
    out: mpsc::UnboundedSender<Sample>,
) {
    let places = Arc::new(Semaphore::new(MAX_UNDER_WAY));
    let (keep, mut kept) = mpsc::channel::<Kept>(MAX_KEPT);
    let mut waiting: VecDeque<Kept> = VecDeque::new();
    let mut running = JoinSet::new();
    let mut due = Instant::now();
    let mut number = 0_u64;
    loop {
        let rate = *rates.borrow();
        if rate <= 0.0 {
            break;
        }
        due += Duration::from_secs_f64(rate.recip());
        time::sleep_until(due).await;
        while running.try_join_next().is_some() {}
        while let Ok(request) = kept.try_recv() {
            waiting.push_back(request);
        }
        let again = if waiting.front().is_some_and(|request| request.from <= due) { waiting.pop_front() } else { None };
        let (job, expected) = match again {
            Some(Kept { job, answer, .. }) => (job, Some(answer)),
            None => match jobs.recv().await {
                Some(job) => (job, None),
                None => break,
            },
        };
        number += 1;
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            drop(out.send(Sample { due, latency: Duration::ZERO, end: End::NotSent }));
            continue;
        };
        let (client, out) = (client.clone(), out.clone());
        let keep = (expected.is_none() && number.is_multiple_of(REPEAT)).then(|| keep.clone());
        running.spawn(async move {
            let _place = place;
            let end = perform(&client, job, expected, keep).await;
            drop(out.send(Sample { due, latency: due.elapsed(), end }));
        });
    }
    while running.join_next().await.is_some() {}
}

async fn perform(client: &Client, job: Job, expected: Option<Bytes>, keep: Option<mpsc::Sender<Kept>>) -> End {
    let again = keep.map(|keep| (keep, job.clone()));
    match (job.result(client).await, expected) {
        (Err(error), _) => End::Failed(error.to_string().replace('\n', ";")),
        (Ok(Some(answer)), Some(expected)) if answer != expected => End::Contradiction,
        (Ok(_), Some(_)) => End::SameAgain,
        (Ok(answer), None) => {
            if let (Some((keep, job)), Some(answer)) = (again, answer) {
                // If too many requests wait already, this one is not sent again.
                drop(keep.try_send(Kept { from: Instant::now() + LATER, job, answer }));
            }
            End::Answered
        }
    }
}
