//! The secrets that clients share with this server.

use std::{net::IpAddr, os::unix::fs::PermissionsExt as _, path::Path};

use ipnet::IpNet;

use crate::{config::network, groups, sources::error::Error, text};

/// The longest file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The longest secret, in bytes.
const MAX_SECRET: usize = 1 << 10;

/// The permissions of others.
const OTHERS: u32 = 0o007;

/// The secrets, by the addresses of clients.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Secrets {
    /// With the longest prefix first.
    by_prefix: Vec<(IpNet, Vec<u8>)>,
    /// That of all other clients.
    common: Option<Vec<u8>>,
}

impl Secrets {
    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read, others than its user and its group can read it, or it has an error.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        Self::read_file(path).map_err(|reason| Error::Secrets { path: path.to_owned(), reason })
    }

    fn read_file(path: &Path) -> Result<Self, String> {
        let file = text::open(path).map_err(|error| error.to_string())?;
        let mode = file.metadata().map_err(|error| error.to_string())?.permissions().mode();
        if mode & OTHERS != 0 {
            return Err(format!("others can read the secrets; run: chmod o= {}", path.display()));
        }
        let bytes = text::read_bytes(file, MAX_BYTES).map_err(|error| error.to_string())?;
        Self::parse(&bytes)
    }

    /// Parses lines of a secret for all clients, or of a prefix and its secret.
    ///
    /// # Errors
    /// The first error, with its line. It has no secrets, because it gets into logs.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| text::ReadError::NOT_UTF8.to_owned())?;
        let mut secrets = Self { by_prefix: Vec::new(), common: None };
        for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                secrets.add(line).map_err(|reason| format!("line {number}: {reason}"))?;
            }
        }
        if secrets.by_prefix.is_empty() && secrets.common.is_none() {
            return Err("there is no secret; write the one that the NAS has into the file".to_owned());
        }
        secrets.by_prefix.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.prefix_len()));
        Ok(secrets)
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let Some((prefix, secret)) = line.split_once(char::is_whitespace) else {
            if network(line).is_some() {
                return Err("there is a prefix without a secret; write `PREFIX SECRET`".to_owned());
            }
            if self.common.is_some() {
                return Err("there is a secret for all clients already; write `PREFIX SECRET`".to_owned());
            }
            self.common = Some(checked(line)?);
            return Ok(());
        };
        // What is no prefix may be the beginning of a secret with a space.
        if network(prefix).is_none() {
            return Err("write a secret without spaces, or `PREFIX SECRET`".to_owned());
        }
        let prefix = groups::prefix(prefix)?;
        if self.by_prefix.iter().any(|(known, _)| *known == prefix) {
            return Err(format!("{prefix} has a secret already; remove one of the two lines"));
        }
        self.by_prefix.push((prefix, checked(secret.trim_start())?));
        Ok(())
    }

    /// The secret of a client, and the prefix that has it in the file, `None` if it is that of all other clients. `None` if there
    /// is none.
    pub(super) fn of(&self, client: IpAddr) -> Option<(Option<IpNet>, &[u8])> {
        let client = client.to_canonical();
        let own = self.by_prefix.iter().find(|(prefix, _)| prefix.contains(&client));
        let own = own.map(|(prefix, secret)| (Some(*prefix), secret));
        own.or(self.common.as_ref().map(|secret| (None, secret))).map(|(entry, secret)| (entry, &secret[..]))
    }
}

