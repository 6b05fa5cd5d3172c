//! CSV: a line for each prefix, with its label and the other columns of the header; or for a label alone, with these.

use std::sync::Arc;

use super::{
    fields::{Field, split},
    listed::Listed,
};
use crate::{
    groups::valid::{column_name, prefix},
    text::{TextError, TextErrors},
};

/// The first word of the header.
const PREFIX: &str = "prefix";

/// The first word of the header of a file without prefixes.
const GROUP: &str = "group";

/// Reads all lines. A line with an error lists nothing. After a header with one, the other lines say nothing.
pub(super) fn read(text: &str, listed: &mut Listed<'_>) {
    let mut offset = text.len() - text.trim_start_matches('\u{feff}').len();
    let (mut fields, mut header) = (Vec::new(), None);
    for line in text[offset..].split_inclusive(['\r', '\n']) {
        let start = offset;
        offset += line.len();
        let trimmed = line.trim_start();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if let Err(error) = split(line.trim_end_matches(['\r', '\n']), start, &mut fields) {
            listed.errors.add(error);
            let begins =
                |word: &str| trimmed.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word));
            if header.is_none() && [PREFIX, GROUP].into_iter().any(begins) {
                return;
            }
            continue;
        }
        let line = Line { fields: &fields };
        match &header {
            Some(header) => line.list(header, listed),
            None if line.is_header() => {
                let Some(found) = line.header(&mut listed.errors) else { return };
                header = Some(found);
            }
            None => {
                let columns = Vec::new();
                let header = header.insert(Header { is_given: false, has_prefixes: true, columns });
                match line.check_first() {
                    Ok(()) => line.list(header, listed),
                    Err(error) => listed.errors.add(error),
                }
            }
        }
    }
}

/// The columns of a file.
struct Header {
    is_given: bool,
    /// Whether the prefix is before the label.
    has_prefixes: bool,
    /// Those after the label.
    columns: Vec<Arc<str>>,
}

impl Header {
    /// The index of the label.
    fn label(&self) -> usize {
        usize::from(self.has_prefixes)
    }
}

/// A line with fields.
struct Line<'a> {
    fields: &'a [Field<'a>],
}

impl Line<'_> {
    fn field(&self, index: usize) -> &str {
        self.fields.get(index).map_or("", |field| &field.text)
    }

    fn start(&self, index: usize) -> usize {
        self.fields.get(index).or(self.fields.last()).map_or(0, |field| field.start)
    }

    fn error(&self, index: usize, reason: impl Into<String>) -> TextError {
        TextError::new(self.start(index), reason)
    }

    fn is_header(&self) -> bool {
        [PREFIX, GROUP].iter().any(|word| self.field(0).eq_ignore_ascii_case(word))
    }

    /// Reads the header; `None` if it has errors.
    fn header(&self, errors: &mut TextErrors) -> Option<Header> {
        let has_prefixes = self.field(0).eq_ignore_ascii_case(PREFIX);
        if self.fields.len() < 2 {
            errors.add(self.error(
                0,
                if has_prefixes {
                    "the header names no label; write `prefix,group`"
                } else {
                    "the header names neither prefixes nor other columns; write `prefix,group`, or `group,site`"
                },
            ));
        }
        let mut columns: Vec<Arc<str>> = Vec::new();
        for index in 1 + usize::from(has_prefixes)..self.fields.len() {
            let name = self.field(index);
            if name.is_empty() {
                errors.add(self.error(index, "the column has no name; name it in the header"));
            } else if columns.iter().any(|other| **other == *name) {
                let reason = format!("there is a column `{name}` already; give this one another name");
                errors.add(self.error(index, reason));
            }
            if let Err(reason) = column_name(name) {
                errors.add(self.error(index, reason));
            }
            columns.push(name.into());
        }
        errors.is_empty().then_some(Header { is_given: true, has_prefixes, columns })
    }

    /// Checks the first line: without a prefix it is most likely meant as a header.
    fn check_first(&self) -> Result<(), TextError> {
        match prefix(self.field(0)) {
            Err(reason) if !self.field(0).contains(['.', ':', '/']) => {
                let header =
                    format!("a header begins with the word `{PREFIX}`, or `{GROUP}` without prefixes");
                Err(self.error(0, format!("{reason}; {header}")))
            }
            _ => Ok(()),
        }
    }

    fn list(&self, header: &Header, listed: &mut Listed<'_>) {
        let at = |index: usize| move |reason: String| self.error(index, reason);
        let of_label = header.label();
        // Without other columns, a label alone says nothing.
        let is_alone = !header.has_prefixes || self.field(0).is_empty() && !header.columns.is_empty();
        let prefix = if is_alone {
            listed.errors.ok_or_add(listed.without_prefix().map_err(at(0)));
            None
        } else {
            listed.errors.ok_or_add(prefix(self.field(0)).map_err(at(0)))
        };
        let known = of_label + 1 + header.columns.len();
        match self.fields.len() {
            fields if fields <= of_label => {
                return listed.errors.add(self.error(0, "there is no label; write `prefix,label`"));
            }
            fields if fields <= known => {}
            _ if header.is_given => {
                let reason =
                    "the header has no such column; name it there, or put a field with a comma in quotes";
                listed.errors.add(self.error(known, reason));
            }
            _ => {
                let reason = "more columns need a header; begin the file with a line that names them, such as \
                              `prefix,group,site`";
                listed.errors.add(self.error(known, reason));
            }
        }
        let label = listed.label(self.field(of_label)).map_err(at(of_label));
        let Some(label) = listed.errors.ok_or_add(label) else { return };
        for (index, name) in (of_label + 1..).zip(&header.columns) {
            let column = listed.column(label, name, self.field(index)).map_err(at(index));
            listed.errors.ok_or_add(column);
        }
        let Some(prefix) = prefix else { return };
        let added = listed.prefix(self.start(0), prefix, label).map_err(at(0));
        listed.errors.ok_or_add(added);
    }
}
