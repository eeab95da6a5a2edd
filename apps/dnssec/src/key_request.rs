//! What a key of the keys that is kept offline is asked to sign: a key signing request (KSR), as Knot (`keymgr ZONE generate-ksr`) and BIND
//! (`dnssec-ksr request`) print it. Of its times follow those of the signatures, which are far from now: without them nobody could tell what a
//! digest is of. What may be signed is no different for it.

use std::collections::BTreeSet;

use domain::{base::rdata::ComposeRecordData as _, rdata::dnssec::Timestamp, zonefile::inplace::Entry};

use crate::{
    owner::Owner,
    zone::{owner_of, rtype, zonefile},
};

/// The largest file in bytes.
pub(crate) const MOST_BYTES: u64 = 1 << 20;
/// The most times in it: a change of keys on each day of five years.
const MOST_BUNDLES: usize = 2_000;
/// How a line with a time begins.
const HEADER: &str = "KeySigningRequest";

/// The keys that sign the zone from a time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// From when on, in seconds since 1970.
    pub time: u64,
    /// The time to live of their set, in seconds.
    pub ttl: u32,
    /// The data of their DNSKEY records.
    pub keys: BTreeSet<Vec<u8>>,
}

/// Which keys sign the zone when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRequest(Vec<Bundle>);

impl KeyRequest {
    /// Reads a request for the zone with this name. Times are seconds since 1970 (Knot) or fourteen digits, in UTC (BIND).
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(text: &str, apex: &Owner) -> Result<Self, String> {
        let mut bundles: Vec<(u64, String)> = Vec::new();
        let mut has_ended = false;
        for (line, number) in text.lines().zip(1_usize..).filter(|(line, _)| !line.is_empty()) {
            if has_ended {
                return Err(format!("line {number} comes after the end (`;; {HEADER} 1.0 generated ...`)"));
            }
            match (header(line), bundles.last_mut()) {
                // KeySigningRequest 1.0 TIME (...), and at the end KeySigningRequest 1.0 generated ...
                (Some(Some("generated")), _) => has_ended = true,
                (Some(word), last) => {
                    let time = word.and_then(time).filter(|time| last.is_none_or(|last| last.0 < *time));
                    let time = time.ok_or_else(|| format!("line {number} has no time, or not a later one: {line}"))?;
                    bundles.push((time, String::new()));
                }
                (None, _) if line.contains(HEADER) => {
                    return Err(format!("line {number} is no `;; {HEADER} 1.0 TIME`"));
                }
                (None, Some((_, records))) => records.extend([line, "\n"]),
                (None, None) if line.starts_with(';') => {}
                (None, None) => return Err(format!("line {number} comes before `;; {HEADER} 1.0 TIME`")),
            }
        }
        if bundles.is_empty() || bundles.len() > MOST_BUNDLES {
            return Err(format!(
                "it has {} times (`;; {HEADER} 1.0 TIME`), and not 1 to {MOST_BUNDLES}",
                bundles.len()
            ));
        }
        if !has_ended {
            return Err(format!("it has no end (`;; {HEADER} 1.0 generated ...`): is it being written?"));
        }
        bundles.into_iter().map(|(time, records)| bundle(time, &records, apex)).collect::<Result<_, _>>().map(Self)
    }

    /// Each with the time from which another one is right; the last one with its own.
    pub(crate) fn bundles(&self) -> impl DoubleEndedIterator<Item = (&Bundle, u64)> {
        let next = |place: usize| self.0.get(place.saturating_add(1));
        let all = self.0.iter().enumerate();
        all.map(move |(place, bundle)| (bundle, next(place).unwrap_or(bundle).time))
    }
}

/// The word behind the version of a line with a time; `Some(None)`: there is none, or another version.
fn header(line: &str) -> Option<Option<&str>> {
    let mut words = line.strip_prefix(";; ")?.strip_prefix(HEADER)?.split_whitespace();
    Some((words.next() == Some("1.0")).then(|| words.next()).flatten())
}

fn bundle(time: u64, records: &str, apex: &Owner) -> Result<Bundle, String> {
    let mut bundle = Bundle { time, ttl: 0, keys: BTreeSet::new() };
    let wrong = |error: String| format!("the records from {time} on: {error}");
    let mut file = zonefile(records.as_bytes(), apex).map_err(|error| wrong(error.to_string()))?;
    while let Some(entry) = file.next_entry().map_err(|error| wrong(error.to_string()))? {
        let Entry::Record(record) = entry else { return Err("$INCLUDE is not followed".to_owned()) };
        let owner = owner_of(&record).map_err(|error| error.to_string())?;
        if owner != *apex || record.rtype().to_int() != rtype::DNSKEY {
            return Err(format!("it asks for {owner} {}, and not for keys of {apex}", record.rtype()));
        }
        let mut data = Vec::new();
        let long = |_| "a record is too long".to_owned();
        record.data().compose_canonical_rdata(&mut data).map_err(long)?;
        let ttl = record.ttl().as_secs();
        if !bundle.keys.is_empty() && bundle.ttl != ttl {
            return Err(format!("the keys from {time} on have several times to live"));
        }
        bundle.ttl = ttl;
        bundle.keys.insert(data);
    }
    if bundle.keys.is_empty() { Err(format!("from {time} on there are no keys")) } else { Ok(bundle) }
}

