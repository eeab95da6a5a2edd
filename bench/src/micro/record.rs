//! Collects measurements, and writes them as tables.

use std::io::{self, Write};

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use serde::Serialize;
use theta::output::Table;
use theta_schemes::{
    Suite,
    keys::{AnyKeyShare, AnyPublicKey},
};

use super::{
    experiment::{Experiment, group_label},
    measure::{
        clock::{Clock, Timing},
        limits::{Limits, Sizes},
        raw::Raw,
    },
    operation::Operation,
};

/// With messages longer than this, in bytes, an operation's time is the message's, not the group's.
const SHORT_MESSAGE: u64 = 4096;

/// One measurement.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) experiment: String,
    /// The suite's name; `raw` for an operation of a group alone.
    pub(super) suite: String,
    pub(super) scheme: &'static str,
    pub(super) group: String,
    pub(super) operation: String,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) message_bytes: Option<u64>,
    #[serde(flatten)]
    pub(super) timing: Timing,
    pub(super) output_bytes: usize,
    /// The sum of the raw operations that it cannot avoid, in microseconds.
    pub(super) raw_us: Option<f64>,
    /// The fastest measurement as a multiple of that sum.
    pub(super) overhead: Option<f64>,
}

/// A key under measurement.
pub(super) struct Subject<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) public: &'a AnyPublicKey,
    pub(super) shares: &'a [AnyKeyShare],
    /// The bits of an RSA modulus.
    pub(super) bits: Option<u32>,
}

impl Subject<'_> {
    /// The suite of the key.
    pub(super) fn suite(&self) -> Suite {
        self.public.suite()
    }

    /// The sizes on which costs depend, without a message.
    pub(super) fn sizes(&self) -> Sizes {
        let threshold = self.public.threshold();
        Sizes { k: threshold.k().into(), n: threshold.n().into(), bits: self.bits.unwrap_or(0), message: 0 }
    }
}

/// The measurements so far, and what it takes to make more.
pub(super) struct Bench {
    pub(super) clock: Clock,
    rng: ChaCha20Rng,
    raw: Raw,
    rows: Vec<Row>,
}

impl Bench {
    /// Nothing measured yet.
    pub(super) fn new(clock: Clock, raw_clock: Clock, mut rng: ChaCha20Rng) -> Self {
        let raw = Raw::new(raw_clock, ChaCha20Rng::from_rng(&mut rng));
        Self { clock, rng, raw, rows: Vec::new() }
    }

    /// A new random number generator.
    pub(super) fn generator(&mut self) -> ChaCha20Rng {
        ChaCha20Rng::from_rng(&mut self.rng)
    }

    /// Records a measurement together with the cost of its unavoidable operations.
    pub(super) fn record<S: Limits>(
        &mut self,
        subject: &Subject<'_>,
        operation: Operation,
        message_bytes: Option<u64>,
        output_bytes: usize,
        timing: Timing,
    ) {
        let message = message_bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
        let sizes = Sizes { message, ..subject.sizes() };
        let short = message_bytes.is_none_or(|bytes| bytes <= SHORT_MESSAGE);
        let raw_us = if short { S::limit(&mut self.raw, operation, sizes) } else { None };
        self.rows.push(Row {
            experiment: subject.experiment.name.clone(),
            suite: subject.suite().name().to_owned(),
            scheme: subject.suite().scheme(),
            group: group_label(subject.public, subject.bits),
            operation: operation.name().to_owned(),
            k: sizes.k,
            n: sizes.n,
            message_bytes,
            timing,
            output_bytes,
            raw_us,
            overhead: raw_us.filter(|raw| *raw > 0.0).map(|raw| timing.min_us / raw),
        });
    }

    /// All measurements, the raw operations last. For these, k is the number of elements, or of hashed bytes.
    pub(super) fn into_rows(mut self) -> Vec<Row> {
        let raw = self.raw.known().iter().map(|((group, operation, size), timing)| Row {
            experiment: "raw".to_owned(),
            suite: "raw".to_owned(),
            scheme: "",
            group: group.clone(),
            operation: operation.to_string(),
            k: *size,
            n: 0,
            message_bytes: None,
            timing: *timing,
            output_bytes: 0,
            raw_us: None,
            overhead: None,
        });
        self.rows.extend(raw);
        self.rows
    }
}

