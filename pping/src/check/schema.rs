//! The JSON Schema of `pping check --json`, `docs/schema/check.json`: what the types say, and which fields go together.

use schemars::Schema;
use serde_json::{Value, json};

use super::report::{Report, Status};
use crate::schemas::{assert_is_in_file, schema_of};

/// All results.
const STATUSES: [Status; 4] = [Status::Ok, Status::Degraded, Status::Missing, Status::Unknown];

/// Whether pping can run despite such a result.
fn can_run(status: Status) -> bool {
    match status {
        Status::Ok | Status::Degraded | Status::Unknown => true,
        Status::Missing => false,
    }
}

/// Whether such a result has a remedy.
fn has_remedy(status: Status) -> bool {
    match status {
        Status::Degraded | Status::Missing => true,
        Status::Ok | Status::Unknown => false,
    }
}

/// Says which results have a remedy.
pub(super) fn by_status(schema: &mut Schema) {
    let with_remedy: Vec<_> = STATUSES.into_iter().filter(|status| has_remedy(*status)).collect();
    schema.insert("if".into(), json!({ "properties": { "status": { "enum": with_remedy } } }));
    schema.insert("then".into(), json!({ "required": ["remedy"] }));
    schema.insert("else".into(), json!({ "not": { "required": ["remedy"] } }));
}

/// Says with which results pping can run.
pub(super) fn by_result(schema: &mut Schema) {
    let (runs, fails): (Vec<_>, Vec<_>) = STATUSES.into_iter().partition(|status| can_run(*status));
    let of_status = |statuses: &[Status]| json!({ "properties": { "status": { "enum": statuses } } });
    let of_checks = |checks: Value| json!({ "properties": { "checks": checks } });
    schema.insert("if".into(), json!({ "properties": { "ok": { "const": false } } }));
    schema.insert("then".into(), of_checks(json!({ "contains": of_status(&fails) })));
    schema.insert("else".into(), of_checks(json!({ "items": of_status(&runs) })));
}

#[test]
fn schema_is_that_of_the_types() {
    let schema = schema_of::<Report>();
    let listed = schema.pointer("/$defs/Check/properties/status/enum").and_then(Value::as_array);
    assert_eq!(listed.map(Vec::len), Some(STATUSES.len()));
    assert_is_in_file(&schema, "check.json");
}
