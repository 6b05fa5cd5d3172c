//! The content of a groups file, in any format.

use std::sync::Arc;

use indexmap::IndexMap;
use ipnet::{IpNet, Ipv4Net};
use pping_common::limits::MAX_LABELLED_PREFIXES;

use crate::{
    config::{leading_zero, network, without_host_bits},
    groups::labels::{ALL, Columns, Labels, OTHER, UNLISTED},
    text::{Position, TextError, TextErrors},
    worst::EXPECTED_RTT,
};

/// The content of a groups file.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// Prefixes, each with the number of its label.
    pub prefixes: Vec<(IpNet, u32)>,
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
    labels: IndexMap<Arc<str>, Columns>,
    entries: Vec<Entry>,
    pub(super) errors: TextErrors,
}

impl<'a> Listed<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, labels: IndexMap::new(), entries: Vec::new(), errors: TextErrors::default() }
    }

    /// Adds a label, and returns its index.
    pub(super) fn label(&mut self, label: &str) -> Result<u32, String> {
        if let Some(index) = self.labels.get_index_of(label) {
            return Ok(index as u32);
        }
        if label.is_empty() {
            return Err("the label is empty; name the group that the prefix belongs to".to_owned());
        }
        without_control("label", label)?;
        if [ALL, OTHER, UNLISTED].contains(&label) {
            return Err(format!("`{label}` is the name of one of pping's own groups; choose another label"));
        }
        let (index, _) = self.labels.insert_full(label.into(), Columns::new());
        Ok(index as u32)
    }

    /// Adds another column of a label.
    pub(super) fn column(&mut self, label: u32, name: &Arc<str>, value: &str) -> Result<(), String> {
        let Some((label, known)) = self.labels.get_index_mut(label as usize) else { return Ok(()) };
        if value.is_empty() {
            return Ok(());
        }
        without_control(name, value)?;
        if **name == *EXPECTED_RTT && humantime::parse_duration(value).is_err() {
            return Err(format!("`{value}` is not a time; give a number with its unit, like 600ms"));
        }
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

    /// Adds a prefix whose text begins at `offset`.
    pub(super) fn prefix(&mut self, offset: usize, prefix: IpNet, label: u32) -> Result<(), String> {
        if self.entries.len() >= MAX_LABELLED_PREFIXES as usize {
            return Err(format!("there are more than {MAX_LABELLED_PREFIXES} prefixes; remove some"));
        }
        // No file is longer than 2^32 bytes.
        self.entries.push(Entry { prefix, label, offset: offset as u32 });
        Ok(())
    }

    /// Notes each prefix that is listed with two labels. The same line twice does no harm. A file without prefixes is a
    /// error too: most likely it is still being written, or the program that makes it has failed.
    pub(super) fn check(&mut self) {
        if self.entries.is_empty() && self.errors.is_empty() {
            let reason = "there is no prefix in this file, so all hosts would be `unlisted`; add a line like \
                          `192.0.2.0/24,office`, or leave --groups out";
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

    /// Replaces the indices of labels by their numbers.
    pub(super) fn number(self, labels: &mut Labels) -> Groups {
        let numbers: Vec<u32> =
            self.labels.into_iter().map(|(label, columns)| labels.number(&label, columns)).collect();
        let named = |entry: Entry| Some((entry.prefix, *numbers.get(entry.label as usize)?));
        Groups { prefixes: self.entries.into_iter().filter_map(named).collect() }
    }
}

/// Names of labels that `OpenMetrics` keeps for the parts of histograms and summaries: `pping_group_info` cannot have them.
const RESERVED: [&str; 2] = ["le", "quantile"];

/// Letters that a name may differ in from that of the column with a meaning, and is most likely meant as that.
const TYPING_ERRORS: usize = 2;

/// Refuses control characters, which a line break is too: no reader of records and metrics expects any.
fn without_control(what: &str, text: &str) -> Result<(), String> {
    if text.contains(char::is_control) {
        return Err(format!("the {what} has a control character or a line break; remove it"));
    }
    Ok(())
}

/// Checks the name of a column. An error says what to write instead.
pub(super) fn column_name(name: &str) -> Result<(), String> {
    without_control("name of the column", name)?;
    let letters =
        |name: &str| name.chars().filter(|it| it.is_alphanumeric()).collect::<String>().to_lowercase();
    if name != EXPECTED_RTT
        && strsim::damerau_levenshtein(&letters(name), &letters(EXPECTED_RTT)) <= TYPING_ERRORS
    {
        return Err(format!(
            "`{name}` is most likely meant as `{EXPECTED_RTT}`; write it like that, or rename the column"
        ));
    }
    if RESERVED.contains(&name) {
        return Err(format!(
            "a column cannot be called `{name}`, a label of histograms and summaries; rename it"
        ));
    }
    Ok(())
}

/// Parses a prefix or an address. An IPv4-mapped IPv6 prefix becomes IPv4. An error says what to write instead.
pub(super) fn prefix(text: &str) -> Result<IpNet, String> {
    without_control("prefix", text)?;
    let prefix = without_host_bits(network(text).ok_or_else(|| no_prefix(text))?)?;
    if let IpNet::V6(v6) = prefix
        && let Some(address) = v6.addr().to_ipv4_mapped()
        && let Some(len) = v6.prefix_len().checked_sub(96)
        && let Ok(v4) = Ipv4Net::new(address, len)
    {
        return Ok(v4.into());
    }
    Ok(prefix)
}

fn no_prefix(text: &str) -> String {
    if let Some(reason) = leading_zero(text) {
        return reason;
    }
    let len = |bits| format!("`{text}`: the length is a number from 0 to {bits}");
    match text.split_once('/').and_then(|(address, _)| network(address)) {
        Some(IpNet::V4(_)) => len(32),
        Some(IpNet::V6(_)) => len(128),
        _ if text.is_empty() => {
            "the prefix is missing; give one like 192.0.2.0/24 or 2001:db8::/32".to_owned()
        }
        _ => format!("`{text}` is not a prefix; give one like 192.0.2.0/24 or 2001:db8::/32"),
    }
}
