//! The lease files of ISC's dhcpd (dhcpd.leases(5)): declarations, of which the last one of an address counts.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv6Net};
use jiff::{civil::DateTime, tz::TimeZone};

use super::lease::{Content, Event, Holder, field};
use crate::sources::text::hex;

/// The bytes before the DUID in the name of a lease for IPv6: the number of the association.
const IAID: usize = 4;

/// Leases for IPv6: addresses, temporary ones, and prefixes. The manual page has them with an underscore.
const ASSOCIATIONS: [&str; 6] = ["ia-na", "ia-ta", "ia-pd", "ia_na", "ia_ta", "ia_pd"];

/// How other declarations begin that dhcpd writes.
const OTHERS: [&str; 9] = [
    "authoring-byte-order",
    "class",
    "failover",
    "group",
    "host",
    "lease",
    "server-duid",
    "subclass",
    "subgroup",
];

/// Blocks may be this deep in each other.
const MAX_DEPTH: usize = 8;

/// Reads a file from its beginning.
#[derive(Debug, Default)]
pub(super) struct Isc {
    content: Content,
}

impl Isc {
    /// What the file has, as its first declaration says.
    pub(super) fn content(&self) -> Content {
        self.content
    }

    /// Reads the whole declarations at the beginning of a text, and returns their length. A file of another kind has no events.
    pub(super) fn read(&mut self, text: &str, take: &mut dyn FnMut(Event)) -> usize {
        if self.content == Content::Unknown {
            self.content = beginning(text);
        }
        match self.content {
            Content::Unknown => 0,
            Content::Leases => read(text, take),
            Content::Foreign => text.len(),
        }
    }
}

/// What a file has that begins with this text.
fn beginning(text: &str) -> Content {
    match (Tokens { text, at: 0 }).next() {
        None => Content::Unknown,
        Some(Token::Word(Word::Plain(word)))
            if OTHERS.contains(&word.as_str()) || ASSOCIATIONS.contains(&word.as_str()) =>
        {
            Content::Leases
        }
        Some(_) => Content::Foreign,
    }
}

/// Reads the whole declarations at the beginning of a text, and returns their length.
fn read(text: &str, take: &mut dyn FnMut(Event)) -> usize {
    let mut tokens = Tokens { text, at: 0 };
    loop {
        let start = tokens.at;
        match statement(&mut tokens, 0) {
            Some(statement) => declaration(&statement, take),
            None => return start,
        }
    }
}

/// The words up to a semicolon or a block, and the statements of the block.
#[derive(Debug, Default)]
struct Statement {
    words: Vec<Word>,
    block: Vec<Statement>,
}

/// A word, or the bytes of a quoted string.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    Plain(String),
    Quoted(Vec<u8>),
}

impl Word {
    fn text(&self) -> String {
        match self {
            Self::Plain(text) => text.clone(),
            Self::Quoted(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }

    /// The bytes that an identifier is: a string, or hexadecimal numbers with colons.
    fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Plain(text) => text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect(),
            Self::Quoted(bytes) => Some(bytes.clone()),
        }
    }
}

impl Statement {
    /// Whether it begins with these words.
    fn is(&self, words: &[&str]) -> bool {
        let plain = |(word, expected): (&Word, &&str)| matches!(word, Word::Plain(text) if text == expected);
        self.words.len() >= words.len() && self.words.iter().zip(words).all(plain)
    }

    fn word(&self, index: usize) -> Option<&Word> {
        self.words.get(index)
    }

    /// The last statement of the block that begins with these words.
    fn find(&self, words: &[&str]) -> Option<&Statement> {
        self.block.iter().rev().find(|statement| statement.is(words))
    }
}

/// Reads a statement. `None` if the text ends before it does.
fn statement(tokens: &mut Tokens<'_>, depth: usize) -> Option<Statement> {
    let mut statement = Statement::default();
    loop {
        let before = tokens.at;
        match tokens.next()? {
            Token::Word(word) => statement.words.push(word),
            Token::End => return Some(statement),
            Token::Close => {
                // Without a semicolon before it, the end of a block is that of the statement, too.
                if depth > 0 {
                    tokens.at = before;
                }
                return Some(statement);
            }
            Token::Open => loop {
                let before = tokens.at;
                match tokens.next()? {
                    Token::Close => return Some(statement),
                    _ if depth >= MAX_DEPTH => {}
                    _ => {
                        tokens.at = before;
                        let inner = self::statement(tokens, depth + 1)?;
                        statement.block.push(inner);
                    }
                }
            },
        }
    }
}

