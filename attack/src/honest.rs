//! Honest clients that keep sending requests, and the outcomes of these.

use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Serialize;
use theta_client::Client;
use tokio::{sync::watch, task::JoinHandle, time};

use crate::{
    attack::Trouble,
    group::{Group, SIGNER},
};

/// The pause between two requests of one client.
const PAUSE: Duration = Duration::from_millis(100);
/// How many signatures an attack on signatures asks for at least: fewer say little about how many of them are made.
pub(crate) const AT_LEAST: usize = 10;

/// Honest clients at work: two that keep their connections, and one that connects anew for each request.
pub(crate) struct Honest {
    stop: watch::Sender<bool>,
    clients: Vec<JoinHandle<Vec<Asked>>>,
}

/// One request.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Instant,
    took: Duration,
    newcomer: bool,
    answered: bool,
}

/// The outcomes of the requests of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Answers {
    pub(crate) asked: usize,
    pub(crate) answered: usize,
    pub(crate) p50_ms: u128,
    pub(crate) p95_ms: u128,
    /// Of these, requests of clients that connected for each.
    pub(crate) newcomers_asked: usize,
    pub(crate) newcomers_answered: usize,
}

/// All requests that were made.
pub(crate) struct Record(Vec<Asked>);

impl Honest {
    pub(crate) fn start(group: &Group) -> Result<Self, Trouble> {
        let (stop, stopping) = watch::channel(false);
        let mut clients = Vec::new();
        for name in ["first", "second"] {
            let client = group.client()?;
            clients.push(tokio::spawn(ask(move || Ok(client.clone()), name, false, stopping.clone())));
        }
        clients.push(tokio::spawn(ask(group.client_maker(), "newcomer", true, stopping)));
        Ok(Self { stop, clients })
    }

    /// Makes no more requests, and waits for those under way.
    pub(crate) async fn stop(self) -> Result<Record, Trouble> {
        self.stop.send_replace(true);
        let mut record = Vec::new();
        for client in self.clients {
            record.extend(client.await.map_err(|error| Trouble::new(format!("bug: an honest client ended: {error}")))?);
        }
        Ok(Record(record))
    }
}

/// Sends one request after another, each for a different message.
async fn ask(
    next: impl Fn() -> Result<Client, Trouble>,
    name: &'static str,
    newcomer: bool,
    stop: watch::Receiver<bool>,
) -> Vec<Asked> {
    let mut record = Vec::new();
    while !*stop.borrow() {
        let message = Bytes::from(format!("{name} {}", record.len()));
        let at = Instant::now();
        let answered = match next() {
            Ok(client) => client.sign(SIGNER, message).await.is_ok(),
            Err(_) => false,
        };
        record.push(Asked { at, took: at.elapsed(), newcomer, answered });
        time::sleep(PAUSE).await;
    }
    record
}

impl Record {
    /// The outcomes of the requests made in this period.
    pub(crate) fn between(&self, from: Instant, to: Instant) -> Answers {
        let asked: Vec<Asked> = self.0.iter().filter(|asked| (from..to).contains(&asked.at)).copied().collect();
        let mut took: Vec<u128> =
            asked.iter().filter(|asked| asked.answered).map(|asked| asked.took.as_millis()).collect();
        took.sort_unstable();
        let share =
            |hundredths: usize| took.get(took.len().saturating_sub(1) * hundredths / 100).copied().unwrap_or_default();
        Answers {
            asked: asked.len(),
            answered: took.len(),
            p50_ms: share(50),
            p95_ms: share(95),
            newcomers_asked: asked.iter().filter(|asked| asked.newcomer).count(),
            newcomers_answered: asked.iter().filter(|asked| asked.newcomer && asked.answered).count(),
        }
    }
}

impl Answers {
    /// Whether nearly all were answered, both of all requests and of those with new connections.
    pub(crate) fn nearly_all(&self) -> bool {
        nearly_all(self.answered, self.asked) && nearly_all(self.newcomers_answered, self.newcomers_asked)
    }
}

/// Whether nine of ten were answered, or all but one of fewer: in a short attack a client asks five times, and a machine that
/// stands still for some seconds costs it one of them. A group that was stopped leaves each client without an answer.
pub(crate) const fn nearly_all(answered: usize, asked: usize) -> bool {
    answered * 10 >= asked * 9 || (answered > 0 && answered + 1 >= asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_time_and_kind() {
        let start = Instant::now();
        let asked = |seconds: u64, newcomer, answered| Asked {
            at: start + Duration::from_secs(seconds),
            took: Duration::from_millis(10 * seconds),
            newcomer,
            answered,
        };
        let record =
            Record(vec![asked(1, false, true), asked(2, false, true), asked(3, true, false), asked(9, true, true)]);
        let answers = record.between(start, start + Duration::from_secs(5));
        let expected =
            Answers { asked: 3, answered: 2, p50_ms: 10, p95_ms: 10, newcomers_asked: 1, newcomers_answered: 0 };
        assert_eq!(answers, expected);
        assert!(nearly_all(9, 10) && nearly_all(4, 5) && nearly_all(0, 0));
        assert!(!nearly_all(3, 5) && !nearly_all(0, 1) && !nearly_all(88, 100));
        assert!(!answers.nearly_all() && record.between(start + Duration::from_secs(5), Instant::now()).nearly_all());
    }
}
