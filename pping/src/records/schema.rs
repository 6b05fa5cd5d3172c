//! The JSON Schema of records, `docs/schema/record.json`: what the types say, and which fields go together.

use std::collections::BTreeMap;

use pping_common::{
    abi::{FlowEventKind, Part, TriggeredBy},
    flow::Reason,
    method::Method,
    parse::Protocol,
};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::{format::schema_version, record::Record};
use crate::{
    labels::{DNS, flow_event_name, protocol_name, reason_name, triggered_by_name},
    residence::part_name,
    schemas::{assert_is_in_file, fields_of, schema_of},
};

/// Adds what each record begins with.
pub(super) fn begin(type_name: &'static str) -> impl FnMut(&mut Schema) {
    move |schema| {
        let fields = schema.get_mut("properties").and_then(Value::as_object_mut).unwrap();
        fields.insert("schema_version".into(), json!({ "$ref": "#/$defs/SchemaVersion" }));
        fields.insert("type".into(), json!({ "const": type_name }));
        let required = schema.get_mut("required").and_then(Value::as_array_mut).unwrap();
        required.splice(..0, ["schema_version", "type"].map(Value::from));
    }
}

/// Adds the protocols of each method, and the fields that only some methods have.
pub(super) fn by_method(schema: &mut Schema) {
    let of_method = |method: Method| {
        let protocols = match method {
            Method::TcpTs | Method::TcpSeq | Method::TcpHandshake => vec![protocol_name(Protocol::Tcp)],
            Method::IcmpEcho => vec![protocol_name(Protocol::Icmp), protocol_name(Protocol::Icmpv6)],
            Method::Dns => vec![Some(DNS)],
            Method::QuicSpin | Method::QuicHandshake => vec![protocol_name(Protocol::Udp)],
        };
        let mut fields = json!({ "method": { "const": method.name() }, "protocol": { "enum": protocols } });
        let mut branch = Map::new();
        if method == Method::Dns {
            branch.insert("required".into(), json!(["dns_id"]));
        } else {
            fields["dns_id"] = json!(false);
        }
        if method != Method::QuicSpin {
            fields["side_rtt"] = json!(false);
        }
        branch.insert("properties".into(), fields);
        branch
    };
    schema.insert("oneOf".into(), json!(Method::ALL.map(of_method)));
}

/// Adds the reasons for each event, and who can trigger it.
pub(super) fn by_reason(schema: &mut Schema) {
    const ENDS: &[TriggeredBy] = &[TriggeredBy::Source, TriggeredBy::Destination];
    let mut reasons: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for reason in Reason::ALL {
        let (event, triggered_by) = match reason {
            Reason::FirstObserved | Reason::Syn | Reason::SynAck => (FlowEventKind::Opening, ENDS),
            Reason::Fin | Reason::Rst => (FlowEventKind::Closing, ENDS),
            Reason::Timeout => (FlowEventKind::Closing, &[TriggeredBy::GarbageCollection][..]),
        };
        let triggered_by: Vec<_> = triggered_by.iter().map(|it| triggered_by_name(*it)).collect();
        reasons.entry((event as u8, triggered_by)).or_default().push(reason_name(reason));
    }
    let branch = |((event, triggered_by), reasons): ((u8, Vec<&str>), Vec<&str>)| {
        let event = FlowEventKind::from_number(event).map(flow_event_name);
        json!({ "properties": {
            "flow_event": { "const": event },
            "reason": { "enum": reasons },
            "triggered_by": { "enum": triggered_by },
        } })
    };
    schema.insert("oneOf".into(), reasons.into_iter().map(branch).collect());
}

/// Says that a record has the fields of `T` and bins exactly if it counts something.
pub(super) fn with_values<T: JsonSchema>(schema: &mut Schema) {
    let fields = fields_of::<T>();
    let mut absent: Map<_, _> = fields.iter().map(|name| (name.clone(), json!(false))).collect();
    absent.insert("histogram".into(), json!({ "maxItems": 0 }));
    schema.insert("if".into(), json!({ "properties": { "count": { "const": 0 } } }));
    schema.insert("then".into(), json!({ "properties": absent }));
    let present = json!({ "required": fields, "properties": { "histogram": { "minItems": 1 } } });
    schema.insert("else".into(), present);
}

/// Says that a record is that of a group, or of a node of the tree of groups.
pub(super) fn of_group_or_node(schema: &mut Schema) {
    let of_group = json!({ "required": ["group"], "properties": { "level": false, "path": false } });
    let of_node = json!({ "required": ["level", "path"], "properties": { "group": false } });
    schema.insert("oneOf".into(), json!([of_group, of_node]));
}

/// Says that a record of a group is one of the queue, and has no fields of `T`; other records have them.
pub(super) fn by_group<T: JsonSchema>(schema: &mut Schema) {
    let fields = fields_of::<T>();
    let mut of_group: Map<_, _> = fields.iter().map(|name| (name.clone(), json!(false))).collect();
    of_group.insert("residence".into(), json!({ "const": part_name(Part::Queue) }));
    schema.insert("dependentSchemas".into(), json!({ "group": { "properties": of_group } }));
    schema.insert("anyOf".into(), json!([{ "required": ["group"] }, { "required": fields }]));
}

#[test]
fn schema_is_that_of_the_types() {
    let mut schema = schema_of::<Record>();
    schema["$defs"]["SchemaVersion"] = json!({
        "description": "Version of this schema. It goes up when a field changes its meaning or is removed. A new field does not \
                        raise it.",
        "const": schema_version(),
    });
    // A record is of one kind only.
    schema["oneOf"] = schema["anyOf"].take();
    schema.as_object_mut().unwrap().remove("anyOf");
    for kind in schema["oneOf"].as_array().unwrap() {
        let pointer = kind["$ref"].as_str().unwrap().trim_start_matches('#');
        let required = schema.pointer(pointer).unwrap()["required"].as_array().unwrap();
        assert_eq!(required[..2], ["schema_version", "type"], "{pointer}");
    }
    assert_is_in_file(&schema, "record.json");
}
