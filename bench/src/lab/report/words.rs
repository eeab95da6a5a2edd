//! Numbers and conditions as people read them.

use theta::units;

use super::super::row::{Kind, Row};

/// Digits that mean something: `0.46`, `8.1`, `361`.
pub(super) fn digits(value: f64) -> String {
    let size = value.abs();
    if size >= 100.0 || size == 0.0 {
        thousands(&format!("{value:.0}"))
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

fn thousands(text: &str) -> String {
    match text.len() {
        4.. => {
            let (head, tail) = text.split_at(text.len() - 3);
            format!("{},{tail}", thousands(head))
        }
        _ => text.to_owned(),
    }
}

/// The same, or a dash.
pub(super) fn or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), digits)
}

/// A number of bytes, or a dash.
pub(super) fn bytes(value: Option<f64>) -> String {
    let whole = |value: f64| std::time::Duration::from_secs_f64(value.clamp(0.0, 1e15).round()).as_secs();
    value.map_or_else(|| "-".to_owned(), |value| units::Bytes(whole(value)).to_string())
}

/// A count of bytes, or a dash.
pub(super) fn memory(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| units::Bytes(value).to_string())
}

/// The group and what is between its nodes.
pub(super) fn setting(row: &Row) -> String {
    let delivery = if row.delivery == "quorum" { ", quorum mode" } else { "" };
    format!("any {} of {}, {}{delivery}", row.k, row.n, row.profile)
}

/// The key, and the size where it matters.
pub(super) fn key(row: &Row, with_size: bool) -> String {
    match row.payload_bytes.filter(|_| with_size) {
        Some(bytes) => format!("{} {}", row.suite, units::Bytes(bytes)),
        None => row.suite.clone(),
    }
}

/// One line about a point.
pub(crate) fn one_line(row: &Row) -> String {
    let failed = if row.failed > 0 { format!(", {} failed ({})", row.failed, row.first_error) } else { String::new() };
    let latency = format!("p50 {} ms, p95 {} ms", or_dash(row.p50_ms), or_dash(row.p95_ms));
    match row.kind {
        Kind::Ping => {
            let size = memory(row.payload_bytes);
            format!("{} to {} ({}), {size}: {latency}{failed}", row.transport, row.peer, row.profile)
        }
        Kind::Start => format!("{}: all connected after {} s{failed}", setting(row), or_dash(row.seconds)),
        Kind::Ceremony => format!("{}, {}: a key in {} s{failed}", setting(row), row.suite, or_dash(row.seconds)),
        Kind::Capacity | Kind::Steady | Kind::Payload => {
            let rate = row.rate.map(|rate| format!(" at {}/s", digits(rate))).unwrap_or_default();
            let (throughput, cpu) = (or_dash(row.throughput), or_dash(row.node_cpu_us));
            let fairness = row.fairness.map(|index| format!(", fairness {index:.2}")).unwrap_or_default();
            let setting = setting(row);
            format!(
                "{setting}, {}{rate}: {throughput}/s, {latency}, {cpu} us of CPU a node{fairness}{failed}",
                key(row, true)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_mean_something() {
        for (value, text) in [
            (0.0, "0"),
            (0.456, "0.46"),
            (8.13, "8.13"),
            (43.21, "43.2"),
            (361.4, "361"),
            (12_345.6, "12,346"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(digits(value), text);
        }
        assert_eq!(
            (or_dash(None), bytes(Some(1536.2)), memory(Some(20 << 20))),
            ("-".to_owned(), "1.5 KiB".to_owned(), "20 MiB".to_owned())
        );
    }

    #[test]
    fn failures_are_said() {
        let mut row = Row { n: 7, k: 3, rate: Some(8.0), ..Row::empty(Kind::Capacity) };
        assert!(!one_line(&row).contains("failed"));
        (row.failed, row.first_error) = (3, "too late".to_owned());
        assert!(one_line(&row).ends_with("3 failed (too late)"), "{}", one_line(&row));
    }
}
