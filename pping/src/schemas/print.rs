//! Prints schemas for people.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The most characters of a line, except where a text is longer.
const WIDTH: usize = 110;

const INDENT: usize = 2;

/// Keywords in the order in which people look for them. Others come last, and the definitions at the end.
const KEYWORDS: [&str; 32] = [
    "$schema",
    "openapi",
    "info",
    "servers",
    "paths",
    "components",
    "title",
    "name",
    "in",
    "summary",
    "description",
    "parameters",
    "responses",
    "$ref",
    "type",
    "const",
    "enum",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "required",
    "properties",
    "additionalProperties",
    "prefixItems",
    "items",
    "if",
    "then",
    "else",
    "oneOf",
];

/// Prints JSON: on one line what fits there, keywords in order, fields in the order in which records have them.
pub(super) fn pretty(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, 0, 0, &[]);
    text + "\n"
}

/// Appends a value after `column` characters of its line. `fields` is the order of names, if it is none of keywords.
fn write(text: &mut String, value: &Value, indent: usize, column: usize, fields: &[Value]) {
    let line = line(value, fields);
    if column + line.chars().count() <= WIDTH {
        text.push_str(&line);
        return;
    }
    let inner = indent + INDENT;
    match value {
        Value::Object(members) => {
            text.push_str("{\n");
            let members = in_order(members, fields);
            for (index, (name, member)) in members.iter().enumerate() {
                let separator = if index + 1 == members.len() { "" } else { "," };
                let name = format!("{:inner$}{}: ", "", Value::from(*name));
                text.push_str(&name);
                // The comma after it.
                let column = name.chars().count() + separator.len();
                write(text, member, inner, column, order_within(value, &name));
                writeln!(text, "{separator}").unwrap();
            }
            write!(text, "{:indent$}}}", "").unwrap();
        }
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            write!(text, "[\n{:inner$}", "").unwrap();
            let mut column = inner;
            for (index, item) in items.iter().enumerate() {
                let separator = if index + 1 == items.len() { "" } else { "," };
                let item = format!("{item}{separator}");
                if index > 0 && column + 1 + item.chars().count() > WIDTH {
                    write!(text, "\n{:inner$}", "").unwrap();
                    column = inner;
                } else if index > 0 {
                    text.push(' ');
                    column += 1;
                }
                column += item.chars().count();
                text.push_str(&item);
            }
            write!(text, "\n{:indent$}]", "").unwrap();
        }
        Value::Array(items) => {
            text.push_str("[\n");
            for (index, item) in items.iter().enumerate() {
                let separator = if index + 1 == items.len() { "" } else { "," };
                write!(text, "{:inner$}", "").unwrap();
                write(text, item, inner, inner + separator.len(), &[]);
                writeln!(text, "{separator}").unwrap();
            }
            write!(text, "{:indent$}]", "").unwrap();
        }
        _ => text.push_str(&line),
    }
}

/// A value on one line.
fn line(value: &Value, fields: &[Value]) -> String {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let member = |(name, member): (&str, &Value)| {
                format!("{}: {}", Value::from(name), line(member, order_within(value, name)))
            };
            let members: Vec<_> = in_order(members, fields).into_iter().map(member).collect();
            format!("{{ {} }}", members.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| line(item, &[])).collect();
            format!("[{}]", items.join(", "))
        }
        _ => value.to_string(),
    }
}

/// The order of the names in a member of a schema: that of the required fields, if the member is its properties.
fn order_within<'a>(schema: &'a Value, name: &str) -> &'a [Value] {
    let required = if name.contains("properties") { schema.get("required") } else { None };
    required.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The members of an object in order.
fn in_order<'a>(members: &'a Map<String, Value>, fields: &[Value]) -> Vec<(&'a str, &'a Value)> {
    let mut members: Vec<_> = members.iter().map(|(name, member)| (name.as_str(), member)).collect();
    members.sort_by_key(|(name, _)| {
        let position = if fields.is_empty() {
            KEYWORDS.iter().position(|keyword| keyword == name)
        } else {
            fields.iter().position(|field| field == name)
        };
        position.unwrap_or(if *name == "$defs" { usize::MAX } else { KEYWORDS.len() })
    });
    members
}
