//! Until when a certificate is valid, read from its bytes (RFC 5280, section 4.1).

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const EXPLICIT_VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The end of a certificate's validity, in seconds since 1970; `None` if the bytes are no certificate or end before 1970.
pub(crate) fn ends(certificate: &[u8]) -> Option<u64> {
    let (outer, _) = value(certificate, SEQUENCE)?;
    let (mut tbs, _) = value(outer, SEQUENCE)?;
    if tbs.first() == Some(&EXPLICIT_VERSION) {
        tbs = value(tbs, EXPLICIT_VERSION)?.1;
    }
    // Serial number, signature algorithm, issuer.
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        tbs = value(tbs, tag)?.1;
    }
    let (validity, _) = value(tbs, SEQUENCE)?;
    let (_, rest) = time(validity)?;
    let (end, _) = time(rest)?;
    Some(end)
}

/// The contents of the value with this tag at the beginning, and what comes after it.
fn value(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    let (&short, rest) = rest.split_first()?;
    if found != tag {
        return None;
    }
    let (len, rest) = match short {
        0..=0x7f => (usize::from(short), rest),
        0x81 => rest.split_first().map(|(len, rest)| (usize::from(*len), rest))?,
        0x82 => rest.split_first_chunk().map(|(len, rest)| (usize::from(u16::from_be_bytes(*len)), rest))?,
        _ => return None,
    };
    rest.split_at_checked(len)
}

/// The time at the beginning in seconds since 1970, and what comes after it.
fn time(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let tag = *bytes.first()?;
    let (text, rest) = value(bytes, tag)?;
    let digits = text.strip_suffix(b"Z")?;
    let (year, others) = match tag {
        UTC_TIME => {
            let (year, others) = digits.split_at_checked(2)?;
            // Two digits stand for 1950 to 2049.
            let year = number(year)?;
            (if year < 50 { year + 2_000 } else { year + 1_900 }, others)
        }
        GENERALIZED_TIME => {
            let (year, others) = digits.split_at_checked(4)?;
            (number(year)?, others)
        }
        _ => return None,
    };
    let mut parts = others.chunks(2).map(number);
    let mut part = |least: u64, most: u64| parts.next()?.filter(|part| (least..=most).contains(part));
    let (month, day, hour, minute, second) = (part(1, 12)?, part(1, 31)?, part(0, 23)?, part(0, 59)?, part(0, 60)?);
    if others.len() != 10 {
        return None;
    }
    let days = days_since_1970(year, month, day)?;
    Some((days * 86_400 + hour * 3_600 + minute * 60 + second, rest))
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0')))
}

/// In the Gregorian calendar; the year has at most four digits.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    // A year begins in March here, so that the day that comes and goes is its last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    // So many from March of the year 0 to 1970.
    days.checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_over_leap_years() {
        assert_eq!(days_since_1970(1970, 1, 1), Some(0));
        assert_eq!(days_since_1970(1969, 12, 31), None);
        assert_eq!(days_since_1970(2000, 2, 29), Some(11_016));
        assert_eq!(days_since_1970(2026, 11, 22), Some(20_779));
        assert_eq!(days_since_1970(2120, 1, 1), Some(54_786));
    }

    #[test]
    fn both_forms_of_times_are_read_and_nothing_else() {
        let end = |tag, text: &[u8]| {
            let bytes = [&[tag, u8::try_from(text.len()).unwrap()], text].concat();
            time(&bytes).map(|(time, _)| time)
        };
        assert_eq!(end(UTC_TIME, b"700101000001Z"), Some(1));
        assert_eq!(end(GENERALIZED_TIME, b"19700102000000Z"), Some(86_400));
        for wrong in
            [&b"7001010000Z"[..], b"701301000000Z", b"700101000000", b"7x0101000000Z", b"70010100000000Z", b"Z"]
        {
            assert_eq!(end(UTC_TIME, wrong), None, "{wrong:?}");
        }
        assert_eq!(end(INTEGER, b"700101000001Z"), None);
    }

    #[test]
    fn a_certificate_says_when_it_ends() {
        let made = crate::Identity::generate("node 1").unwrap();
        let identity = crate::Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap();
        assert_eq!(identity.ends(), Some(54_786 * 86_400));
        let der = identity.certified_key().end_entity_cert().unwrap().to_vec();
        // However short it is cut, nothing is read past the end.
        assert!((0..100).all(|len| ends(&der[..len]).is_none()));
    }
}
