//! The plots of the report.

use super::super::{operation::Operation, record::Row};
use crate::svg::{self, Series};

/// A plot, and the name of its file without the ending.
pub(super) struct Chart {
    pub(super) file: String,
    pub(super) svg: String,
}

/// Operations whose cost does not depend on the number of parties.
const SINGLE: [Operation; 7] = [
    Operation::Encrypt,
    Operation::CheckRequest,
    Operation::BareShare,
    Operation::CreateShare,
    Operation::DecodeShare,
    Operation::VerifyShare,
    Operation::VerifyResult,
];
/// Operations whose cost depends on it.
const COLLECTIVE: [Operation; 3] = [Operation::VerifyShares, Operation::Combine, Operation::CombineSpread];
/// Operations of FROST.
const ROUNDS: [Operation; 5] = [
    Operation::RoundOne,
    Operation::DecodeCommitments,
    Operation::RoundTwo,
    Operation::Aggregate,
    Operation::VerifyResult,
];
/// The highest overhead that the project accepts.
const ACCEPTED: f64 = 1.2;

/// All plots for which there are measurements.
pub(super) fn all(rows: &[Row]) -> Vec<Chart> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.suite != "raw").collect();
    let one_round: Vec<&Row> =
        rows.iter().copied().filter(|row| row.scheme != "FROST" && !is(row, Operation::KeyGeneration)).collect();
    let frost: Vec<&Row> =
        rows.iter().copied().filter(|row| row.scheme == "FROST" && !is(row, Operation::KeyGeneration)).collect();
    let mut charts = Vec::new();
    by_suite(&one_round, &SINGLE, "one-round", "One-round schemes", &mut charts);
    by_suite(&frost, &ROUNDS, "frost", "FROST", &mut charts);
    by_threshold(&one_round, &COLLECTIVE, &mut charts);
    by_threshold(&frost, &ROUNDS, &mut charts);
    by_payload(&one_round, &mut charts);
    dealing(&rows, &mut charts);
    charts
}

fn is(row: &Row, operation: Operation) -> bool {
    row.operation == operation.name()
}

/// The name of a line: the suite, with the size of RSA keys.
fn label(row: &Row) -> String {
    if row.group.starts_with("RSA-") { format!("{} ({})", row.suite, row.group) } else { row.suite.clone() }
}

fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut seen, item| {
        if !seen.contains(&item) {
            seen.push(item);
        }
        seen
    })
}

