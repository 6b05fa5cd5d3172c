//! The secrets that clients share with this server.

use std::{io::Read as _, net::IpAddr, os::unix::fs::PermissionsExt as _, path::Path};

use ipnet::IpNet;

use crate::{groups, sources::error::Error, text};

/// The longest file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

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
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        Self::parse(&bytes)
    }

    /// Parses lines of a secret for all clients, or of a prefix and its secret.
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| text::ReadError::NOT_UTF8.to_owned())?;
        let mut secrets = Self { by_prefix: Vec::new(), common: None };
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.split_once(char::is_whitespace) {
                None if secrets.common.is_some() => {
                    return Err(format!(
                        "line {number}: there is a secret for all clients already; write `PREFIX SECRET`"
                    ));
                }
                None => secrets.common = Some(line.as_bytes().to_vec()),
                Some((prefix, secret)) => {
                    // The line may be a secret with a space: it does not belong into a log.
                    let prefix = groups::prefix(prefix).map_err(|_| {
                        format!("line {number}: write a secret without spaces, or `PREFIX SECRET`")
                    })?;
                    let secret = secret.trim_start();
                    if secret.contains(char::is_whitespace) {
                        return Err(format!("line {number}: the secret has a space; choose one without"));
                    }
                    secrets.by_prefix.push((prefix, secret.as_bytes().to_vec()));
                }
            }
        }
        if secrets.by_prefix.is_empty() && secrets.common.is_none() {
            return Err("there is no secret; write the one that the NAS has into the file".to_owned());
        }
        secrets.by_prefix.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.prefix_len()));
        Ok(secrets)
    }

    /// The secret of a client; `None` if there is none.
    pub(super) fn of(&self, client: IpAddr) -> Option<&[u8]> {
        let client = client.to_canonical();
        let own = self.by_prefix.iter().find(|(prefix, _)| prefix.contains(&client));
        own.map(|(_, secret)| secret).or(self.common.as_ref()).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _};

    use super::*;

    fn of(secrets: &Secrets, client: &str) -> Option<String> {
        secrets.of(client.parse().unwrap()).map(|secret| String::from_utf8(secret.to_vec()).unwrap())
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
    fn errors_say_what_to_write_and_name_no_secret() {
        let reason = |text: &str| Secrets::parse(text.as_bytes()).unwrap_err();
        assert!(reason("# nothing\n").contains("there is no secret"));
        assert_eq!(reason("one two\n"), "line 1: write a secret without spaces, or `PREFIX SECRET`");
        assert_eq!(reason("a\n10.0.0.0/8 b c"), "line 2: the secret has a space; choose one without");
        assert!(reason("a\nb\n").contains("line 2: there is a secret for all clients already"));
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
