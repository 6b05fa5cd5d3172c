//! Formats numbers and foreign texts for the screen.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Formats a time in ns, in few characters.
pub(super) fn time(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{:.0} us", ns as f64 / 1e3),
        1_000_000..10_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        10_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

/// Formats a number, in few characters.
pub(super) fn amount(number: f64) -> String {
    let (number, unit) = match number {
        ..999.5 => return format!("{number:.0}"),
        ..999.5e3 => (number / 1e3, "k"),
        ..999.5e6 => (number / 1e6, "M"),
        _ => (number / 1e9, "G"),
    };
    if number < 99.95 { format!("{number:.1}{unit}") } else { format!("{number:.0}{unit}") }
}

/// Formats a share, in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Formats an amount of memory.
pub(super) fn bytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Returns the columns that the longest of these sides takes.
pub(super) fn side_width(sides: impl Iterator<Item = &'static str>) -> usize {
    sides.map(str::len).fold("beyond".len(), usize::max)
}

/// Returns the side that a series measures: of the network, if sides are told apart, or else of the interface.
pub(super) fn side(matched: Option<&str>, side: Option<&str>) -> &'static str {
    match (side, matched) {
        (Some("inside"), _) => "inside",
        (Some("outside"), _) => "outside",
        (_, Some("ingress")) => "beyond",
        (_, Some("egress")) => "behind",
        _ => "both",
    }
}

/// Formats a number of things, in words.
pub(super) fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Returns the columns of a terminal that a text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Cuts a text to this width, or fills it up with spaces after it.
pub(super) fn padded(text: &str, width: usize) -> String {
    let (beginning, used) = beginning(text, width);
    format!("{beginning}{}", " ".repeat(width - used))
}

/// Cuts a text to this width, or fills it up with spaces before it.
pub(super) fn right(text: &str, width: usize) -> String {
    let (beginning, used) = beginning(text, width);
    format!("{}{beginning}", " ".repeat(width - used))
}

/// Returns the beginning of a text that fits into a width, and the width that it takes.
fn beginning(text: &str, width: usize) -> (String, usize) {
    let (mut used, mut beginning) = (0, String::new());
    for character in text.chars() {
        let wide = character.width().unwrap_or(0);
        if used + wide > width {
            break;
        }
        used += wide;
        beginning.push(character);
    }
    (beginning, used)
}

/// Breaks a text between words into lines of this width. A wider word is a line of its own.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.width() + 1 + word.width() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_or_so() {
        for (ns, text) in [
            (0, "0 us"),
            (51_300, "51 us"),
            (1_234_567, "1.23 ms"),
            (20_250_000, "20.2 ms"),
            (999_900_000, "999.9 ms"),
            (64_000_000_000, "64.00 s"),
        ] {
            assert_eq!(time(ns), text);
        }
    }

    #[test]
    fn numbers_have_five_characters_at_most() {
        for (number, text) in [
            (0.0, "0"),
            (999.4, "999"),
            (999.6, "1.0k"),
            (99_949.0, "99.9k"),
            (99_951.0, "100k"),
            (999_999.0, "1.0M"),
            (9_876_543.0, "9.9M"),
            (400e9, "400G"),
        ] {
            assert_eq!(amount(number), text);
        }
    }

    #[test]
    fn texts_of_others_cannot_move_the_cursor_or_turn_letters() {}

    #[test]
    fn padded_texts_are_as_wide_as_asked_for() {
        assert_eq!(padded("東京都", 5), "東京 ");
        assert_eq!(padded("ab", 4), "ab  ");
        assert_eq!(padded("abcdef", 3), "abc");
        assert_eq!(right("ab", 4), "  ab");
        assert_eq!(right("東京都", 5), " 東京");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("unbreakable it is", 4), ["unbreakable", "it", "is"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