fn exact(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Dots: time, overhead, output and heap of each suite at the most common group size of the literature, or at the first.
fn by_suite(rows: &[&Row], operations: &[Operation], file: &str, title: &str, charts: &mut Vec<Chart>) {
    let sizes = distinct(rows.iter().map(|row| (row.k, row.n)));
    let largest = sizes.iter().copied().max();
    let usual = sizes.iter().copied().find(|size| *size == (3, 7) || *size == (67, 100)).or(sizes.first().copied());
    let (Some(usual), Some(largest)) = (usual, largest) else { return };
    let at = |size| rows.iter().copied().filter(|row| (row.k, row.n) == size).collect::<Vec<_>>();
    let all: Vec<Operation> = distinct(operations.iter().chain(&COLLECTIVE).copied());
    let ((k, n), (large_k, large_n)) = (usual, largest);
    let mut add = |name: &str, what: &str, unit: &str, chosen: &[&Row], operations: &[Operation], value: Value| {
        let guides: &[f64] = if name.starts_with("overhead") { &[1.0, ACCEPTED] } else { &[] };
        let logarithmic = !name.starts_with("overhead");
        if let Some(svg) = dotted(&format!("{title}: {what}"), unit, chosen, operations, value, logarithmic, guides) {
            charts.push(Chart { file: format!("{file}-{name}"), svg });
        }
    };
    let (usual_rows, large_rows) = (at(usual), at(largest));
    add("time", &format!("time, any {k} of {n}"), "median, microseconds", &usual_rows, operations, |row| {
        Some(row.timing.median_us)
    });
    let overhead: Value = |row| row.overhead;
    let unit = "time / raw group operations; 1.2 is accepted";
    add("overhead", &format!("overhead, any {k} of {n}"), unit, &usual_rows, &all, overhead);
    if largest != usual {
        let what = format!("overhead, any {large_k} of {large_n}");
        add("overhead-largest", &what, unit, &large_rows, &all, overhead);
    }
    add("output", &format!("size of what is made, any {k} of {n}"), "bytes", &usual_rows, &all, |row| {
        (row.output_bytes > 0).then(|| exact(row.output_bytes))
    });
    add("heap", &format!("most heap at a time, any {k} of {n}"), "bytes", &usual_rows, &all, |row| {
        row.timing.heap_bytes.filter(|bytes| *bytes > 0).map(exact)
    });
}

type Value = fn(&Row) -> Option<f64>;

fn dotted(
    title: &str,
    unit: &str,
    rows: &[&Row],
    operations: &[Operation],
    value: Value,
    logarithmic: bool,
    guides: &[f64],
) -> Option<String> {
    let categories = distinct(rows.iter().map(|row| label(row)));
    let mut series = Vec::new();
    for operation in operations {
        let points: Vec<(f64, f64)> = (0_u32..)
            .zip(&categories)
            .filter_map(|(number, category)| {
                let row = rows.iter().find(|row| is(row, *operation) && label(row) == *category)?;
                Some((f64::from(number), value(row)?))
            })
            .collect();
        if !points.is_empty() {
            series.push(Series { name: operation.name().to_owned(), points });
        }
    }
    let measured = |number: u32| series.iter().any(|series| series.points.iter().any(|(x, _)| *x == f64::from(number)));
    let any = (0_u32..).zip(&categories).any(|(number, _)| measured(number));
    any.then(|| svg::dots(title, unit, &categories, &series, logarithmic, guides))
}

/// Lines over k, one plot for each scheme and operation.
fn by_threshold(rows: &[&Row], operations: &[Operation], charts: &mut Vec<Chart>) {
    for scheme in distinct(rows.iter().map(|row| row.scheme)) {
        for operation in operations {
            let chosen: Vec<&Row> =
                rows.iter().copied().filter(|row| row.scheme == scheme && is(row, *operation)).collect();
            let series = over(&chosen, |row| row.k, |row| Some(row.timing.median_us));
            if series.iter().any(|series| series.points.len() > 1) {
                let title = format!("{scheme}: {operation}");
                let svg = svg::lines(&title, "k, parties that take part", "median, microseconds", &series);
                charts.push(Chart { file: slug(&title), svg });
            }
        }
    }
}

/// Encryption and decryption over the size of the payload.
fn by_payload(rows: &[&Row], charts: &mut Vec<Chart>) {
    let size = rows.first().map(|row| (row.k, row.n));
    for operation in [Operation::Encrypt, Operation::Decrypt] {
        let chosen: Vec<&Row> =
            rows.iter().copied().filter(|row| Some((row.k, row.n)) == size && is(row, operation)).collect();
        let bytes = |row: &Row| usize::try_from(row.message_bytes.unwrap_or(0)).unwrap_or(usize::MAX);
        let series = over(&chosen, bytes, |row| Some(row.timing.median_us));
        if series.iter().any(|series| series.points.len() > 1) {
            let title = format!("Payloads: {operation}");
            let svg = svg::lines(&title, "plaintext, bytes", "median, microseconds", &series);
            charts.push(Chart { file: slug(&title), svg });
        }
    }
}

/// A dealer's time and memory over n.
fn dealing(rows: &[&Row], charts: &mut Vec<Chart>) {
    let chosen: Vec<&Row> = rows.iter().copied().filter(|row| is(row, Operation::KeyGeneration)).collect();
    let time: Value = |row| Some(row.timing.median_us);
    let heap: Value = |row| row.timing.heap_bytes.filter(|bytes| *bytes > 0).map(exact);
    for (title, unit, value) in [
        ("Key generation by a dealer: time", "median, microseconds", time),
        ("Key generation by a dealer: most heap at a time", "bytes", heap),
    ] {
        let series = over(&chosen, |row| row.n, value);
        if series.iter().any(|series| series.points.len() > 1) {
            charts.push(Chart { file: slug(title), svg: svg::lines(title, "n, parties", unit, &series) });
        }
    }
}

/// One series for each suite; of several measurements at one place the first counts.
fn over(rows: &[&Row], x: impl Fn(&Row) -> usize, y: Value) -> Vec<Series> {
    distinct(rows.iter().map(|row| label(row)))
        .into_iter()
        .map(|name| {
            let mut points: Vec<(f64, f64)> = Vec::new();
            for row in rows.iter().filter(|row| label(row) == name) {
                let x = exact(x(row));
                if let Some(y) = y(row).filter(|_| points.iter().all(|(known, _)| *known != x)) {
                    points.push((x, y));
                }
            }
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Series { name, points }
        })
        .filter(|series| !series.points.is_empty())
        .collect()
}

/// Makes a file name of a title.
fn slug(title: &str) -> String {
    let words = title.to_ascii_lowercase();
    let words = words.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_plain_names() {
        assert_eq!(slug("SG02: verify k shares"), "sg02-verify-k-shares");
    }
}
