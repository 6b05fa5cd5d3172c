//! The lines of the groups socket: one JSON object for each request, and at least one for each answer.

use std::{borrow::Cow, sync::Arc};

use indexmap::IndexMap;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{
    labels::Columns,
    valid::{self, column_name},
};

/// The version of the protocol. It changes when a client of the one before would misunderstand an answer.
pub const VERSION: u32 = 1;

/// The longest line of a request, in bytes, with its line break.
pub const MAX_LINE: usize = 64 << 10;

/// The source of changes that name none.
pub const DEFAULT_SOURCE: &str = "cli";

/// The source of prefixes of the groups file.
pub const FILE_SOURCE: &str = "file";

/// The longest label, and the longest value of a column, in bytes.
const MAX_TEXT: usize = 256;

/// The longest name of a column or of a source, in bytes.
const MAX_NAME: usize = 64;

/// The highest number of columns of a label that come by the socket.
pub(super) const MAX_COLUMNS: usize = 16;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Who is there?
    Hello,
    /// Moves a prefix to a label.
    Add(Addition),
    /// Removes a prefix that this source added.
    Remove {
        /// The prefix.
        prefix: IpNet,
        /// Who added it.
        source: Arc<str>,
    },
    /// Replaces the other columns that a source gives a label which it lists.
    Columns {
        /// The label.
        label: Arc<str>,
        /// All of its columns from this source.
        columns: Columns,
        /// Who gives them.
        source: Arc<str>,
    },
    /// Asks for prefixes.
    List(Filter),
    /// Begins to replace everything that came from this source, by the additions that follow.
    Replace {
        /// The source.
        source: Arc<str>,
    },
    /// Ends that: the additions take effect.
    Commit,
    /// Ends that: nothing changes.
    Abort,
}

/// A prefix, and the label that it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// The prefix.
    pub prefix: IpNet,
    /// Its label.
    pub label: Arc<str>,
    /// All other columns that this source gives the label, in place of those it gave before; `None` leaves them as they are.
    pub columns: Option<Columns>,
    /// Who adds it.
    pub source: Arc<str>,
}

/// What to list: prefixes for which all of this holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// They are inside this prefix, or contain it.
    pub prefix: Option<IpNet>,
    /// They have this label.
    pub label: Option<String>,
    /// They come from here: [`FILE_SOURCE`] for the groups file.
    pub source: Option<String>,
}

/// The kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Op {
    Hello,
    Ping,
    Add,
    Remove,
    Columns,
    List,
    Replace,
    Commit,
    Abort,
}

/// A line as it is written.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    op: Op,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    prefix: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    label: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    columns: Option<IndexMap<Cow<'a, str>, Cow<'a, str>>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    source: Option<Cow<'a, str>>,
}

impl<'a> Line<'a> {
    fn new(op: Op) -> Self {
        Self { op, prefix: None, label: None, columns: None, source: None }
    }

    fn of(mut self, source: &'a str) -> Self {
        self.source = (source != DEFAULT_SOURCE).then_some(source.into());
        self
    }
}

