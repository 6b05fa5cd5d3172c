//! CSV: a line for each prefix, with its label and the other columns of the header.

use std::sync::Arc;

use csv::{ReaderBuilder, StringRecord, Trim};

use super::listed::{Listed, column_name, prefix};
use crate::text::{Mistake, Mistakes};

/// The first word of the header.
const PREFIX: &str = "prefix";

/// Columns that need no header: the prefix and its label.
const COLUMNS: usize = 2;

/// Reads all lines. A line with a mistake lists nothing.
pub(super) fn read(text: &str, listed: &mut Listed<'_>) {
    let start = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(Trim::All)
        .from_reader(&text.as_bytes()[start..]);
    let (mut fields, mut starts, mut header) = (StringRecord::new(), Vec::new(), None);
    loop {
        let before = start + reader.position().byte() as usize;
        match reader.read_record(&mut fields) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return listed.mistakes.add(Mistake::new(before, error.to_string())),
        }
        field_starts(text.as_bytes(), before, &mut starts);
        let line = Line { fields: &fields, starts: &starts };
        if line.is_blank() {
            continue;
        }
        match &header {
            Some(header) => line.list(header, listed),
            None if line.field(0).eq_ignore_ascii_case(PREFIX) => {
                // Without the header, the other lines say nothing.
                let Some(found) = line.header(&mut listed.mistakes) else { return };
                header = Some(found);
            }
            None => {
                let header = header.insert(Header::default());
                match line.check_first() {
                    Ok(()) => line.list(header, listed),
                    Err(mistake) => listed.mistakes.add(mistake),
                }
            }
        }
    }
}

/// The start of each field of the next record after `offset`, without its quotation mark.
fn field_starts(text: &[u8], mut offset: usize, starts: &mut Vec<usize>) {
    starts.clear();
    // Skips the lines that the reader skips.
    loop {
        match text.get(offset) {
            Some(b'\r' | b'\n') => offset += 1,
            Some(b'#') => {
                offset +=
                    text[offset..].iter().position(|&byte| byte == b'\n').unwrap_or(text.len() - offset);
            }
            _ => break,
        }
    }
    // Quotation marks have a meaning only in a field that begins with one.
    let (mut is_start, mut has_quotes, mut is_quoted, mut is_inside) = (true, false, false, false);
    while let Some(&byte) = text.get(offset) {
        match byte {
            b'\n' if !is_quoted => break,
            b',' if !is_quoted => {
                if !is_inside {
                    starts.push(offset);
                }
                (is_start, has_quotes, is_inside) = (true, false, false);
                offset += 1;
                continue;
            }
            b'"' if is_start => {
                starts.push(offset + 1);
                (has_quotes, is_quoted, is_inside) = (true, true, true);
            }
            b'"' if has_quotes => is_quoted = !is_quoted,
            b' ' | b'\t' | b'\r' => {}
            _ if !is_inside => {
                starts.push(offset);
                is_inside = true;
            }
            _ => {}
        }
        is_start = false;
        offset += 1;
    }
    if !is_inside {
        starts.push(offset);
    }
}

/// The columns after the label.
#[derive(Default)]
struct Header {
    is_given: bool,
    columns: Vec<Arc<str>>,
}

/// A record, and the starts of its fields.
struct Line<'a> {
    fields: &'a StringRecord,
    starts: &'a [usize],
}

impl Line<'_> {
    fn field(&self, index: usize) -> &str {
        self.fields.get(index).unwrap_or_default()
    }

    fn mistake(&self, index: usize, reason: impl Into<String>) -> Mistake {
        let start = self.starts.get(index).or(self.starts.last()).copied();
        Mistake::new(start.unwrap_or_default(), reason)
    }

    /// Whether the line is blank or an indented comment.
    fn is_blank(&self) -> bool {
        self.fields.len() <= 1 && self.field(0).is_empty() || self.field(0).starts_with('#')
    }

    /// Reads the header; `None` if it has mistakes.
    fn header(&self, mistakes: &mut Mistakes) -> Option<Header> {
        if self.fields.len() < COLUMNS {
            mistakes.add(self.mistake(0, "the header names no label; write `prefix,group`"));
        }
        let mut columns: Vec<Arc<str>> = Vec::new();
        for index in COLUMNS..self.fields.len() {
            let name = self.field(index);
            if name.is_empty() {
                mistakes.add(self.mistake(index, "the column has no name; name it in the header"));
            } else if columns.iter().any(|other| **other == *name) {
                let reason = format!("there is a column `{name}` already; give this one another name");
                mistakes.add(self.mistake(index, reason));
            }
            if let Err(reason) = column_name(name) {
                mistakes.add(self.mistake(index, reason));
            }
            columns.push(name.into());
        }
        mistakes.is_empty().then_some(Header { is_given: true, columns })
    }

    /// Checks the first line: without a prefix it is most likely meant as a header.
    fn check_first(&self) -> Result<(), Mistake> {
        match prefix(self.field(0)) {
            Err(reason) if !self.field(0).contains(['.', ':', '/']) => {
                Err(self.mistake(0, format!("{reason}; a header begins with the word `{PREFIX}`")))
            }
            _ => Ok(()),
        }
    }

    fn list(&self, header: &Header, listed: &mut Listed<'_>) {
        let at = |index: usize| move |reason: String| self.mistake(index, reason);
        let prefix = listed.mistakes.noted(prefix(self.field(0)).map_err(at(0)));
        let known = COLUMNS + header.columns.len();
        match self.fields.len() {
            0 | 1 => {
                return listed.mistakes.add(self.mistake(0, "there is no label; write `prefix,label`"));
            }
            fields if fields <= known => {}
            _ if header.is_given => {
                let reason =
                    "the header has no such column; name it there, or put a field with a comma in quotes";
                listed.mistakes.add(self.mistake(known, reason));
            }
            _ => {
                let reason = "more columns need a header; begin the file with a line that names them, such as \
                              `prefix,group,site`";
                listed.mistakes.add(self.mistake(known, reason));
            }
        }
        let label = listed.label(self.field(1)).map_err(at(1));
        let Some(label) = listed.mistakes.noted(label) else { return };
        for (index, name) in (COLUMNS..).zip(&header.columns) {
            let column = listed.column(label, name, self.field(index)).map_err(at(index));
            listed.mistakes.noted(column);
        }
        let Some(prefix) = prefix else { return };
        let start = self.starts.first().copied().unwrap_or_default();
        let added = listed.prefix(start, prefix, label).map_err(at(0));
        listed.mistakes.noted(added);
    }
}
