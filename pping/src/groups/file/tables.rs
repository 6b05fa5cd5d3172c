//! TOML: a table for each group, with its label, its prefixes and other columns.

use std::sync::Arc;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::listed::{Listed, column_name, prefix};
use crate::text::Mistake;

/// The form of a group.
const EXAMPLE: &str = "write `[[group]]`, `label = \"office\"` and `prefixes = [\"192.0.2.0/24\"]`";

/// Reads all tables.
pub(super) fn read(text: &str, listed: &mut Listed<'_>) -> Result<(), Mistake> {
    let document = DeTable::parse(text).map_err(|error| Mistake::of_toml(&error))?;
    for (key, value) in document.get_ref() {
        let groups = match (key.get_ref().as_ref(), value.get_ref()) {
            ("group", DeValue::Array(groups)) => groups,
            (key, _) => return Err(Mistake::at(value, format!("`{key}` is not known here; {EXAMPLE}"))),
        };
        for group in groups {
            let DeValue::Table(table) = group.get_ref() else { return Err(Mistake::at(group, EXAMPLE)) };
            list(group, table, listed)?;
        }
    }
    Ok(())
}

fn list(group: &Spanned<DeValue<'_>>, table: &DeTable<'_>, listed: &mut Listed<'_>) -> Result<(), Mistake> {
    let name = table
        .get("label")
        .ok_or_else(|| Mistake::at(group, "the group has no label; give it `label = \"...\"`"))?;
    let label = listed.label(string(name)?).map_err(|reason| Mistake::at(name, reason))?;
    let missing = || Mistake::at(group, "the group has no prefixes; give it `prefixes = [\"192.0.2.0/24\"]`");
    let prefixes = table.get("prefixes").ok_or_else(missing)?;
    for (key, value) in table {
        let start = key.span().start;
        let key = key.get_ref().as_ref();
        if !["label", "prefixes"].contains(&key) {
            column_name(key).map_err(|reason| Mistake::new(start, reason))?;
            listed
                .column(label, &Arc::from(key), string(value)?)
                .map_err(|reason| Mistake::at(value, reason))?;
        }
    }
    let DeValue::Array(prefixes) = prefixes.get_ref() else {
        return Err(Mistake::at(prefixes, "this is not a list; write `prefixes = [\"192.0.2.0/24\"]`"));
    };
    for value in prefixes {
        let prefix = prefix(string(value)?).map_err(|reason| Mistake::at(value, reason))?;
        listed.prefix(value.span().start, prefix, label).map_err(|reason| Mistake::at(value, reason))?;
    }
    Ok(())
}

fn string<'a>(value: &'a Spanned<DeValue<'_>>) -> Result<&'a str, Mistake> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text),
        _ => Err(Mistake::at(value, "this is not a string; put it in quotation marks")),
    }
}
