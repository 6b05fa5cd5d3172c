//! The content of a groups file, in any format.

use std::sync::Arc;

use indexmap::IndexMap;
use ipnet::IpNet;
use pping_common::limits::MAX_LABELLED_PREFIXES;

use crate::{
    groups::{
        labels::{Columns, Labels},
        valid,
    },
    text::{Position, TextError, TextErrors},
};

/// The content of a groups file.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// Prefixes, each with the number of its label.
    pub prefixes: Vec<(IpNet, u32)>,
    /// The other columns of each label, by its number. It may have no prefix.
    pub columns: Vec<(u32, Arc<Columns>)>,
    /// The names of these columns, in the order of the file.
    pub column_names: Vec<Arc<str>>,
}

/// Whether a groups file has to have prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixRule {
    /// Each label has to have one.
    EachLabel,
    /// There has to be one: without any, all hosts would be `unlisted`.
    AtLeastOne,
    /// They may all come by the socket.
    Optional,
}

impl PrefixRule {
    /// The rule with or without a groups socket.
    pub fn of(has_socket: bool) -> Self {
        if has_socket { Self::Optional } else { Self::AtLeastOne }
    }
}

/// A prefix, the index of its label, and the offset of its text.
struct Entry {
    prefix: IpNet,
    label: u32,
    offset: u32,
}

/// The part of a file that was read so far. The index of a label is its order in the file. Errors are reasons without a position.
pub(super) struct Listed<'a> {
    text: &'a str,
    prefixes: PrefixRule,
    labels: IndexMap<Arc<str>, Columns>,
    columns: Vec<Arc<str>>,
    entries: Vec<Entry>,
    pub(super) errors: TextErrors,
}

impl<'a> Listed<'a> {
    pub(super) fn new(text: &'a str, prefixes: PrefixRule) -> Self {
        Self {
            text,
            prefixes,
            labels: IndexMap::new(),
            columns: Vec::new(),
            entries: Vec::new(),
            errors: TextErrors::default(),
        }
    }

    /// Adds a label, and returns its index.
    pub(super) fn label(&mut self, label: &str) -> Result<u32, String> {
        if let Some(index) = self.labels.get_index_of(label) {
            return Ok(index as u32);
        }
        valid::label(label)?;
        if self.labels.len() >= MAX_LABELLED_PREFIXES as usize {
            return Err(format!("there are more than {MAX_LABELLED_PREFIXES} labels; remove some"));
        }
        let (index, _) = self.labels.insert_full(label.into(), Columns::new());
        Ok(index as u32)
    }

    /// Adds another column of a label.
    pub(super) fn column(&mut self, label: u32, name: &Arc<str>, value: &str) -> Result<(), String> {
        if !self.columns.iter().any(|known| Arc::ptr_eq(known, name) || known == name) {
            self.columns.push(Arc::clone(name));
        }
        let Some((label, known)) = self.labels.get_index_mut(label as usize) else { return Ok(()) };
        if value.is_empty() {
            return Ok(());
        }
        valid::column(name, value)?;
        match known.iter().find(|(known, _)| known == name) {
            None => {
                known.push((Arc::clone(name), value.into()));
                Ok(())
            }
            Some((_, earlier)) if **earlier == *value => Ok(()),
            Some((_, earlier)) => Err(format!(
                "the {name} of `{label}` is `{earlier}` further up; write the same here, or make two groups"
            )),
        }
    }

    /// The names of the other columns so far, in the order of the file.
    pub(super) fn columns(&self) -> &[Arc<str>] {
        &self.columns
    }

    /// Checks whether a label may be listed without a prefix.
    pub(super) fn without_prefix(&self) -> Result<(), String> {
        if self.prefixes == PrefixRule::EachLabel {
            return Err("the prefix is missing; only a file of --groups has labels without one".to_owned());
        }
        Ok(())
    }