/// The bytes of a secret that a NAS can have.
fn checked(secret: &str) -> Result<Vec<u8>, String> {
    if secret.contains(char::is_whitespace) {
        return Err("the secret has a space; choose one without".to_owned());
    }
    if secret.contains('\0') {
        return Err("the secret has a NUL byte; write it as text".to_owned());
    }
    if secret.len() > MAX_SECRET {
        return Err(format!("the secret is longer than {MAX_SECRET} bytes; is this the right file?"));
    }
    Ok(secret.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _};

    use super::*;

    fn of(secrets: &Secrets, client: &str) -> Option<String> {
        let (_, secret) = secrets.of(client.parse().unwrap())?;
        Some(String::from_utf8(secret.to_vec()).unwrap())
    }

    #[test]
    fn one_secret_is_everybodys() {
        let secrets = Secrets::parse(b"# of the BNGs\n\n  s3cret#x  \n").unwrap();
        assert_eq!(of(&secrets, "192.0.2.1").as_deref(), Some("s3cret#x"));
        assert_eq!(of(&secrets, "2001:db8::1").as_deref(), Some("s3cret#x"));
    }

    #[test]
    fn the_longest_prefix_has_the_secret() {
        let text = b"10.0.0.0/8 wide\n10.1.0.0/16\tnarrow\n10.1.2.3  one\n2001:db8::/32 six\n";
        let secrets = Secrets::parse(text).unwrap();
        assert_eq!(of(&secrets, "10.9.9.9").as_deref(), Some("wide"));
        assert_eq!(of(&secrets, "::ffff:10.1.9.9").as_deref(), Some("narrow"));
        assert_eq!(of(&secrets, "10.1.2.3").as_deref(), Some("one"));
        assert_eq!(of(&secrets, "2001:db8::5").as_deref(), Some("six"));
        assert_eq!(of(&secrets, "192.0.2.1"), None);
    }

    #[test]
    fn a_secret_is_that_of_an_entry() {
        let secrets = Secrets::parse(b"\xef\xbb\xbf10.0.0.0/8 wide\r\nany\r\n").unwrap();
        let entry = |client: &str| secrets.of(client.parse().unwrap()).unwrap().0;
        assert_eq!(entry("::ffff:10.1.2.3"), Some("10.0.0.0/8".parse().unwrap()));
        assert_eq!(entry("192.0.2.1"), None);
        assert_eq!(of(&secrets, "192.0.2.1").as_deref(), Some("any"));
        assert_eq!(of(&Secrets::parse(b"\xef\xbb\xbfany").unwrap(), "::1").as_deref(), Some("any"));
        assert!(Secrets::parse("x".repeat(MAX_SECRET).as_bytes()).is_ok());
    }

    #[test]
    fn errors_say_what_to_write_and_name_no_secret() {
        let reason = |text: &str| Secrets::parse(text.as_bytes()).unwrap_err();
        assert!(reason("# nothing\n").contains("there is no secret"));
        assert_eq!(reason("one two\n"), "line 1: write a secret without spaces, or `PREFIX SECRET`");
        assert_eq!(reason("a\n10.0.0.0/8 b c"), "line 2: the secret has a space; choose one without");
        assert!(reason("a\nb\n").contains("line 2: there is a secret for all clients already"));
        for prefix in ["10.0.0.0/8", "192.0.2.1", "10.0.0.1/8", "2001:db8::/32"] {
            let expected = "line 2: there is a prefix without a secret; write `PREFIX SECRET`";
            assert_eq!(reason(&format!("# a\n{prefix}  \n")), expected);
        }
        assert_eq!(
            reason("10.1.2.3/8 wide\n"),
            "line 1: 10.1.2.3/8 has bits set beyond the first 8; write 10.0.0.0/8, or 10.1.2.3 for that host alone"
        );
        assert_eq!(
            reason("10.0.0.7 a\n\n::ffff:10.0.0.7/128 a\n"),
            "line 3: 10.0.0.7/32 has a secret already; remove one of the two lines"
        );
        let long = "x".repeat(MAX_SECRET + 1);
        assert!(reason(&long).starts_with("line 1: the secret is longer than 1024 bytes"));
        assert!(reason(&format!("10.0.0.0/8 {long}")).starts_with("line 1: the secret is longer"));
        assert_eq!(reason("ab\0cd\n"), "line 1: the secret has a NUL byte; write it as text");
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"secret\n").unwrap();
        assert!(Secrets::read(file.path()).is_ok());
        for mode in [0o644, 0o642, 0o641] {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
            let error = Secrets::read(file.path()).unwrap_err().to_string();
            assert!(error.contains("others can read the secrets; run: chmod o= /"), "{error}");
        }
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Secrets::read(file.path()).is_ok());
    }
}
