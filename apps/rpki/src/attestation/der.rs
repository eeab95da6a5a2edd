//! As much of DER as the contents of ROAs and ASPAs, and the parts of objects that the library leaves as it found them, take. What is read is
//! written again and compared, so reading is lenient and writing decides what there is.

/// INTEGER.
pub(crate) const INTEGER: u8 = 0x02;
/// BIT STRING.
pub(crate) const BIT_STRING: u8 = 0x03;
/// OCTET STRING.
pub(crate) const OCTET_STRING: u8 = 0x04;
/// OBJECT IDENTIFIER.
pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
/// SEQUENCE.
pub(crate) const SEQUENCE: u8 = 0x30;
/// SET, and SET OF.
pub(crate) const SET: u8 = 0x31;
/// The tag [0], of a primitive value.
pub(crate) const PRIMITIVE_0: u8 = 0x80;
/// The tag [0], of a constructed value.
pub(crate) const CONTEXT_0: u8 = 0xa0;

/// Takes a value with this tag from the beginning. `None`: there is none.
pub(crate) fn take<'a>(bytes: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (found, rest) = bytes.split_first()?;
    if *found != tag {
        return None;
    }
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let count = usize::from(*first & 0x7f);
        if !(1..=3).contains(&count) {
            return None;
        }
        let (digits, rest) = rest.split_at_checked(count)?;
        (digits.iter().fold(0, |length: usize, digit| (length << 8) | usize::from(*digit)), rest)
    };
    let (value, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(value)
}

/// Takes an INTEGER of 0 to 2^32 - 1.
pub(crate) fn take_number(bytes: &mut &[u8]) -> Option<u32> {
    let digits = take(bytes, INTEGER)?;
    if digits.is_empty() || digits.len() > 5 {
        return None;
    }
    let number = digits.iter().fold(0, |number: u64, digit| (number << 8) | u64::from(*digit));
    u32::try_from(number).ok()
}

/// A value: tag, length, and the parts one after another.
pub(crate) fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let digits = length.to_be_bytes();
    let digits: Vec<u8> = digits.iter().copied().skip_while(|digit| *digit == 0).collect();
    let mut bytes = vec![tag];
    match (digits.as_slice(), u8::try_from(digits.len())) {
        ([], _) => bytes.push(0),
        ([digit], _) if *digit < 0x80 => bytes.push(*digit),
        (_, Ok(count)) => {
            bytes.push(0x80 | count);
            bytes.extend_from_slice(&digits);
        }
        // A length has eight digits at most.
        (_, Err(_)) => {}
    }
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

/// An INTEGER.
pub(crate) fn number(number: u32) -> Vec<u8> {
    let mut digits: Vec<u8> = number.to_be_bytes().iter().copied().skip_while(|digit| *digit == 0).collect();
    // The first bit is the sign.
    if digits.first().is_none_or(|digit| *digit >= 0x80) {
        digits.insert(0, 0);
    }
    value(INTEGER, &[&digits])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lengths_have_their_shortest_form() {
        for (of, bytes) in
            [(0, &[2, 1, 0][..]), (127, &[2, 1, 127]), (128, &[2, 2, 0, 128]), (65_536, &[2, 3, 1, 0, 0])]
        {
            assert_eq!(number(of), bytes);
            assert_eq!(take_number(&mut &*bytes), Some(of));
        }
        assert_eq!(take_number(&mut &number(u32::MAX)[..]), Some(u32::MAX));
        assert_eq!(take_number(&mut &[2, 5, 1, 0, 0, 0, 0][..]), None, "2^32");
        for (length, head) in [(127, &[4, 127][..]), (128, &[4, 0x81, 128]), (300, &[4, 0x82, 1, 44])] {
            let content = vec![7; length];
            let bytes = value(OCTET_STRING, &[&content]);
            assert_eq!(&bytes[..head.len()], head);
            let mut rest = &bytes[..];
            assert_eq!((take(&mut rest, OCTET_STRING), rest.len()), (Some(&content[..]), 0));
            assert_eq!(take(&mut &bytes[..bytes.len() - 1], OCTET_STRING), None, "cut off");
        }
    }
}