    /// Adds a prefix whose text begins at `offset`.
    pub(super) fn prefix(&mut self, offset: usize, prefix: IpNet, label: u32) -> Result<(), String> {
        if self.entries.len() >= MAX_LABELLED_PREFIXES as usize {
            return Err(format!("there are more than {MAX_LABELLED_PREFIXES} prefixes; remove some"));
        }
        // No file is longer than 2^32 bytes.
        self.entries.push(Entry { prefix, label, offset: offset as u32 });
        Ok(())
    }

    /// Notes each prefix that is listed with two labels. The same line twice does no harm. A file without prefixes, or without
    /// anything, is an error too: most likely it is still being written, or the program that makes it has failed.
    pub(super) fn check(&mut self) {
        let may_lack_prefixes = self.prefixes == PrefixRule::Optional;
        if self.entries.is_empty() && self.errors.is_empty() && (!may_lack_prefixes || self.labels.is_empty())
        {
            let reason = if may_lack_prefixes {
                "there is neither a prefix nor a label in this file; add a line like `192.0.2.0/24,office`, or leave --groups out"
            } else {
                "there is no prefix in this file, so all hosts would be `unlisted`; add a line like `192.0.2.0/24,office`, or \
                 leave --groups out (only labels whose prefixes come by --groups-socket need none here)"
            };
            self.errors.add(TextError::new(0, reason));
        }
        self.entries.sort_unstable_by_key(|entry| (entry.prefix, entry.offset));
        for pair in self.entries.windows(2) {
            if let [earlier, later] = pair
                && earlier.prefix == later.prefix
                && earlier.label != later.label
            {
                let label =
                    self.labels.get_index(earlier.label as usize).map_or("", |(label, _)| label.as_ref());
                let line = Position::new(self.text, earlier.offset as usize).line;
                let prefix = earlier.prefix;
                let reason = format!(
                    "{prefix} is in the group `{label}` already, on line {line}; remove one of the two"
                );
                self.errors.add(TextError::new(later.offset as usize, reason));
            }
        }
        self.entries.dedup_by_key(|entry| entry.prefix);
    }
}

/// What was read, without the text.
pub(super) fn into_file(listed: Listed<'_>) -> GroupsFile {
    let labels = listed.labels.into_iter().map(|(label, columns)| (label, Arc::new(columns))).collect();
    GroupsFile { labels, column_names: listed.columns, entries: listed.entries }
}

/// What was read of a groups file. Its labels have no numbers yet.
pub struct GroupsFile {
    labels: IndexMap<Arc<str>, Arc<Columns>>,
    column_names: Vec<Arc<str>>,
    entries: Vec<Entry>,
}

/// How many labels are numbered at a time.
const STEP: usize = 4096;

impl GroupsFile {
    /// The prefixes, with their labels and the other columns of these.
    pub fn rows(&self) -> impl Iterator<Item = (IpNet, &Arc<str>, &Columns)> {
        self.entries.iter().filter_map(|entry| {
            let (label, columns) = self.labels.get_index(entry.label as usize)?;
            Some((entry.prefix, label, &**columns))
        })
    }

    /// Numbers the labels, some at a time: `with_labels` lends the labels to a step. Labels that are known keep their other columns,
    /// until [`Groups::columns`] replaces them.
    pub fn number(self, mut with_labels: impl FnMut(&mut dyn FnMut(&mut Labels))) -> Groups {
        let mut numbers: Vec<u32> = Vec::with_capacity(self.labels.len());
        while numbers.len() < self.labels.len() {
            let step = self.labels.iter().skip(numbers.len()).take(STEP);
            with_labels(&mut |labels| {
                for (label, columns) in step.clone() {
                    let known = labels.known_number(label);
                    numbers.push(known.unwrap_or_else(|| labels.number_with(label, Arc::clone(columns))));
                }
            });
        }
        let named = |entry: Entry| Some((entry.prefix, *numbers.get(entry.label as usize)?));
        let prefixes = self.entries.into_iter().filter_map(named).collect();
        let columns = numbers.iter().copied().zip(self.labels.into_values()).collect();
        Groups { prefixes, columns, column_names: self.column_names }
    }
}