impl Request {
    /// Parses a line.
    ///
    /// # Errors
    /// What is wrong, and what to write instead.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line)
            .map_err(|_| "the line is not UTF-8; write JSON in UTF-8, one object a line".to_owned())?;
        let line: Line<'_> = serde_json::from_str(text).map_err(|error| {
            format!("this is no request: {error}; write one JSON object a line, like {EXAMPLE}")
        })?;
        line.check_fields()?;
        let source = || source(line.source.as_deref().unwrap_or(DEFAULT_SOURCE));
        let prefix = || match &line.prefix {
            Some(prefix) => valid::prefix(prefix),
            None => Err(format!("the prefix is missing; write it like {EXAMPLE}")),
        };
        Ok(match line.op {
            Op::Hello | Op::Ping => Self::Hello,
            Op::Add => {
                let columns = line.columns.as_ref().map(columns).transpose()?;
                let label = label(line.label.as_deref().unwrap_or_default())?;
                Self::Add(Addition { prefix: prefix()?, label, columns, source: source()? })
            }
            Op::Remove => Self::Remove { prefix: prefix()?, source: source()? },
            Op::Columns => {
                let given = line.columns.as_ref().ok_or("the columns are missing; give `{}` for none")?;
                let label = label(line.label.as_deref().unwrap_or_default())?;
                Self::Columns { label, columns: columns(given)?, source: source()? }
            }
            Op::List => Self::List(Filter {
                prefix: line.prefix.is_some().then(prefix).transpose()?,
                label: line.label.map(Cow::into_owned),
                source: line.source.map(Cow::into_owned),
            }),
            Op::Replace => Self::Replace { source: source()? },
            Op::Commit => Self::Commit,
            Op::Abort => Self::Abort,
        })
    }

    /// Writes the line, with its line break.
    pub fn write(&self, into: &mut Vec<u8>) {
        let line = match self {
            Self::Hello => Line::new(Op::Hello),
            Self::Add(Addition { prefix, label, columns, source }) => {
                return write_addition(*prefix, label, columns.as_ref(), source, into);
            }
            Self::Remove { prefix, source } => {
                Line { prefix: Some(prefix.to_string().into()), ..Line::new(Op::Remove) }.of(source)
            }
            Self::Columns { label, columns, source } => return write_columns(label, columns, source, into),
            Self::List(Filter { prefix, label, source }) => Line {
                prefix: prefix.map(|prefix| prefix.to_string().into()),
                label: label.as_deref().map(Cow::from),
                source: source.as_deref().map(Cow::from),
                ..Line::new(Op::List)
            },
            Self::Replace { source } => Line::new(Op::Replace).of(source),
            Self::Commit => Line::new(Op::Commit),
            Self::Abort => Line::new(Op::Abort),
        };
        write(&line, into);
    }
}

impl Line<'_> {
    /// Refuses fields that a request does not take: whoever wrote them expects an effect.
    fn check_fields(&self) -> Result<(), String> {
        let Self { op, prefix, label, columns, source } = self;
        let [may_have_prefix, may_have_label, may_have_columns, may_have_source] = match op {
            Op::Hello | Op::Ping | Op::Commit | Op::Abort => [false; 4],
            Op::Add => [true; 4],
            Op::Remove => [true, false, false, true],
            Op::Columns => [false, true, true, true],
            Op::List => [true, true, false, true],
            Op::Replace => [false, false, false, true],
        };
        for (name, is_given, may) in [
            ("prefix", prefix.is_some(), may_have_prefix),
            ("label", label.is_some(), may_have_label),
            ("columns", columns.is_some(), may_have_columns),
            ("source", source.is_some(), may_have_source),
        ] {
            if is_given && !may {
                return Err(format!("this request takes no `{name}`; leave it out"));
            }
        }
        Ok(())
    }
}

/// A request, for messages.
const EXAMPLE: &str = r#"{"op":"add","prefix":"192.0.2.7","label":"customer-7"}"#;

/// Writes a request to add a prefix.
pub(super) fn write_addition(
    prefix: IpNet,
    label: &str,
    columns: Option<&Columns>,
    source: &str,
    into: &mut Vec<u8>,
) {
    let line = Line {
        prefix: Some(prefix.to_string().into()),
        label: Some(label.into()),
        columns: columns.map(borrowed),
        ..Line::new(Op::Add)
    };
    write(&line.of(source), into);
}

/// Writes a request to replace the columns that a source gives a label.
pub(super) fn write_columns(label: &str, columns: &Columns, source: &str, into: &mut Vec<u8>) {
    let line = Line { label: Some(label.into()), columns: Some(borrowed(columns)), ..Line::new(Op::Columns) };
    write(&line.of(source), into);
}

fn borrowed(columns: &Columns) -> IndexMap<Cow<'_, str>, Cow<'_, str>> {
    columns.iter().map(|(name, value)| (Cow::from(&**name), Cow::from(&**value))).collect()
}

/// Writes an object and a line break.
pub fn write(line: &impl Serialize, into: &mut Vec<u8>) {
    // Only a map with keys other than text fails.
    if serde_json::to_writer(&mut *into, line).is_ok() {
        into.push(b'\n');
    }
}

/// Checks a label.
fn label(text: &str) -> Result<Arc<str>, String> {
    valid::label(text)?;
    short("label", text, MAX_TEXT)?;
    Ok(text.into())
}

/// Checks the name of a source.
///
/// # Errors
/// What is wrong, and what to write instead.
pub fn source(text: &str) -> Result<Arc<str>, String> {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if text.is_empty() || text.len() > MAX_NAME || !text.bytes().all(is_usual) {
        return Err(format!(
            "the source is not a name of up to {MAX_NAME} letters, digits, `-`, `_` and `.`; write one like `radius`"
        ));
    }
    if text == FILE_SOURCE {
        return Err(format!("`{FILE_SOURCE}` stands for the groups file; choose another source"));
    }
    Ok(text.into())
}

