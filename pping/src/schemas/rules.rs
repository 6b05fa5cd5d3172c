//! What is true of all JSON that pping writes, so that no type has to say it.

use schemars::Schema;
use serde_json::{Map, Value, json};

/// Completes a schema, without those inside it.
pub(super) type Rule = fn(&mut Schema);

/// All rules, in the order in which they apply.
pub(super) const ALL: &[Rule] =
    &[one_line, enumerated, exact, closed, without_default, absent_instead_of_null];

/// The rules of what pping reads.
pub(super) const OF_QUERIES: &[Rule] = &[one_line, enumerated, exact];

/// Joins the lines of a description: comments are wrapped.
fn one_line(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
}

/// Removes the default of a field, which is for reading what other versions wrote.
fn without_default(schema: &mut Schema) {
    schema.remove("default");
}

/// Makes an enumeration of alternatives that are one text each, and describes the texts together.
fn enumerated(schema: &mut Schema) {
    let Some(alternatives) = schema.get("oneOf").and_then(Value::as_array) else { return };
    let text = |of: &Value| {
        let description = of["description"].as_str().unwrap_or_default();
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        Some((of["const"].as_str()?.to_owned(), description))
    };
    let Some(texts) = alternatives.iter().map(text).collect::<Option<Vec<_>>>() else { return };
    let mut description = schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    for (text, meaning) in &texts {
        description.extend([" `", text, "`: ", meaning]);
    }
    let names: Vec<_> = texts.into_iter().map(|(text, _)| text).collect();
    schema.remove("oneOf");
    schema.insert("type".into(), "string".into());
    schema.insert("enum".into(), json!(names));
    schema.insert("description".into(), description.trim().into());
}

/// An object has no other fields than those of its type.
fn closed(schema: &mut Schema) {
    if schema.get("type") == Some(&json!("object")) && schema.get("properties").is_some() {
        schema.ensure_object().entry("additionalProperties").or_insert(false.into());
    }
}

/// No figure is negative, and `usize` has 64 bits.
fn exact(schema: &mut Schema) {
    if schema.get("format") == Some(&json!("double")) {
        schema.ensure_object().entry("minimum").or_insert(0.into());
    }
    if schema.get("format") == Some(&json!("uint")) {
        schema.insert("format".into(), "uint64".into());
    }
}

/// A field that may be absent is never null.
fn absent_instead_of_null(schema: &mut Schema) {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_object = schema.get("type") == Some(&json!("object"));
    let Some(Value::Object(fields)) = schema.get_mut("properties") else { return };
    for (name, field) in fields {
        if let Value::Object(field) = field
            && is_object
            && !required.contains(&name.as_str().into())
        {
            without_null(field);
        }
    }
}

/// Removes null from what a schema allows.
pub(crate) fn without_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &mut types[..] {
            let only = only.take();
            schema.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(texts)) = schema.get_mut("enum") {
        texts.retain(|text| !text.is_null());
    }
    if let Some(Value::Array(alternatives)) = schema.get_mut("anyOf") {
        alternatives.retain(|it| *it != json!({ "type": "null" }));
        if let [Value::Object(only)] = &mut alternatives[..] {
            let only = std::mem::take(only);
            schema.remove("anyOf");
            only.into_iter().for_each(|(keyword, value)| {
                schema.entry(keyword).or_insert(value);
            });
        }
    }
}
