//! The caller's deadline, minus a margin for the answer that reports it.

use std::time::Duration;

use tonic::metadata::MetadataMap;

/// The largest margin. The caller's clock began before this node's, and the answer has to travel: over networks around the world that takes 0.3 s
/// together, on a busy machine as long. An answer that comes later tells the caller nothing of the reason.
const MARGIN: Duration = Duration::from_millis(500);

/// How long the caller waits according to the `grpc-timeout` header, minus the margin; `None`: without limit. As in the
/// transport, a header that does not follow the specification counts as absent.
pub(crate) fn patience(metadata: &MetadataMap) -> Option<Duration> {
    let given = parse(metadata.get("grpc-timeout")?.to_str().ok()?)?;
    Some(given - (given / 10).min(MARGIN))
}

/// At most eight digits and a unit, by the gRPC-over-HTTP/2 specification.
fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(value * 3600)),
        "M" => Some(Duration::from_secs(value * 60)),
        "S" => Some(Duration::from_secs(value)),
        "m" => Some(Duration::from_millis(value)),
        "u" => Some(Duration::from_micros(value)),
        "n" => Some(Duration::from_nanos(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specifications_units() {
        for (text, expected) in [
            ("2H", Some(Duration::from_secs(7200))),
            ("1M", Some(Duration::from_secs(60))),
            ("99999999S", Some(Duration::from_secs(99_999_999))),
            ("250m", Some(Duration::from_millis(250))),
            ("7u", Some(Duration::from_micros(7))),
            ("5n", Some(Duration::from_nanos(5))),
            ("", None),
            ("S", None),
            ("100000000S", None),
            ("1s", None),
            ("-1S", None),
            ("1é", None),
        ] {
            assert_eq!(parse(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_answer_is_early() {
        let mut metadata = MetadataMap::new();
        assert_eq!(patience(&metadata), None);
        metadata.insert("grpc-timeout", "200m".parse().unwrap());
        assert_eq!(patience(&metadata), Some(Duration::from_millis(180)));
        metadata.insert("grpc-timeout", "60S".parse().unwrap());
        assert_eq!(patience(&metadata), Some(Duration::from_millis(59_500)));
    }
}