/// Checks columns.
fn columns(columns: &IndexMap<Cow<'_, str>, Cow<'_, str>>) -> Result<Columns, String> {
    if columns.len() > MAX_COLUMNS {
        return Err(format!("there are more than {MAX_COLUMNS} columns; leave some out"));
    }
    let mut checked = Columns::new();
    for (name, value) in columns.iter().filter(|(_, value)| !value.is_empty()) {
        column_name(name)?;
        if name.is_empty() {
            return Err("a column has no name; name it".to_owned());
        }
        short("name of a column", name, MAX_NAME)?;
        valid::column(name, value)?;
        short(name, value, MAX_TEXT)?;
        checked.push((name.as_ref().into(), value.as_ref().into()));
    }
    Ok(checked)
}

fn short(what: &str, text: &str, max: usize) -> Result<(), String> {
    if text.len() > max {
        return Err(format!("the {what} has {} bytes, but at most {max} fit; shorten it", text.len()));
    }
    Ok(())
}

/// An answer, as a client reads it. Answers to `list` come after any number of [`Listed`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Answer {
    /// Whether the request was carried out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ok: bool,
    /// Why not, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What a change did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Effect>,
    /// The label that the prefix had before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The label that it has now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// The prefixes that a `list` found, or that a `commit` has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefixes: Option<usize>,
    /// The prefixes that a `commit` changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<usize>,
    /// The version of the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u32>,
    /// The version of pping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl Answer {
    /// A request was carried out.
    pub fn ok() -> Self {
        Self { ok: true, ..Self::default() }
    }

    /// A request was refused.
    pub fn refused(reason: impl Into<String>) -> Self {
        Self { error: Some(reason.into()), ..Self::default() }
    }

    /// The answer to `hello`.
    pub fn hello() -> Self {
        let version = Some(env!("CARGO_PKG_VERSION").to_owned());
        Self { protocol: Some(VERSION), version, ..Self::ok() }
    }
}

/// What a change did to a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// It had no label.
    Added,
    /// It had another label.
    Moved,
    /// It has no label any more.
    Removed,
    /// It has the label that it had, and this has other columns.
    Columns,
    /// Its label and the columns of this are those that it had.
    Unchanged,
}

