//! `theta-demo demo --all`: one key of every suite, at work once more often than once, and whoever can checks the results.

use std::time::Duration;

use serde::Serialize;
use theta::{
    exit::Failure,
    group::plan::KeySpec,
    keys::{Keyring, NamedKey},
    output::{BAD, GOOD, Output, Table},
    units,
};
use theta_client::{Answer, Client, ClientOptions};
use theta_cluster::{Cluster, Latencies, Show};
use theta_payload::{self as payload, Aead};
use theta_schemes::{Purpose, Suite};

use super::{
    PATIENCE,
    acts::await_mesh,
    independent::{self, Verdict},
    material::Material,
};

/// One key for each suite, called what it is.
pub(crate) fn keys() -> Result<Vec<KeySpec>, Failure> {
    Suite::ALL.into_iter().map(KeySpec::of).collect()
}

/// A line of the table.
#[derive(Serialize)]
pub(crate) struct Line {
    suite: &'static str,
    operation: &'static str,
    good: u16,
    of: u16,
    p50_ms: Option<f64>,
    verified_by: &'static str,
    problem: Option<String>,
}

/// What the lines are made on.
pub(crate) struct Stage<'a> {
    pub(crate) show: &'a Show,
    pub(crate) material: &'a Material,
    pub(crate) rounds: u16,
    pub(crate) nodes: u16,
}

impl Stage<'_> {
    /// Starts the network and uses every key. A suite that does not work is a line that says so.
    pub(crate) async fn play(&self, mut cluster: Cluster) -> Result<(Cluster, Vec<Line>), Failure> {
        self.show.act(format_args!("{} nodes start, with one key of each of {} suites", self.nodes, Suite::ALL.len()));
        cluster.start_all()?;
        cluster.listening(PATIENCE).await?;
        let options = ClientOptions { timeout: Duration::from_secs(10), ..ClientOptions::default() };
        let dir = cluster.client_dir();
        let (client, keyring) = (Client::open_with(&dir, options)?, Keyring::new(&dir));
        await_mesh(&client, self.nodes.into()).await?;
        self.show.act(format_args!("Every key is used {} times", self.rounds));
        let mut lines = Vec::new();
        for suite in Suite::ALL {
            let line = self.line(&client, &keyring.named(suite.name())?).await?;
            match &line.problem {
                None => self.show.good(format_args!("{suite}")),
                Some(problem) => self.show.say(format_args!("{BAD}failed{BAD:#} {suite}: {problem}")),
            }
            lines.push(line);
        }
        Ok((cluster, lines))
    }

    async fn line(&self, client: &Client, key: &NamedKey) -> Result<Line, Failure> {
        let suite = key.public.suite();
        let operation = match suite.purpose() {
            Purpose::Decrypt => "decrypt",
            Purpose::Sign => "sign",
            Purpose::Coin => "flip coin",
        };
        let mut latencies = Latencies::new()?;
        let (mut good, mut verified_by, mut problem) = (0, "-", None);
        for round in 0..self.rounds {
            match self.once(client, key, round).await {
                Ok((latency, who)) => {
                    latencies.record(latency);
                    (good, verified_by) = (good + 1, who);
                }
                Err(failure) => {
                    problem = Some(failure.to_string().replace('\n', " "));
                    break;
                }
            }
        }
        let p50_ms = (good > 0).then(|| latencies.percentiles().p50);
        Ok(Line { suite: suite.name(), operation, good, of: self.rounds, p50_ms, verified_by, problem })
    }

    /// One result, checked by whoever is named.
    async fn once(&self, client: &Client, key: &NamedKey, round: u16) -> Result<(Duration, &'static str), Failure> {
        let name = key.name.as_str();
        match key.public.suite().purpose() {
            Purpose::Decrypt => {
                let mut rng = theta::random::generator()?;
                let contents = &self.material.contents;
                let sealed = payload::encrypt_bytes(&key.public, contents, b"theta demo", Aead::default(), &mut rng)
                    .map_err(|error| Failure::Failed(error.to_string()))?;
                let answer = client.decrypt(name, sealed.into()).await?;
                let equal = answer.result.expose() == contents;
                checked(&answer, if equal { Verdict::Accepted("comparison") } else { Verdict::Refused("comparison") })
            }
            Purpose::Sign => {
                let message = self.material.variant(name, round);
                let answer = client.sign(name, message.clone().into()).await?;
                let verdict = match independent::verify(&key.public, &message, &answer.result)? {
                    Verdict::NoOneElse => ours(key, &message, &answer.result, &[]),
                    verdict => verdict,
                };
                checked(&answer, verdict)
            }
            Purpose::Coin => {
                let coin = format!("theta demo, {name}, {round}").into_bytes();
                let answer = client.flip_coin(name, coin.clone().into()).await?;
                let verdict = ours(key, &coin, &answer.result.value, &answer.result.proof);
                checked(&answer, verdict)
            }
        }
    }
}

/// Our own verifier, where nobody else has one.
fn ours(key: &NamedKey, message: &[u8], result: &[u8], proof: &[u8]) -> Verdict {
    match key.public.verify(message, result, proof) {
        Ok(()) => Verdict::Accepted("theta"),
        Err(_) => Verdict::Refused("theta"),
    }
}

fn checked<T>(answer: &Answer<T>, verdict: Verdict) -> Result<(Duration, &'static str), Failure> {
    match verdict {
        Verdict::Accepted(who) => Ok((answer.latency, who)),
        Verdict::Refused(who) => Err(Failure::Failed(format!("{who} refuses the result"))),
        Verdict::NoOneElse => Err(Failure::Failed("nobody checked the result".to_owned())),
    }
}

/// Shows the table; an error if a suite failed.
pub(crate) fn table(lines: &[Line], output: Output) -> Result<(), Failure> {
    output.result(&lines, |out| {
        writeln!(out)?;
        let mut table = Table::new(&["suite", "operation", "result", "p50", "verified by"], &[3]);
        for line in lines {
            let p50 = line.p50_ms.map(|ms| units::human(Duration::from_secs_f64(ms / 1e3)));
            table.row([
                line.suite.to_owned(),
                line.operation.to_owned(),
                format!("{} of {} good", line.good, line.of),
                p50.unwrap_or_else(|| "-".to_owned()),
                line.verified_by.to_owned(),
            ]);
        }
        table.write(out)?;
        let good = lines.iter().filter(|line| line.problem.is_none()).count();
        let style = if good == lines.len() { GOOD } else { BAD };
        writeln!(out, "{style}{good} of {} suites work{style:#}", lines.len())
    })?;
    let failed: Vec<_> = lines.iter().filter(|line| line.problem.is_some()).map(|line| line.suite).collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure::Failed(format!("these suites failed: {}", failed.join(", ")))) }
}
