//! Quoting for the commands that a report proposes.

/// Quotes a name for a shell, if it needs that.
pub(super) fn quoted(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.@+,".contains(letter);
    if name.chars().all(is_plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_shell_would_change_are_quoted() {
        assert_eq!(quoted("eth0.100@br-x"), "eth0.100@br-x");
        assert_eq!(quoted("a$b"), "'a$b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
