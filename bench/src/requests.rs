//! Distinct requests, prepared before the measurement.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    thread,
};

use bytes::Bytes;
use clap::ValueEnum;
use rand_core::Rng;
use serde::{Deserialize, Serialize};
use theta::{exit::Failure, keys::NamedKey};
use theta_client::{Answers, Client, ClientError};
use theta_payload::{self as payload, Aead};
use theta_schemes::Purpose;

/// The most memory that prepared requests take, in bytes.
const MAX_POOL_BYTES: u64 = 512 << 20;

/// What requests ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Operation {
    /// The payload key of a ciphertext; nodes get its header
    Decapsulate,
    /// The same, and the contents are opened here
    Decrypt,
    /// A signature
    Sign,
    /// A coin
    Coin,
}

impl Operation {
    /// The purpose that the key must have.
    pub(crate) const fn purpose(self) -> Purpose {
        match self {
            Self::Decapsulate | Self::Decrypt => Purpose::Decrypt,
            Self::Sign => Purpose::Sign,
            Self::Coin => Purpose::Coin,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Decapsulate => "decapsulate",
            Self::Decrypt => "decrypt",
            Self::Sign => "sign",
            Self::Coin => "coin",
        })
    }
}

/// Requests that have never been sent.
pub(crate) struct Pool {
    operation: Operation,
    key: String,
    requests: Vec<Bytes>,
    /// Requests for warming up, which are not measured.
    spare: Vec<Bytes>,
}

impl Pool {
    /// Prepares `count` requests, with plaintexts or messages of `size` bytes, on all processors.
    pub(crate) fn make(operation: Operation, key: &NamedKey, size: u64, count: u32) -> Result<Self, Failure> {
        const SPARE: usize = 8;
        let stored = if operation == Operation::Decapsulate { 1024 } else { size.max(64) };
        if stored.saturating_mul(u64::from(count)) > MAX_POOL_BYTES {
            return Err(Failure::Usage(format!(
                "{count} requests of {size} bytes are more than the {} MiB that are made ahead: give fewer --requests, a \
                 lower --rate or a smaller --size",
                MAX_POOL_BYTES >> 20
            )));
        }
        let size = usize::try_from(size).map_err(Failure::internal)?;
        let count = usize::try_from(count).map_err(Failure::internal)? + SPARE;
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let made = Mutex::new(Vec::with_capacity(count));
        thread::scope(|scope| {
            let worker = |worker: usize| {
                let share = count / workers + usize::from(worker < count % workers);
                let batch = make_batch(operation, key, size, share)?;
                made.lock().unwrap_or_else(PoisonError::into_inner).extend(batch);
                Ok::<(), Failure>(())
            };
            let handles: Vec<_> = (0..workers).map(|number| scope.spawn(move || worker(number))).collect();
            handles.into_iter().try_for_each(|handle| {
                handle.join().map_err(|_| Failure::internal("a thread that makes requests panicked"))?
            })
        })?;
        let mut requests = made.into_inner().unwrap_or_else(PoisonError::into_inner);
        let spare = requests.split_off(requests.len().saturating_sub(SPARE));
        Ok(Self { operation, key: key.name.to_string(), requests, spare })
    }

    /// Request number `index`, from 0; `None` if there are fewer.
    pub(crate) fn get(&self, index: usize) -> Option<Job> {
        self.requests.get(index).map(|request| self.job(request))
    }

    /// The number of requests to measure.
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// The requests for warming up.
    pub(crate) fn spare(&self) -> Vec<Job> {
        self.spare.iter().map(|request| self.job(request)).collect()
    }

    fn job(&self, request: &Bytes) -> Job {
        Job { operation: self.operation, key: self.key.clone(), request: request.clone() }
    }
}

/// One request.
#[derive(Clone)]
pub(crate) struct Job {
    operation: Operation,
    key: String,
    request: Bytes,
}

impl Job {
    /// Makes requests that have never been sent.
    pub(crate) fn make(operation: Operation, key: &NamedKey, size: usize, count: usize) -> Result<Vec<Self>, Failure> {
        let job = |request| Self { operation, key: key.name.to_string(), request };
        Ok(make_batch(operation, key, size, count)?.into_iter().map(job).collect())
    }

    /// Sends it to all nodes. Returns the first good answer if that is public and always the same.
    pub(crate) async fn result(self, client: &Client) -> Result<Option<Bytes>, ClientError> {
        let Self { operation, key, request } = self;
        match operation {
            Operation::Sign => client.sign(&key, request).await.map(|answer| Some(answer.result)),
            Operation::Coin => client.flip_coin(&key, request).await.map(|answer| Some(answer.result.value)),
            Operation::Decapsulate => client.decapsulate(&key, request).await.map(|_| None),
            Operation::Decrypt => client.decrypt(&key, request).await.map(|_| None),
        }
    }

    /// Sends several of one pool in one call to each node, and waits for the first good answer to each.
    pub(crate) async fn perform_all(jobs: Vec<Self>, client: &Client) -> Vec<Result<(), String>> {
        let Some(Self { operation, key, .. }) = jobs.first().cloned() else { return Vec::new() };
        let count = jobs.len();
        let requests: Vec<Bytes> = jobs.into_iter().map(|job| job.request).collect();
        let results = match operation {
            Operation::Sign => client.sign_all(&key, &requests).await.map(outcomes),
            Operation::Coin => client.flip_coins(&key, &requests).await.map(outcomes),
            // The contents are opened by no node.
            Operation::Decapsulate | Operation::Decrypt => client.decapsulate_all(&key, &requests).await.map(outcomes),
        };
        results.unwrap_or_else(|error| vec![Err(error.to_string()); count])
    }

    /// Sends it to all nodes and waits for the first good answer.
    pub(crate) async fn perform(self, client: &Client) -> Result<(), ClientError> {
        self.result(client).await.map(drop)
    }
}

fn outcomes<T>(answers: Answers<T>) -> Vec<Result<(), String>> {
    answers.into_iter().map(|answer| answer.map(drop).map_err(|error| error.to_string())).collect()
}

fn make_batch(operation: Operation, key: &NamedKey, size: usize, count: usize) -> Result<Vec<Bytes>, Failure> {
    let mut rng = theta::random::generator()?;
    let mut contents = vec![0; size];
    let mut make = || {
        if operation == Operation::Coin {
            // The size does not apply to names; each only has to be new.
            let mut name = [0; 32];
            rng.fill_bytes(&mut name);
            return Ok(Bytes::from(hex::encode(name)));
        }
        rng.fill_bytes(&mut contents);
        // Messages are at least 16 bytes long, since shorter ones would repeat.
        if operation == Operation::Sign {
            let mut message = contents.clone();
            let mut unique = [0; 16];
            rng.fill_bytes(&mut unique);
            message.resize(size.max(unique.len()), 0);
            message.iter_mut().zip(unique).for_each(|(byte, unique)| *byte = unique);
            return Ok(Bytes::from(message));
        }
        let sealed = payload::encrypt_bytes(&key.public, &contents, b"", Aead::default(), &mut rng)
            .map_err(|error| Failure::Failed(error.to_string()))?;
        if operation == Operation::Decrypt {
            return Ok(Bytes::from(sealed));
        }
        let (header, _) = payload::split_ciphertext(&sealed).map_err(Failure::internal)?;
        Ok(Bytes::copy_from_slice(header))
    };
    (0..count).map(|_| make()).collect()
}
