//! The JSON Schemas in `docs/schema`.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy only knows the functions that are tests themselves"
)]

use std::{fs, path::Path};

use jsonschema::Validator;
use serde_json::Value;

/// A validator for the schema in a file of `docs/schema`, which checks formats such as `ipv4` too.
pub(crate) fn validator(file: &str) -> Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema").join(file);
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert!(jsonschema::meta::is_valid(&schema), "the schema is no JSON Schema");
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
}
