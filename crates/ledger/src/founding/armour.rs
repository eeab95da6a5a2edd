//! Binary as text that survives mail: base64 between two lines, as in RFC 7468.

use base64ct::{Base64, Encoding as _};

use super::FoundingError;

const LINE: usize = 64;

/// The text of these bytes.
pub(crate) fn write(label: &str, bytes: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    for (at, digit) in Base64::encode_string(bytes).char_indices() {
        if at > 0 && at % LINE == 0 {
            text.push('\n');
        }
        text.push(digit);
    }
    text.push_str(&format!("\n-----END {label}-----\n"));
    text
}

/// All blocks of that label, each of so many bytes at most. Spaces, line ends and marks of quotation in mails do not matter.
pub(crate) fn read(label: &str, text: &str, most: usize) -> Result<Vec<Vec<u8>>, FoundingError> {
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let mut blocks = Vec::new();
    // The digits of the block that has begun and not ended.
    let mut open: Option<String> = None;
    for line in text.lines() {
        let line = line.trim_matches(|character: char| character.is_whitespace() || character == '>');
        if line == begin {
            if open.replace(String::new()).is_some() {
                return Err(FoundingError::Text("one begins before the one before it has ended: a line is missing"));
            }
        } else if line == end {
            let digits = open.take().ok_or(FoundingError::Text("its first line is missing"))?;
            let bytes = Base64::decode_vec(&digits);
            blocks
                .push(bytes.map_err(|_| FoundingError::Text("it is damaged: what is between its lines is no base64"))?);
        } else if let Some(digits) = &mut open {
            digits.extend(line.chars().filter(|character| !character.is_whitespace()));
            if digits.len() > most.saturating_mul(2) {
                return Err(FoundingError::TooLong(most));
            }
        }
    }
    match open {
        Some(_) => Err(FoundingError::Text("its last line is missing: it was cut")),
        None => Ok(blocks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_does_not_matter() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = write("X", &bytes);
        assert!(text.lines().all(|line| line.len() <= LINE), "{text}");
        assert_eq!(read("X", &text, 256), Ok(vec![bytes.clone()]));
        let quoted: String = text.lines().map(|line| format!("> > {line}  \r\n")).collect();
        assert_eq!(read("X", &format!("Dear all,\n{quoted}\nYours\n{text}"), 256), Ok(vec![bytes.clone(), bytes]));
        assert_eq!(read("Y", &text, 256), Ok(Vec::new()));
    }

    #[test]
    fn what_is_cut_or_damaged_is_refused() {
        let text = write("X", &[7; 100]);
        let (head, tail) = text.split_once('\n').unwrap();
        assert!(read("X", tail, 256).is_err() && read("X", &text[..text.len() - 20], 256).is_err());
        assert!(read("X", &format!("{head}\n{text}"), 256).is_err());
        assert!(read("X", &text.replacen("BwcH", "Bw*H", 1), 256).is_err());
        assert_eq!(read("X", &text, 50), Err(FoundingError::TooLong(50)));
    }
}
