//! Names as users write them: patterns, and suggestions for names that do not exist.

use glob::{Pattern, PatternError};

#[cfg(feature = "live")]
use crate::foreign_text::sanitized;

/// The similarity (0 to 1) from which an existing name may be the one that was meant.
const SIMILAR: f64 = 0.6;

/// Stands between the names of joined interfaces.
pub(crate) const JOINT: char = '+';

/// The longest list of names in a message.
#[cfg(feature = "live")]
pub(crate) const MOST_NAMED: usize = 10;

/// Lists the first names, and how many more there are, for a terminal: `a, b and 3 more`.
#[cfg(feature = "live")]
pub(crate) fn listed(names: &[&str]) -> String {
    let first: Vec<String> = names.iter().take(MOST_NAMED).map(|name| sanitized(name)).collect();
    let first = first.join(", ");
    match names.len().saturating_sub(MOST_NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Formats a number of things, in words.
#[cfg(feature = "live")]
pub(crate) fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Parses a pattern of names of interfaces; `None` for a plain name.
pub(crate) fn pattern(text: &str) -> Option<Result<Pattern, PatternError>> {
    text.contains(['*', '?', '[']).then(|| Pattern::new(text))
}

/// Returns the names that may be meant by `word`, and the others; each the most similar first.
pub(crate) fn similar<'a>(
    word: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> (Vec<&'a str>, Vec<&'a str>) {
    let likeness = |name| (strsim::normalized_damerau_levenshtein(word, name), name);
    let mut names: Vec<(f64, &str)> = names.into_iter().map(likeness).collect();
    names.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let first_other = names.partition_point(|(likeness, _)| *likeness >= SIMILAR);
    let names: Vec<&str> = names.into_iter().map(|(_, name)| name).collect();
    let (similar, others) = names.split_at(first_other);
    (similar.to_vec(), others.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "live")]
    #[test]
    fn long_lists_of_names_end_with_how_many_more_there_are() {
        assert_eq!(listed(&["a\u{1b}[2J", "b"]), "a?[2J, b");
        assert_eq!(listed(&["x"; 12]), format!("{} and 2 more", ["x"; 10].join(", ")));
    }

    #[test]
    fn similar_names_come_first() {
        let (similar, others) = similar("eht0", ["lo", "eth1", "eth0", "wlan0"]);
        assert_eq!((similar, others), (vec!["eth0"], vec!["eth1", "wlan0", "lo"]));
    }
}