/// The first line of the CSV file.
pub(super) const CSV_HEADER: &str = "experiment,suite,scheme,group,operation,k,n,message_bytes,samples,min_us,median_us,\
     p95_us,output_bytes,heap_bytes,raw_us,overhead";

/// CSV with one line a measurement. No field ever contains a comma or a quotation mark.
pub(super) fn csv(rows: &[Row]) -> String {
    fn optional(value: Option<impl ToString>) -> String {
        value.map(|value| value.to_string()).unwrap_or_default()
    }
    let mut text = format!("{CSV_HEADER}\n");
    for row in rows {
        let Timing { samples, min_us, median_us, p95_us, heap_bytes } = row.timing;
        let Row { experiment, suite, scheme, group, operation, k, n, output_bytes, .. } = row;
        let message = optional(row.message_bytes);
        let heap = optional(heap_bytes);
        let raw = optional(row.raw_us.map(|raw| format!("{raw:.3}")));
        let overhead = optional(row.overhead.map(|overhead| format!("{overhead:.3}")));
        text.push_str(&format!(
            "{experiment},{suite},{scheme},{group},{operation},{k},{n},{message},{samples},{min_us:.3},{median_us:.3},\
             {p95_us:.3},{output_bytes},{heap},{raw},{overhead}\n"
        ));
    }
    text
}

/// The operations that the short table shows; of two with one name, the first that a suite has.
const ONE_ROUND: [Operation; 7] = [
    Operation::Encrypt,
    Operation::CheckRequest,
    Operation::BareShare,
    Operation::CreateShare,
    Operation::VerifyShare,
    Operation::VerifyShares,
    Operation::Combine,
];
const TWO_ROUNDS: [Operation; 5] = [
    Operation::RoundOne,
    Operation::DecodeCommitments,
    Operation::RoundTwo,
    Operation::Aggregate,
    Operation::VerifyResult,
];

/// Writes the medians in microseconds, one line a key.
pub(super) fn write_tables(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    let two_rounds = |row: &&Row| row.scheme == "FROST";
    let measured = rows.iter().filter(|row| row.suite != "raw" && row.operation != Operation::KeyGeneration.name());
    let (frost, others): (Vec<&Row>, Vec<&Row>) = measured.partition(two_rounds);
    let dealt: Vec<&Row> = rows.iter().filter(|row| row.operation == Operation::KeyGeneration.name()).collect();
    let mut first = true;
    for (rows, operations) in [(others, &ONE_ROUND[..]), (frost, &TWO_ROUNDS), (dealt, &[Operation::KeyGeneration])] {
        if rows.is_empty() {
            continue;
        }
        if !first {
            writeln!(out)?;
        }
        first = false;
        write_table(&rows, operations, out)?;
    }
    Ok(())
}

fn write_table(rows: &[&Row], operations: &[Operation], out: &mut dyn Write) -> io::Result<()> {
    let mut headers = vec!["median us", "group", "k/n"];
    headers.extend(operations.iter().map(|operation| operation.name()));
    let mut table = Table::new(&headers, &[3, 4, 5, 6, 7, 8, 9]);
    let mut keys: Vec<(&str, &str, usize, usize)> = Vec::new();
    for row in rows {
        let key = (row.suite.as_str(), row.group.as_str(), row.k, row.n);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    for (suite, group, k, n) in keys {
        let median = |operation: &Operation| {
            let row = rows.iter().find(|row| {
                (row.suite.as_str(), row.group.as_str(), row.k, row.n) == (suite, group, k, n)
                    && row.operation == operation.name()
            });
            row.map_or_else(|| "-".to_owned(), |row| microseconds(row.timing.median_us))
        };
        let cells = operations.iter().map(median);
        table.row([suite.to_owned(), group.to_owned(), format!("{k}/{n}")].into_iter().chain(cells));
    }
    table.write(out)
}

/// Writes a time with its significant digits.
pub(super) fn microseconds(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}
