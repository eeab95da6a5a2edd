//! Sends requests, either as fast as they are answered or at a fixed rate.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use theta::exit::Failure;
use theta_client::Client;
use tokio::{
    sync::Semaphore,
    task::{JoinError, JoinSet},
    time::{self, Instant},
};

use super::requests::{Job, Pool};

/// In the open loop, the most requests under way. Beyond this the group is far over its capacity, and requests are not
/// sent.
const MAX_UNDER_WAY: usize = 10_000;
/// How long a group has until it serves. Nodes with signing rules must first learn from their peers that their stores are
/// current.
const GETTING_READY: Duration = Duration::from_secs(30);
/// How long one of the first requests may take meanwhile.
const TRY: Duration = Duration::from_secs(1);

/// How long a group has until its ledger has the keys that were dealt.
const SETTLING: Duration = Duration::from_secs(600);

/// When requests are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// Each worker sends its next request when the last one is answered.
    Closed {
        /// The number of workers.
        workers: u32,
        /// How many requests each sends in one call; 1: in a call of its own.
        batch: usize,
    },
    /// At fixed intervals.
    Open {
        /// Requests a second.
        rate: f64,
    },
}

/// One request that was sent.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Its number, from 0.
    pub(crate) index: usize,
    /// When it was sent (or, in the open loop, due), measured from the beginning.
    pub(crate) start: Duration,
    /// The time from `start` to the first good answer.
    pub(crate) latency: Duration,
    /// Why there was no good answer.
    pub(crate) error: Option<String>,
}

/// The result of a measurement.
pub(crate) struct Run {
    /// Every request, by number.
    pub(crate) samples: Vec<Sample>,
    /// The time from the first request to the last answer.
    pub(crate) elapsed: Duration,
    /// Whether the prepared requests ran out before the time did.
    pub(crate) ran_out: bool,
}

/// Waits until the ledger has so many keys. What nodes do to take in those that were dealt is not what requests cost: among 127 nodes on two cores it
/// takes a minute.
pub(crate) async fn settle(client: &Client, keys: usize) -> Result<(), Failure> {
    let deadline = Instant::now() + SETTLING;
    loop {
        // Nodes that do not answer yet are asked again.
        let _ = client.renew().await;
        if client.ledger(|state| state.keys().len()).is_none_or(|known| known >= keys) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(Failure::NoAnswer(
                "the nodes do not take the keys that were dealt into their ledger".to_owned(),
            ));
        }
        time::sleep(Duration::from_secs(1)).await;
    }
}

/// Opens the connections and fills the caches, so that the first measured request costs as much as the others.
pub(crate) async fn warm_up(client: &Client, pool: &Pool) -> Result<(), Failure> {
    let deadline = Instant::now() + GETTING_READY;
    for job in pool.spare() {
        loop {
            // One node may be ready and wait for others that have refused already, so the request is sent to all again.
            let last = Instant::now() > deadline;
            match time::timeout(if last { GETTING_READY } else { TRY }, job.clone().perform(client)).await {
                Ok(Ok(())) => break,
                Ok(Err(error)) if last => return Err(error.into()),
                Err(_) if last => return Err(Failure::NoAnswer("the group does not get ready".to_owned())),
                Ok(Err(_)) => time::sleep(Duration::from_millis(200)).await,
                Err(_) => {}
            }
        }
    }
    Ok(())
}

/// Sends for `duration`, and waits for the last answers.
pub(crate) async fn run(client: &Client, pool: &Arc<Pool>, pace: Pace, duration: Duration) -> Result<Run, Failure> {
    let begin = Instant::now();
    let mut samples = match pace {
        Pace::Closed { workers, batch } => closed(client, pool, begin, (workers, batch.max(1)), duration).await?,
        Pace::Open { rate } => open(client, pool, begin, rate).await?,
    };
    let elapsed = begin.elapsed();
    samples.sort_by_key(|sample| sample.index);
    let ran_out = matches!(pace, Pace::Closed { .. }) && samples.len() == pool.len() && elapsed < duration;
    Ok(Run { samples, elapsed, ran_out })
}

async fn closed(
    client: &Client,
    pool: &Arc<Pool>,
    begin: Instant,
    (workers, batch): (u32, usize),
    duration: Duration,
) -> Result<Vec<Sample>, Failure> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut running = JoinSet::new();
    for _ in 0..workers {
        let (client, pool, next) = (client.clone(), Arc::clone(pool), Arc::clone(&next));
        running.spawn(async move {
            let mut samples = Vec::new();
            while begin.elapsed() < duration {
                let first = next.fetch_add(batch, Ordering::Relaxed);
                let jobs: Vec<(usize, Job)> =
                    (first..first.saturating_add(batch)).filter_map(|index| Some((index, pool.get(index)?))).collect();
                if jobs.is_empty() {
                    break;
                }
                samples.extend(measured_together(client.clone(), jobs, begin).await);
            }
            samples
        });
    }
    let mut samples = Vec::new();
    while let Some(batch) = running.join_next().await {
        samples.extend(batch.map_err(|error: JoinError| Failure::internal(error))?);
    }
    Ok(samples)
}

async fn open(client: &Client, pool: &Pool, begin: Instant, rate: f64) -> Result<Vec<Sample>, Failure> {
    let places = Arc::new(Semaphore::new(MAX_UNDER_WAY));
    let mut running = JoinSet::new();
    let mut samples = Vec::with_capacity(pool.len());
    for (index, due) in (0..pool.len()).zip((0_u32..).map(|index| Duration::from_secs_f64(f64::from(index) / rate))) {
        time::sleep_until(begin + due).await;
        let Some(job) = pool.get(index) else { break };
        match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => {
                let client = client.clone();
                running.spawn(async move {
                    let _place = place;
                    measured(client, job, index, begin, due).await
                });
            }
            Err(_) => samples.push(Sample {
                index,
                start: due,
                latency: Duration::ZERO,
                error: Some(format!("not sent: {MAX_UNDER_WAY} requests were under way")),
            }),
        }
    }
    while let Some(sample) = running.join_next().await {
        samples.push(sample.map_err(|error: JoinError| Failure::internal(error))?);
    }
    Ok(samples)
}

/// Sends one request in a call of its own, several in one call. Their latency is that of the last.
async fn measured_together(client: Client, jobs: Vec<(usize, Job)>, begin: Instant) -> Vec<Sample> {
    let start = begin.elapsed();
    let (indices, jobs): (Vec<usize>, Vec<Job>) = jobs.into_iter().unzip();
    if let ([index], [job]) = (indices.as_slice(), jobs.as_slice()) {
        return vec![measured(client, job.clone(), *index, begin, start).await];
    }
    let results = Job::perform_all(jobs, &client).await;
    let latency = begin.elapsed().saturating_sub(start);
    let sample = |(index, result): (usize, Result<(), String>)| Sample { index, start, latency, error: result.err() };
    indices.into_iter().zip(results).map(sample).collect()
}

async fn measured(client: Client, job: Job, index: usize, begin: Instant, start: Duration) -> Sample {
    let result = job.perform(&client).await;
    let latency = begin.elapsed().saturating_sub(start);
    Sample { index, start, latency, error: result.err().map(|error| error.to_string().replace('\n', ";")) }
}
