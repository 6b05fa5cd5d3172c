//! Every kind of record of a capture validates against `docs/schema/record.json`.

use serde_json::{Value, json};

use super::{
    made::{MILLISECOND, START, connection, pcap},
    program::{Temporary, pping},
};
use crate::schemas::validator;

/// Returns records of all kinds, with groups of all kinds.
fn records() -> Vec<Value> {
    let capture = Temporary::new("capture", &pcap(&connection(40_000, START, 12, 5 * MILLISECOND)));
    let groups = Temporary::new("groups.csv", b"prefix,group,site\n192.0.2.0/24,customer,berlin\n");
    let groups = groups.path.display();
    let mut records = Vec::new();
    for grouping in [
        String::new(),
        "--group-by /24,/48,both,dscp".to_owned(),
        format!("--groups {groups}"),
        format!("--groups {groups} --group-by both"),
    ] {
        let command =
            format!("-r {} --aggregate 5s --flow-summary --with-samples {grouping}", capture.path.display());
        let output = pping(&command).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        records.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    records
}

/// Returns the first record that has `field` and whose field `name` has this value.
fn find<'a>(records: &'a [Value], field: &str, (name, value): (&str, &Value)) -> &'a Value {
    let found = records.iter().find(|record| record.get(field).is_some() && record.get(name) == Some(value));
    found.unwrap_or_else(|| panic!("no record with {field}, and {name} {value}"))
}

#[test]
fn records_of_all_kinds_validate_and_spoiled_ones_do_not() {
    let validator = validator("record.json");
    let records = records();
    for record in &records {
        let errors: Vec<String> = validator.iter_errors(record).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{record}: {errors:?}");
    }
    let tcp = json!("TCP");
    find(&records, "rtt", ("group", &json!("customer")));
    find(&records, "flow_event", ("reason", &json!("SYN")));
    find(&records, "labels", ("group", &json!("customer")));
    let summary = find(&records, "src_rtt", ("protocol", &tcp));
    // A record with traffic alone has no RTTs to spoil.
    let with_samples: Vec<Value> =
        records.iter().filter(|record| record["count"] != json!(0)).cloned().collect();
    let aggregate = find(&with_samples, "prefix", ("dscp", &json!(0)));
    for (record, optional) in
        [(summary, &["src_rtt", "dest_rtt"][..]), (aggregate, &["prefix", "dscp", "quality"])]
    {
        let fields = record.as_object().unwrap();
        for name in fields.keys() {
            let mut without = fields.clone();
            without.remove(name);
            let is_optional = optional.contains(&name.as_str());
            assert_eq!(validator.is_valid(&without.into()), is_optional, "{record} without {name}");
            let mut spoiled = record.clone();
            spoiled[name] = json!([-1]);
            assert!(!validator.is_valid(&spoiled), "valid: {spoiled}");
        }
        let mut with = record.clone();
        with["colour"] = json!("blue");
        assert!(!validator.is_valid(&with), "valid: {with}");
    }
    let mut empty = aggregate.clone();
    empty["count"] = json!(0);
    assert!(!validator.is_valid(&empty), "RTTs without samples: {empty}");
}