/// A line of a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Listed {
    /// The prefix; `None` for a label that the groups file has without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Its label from this source.
    pub label: String,
    /// Where it comes from: [`FILE_SOURCE`] for the groups file.
    pub source: String,
    /// Whether this label counts: of several sources the one that spoke last, and the file if there is no other.
    pub current: bool,
    /// The other columns that this source gives the label.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub columns: IndexMap<String, String>,
    /// The columns of the label that count, of all sources.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub current_columns: IndexMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Request {
        Request::parse(line.as_bytes()).unwrap()
    }

    #[test]
    fn requests_are_what_they_say() {
        let addition = Addition {
            prefix: "10.11.2.7/32".parse().unwrap(),
            label: "customer-7".into(),
            columns: None,
            source: "cli".into(),
        };
        let add = r#"{"op":"add","prefix":"10.11.2.7","label":"customer-7"}"#;
        assert_eq!(parsed(add), Request::Add(addition.clone()));
        let columns = Some(vec![("site".into(), "north".into())]);
        let whole = Addition {
            columns,
            source: "radius".into(),
            prefix: "2001:db8::/56".parse().unwrap(),
            ..addition
        };
        let line = r#"{"op":"add","prefix":"2001:db8::/56","label":"customer-7","columns":{"site":"north","ap":""},"source":"radius"}"#;
        assert_eq!(parsed(line), Request::Add(whole));
        assert_eq!(parsed(r#" {"op":"ping"} "#), Request::Hello);
        let mapped = parsed(r#"{"op":"remove","prefix":"::ffff:10.1.0.0/112"}"#);
        assert_eq!(mapped, Request::Remove { prefix: "10.1.0.0/16".parse().unwrap(), source: "cli".into() });
    }

    #[test]
    fn what_is_written_is_read_again() {
        let source: Arc<str> = "dhcp".into();
        let prefix: IpNet = "192.0.2.0/24".parse().unwrap();
        let columns = Some(vec![("site".into(), "Müller \"Süd\"\\".into()), ("plan".into(), "🛰".into())]);
        let label = "a\u{2028}, b".into();
        for request in [
            Request::Hello,
            Request::Add(Addition { prefix, label, columns, source: Arc::clone(&source) }),
            Request::Add(Addition { prefix, label: "x".into(), columns: Some(vec![]), source: "cli".into() }),
            Request::Remove { prefix, source: Arc::clone(&source) },
            Request::Columns {
                label: "a\\b".into(),
                columns: vec![("site".into(), "x".into())],
                source: Arc::clone(&source),
            },
            Request::Columns { label: "x".into(), columns: vec![], source: "cli".into() },
            Request::List(Filter::default()),
            Request::List(Filter {
                prefix: Some(prefix),
                label: Some("x".into()),
                source: Some("file".into()),
            }),
            Request::Replace { source },
            Request::Commit,
            Request::Abort,
        ] {
            let mut line = Vec::new();
            request.write(&mut line);
            assert_eq!(line.pop(), Some(b'\n'));
            assert!(!line.contains(&b'\n'));
            assert_eq!(Request::parse(&line), Ok(request));
        }
    }

    #[test]
    fn a_refusal_says_what_to_write_instead() {
        let long = format!(r#"{{"op":"add","prefix":"10.0.0.1","label":"{}"}}"#, "x".repeat(257));
        let many: Vec<String> = (0..17).map(|index| format!(r#""c{index}":"x""#)).collect();
        let many =
            format!(r#"{{"op":"add","prefix":"10.0.0.1","label":"x","columns":{{{}}}}}"#, many.join(","));
        for (line, said) in [
            ("", "this is no request"),
            ("add 10.0.0.1 x", "write one JSON object a line"),
            ("[]", "this is no request"),
            (r#"{"op":"ad","prefix":"10.0.0.1"}"#, "unknown variant `ad`"),
            (r#"{"op":"add","prefx":"10.0.0.1"}"#, "unknown field `prefx`"),
            (r#"{"op":"add","prefix":"10.0.0.1","prefix":"10.0.0.2","label":"x"}"#, "duplicate field"),
            (r#"{"op":"add","label":"x"}"#, "the prefix is missing"),
            (r#"{"op":"add","prefix":"10.0.0.1"}"#, "the label is empty"),
            (r#"{"op":"add","prefix":"10.0.0.1","label":"other"}"#, "choose another label"),
            (r#"{"op":"add","prefix":"10.0.0.1","label":"a\nb"}"#, "control character"),
            (r#"{"op":"add","prefix":"10.0.0.1/24","label":"x"}"#, "write 10.0.0.0/24, or 10.0.0.1"),
            (r#"{"op":"add","prefix":"10.0.0.01","label":"x"}"#, "write 10.0.0.1"),
            (r#"{"op":"add","prefix":"10.0.0.1","label":"x","columns":{"le":"x"}}"#, "rename it"),
            (
                r#"{"op":"add","prefix":"10.0.0.1","label":"x","columns":{"expected_rtt":"long"}}"#,
                "is not a time",
            ),
            (r#"{"op":"add","prefix":"10.0.0.1","label":"x","source":"file"}"#, "choose another source"),
            (r#"{"op":"add","prefix":"10.0.0.1","label":"x","source":"a b"}"#, "write one like `radius`"),
            (r#"{"op":"remove","prefix":"10.0.0.1","label":"x"}"#, "takes no `label`"),
            (r#"{"op":"commit","source":"x"}"#, "takes no `source`"),
            (
                r#"{"op":"add","prefix":"10.0.0.1","label":"x","columns":{"ap":"(none)"}}"#,
                "leave the ap empty",
            ),
            (r#"{"op":"columns","label":"x"}"#, "the columns are missing"),
            (r#"{"op":"columns","prefix":"10.0.0.1","label":"x","columns":{}}"#, "takes no `prefix`"),
            (r#"{"op":"columns","columns":{"site":"x"}}"#, "the label is empty"),
            (long.as_str(), "257 bytes, but at most 256 fit"),
            (many.as_str(), "more than 16 columns"),
        ] {
            let refused = Request::parse(line.as_bytes()).expect_err(line);
            assert!(refused.contains(said), "{line}: {refused}");
        }
        assert!(Request::parse(b"{\"op\":\"hello\xff\"}").unwrap_err().contains("UTF-8"));
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_it_panic(line in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            Request::parse(&line).ok();
        }
    }
}
