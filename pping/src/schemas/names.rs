//! The schemas of texts that the code makes of numbers and enumerations: each value is listed by the function that names it.

use std::borrow::Cow;

#[cfg(feature = "live")]
use pping_common::parse::{Direction, Untracked};
use pping_common::{
    abi::{FlowEventKind, Part, TriggeredBy},
    flow::Reason,
    group::Side,
    method::Method,
    parse::Protocol,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

#[cfg(feature = "live")]
use crate::labels::untracked_name;
use crate::{
    labels::{DNS, END_OF_OBSERVATION, flow_event_name, protocol_name, reason_name, triggered_by_name},
    residence::part_name,
};

/// Defines types that stand for a schema: one that is referred to by its name, or one without a name, which is written where it
/// is used and described there.
macro_rules! schemas {
    ($($(#[doc = $doc:literal])+ $type:ident, $name:literal, $schema:expr;)+) => {$(
        $(#[doc = $doc])+
        pub(crate) struct $type;

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn schema_id() -> Cow<'static, str> {
                concat!(module_path!(), "::", stringify!($type)).into()
            }

            fn inline_schema() -> bool {
                $name.is_empty()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let mut schema = $schema;
                if !$name.is_empty() {
                    schema.insert("description".into(), concat!($($doc),+).trim().into());
                }
                schema
            }
        }
    )+};
}

fn one_of(texts: impl IntoIterator<Item = &'static str>) -> Schema {
    json_schema!({ "type": "string", "enum": texts.into_iter().collect::<Vec<_>>() })
}

schemas! {
    /// Method that measured the RTTs (docs/methods.md).
    MethodName, "Method", one_of(Method::ALL.map(Method::name));
    /// Protocol of a sample: that of its flow, or `DNS`.
    SampleProtocol, "", one_of(Protocol::ALL.into_iter().filter_map(protocol_name).chain([DNS]));
    /// Side of the network that a host is on.
    SideName, "", one_of(Side::ALL.map(Side::name));
    /// What happened to a flow direction.
    FlowEventName, "", one_of(FlowEventKind::ALL.map(flow_event_name));
    /// Reason why a flow direction opened or closed.
    ReasonName, "", one_of(Reason::ALL.map(reason_name));
    /// Reason why a flow ended.
    EndReason, "", one_of(closing_reasons().map(reason_name).chain([END_OF_OBSERVATION]));
    /// Who opened or closed a flow direction.
    TriggeredByName, "", one_of(TriggeredBy::ALL.map(triggered_by_name));
    /// Part of the time in this host.
    PartName, "", one_of(Part::ALL.map(part_name));
    /// Name of the interface. For a pcapng file: its name in the file, or else its number there. For a Linux cooked capture
    /// of version 2: `ifindex` and the number of the interface in the kernel. Absent for other pcap files.
    InterfaceName, "InterfaceName", json_schema!({ "type": "string", "minLength": 1, "maxLength": 64 });
    /// An address.
    Address, "", json_schema!({ "type": "string", "anyOf": [{ "format": "ipv4" }, { "format": "ipv6" }] });
    /// A bin of a histogram that has samples: the highest value of the bin, ns (2^64 - 1 for the bin above 64 s), and its
    /// number of samples.
    Bin, "Bin", json_schema!({
        "type": "array",
        "prefixItems": [{ "type": "integer", "minimum": 0 }, { "type": "integer", "minimum": 1 }],
        "minItems": 2,
        "items": false,
    });
    /// A score.
    Score, "", json_schema!({ "type": "integer", "minimum": 0, "maximum": 100 });
    /// A text that is not empty.
    Text, "", json_schema!({ "type": "string", "minLength": 1 });
}

// Of the API alone.
#[cfg(feature = "live")]
schemas! {
    /// Direction in which echoes passed the interface.
    DirectionName, "", one_of(Direction::ALL.map(Direction::name));
    /// Protocol of a flow.
    FlowProtocol, "", one_of(Protocol::ALL.into_iter().filter_map(protocol_name));
    /// Reason why packets were not tracked.
    UntrackedName, "", one_of(Untracked::ALL.map(untracked_name));
}

/// The reasons for which a flow direction closes.
pub(crate) fn closing_reasons() -> impl Iterator<Item = Reason> {
    Reason::ALL.into_iter().filter(|reason| !Reason::OPENING.contains(reason))
}