fn declaration(statement: &Statement, take: &mut dyn FnMut(Event)) {
    if statement.is(&["lease"]) {
        take(lease(statement).unwrap_or_else(|| unreadable(statement)));
    } else if ASSOCIATIONS.iter().any(|kind| statement.is(&[kind])) {
        for part in &statement.block {
            if part.is(&["iaaddr"]) || part.is(&["iaprefix"]) {
                take(association(statement, part).unwrap_or_else(|| unreadable(statement)));
            }
        }
    }
}

fn unreadable(statement: &Statement) -> Event {
    let words: Vec<String> = statement.words.iter().map(Word::text).collect();
    Event::Unreadable(words.join(" "))
}

/// A lease of an IPv4 address.
fn lease(statement: &Statement) -> Option<Event> {
    let address: IpAddr = statement.word(1)?.text().parse().ok()?;
    let mac = statement.find(&["hardware"]).and_then(|hardware| field(&hardware.word(2)?.text()));
    let client_id = statement.find(&["uid"]).and_then(|uid| uid.word(1)?.bytes()).map(|bytes| hex(&bytes));
    let hostname = statement.find(&["client-hostname"]).and_then(|name| field(&name.word(1)?.text()));
    let client = Holder { hostname: hostname.or_else(|| dns_name(statement)), client_id, mac };
    event(IpNet::from(address), statement, client)
}

/// A lease of an IPv6 address, or of a prefix.
fn association(statement: &Statement, part: &Statement) -> Option<Event> {
    let text = part.word(1)?.text();
    let prefix = match text.split_once('/') {
        Some(_) => text.parse::<Ipv6Net>().ok()?.trunc().into(),
        None => IpNet::from(IpAddr::from(text.parse::<Ipv6Addr>().ok()?)),
    };
    let name = statement.word(1)?.bytes()?;
    let client_id = name.get(IAID..).map(hex).filter(|duid| !duid.is_empty());
    let hostname = dns_name(part).or_else(|| dns_name(statement));
    event(prefix, part, Holder { hostname, client_id, mac: None })
}

/// The name under which the server entered the client into the DNS.
fn dns_name(statement: &Statement) -> Option<String> {
    let set = statement.find(&["set", "ddns-fwd-name"])?;
    field(&set.words.last()?.text())
}

fn event(prefix: IpNet, statement: &Statement, client: Holder) -> Option<Event> {
    let state = statement.find(&["binding", "state"]).and_then(|state| state.word(2)).map(Word::text);
    if state.is_some_and(|state| state != "active") {
        return Some(Event::Free(prefix));
    }
    let expires = match statement.find(&["ends"]) {
        Some(ends) => time(ends).ok()?,
        None => None,
    };
    Some(Event::Leased { prefix, client, expires })
}

/// A statement has no time.
#[derive(Debug)]
struct NoTime;

/// The time of a statement such as `ends 3 2026/11/25 21:04:10` or `ends epoch 1795600000`, in seconds since 1970; `None`
/// is never.
///
/// # Errors
/// If it is no time.
fn time(statement: &Statement) -> Result<Option<u64>, NoTime> {
    let words: Vec<String> = statement.words.iter().skip(1).map(Word::text).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["never"] => Ok(None),
        ["epoch", seconds] => seconds.parse().map(Some).map_err(|_| NoTime),
        [_, date, time] => {
            let text = format!("{}T{time}", date.replace('/', "-"));
            let time: DateTime = text.parse().map_err(|_| NoTime)?;
            let time = TimeZone::UTC.to_timestamp(time).map_err(|_| NoTime)?;
            // A time before 1970 has passed, too.
            Ok(Some(u64::try_from(time.as_second()).unwrap_or_default()))
        }
        _ => Err(NoTime),
    }
}

/// The tokens of a text.
struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(Word),
    Open,
    Close,
    End,
}

