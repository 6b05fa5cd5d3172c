//! Names of interfaces as text. The kernel allows nearly all bytes in them.

use std::fmt::Write as _;

/// Returns a name as text: what is not UTF-8, control characters and backslashes are escaped, as in `eth\xff0`. Two
/// names never have the same text.
pub(super) fn escape(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                control if control.is_control() => {
                    let mut bytes = [0; 4];
                    control.encode_utf8(&mut bytes).bytes().for_each(|byte| escape_byte(&mut text, byte));
                }
                other => text.push(other),
            }
        }
        chunk.invalid().iter().for_each(|&byte| escape_byte(&mut text, byte));
    }
    text
}

fn escape_byte(text: &mut String, byte: u8) {
    // Writing to a string does not fail.
    write!(text, "\\x{byte:02x}").ok();
}

/// Returns the name that [`escape`] made a text of. An escape that it does not make is taken as it is.
pub(super) fn unescape(text: &str) -> Vec<u8> {
    let mut name = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let hexadecimal = rest.strip_prefix("\\x").and_then(|after| after.get(..2));
        let byte = hexadecimal
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let len = match byte {
            Some(byte) => {
                name.push(byte);
                4
            }
            None if rest.starts_with("\\\\") => {
                name.push(b'\\');
                2
            }
            None => {
                let len = character.len_utf8();
                name.extend(rest.bytes().take(len));
                len
            }
        };
        rest = rest.get(len..).unwrap_or_default();
    }
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_is_no_text_is_escaped() {
        for (name, text) in [
            (&b"eth0"[..], "eth0"),
            ("中文".as_bytes(), "中文"),
            (b"eth\xff0", "eth\\xff0"),
            (b"w\xc3", "w\\xc3"),
            (b"\x1b[2J", "\\x1b[2J"),
            (b"a\\xff", "a\\\\xff"),
            ("\u{9b}x".as_bytes(), "\\xc2\\x9bx"),
        ] {
            assert_eq!(escape(name), text);
            assert_eq!(unescape(text), name);
        }
        assert_eq!(unescape("a\\xg0\\x\\"), b"a\\xg0\\x\\");
    }

    proptest! {
        #[test]
        fn every_name_is_found_again(name in prop::collection::vec(1_u8.., 0..16)) {
            prop_assert_eq!(unescape(&escape(&name)), name);
        }
    }
}