/// Seconds since 1970, or YYYYMMDDhhmmss in UTC; until 2106, since signatures have 32 bits for it.
fn time(word: &str) -> Option<u64> {
    const LAST: &str = "21060207062815";
    if word.len() == LAST.len() && word > LAST {
        return None;
    }
    word.parse::<Timestamp>().ok().map(|time| time.into_int().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zone::Zone;

    const KEY: &str = "AwEAAQ==";

    fn parse(text: &str) -> Result<KeyRequest, String> {
        KeyRequest::parse(text, &Zone::origin("example.").unwrap())
    }

    #[test]
    fn times_are_seconds_or_dates() {
        for (word, seconds) in [
            ("19700101000000", 0),
            ("20000229235959", 951_868_799),
            ("20240301000000", 1_709_251_200),
            ("20261129155709", 1_795_967_829),
            ("20991231235959", 4_102_444_799),
            ("1795967829", 1_795_967_829),
        ] {
            assert_eq!(time(word), Some(seconds), "{word}");
        }
        for word in ["", "-1", "2026112915570x", "20261329155709", "20260029155709", "20261129245709"] {
            assert_eq!(time(word), None, "{word}");
        }
    }

    /// As Knot 3.2 prints one, and BIND 9.20.
    #[test]
    fn requests_of_both_are_read() {
        let knot = format!(
            ";; KeySigningRequest 1.0 1795967829 (2026-11-29T15:57:09+0000) =========\n\
             example.            \t3600\tDNSKEY\t256 3 8 (\n\t{KEY}\n)\n\
             ;; KeySigningRequest 1.0 1798559829 (2026-12-29T15:57:09+0000) =========\n\
             example. 3600 DNSKEY 256 3 8 {KEY}\nexample. 3600 DNSKEY 256 3 8 AwEAAg==\n\
             ;; KeySigningRequest 1.0 generated at 2026-11-29T15:57:09+0000 by Knot DNS 3.2.6\n"
        );
        let bind = format!(
            ";; KeySigningRequest 1.0 20261129155709 (Sun Nov 29 15:57:09 2026)\nexample. 3600 IN DNSKEY 256 3 8 {KEY}\n\
             ;; KeySigningRequest 1.0 20261229155709 (Tue Dec 29 15:57:09 2026)\n\
             example. 3600 IN DNSKEY 256 3 8 {KEY}\nexample. 3600 IN DNSKEY 256 3 8 AwEAAg==\n\
             ;; KeySigningRequest 1.0 generated at Sun Nov 29 15:57:09 2026 by dnssec-ksr\n"
        );
        let one = parse(&knot).unwrap();
        assert_eq!(one, parse(&bind).unwrap());
        let said: Vec<_> = one.bundles().map(|(one, end)| (one.time, end, one.ttl, one.keys.len())).collect();
        assert_eq!(said, [(1_795_967_829, 1_798_559_829, 3_600, 1), (1_798_559_829, 1_798_559_829, 3_600, 2)]);
        assert_eq!(one.0[0].keys.first().unwrap()[..], [1, 0, 3, 8, 3, 1, 0, 1]);
    }

    #[test]
    fn anything_else_is_said() {
        let refused = |text: &str, words: &str| {
            let said = parse(text).unwrap_err();
            assert!(said.contains(words), "{said}");
        };
        let header = |time: &str| format!(";; KeySigningRequest 1.0 {time}\n");
        let (one, end) = ("example. 60 DNSKEY 256 3 8 AwEAAQ==\n", header("generated now"));
        let good = header("20") + one + &header("30") + one + &end;
        parse(&good).unwrap();
        refused("", "it has 0 times");
        refused(one, "line 1 comes before");
        refused(&header("tomorrow"), "line 1 has no time, or not a later one: ;; KeySigningRequest 1.0 tomorrow");
        refused(&(header("20") + one + &header("20") + one), "line 3 has no time, or not a later one");
        refused(&header("21070101000000"), "line 1 has no time");
        refused(&good.replacen("1.0", "2.0", 1), "line 1 has no time");
        refused(&(format!(" {good}")), "line 1 is no");
        refused(&good.replacen(";; ", ";;; ", 1), "line 1 is no");
        refused(&(good.clone() + one), "line 6 comes after the end");
        refused(&(header("20") + &header("30") + one + &end), "from 20 on there are no keys");
        refused(&(header("20") + one + &one.replace("60", "61") + &end), "have several times to live");
        refused(
            &(header("20") + "example. 60 A 192.0.2.1\n" + &end),
            "it asks for example. A, and not for keys of example.",
        );
        refused(&(header("20") + "other. 60 DNSKEY 256 3 8 AwEAAQ==\n" + &end), "it asks for other. DNSKEY");
        refused(&(header("20") + "example. 60 DNSKEY 256\n" + &end), "the records from 20 on");
        let unclosed = "the records from 20 on: line 2 opens a parenthesis that nothing closes";
        refused(&(header("20") + one + "(\n" + &header("30") + one + &end), unclosed);
        refused(&(header("20") + "$INCLUDE /etc/passwd\n" + &end), "$INCLUDE is not followed");
        let many: String = (1..=2_001).map(|time| header(&time.to_string()) + one).collect();
        refused(&many, "it has 2001 times");
        // Whatever is missing at its end, it is no shorter request.
        for length in 0..good.len() - end.len() {
            assert!(parse(&good[..length]).is_err(), "{length}");
        }
    }
}
