//! Text that others wrote, such as labels, names of interfaces and messages of servers, on its way to a terminal or a log.

/// Whether a character moves the cursor, changes the direction of writing, or cannot be seen (Unicode, Cc, parts of Cf, fillers of
/// Hangul, and tags).
pub(crate) fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Replaces harmful characters by question marks.
pub(crate) fn sanitized(text: &str) -> String {
    text.replace(is_harmful, "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_the_cursor_or_turns_letters_round_is_replaced() {
        assert_eq!(sanitized("a\u{1b}[2J\n\u{202e}b\u{61c}\u{feff}\u{2028}"), "a?[2J??b???");
        assert_eq!(sanitized("a\u{ad}\u{180e}\u{fff9}\u{e0041}\u{115f}\u{3164}b"), "a??????b");
        assert_eq!(sanitized("東京 Zürich"), "東京 Zürich");
    }
}
