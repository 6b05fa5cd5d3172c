//! The file of `--otlp-headers`.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, TRANSFER_ENCODING, UPGRADE,
    },
};

use super::Error;
use crate::text;

/// The longest file, bytes.
const MAX_BYTES: u64 = 64 << 10;

/// The permissions of users other than the owner and the group.
const OTHERS: u32 = 0o007;

/// Headers that pping sets itself.
const RESERVED: [HeaderName; 8] =
    [CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, TRANSFER_ENCODING, UPGRADE];

/// Reads the headers.
pub(super) fn read(path: &Path) -> Result<HeaderMap, Error> {
    let bytes = open(path)?;
    let mut headers = HeaderMap::new();
    for (number, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let (name, value) = header(line).map_err(|reason| Error::Header {
            path: path.to_owned(),
            line: number + 1,
            reason,
        })?;
        headers.append(name, value);
    }
    Ok(headers)
}

fn open(path: &Path) -> Result<Vec<u8>, Error> {
    let failed = |source| Error::OpenHeaders { path: path.to_owned(), source };
    let file = text::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    if mode & OTHERS != 0 {
        return Err(Error::ExposedHeaders { path: path.to_owned(), mode: mode & 0o777 });
    }
    text::read_bytes(file, MAX_BYTES).map_err(failed)
}

/// Parses the header on a line.
fn header(line: &[u8]) -> Result<(HeaderName, HeaderValue), String> {
    let Some(colon) = line.iter().position(|&byte| byte == b':') else {
        return Err("there is no colon; write a header as `Name: value`".to_owned());
    };
    let (name, value) = (line[..colon].trim_ascii_end(), line[colon + 1..].trim_ascii());
    let name = HeaderName::from_bytes(name)
        .map_err(|_| "the text before the colon is not the name of a header".to_owned())?;
    if RESERVED.contains(&name) {
        return Err(format!("pping sets `{name}` itself; remove this line"));
    }
    if value.is_empty() {
        return Err(format!("`{name}` has no value"));
    }
    let mut value = HeaderValue::from_bytes(value)
        .map_err(|_| format!("the value of `{name}` has characters that are not allowed in a header"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    fn read(text: &[u8], mode: u32) -> Result<HeaderMap, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        fs::set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
        super::read(file.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn lines_are_headers_but_for_comments() {
        let headers =
            read(b"# a comment\r\nAuthorization: Bearer a:b\r\n\n X-Scope : one \nx-scope: two", 0o640);
        let headers = headers.unwrap();
        assert_eq!(headers["authorization"], "Bearer a:b");
        assert_eq!(headers.get_all("X-Scope").iter().collect::<Vec<_>>(), ["one", "two"]);
        assert!(!format!("{headers:?}").contains("Bearer"), "a log could show it");
    }

    #[test]
    fn errors_name_the_line_and_not_what_is_on_it() {
        for (text, line, reason) in [
            (&b"secret"[..], 1, "no colon"),
            (b"a: b\nse cret: 1", 2, "name of a header"),
            (b"\n\n: secret", 3, "name of a header"),
            (b"Authorization:", 1, "no value"),
            (b"x: secret\x01", 1, "characters"),
            (b"Content-Type: secret", 1, "pping sets"),
            (b"host: secret", 1, "pping sets"),
        ] {
            let said = read(text, 0o600).unwrap_err();
            assert!(said.contains(&format!(":{line}: ")) && said.contains(reason), "{said}");
            assert!(!said.contains("secret"), "{said}");
        }
        assert!(read("a".repeat(70_000).as_bytes(), 0o600).unwrap_err().contains("longer"));
    }

    #[test]
    fn a_file_that_everybody_has_access_to_is_refused() {
        for (mode, is_fine) in [(0o600, true), (0o640, true), (0o400, true), (0o644, false), (0o602, false)] {
            let said = read(b"a: b", mode);
            assert_eq!(said.is_ok(), is_fine, "{mode:o}: {said:?}");
            if let Err(said) = said {
                assert!(said.contains(&format!("mode {mode:o}")) && said.contains("chmod o="), "{said}");
            }
        }
    }
}