impl Tokens<'_> {
    /// The next token; `None` if the text may go on before it ends.
    fn next(&mut self) -> Option<Token> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at)? {
                byte if byte.is_ascii_whitespace() => self.at += 1,
                b'#' => self.at += bytes[self.at..].iter().position(|&byte| byte == b'\n')?,
                _ => break,
            }
        }
        let single = match bytes[self.at] {
            b'{' => Some(Token::Open),
            b'}' => Some(Token::Close),
            b';' => Some(Token::End),
            _ => None,
        };
        if single.is_some() {
            self.at += 1;
            return single;
        }
        if bytes[self.at] == b'"' {
            return self.quoted().map(|bytes| Token::Word(Word::Quoted(bytes)));
        }
        let rest = &bytes[self.at..];
        let end = rest.iter().position(|byte| byte.is_ascii_whitespace() || b"{};\"".contains(byte))?;
        let word = String::from_utf8_lossy(&rest[..end]).into_owned();
        self.at += end;
        Some(Token::Word(Word::Plain(word)))
    }

    /// The bytes of a string, in which a backslash stands before three octal digits, or before any other character. Without its
    /// second quotation mark it ends with its line, and the semicolon there is that of the statement: otherwise it would take the
    /// leases after it along.
    fn quoted(&mut self) -> Option<Vec<u8>> {
        let bytes = self.text.as_bytes();
        let (mut at, mut found) = (self.at + 1, Vec::new());
        loop {
            match *bytes.get(at)? {
                b'"' => {
                    self.at = at + 1;
                    return Some(found);
                }
                b'\n' => break,
                b'\\' if bytes.get(at + 1) == Some(&b'\n') => at += 1,
                b'\\' => {
                    let digits = bytes.get(at + 1..at + 4)?;
                    let octal = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'));
                    if let Some(byte) = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
                        found.push(byte);
                        at += 4;
                    } else {
                        found.push(digits[0]);
                        at += 2;
                    }
                }
                byte => {
                    found.push(byte);
                    at += 1;
                }
            }
        }
        let is_ended = bytes.get(at - 1) == Some(&b';') && found.pop_if(|last| *last == b';').is_some();
        self.at = if is_ended { at - 1 } else { at };
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sources::dhcp::lease::leased;

    fn events(text: &str) -> Vec<Event> {
        let mut events = Vec::new();
        let length = read(text, &mut |event| events.push(event));
        assert_eq!(text[length..].trim(), "", "a part is left");
        events
    }

    const HEADER: &str = "# The format of this file is documented in the dhcpd.leases(5) manual page.\n\
                          # This lease file was written by isc-dhcp-4.4.3-P1\n\n\
                          # authoring-byte-order entry is generated, DO NOT DELETE\n\
                          authoring-byte-order little-endian;\n\n\
                          server-duid \"\\000\\001\\000\\001/\\\"\\\\x\";\n\n";

    #[test]
    fn leases_for_ipv4_are_read() {
        let text = format!(
            "{HEADER}lease 192.168.9.40 {{\n  starts 3 2026/11/25 20:04:10;\n  ends 3 2026/11/25 21:04:10;\n  \
             tstp 3 2026/11/25 21:04:10;\n  binding state active;\n  next binding state free;\n  \
             hardware ethernet 02:00:5e:00:53:40;\n  uid \"\\001\\002\\000^\\000S@\";\n  \
             set vendor-class-identifier = \"a;b }} c\";\n  client-hostname \"porch-camera\";\n}}\n\
             lease 192.168.9.41 {{ starts epoch 1795600000; # Wed\n ends never; binding state active;\n hardware ethernet \
             02:00:5e:00:53:41;\n on expiry {{ set x = \"y\"; }} }}\n\
             failover peer \"dhcp\" state {{ my state normal at 3 2026/11/25 20:04:10; }}\n\
             lease 192.168.9.40 {{ ends 3 2026/11/25 20:30:00; binding state free; }}\n"
        );
        let expected = [
            leased(
                "192.168.9.40/32",
                ["porch-camera", "01:02:00:5e:00:53:40", "02:00:5e:00:53:40"],
                Some(1_795_640_650),
            ),
            leased("192.168.9.41/32", ["", "", "02:00:5e:00:53:41"], None),
            Event::Free("192.168.9.40/32".parse().unwrap()),
        ];
        assert_eq!(events(&text), expected);
    }

    #[test]
    fn addresses_and_prefixes_for_ipv6_are_read() {
        let text = format!(
            "{HEADER}ia-na \"\\001\\000\\000\\000\\000\\003\\000\\001\\002\\000^\\000\\0005\" {{\n  cltt 3 2026/11/25 \
             20:04:10;\n  iaaddr 2001:db8:9::40 {{\n    binding state active;\n    preferred-life 375;\n    max-life 600;\n    \
             ends epoch 1795600000;\n    set ddns-fwd-name = \"cpe.example.net\";\n  }}\n}}\n\
             ia-pd 01:00:00:00:00:03:00:01:02:00:5e:00:00:35 {{ iaprefix 2001:db8:ab00::/56 {{ binding state active; ends \
             never; }} iaprefix 2001:db8:cd00::/56 {{ binding state released; ends never; }} }}\n"
        );
        let duid = "00:03:00:01:02:00:5e:00:00:35";
        let expected = [
            leased("2001:db8:9::40/128", ["cpe.example.net", duid, ""], Some(1_795_600_000)),
            leased("2001:db8:ab00::/56", ["", duid, ""], None),
            Event::Free("2001:db8:cd00::/56".parse().unwrap()),
        ];
        assert_eq!(events(&text), expected);
    }

    #[test]
    fn a_file_is_known_by_its_first_declaration() {
        let content = |text: &str| {
            let mut isc = Isc::default();
            assert_eq!(
                isc.read(text, &mut |event| assert_eq!(event, Event::Free("10.0.0.1/32".parse().unwrap()))),
                { if isc.content() == Content::Unknown { 0 } else { text.len() } }
            );
            isc.content()
        };
        let free = "lease 10.0.0.1 { binding state free; }";
        for leases in
            [HEADER, free, &format!("{HEADER}{free}"), &format!("what \"?\"; {free}").replace("what", "host")]
        {
            assert_eq!(content(leases.trim_end()), Content::Leases, "{leases}");
        }
        for unknown in ["", "# The format of this file is\n", "lease"] {
            assert_eq!(content(unknown), Content::Unknown, "{unknown}");
        }
        let kea = "address,hwaddr,client_id,valid_lifetime\n10.0.0.1,,,60\n";
        for foreign in [kea, "1795600000 02:00:5e:10:00:01 192.168.7.20 radio *\n", "{}", "what is this;"] {
            assert_eq!(content(&format!("{foreign}{free}")), Content::Foreign, "{foreign}");
        }
    }

    #[test]
    fn a_declaration_without_its_end_waits_for_it() {
        let whole = "lease 192.0.2.1 { ends never; binding state active; client-hostname \"a}b\"; }";
        for cut in 0..whole.len() {
            let mut count = 0;
            assert_eq!(read(&whole[..cut], &mut |_| count += 1), 0, "{}", &whole[..cut]);
            assert_eq!(count, 0);
        }
        assert_eq!(events(whole).len(), 1);
    }

    #[test]
    fn a_string_without_its_end_takes_no_other_lease_along() {
        for broken in ["\"a;", "\"a", "\"a\\"] {
            let text = format!(
                "lease 192.0.2.1 {{\n  client-hostname {broken}\n  ends never;\n}}\n\
                 lease 192.0.2.2 {{ ends never; binding state free;\n  client-hostname \"b;\n}}\n\
                 lease 192.0.2.3 {{ ends never; client-hostname \"c\"; }}\n"
            );
            let found = events(&text);
            assert_eq!(found.len(), 3, "{found:?}");
            assert_eq!(found[0], leased("192.0.2.1/32", ["a", "", ""], None));
            assert_eq!(found[1], Event::Free("192.0.2.2/32".parse().unwrap()));
            assert_eq!(found[2], leased("192.0.2.3/32", ["c", "", ""], None));
        }
        // Neither does a statement without its semicolon.
        let text = "lease 192.0.2.1 { ends never }\nlease 192.0.2.3 { ends never; client-hostname \"c\" }\n";
        assert_eq!(events(text).len(), 2);
    }

    #[test]
    fn other_declarations_are_unreadable() {
        assert_eq!(events("lease nowhere { }\n"), [Event::Unreadable("lease nowhere".to_owned())]);
        let unknown = "lease 192.0.2.1 { ends tomorrow; binding state active; }";
        assert_eq!(events(unknown), [Event::Unreadable("lease 192.0.2.1".to_owned())]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end_or_waits(text in "[a-z0-9{};\"\\\\ :/#\n.é]{0,200}") {
            let length = read(&text, &mut |_| {});
            prop_assert!(length <= text.len() && text.is_char_boundary(length));
        }
    }

    #[test]
    fn deep_blocks_do_not_fill_the_stack() {
        let text = format!("lease 192.0.2.1 {} {}\n", "{ a ".repeat(100_000), "}".repeat(100_000));
        read(&text, &mut |_| {});
    }
}
