//! The JSON schemas of `docs/schema`, made from the types that are serialised. For tests only: each compares a file with what
//! the types say.

mod names;
mod print;
mod rules;

use std::{env, fs, path::Path};

use schemars::{
    JsonSchema, SchemaGenerator,
    generate::{Contract, SchemaSettings},
    transform::RecursiveTransform,
};
use serde_json::Value;

pub(crate) use self::names::*;
#[cfg(feature = "live")]
pub(crate) use self::rules::without_null;

/// A generator for the JSON that pping writes or reads. `definitions` is where types are defined in the document.
pub(crate) fn generator(definitions: &'static str, contract: Contract) -> SchemaGenerator {
    let rules = if contract.is_serialize() { rules::ALL } else { rules::OF_QUERIES };
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = definitions.into();
        settings.contract = contract;
    });
    let add =
        |settings: SchemaSettings, rule: &rules::Rule| settings.with_transform(RecursiveTransform(*rule));
    rules.iter().fold(settings, add).into_generator()
}

/// The JSON Schema of a type.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    generator("/$defs", Contract::Serialize).into_root_schema_for::<T>().to_value()
}

/// The names of a type's fields that are always there.
pub(crate) fn fields_of<T: JsonSchema>() -> Vec<String> {
    let schema = schema_of::<T>();
    let names = schema["required"].as_array().unwrap().iter();
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Compares a file of `docs/schema` with what the types say, and writes the new one if they differ.
#[track_caller]
pub(crate) fn assert_is_in_file(made: &Value, name: &str) {
    assert_leads_somewhere(made, made);
    let made = print::pretty(made);
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema").join(name).canonicalize().unwrap();
    if made != fs::read_to_string(&file).unwrap() {
        let new = env::current_exe().unwrap().with_file_name(name);
        fs::write(&new, made).unwrap();
        panic!("docs/schema/{name} is out of date; run `cp {} {}`", new.display(), file.display());
    }
}

/// Asserts that each reference leads to something in the document.
#[track_caller]
fn assert_leads_somewhere(part: &Value, document: &Value) {
    match part {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                let found = reference.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
                assert!(found.is_some(), "{reference} leads nowhere");
            }
            members.values().for_each(|member| assert_leads_somewhere(member, document));
        }
        Value::Array(items) => items.iter().for_each(|item| assert_leads_somewhere(item, document)),
        _ => {}
    }
}
