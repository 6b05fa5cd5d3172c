//! Bytes that others chose, as text.

use std::fmt::Write as _;

/// Bytes in hexadecimal, with colons between them, as addresses of interfaces are written.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(3 * bytes.len());
    for (index, byte) in bytes.iter().enumerate() {
        let colon = if index == 0 { "" } else { ":" };
        // Writing to a string does not fail.
        write!(text, "{colon}{byte:02x}").ok();
    }
    text
}

/// The text that bytes are, or else the bytes in hexadecimal. `None` if there is none.
pub(super) fn readable(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok().map(|text| text.trim_matches(['\0', ' ']));
    match text.filter(|text| !text.contains(char::is_control)) {
        Some("") => None,
        Some(text) => Some(text.to_owned()),
        None => Some(hex(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_text_without_control_characters() {
        assert_eq!(readable(b"alice@example.net").as_deref(), Some("alice@example.net"));
        assert_eq!(readable("Müller\0".as_bytes()).as_deref(), Some("Müller"));
        assert_eq!(readable(b"\x01\xff").as_deref(), Some("01:ff"));
        assert_eq!(readable(b"a\nb").as_deref(), Some("61:0a:62"));
        assert_eq!(readable(b"  "), None);
        assert_eq!(readable(b""), None);
    }
}
