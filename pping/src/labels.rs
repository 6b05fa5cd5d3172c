//! The names of reasons in records and labels of metrics, and how methods and directions are written.

use pping_common::{
    flow::Reason,
    method::Method,
    parse::{Direction, Untracked},
};
use serde::Serializer;

/// The name of a reason in records.
pub(crate) fn reason_name(reason: Reason) -> &'static str {
    match reason {
        Reason::FirstObserved => "first observed packet",
        Reason::Syn => "SYN",
        Reason::SynAck => "SYN-ACK",
        Reason::Fin => "FIN",
        Reason::Rst => "RST",
        Reason::Timeout => "flow timeout",
    }
}

/// The name of the reason why a packet is not measured, in labels.
pub(crate) fn untracked_name(reason: Untracked) -> &'static str {
    match reason {
        Untracked::NonIp => "non_ip",
        Untracked::Fragment => "fragment",
        Untracked::Truncated => "truncated",
        Untracked::Malformed => "malformed",
        Untracked::Unsupported => "unsupported",
        Untracked::NoTimestamp => "no_timestamp",
        Untracked::UnusableTimestamp => "unusable_timestamp",
        Untracked::NoFlow => "no_flow",
        Untracked::MapFull => "map_full",
        Untracked::NestedTunnel => "nested_tunnel",
        Untracked::Excluded => "excluded",
        Untracked::NotLoaded => "not_loaded",
        Untracked::OtherHook => "other_hook",
        Untracked::OutOfWindow => "out_of_window",
        Untracked::SameHook => "same_hook",
    }
}

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference to the field"
)]
pub(crate) fn serialize_is_egress<S: Serializer>(
    direction: &Option<Direction>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(*direction == Some(Direction::Egress))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
pub(crate) fn serialize_method<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(method.name())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn schemas_list_all_methods() {
        let listed = |schema: &str, at: &str| {
            let schema: Value = serde_json::from_str(schema).unwrap();
            let listed = schema.pointer(at).unwrap().as_array().unwrap().clone();
            let mut names: Vec<_> = listed.iter().map(|name| name.as_str().unwrap().to_owned()).collect();
            names.sort_unstable();
            names
        };
        let mut names = Method::ALL.map(Method::name);
        names.sort_unstable();
        assert_eq!(listed(include_str!("../../docs/schema/record.json"), "/$defs/method/enum"), names);
        assert_eq!(
            listed(include_str!("../../docs/schema/api.json"), "/components/schemas/Method/enum"),
            names
        );
    }
}
