//! Texts that are joined by a separator, so that no two lists of texts give the same.

/// Comes before a separator, or another one of it, that is part of a text.
const ESCAPE: char = '\\';

/// Adds a text, which is not empty, to the end of others.
pub(super) fn add(joined: &mut String, text: &str, separator: char) {
    if !joined.is_empty() {
        joined.push(separator);
    }
    for character in text.chars() {
        if [separator, ESCAPE].contains(&character) {
            joined.push(ESCAPE);
        }
        joined.push(character);
    }
}

/// A text as it is among others.
pub(super) fn escaped(text: &str, separator: char) -> String {
    let mut alone = String::with_capacity(text.len());
    add(&mut alone, text, separator);
    alone
}

/// The texts that were joined.
pub(super) fn split(joined: &str, separator: char) -> Vec<String> {
    let (mut texts, mut text) = (Vec::new(), String::new());
    let mut characters = joined.chars();
    while let Some(character) = characters.next() {
        match character {
            ESCAPE => text.extend(characters.next()),
            it if it == separator => texts.push(std::mem::take(&mut text)),
            it => text.push(it),
        }
    }
    texts.push(text);
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_lists_of_texts_give_the_same() {
        let mut all = std::collections::HashSet::new();
        for texts in [
            &["a+b", "z"][..],
            &["a", "b+z"],
            &["a", "b", "z"],
            &["a\\", "b", "z"],
            &["a\\+b", "z"],
            &["a\\b", "z"],
        ] {
            let mut joined = String::new();
            for text in texts {
                add(&mut joined, text, '+');
            }
            assert_eq!(split(&joined, '+'), texts, "{joined}");
            assert!(all.insert(joined));
        }
        assert!(all.contains("a\\+b+z") && all.contains("a+b\\+z"), "{all:?}");
        assert_eq!(escaped("a/b", '+'), "a/b");
    }
}
