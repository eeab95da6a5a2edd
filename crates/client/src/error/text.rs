//! Texts of nodes, for people.

/// The longest text of a node that is shown, in characters.
const MOST: usize = 1000;

/// Makes a node's text safe to show: one line, of 1,000 characters at most. A node may write what it likes, such as sequences that clear the
/// terminal, or marks of direction by which other words are read than are there: there is a space in place of each.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.chars().take(MOST).map(|character| if is_shown(character) { character } else { ' ' }).collect()
}

/// Whether a character of a node's text shows itself, and does nothing to the others.
#[must_use]
pub const fn is_shown(character: char) -> bool {
    !matches!(character,
        // Controls of terminals, C0 and C1.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // The soft hyphen, marks of direction, embeddings, overrides and isolates.
        | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        // Separators of lines and paragraphs; what else formats, and is seen by nobody.
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_what_is_there() {
        assert_eq!(one_line("key \u{1b}[2Jgone\r\n\u{9b}31m"), "key  [2Jgone   31m");
        assert_eq!(one_line("pay \u{202e}eciv\u{202c} \u{2066}x\u{2069}\u{200b}"), "pay  eciv   x  ");
        assert_eq!(one_line("Schl\u{fc}ssel \u{5de0}"), "Schl\u{fc}ssel \u{5de0}");
        assert_eq!(one_line(&"\u{5de0}".repeat(5_000)).chars().count(), MOST);
    }
}
