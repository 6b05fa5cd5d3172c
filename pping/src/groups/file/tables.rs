//! TOML: a table for each group, with its label, its prefixes and other columns.

use std::sync::Arc;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::listed::Listed;
use crate::{
    groups::valid::{column_name, prefix},
    text::TextError,
};

/// The form of a group.
const EXAMPLE: &str = "write `[[group]]`, `label = \"office\"` and `prefixes = [\"192.0.2.0/24\"]`";

/// Reads all tables. What has an error lists nothing.
pub(super) fn read(text: &str, listed: &mut Listed<'_>) {
    let (document, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // The values around them may mean anything.
        return errors.iter().for_each(|error| listed.errors.add(TextError::of_toml(error)));
    }
    for (key, value) in document.get_ref() {
        let groups = match (key.get_ref().as_ref(), value.get_ref()) {
            ("group", DeValue::Array(groups)) => groups,
            (key, _) => {
                listed.errors.add(TextError::at(value, format!("`{key}` is not known here; {EXAMPLE}")));
                continue;
            }
        };
        for group in groups {
            match group.get_ref() {
                DeValue::Table(table) => list(group, table, listed),
                _ => listed.errors.add(TextError::at(group, EXAMPLE)),
            }
        }
    }
}

fn list(group: &Spanned<DeValue<'_>>, table: &DeTable<'_>, listed: &mut Listed<'_>) {
    let label = label(group, table, listed);
    let label = listed.errors.ok_or_add(label);
    for (key, value) in table {
        let start = key.span().start;
        let key = key.get_ref().as_ref();
        if !["label", "prefixes"].contains(&key) {
            let name = column_name(key).map_err(|reason| TextError::new(start, reason));
            let text = name.and_then(|()| string(value));
            let (Some(text), Some(label)) = (listed.errors.ok_or_add(text), label) else { continue };
            let column = listed.column(label, &Arc::from(key), text);
            listed.errors.ok_or_add(column.map_err(|reason| TextError::at(value, reason)));
        }
    }
    let prefixes = match table.get("prefixes").map(|prefixes| (prefixes, prefixes.get_ref())) {
        Some((_, DeValue::Array(prefixes))) => prefixes,
        Some((other, _)) => {
            let reason = "this is not a list; write `prefixes = [\"192.0.2.0/24\"]`";
            return listed.errors.add(TextError::at(other, reason));
        }
        None if table.len() > 1 && listed.without_prefix().is_ok() => return,
        None => {
            let reason = "the group has no prefixes; give it `prefixes = [\"192.0.2.0/24\"]`";
            return listed.errors.add(TextError::at(group, reason));
        }
    };
    if prefixes.is_empty() {
        let allowed = listed.without_prefix().map_err(|reason| TextError::at(group, reason));
        listed.errors.ok_or_add(allowed);
    }
    for value in prefixes {
        let prefix =
            string(value).and_then(|text| prefix(text).map_err(|reason| TextError::at(value, reason)));
        let (Some(prefix), Some(label)) = (listed.errors.ok_or_add(prefix), label) else { continue };
        let added = listed.prefix(value.span().start, prefix, label);
        listed.errors.ok_or_add(added.map_err(|reason| TextError::at(value, reason)));
    }
}

fn label(
    group: &Spanned<DeValue<'_>>,
    table: &DeTable<'_>,
    listed: &mut Listed<'_>,
) -> Result<u32, TextError> {
    let name = table
        .get("label")
        .ok_or_else(|| TextError::at(group, "the group has no label; give it `label = \"...\"`"))?;
    listed.label(string(name)?).map_err(|reason| TextError::at(name, reason))
}

fn string<'a>(value: &'a Spanned<DeValue<'_>>) -> Result<&'a str, TextError> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text),
        _ => Err(TextError::at(value, "this is not a string; put it in quotation marks")),
    }
}
