//! Parentheses of zone files, which make one entry of several lines (RFC 1035, section 5.1). The parser of zone files takes a text that ends within one
//! for a text that ends, or finds fault with what stands long after it.

/// The line, from 1, of the parenthesis that is open where the text ends. Of several within each other it is the outermost one.
pub(super) fn unclosed(text: &[u8]) -> Option<usize> {
    let (mut line, mut opened, mut depth) = (1_usize, 1, 0_usize);
    let (mut is_quoted, mut is_comment) = (false, false);
    let mut bytes = text.iter();
    while let Some(mut byte) = bytes.next() {
        // What stands behind a backslash means itself. Where these are three digits, the other two mean nothing else either.
        let is_escaped = *byte == b'\\' && !is_comment;
        if is_escaped {
            byte = bytes.next().unwrap_or(byte);
        }
        match byte {
            b'\n' => {
                line = line.saturating_add(1);
                is_comment = false;
            }
            _ if is_escaped || is_comment => {}
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b';' => is_comment = true,
            b'(' => {
                if depth == 0 {
                    opened = line;
                }
                depth = depth.saturating_add(1);
            }
            // The parser finds one that nothing has opened.
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    (depth > 0).then_some(opened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parenthesis_is_one_outside_of_quotes_comments_and_escapes() {
        for (text, line) in [
            ("", None),
            ("@ SOA ns admin (\n 1 2 3\n 4 5 ) ; serial (\n", None),
            ("a TXT \"(\" \\( \\040 \"\\\"(\" ( \"b\" )\n", None),
            ("a TXT \"b\nc (\nd\"\n", None),
            ("; \\\n; \"\na A 1.2.3.4\n", None),
            (")\n", None),
            ("(\n", Some(1)),
            ("a A 1.2.3.4\n\n(", Some(3)),
            ("a TXT b (\nc TXT ( d\n e )\n", Some(1)),
            ("a TXT ( b )\nc TXT (( d\n )\n", Some(2)),
            ("a TXT \"b\\\"\" (\n", Some(1)),
            ("; \\\na TXT \\\" (\n", Some(2)),
            ("a TXT \"b\nc\" (\n", Some(2)),
            ("a TXT ( ; )\n", Some(1)),
        ] {
            assert_eq!(unclosed(text.as_bytes()), line, "{text:?}");
        }
    }
}
