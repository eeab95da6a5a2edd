//! Base64 between lines, as in RFC 7468, but read strictly: full lines of 64 characters, canonical Base64, LF or CRLF.

use base64ct::{Base64, Encoding};
use zeroize::Zeroize;

const WIDTH: usize = 64;

/// Why a text is not the expected block, or blocks, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArmorError {
    /// The line that begins the block is missing.
    #[error("it has no line -----BEGIN {0}-----")]
    NoBegin(&'static str),
    /// The line that ends the block is missing or another.
    #[error("its line -----BEGIN {0}----- has no matching -----END {0}-----")]
    NoEnd(&'static str),
    /// The body is not Base64 in lines of 64 characters.
    #[error("what stands between its lines is not Base64 in lines of 64 characters")]
    Base64,
    /// There is more than one block, or other text.
    #[error("it holds more than one -----BEGIN {0}-----, or other text")]
    NotAlone(&'static str),
}

/// Wraps bytes as `-----BEGIN label-----`, Base64 in lines of 64, `-----END label-----`.
pub(crate) fn armor(label: &'static str, bytes: &[u8]) -> String {
    let mut digits = Base64::encode_string(bytes);
    let mut text = format!("-----BEGIN {label}-----\n");
    // One allocation for all: a string that grows would leave copies of a secret behind.
    text.reserve_exact(digits.len() + digits.len() / WIDTH + 2 * label.len() + 40);
    let mut rest = digits.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(WIDTH).unwrap_or((rest, ""));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text.push_str("-----END ");
    text.push_str(label);
    text.push_str("-----\n");
    digits.zeroize();
    text
}

/// The bytes of a text that holds this block and nothing else but white space.
pub(crate) fn dearmor(label: &'static str, text: &str) -> Result<Vec<u8>, ArmorError> {
    let (mut bytes, rest) = next(label, text.trim_start())?;
    if rest.trim().is_empty() {
        Ok(bytes)
    } else {
        bytes.zeroize();
        Err(ArmorError::NotAlone(label))
    }
}

/// The bytes of all such blocks of a text that holds nothing else but white space.
pub(crate) fn dearmor_all(label: &'static str, text: &str) -> Result<Vec<Vec<u8>>, ArmorError> {
    let mut blocks = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (bytes, after) = next(label, rest)?;
        blocks.push(bytes);
        rest = after.trim_start();
    }
    Ok(blocks)
}

fn next<'a>(label: &'static str, text: &'a str) -> Result<(Vec<u8>, &'a str), ArmorError> {
    let begin = format!("-----BEGIN {label}-----");
    let end = format!("-----END {label}-----");
    let body = text.strip_prefix(&begin).ok_or(ArmorError::NoBegin(label))?;
    let (body, rest) = body.split_once(&end).ok_or(ArmorError::NoEnd(label))?;
    let body = body.strip_prefix("\r\n").or_else(|| body.strip_prefix('\n')).ok_or(ArmorError::Base64)?;
    let mut digits = String::with_capacity(body.len());
    let mut lines = body.lines().peekable();
    while let Some(line) = lines.next() {
        let full = line.len() == WIDTH || (lines.peek().is_none() && (1..=WIDTH).contains(&line.len()));
        if !full {
            digits.zeroize();
            return Err(ArmorError::Base64);
        }
        digits.push_str(line);
    }
    let bytes = Base64::decode_vec(&digits).map_err(|_| ArmorError::Base64);
    digits.zeroize();
    Ok((bytes?, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LABEL: &str = "THETA TEST";

    #[test]
    fn only_the_strict_form_is_read() {
        let good = armor(LABEL, &[7; 60]);
        assert_eq!(dearmor(LABEL, &good), Ok(vec![7; 60]));
        assert_eq!(dearmor(LABEL, &good.replace('\n', "\r\n")), Ok(vec![7; 60]));
        let two = format!("{good}\n{good}");
        assert_eq!(dearmor(LABEL, &two), Err(ArmorError::NotAlone(LABEL)));
        assert_eq!(dearmor_all(LABEL, &two), Ok(vec![vec![7; 60]; 2]));
        assert_eq!(dearmor_all(LABEL, " \n"), Ok(Vec::new()));
        assert_eq!(dearmor_all(LABEL, &format!("{good}junk")), Err(ArmorError::NoBegin(LABEL)));
        assert_eq!(dearmor("OTHER", &good), Err(ArmorError::NoBegin("OTHER")));
        assert_eq!(dearmor(LABEL, good.split("-----END").next().unwrap()), Err(ArmorError::NoEnd(LABEL)));
        for bad in [good.replace("Bw", "B w"), good.replacen("Bw", "B\nw", 1), good.replace("----\nB", "----B")] {
            assert_eq!(dearmor(LABEL, &bad), Err(ArmorError::Base64), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn bytes_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(dearmor(LABEL, &armor(LABEL, &bytes)), Ok(bytes));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,100}", inner in "[A-Za-z0-9+/=\n]{0,200}") {
            let _ = dearmor(LABEL, &text);
            let _ = dearmor(LABEL, &format!("-----BEGIN THETA TEST-----\n{inner}\n-----END THETA TEST-----"));
        }
    }
}
