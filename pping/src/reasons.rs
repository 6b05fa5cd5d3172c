//! Why something was lost or not tracked, as the summary, `pping top` and the page explain it.

use pping_common::parse::Untracked;
use serde::Serialize;

/// Why something was lost, or a packet not tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The field of [`Losses`](crate::recent::Losses), or the reason in its `untracked`.
    pub key: &'static str,
    /// A few words for it.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// What to do about it.
    pub advice: &'static str,
}

const fn reason(key: &'static str, name: &'static str, what: &'static str, advice: &'static str) -> Reason {
    Reason { key, name, what, advice }
}

/// What can be lost.
pub const LOSSES: [Reason; 3] = [
    reason(
        "recordings_skipped",
        "not recorded",
        "packets whose echo cannot be matched: another CPU had the flow, or there was no room",
        "raise --max-pending or --rate-limit",
    ),
    reason(
        "unaggregated",
        "no histogram",
        "samples that no histogram had room for",
        "raise --max-groups, or have fewer groups",
    ),
    reason(
        "events_lost",
        "records lost",
        "records that found the ring full, or whose reader or disk was too slow",
        "raise --rate-limit, or use --aggregate",
    ),
];

/// What to do about flows whose timestamps cannot be used.
const SEQUENCE_NUMBERS: &str =
    "--tcp-method auto and --methods all, the defaults, measure it by sequence numbers";

/// Why packets are not tracked.
pub const UNTRACKED: [Reason; Untracked::ALL.len()] = [
    reason("non_ip", "not IP", "packets that are not IP", "harmless"),
    reason(
        "fragment",
        "fragments",
        "fragments without ports",
        "lower the MTU or the MSS where they come from",
    ),
    reason(
        "truncated",
        "truncated",
        "packets that end inside a header",
        "look for a broken sender or tunnel",
    ),
    reason(
        "malformed",
        "malformed",
        "headers that contradict themselves",
        "look for a broken sender or a scan",
    ),
    reason(
        "unsupported",
        "unsupported",
        "what no method measures, such as ICMP other than pings, and UDP other than DNS and QUIC",
        "harmless, but tunnels need --decap",
    ),
    reason("no_timestamp", "no timestamps", "TCP without timestamps", SEQUENCE_NUMBERS),
    reason(
        "unusable_timestamp",
        "unusable timestamps",
        "TCP whose timestamps stand still, go back or are zero",
        SEQUENCE_NUMBERS,
    ),
    reason(
        "no_flow",
        "no flow",
        "packets of no known flow that cannot begin one",
        "many are normal after a start",
    ),
    reason("map_full", "table full", "the flow table was full", "raise --max-flows"),
    reason("nested_tunnel", "nested tunnels", "a tunnel inside a tunnel", "pping looks into one"),
    reason("excluded", "excluded", "hosts that --exclude names", "as configured"),
    reason("not_loaded", "not loaded", "came before all programs were loaded", "normal in the first second"),
    reason(
        "other_hook",
        "copies",
        "passed the other hook of the interface too, which loops back or forwards to itself",
        "normal on lo, and on a router with one arm; elsewhere somebody uses addresses of hosts behind another interface",
    ),
    reason(
        "out_of_window",
        "out of window",
        "TCP segments with numbers that the connection does not expect",
        "many are an attack: somebody guesses; they change nothing. A few are normal after packets took another way",
    ),
    reason(
        "same_hook",
        "same hook",
        "came in where the packets that they answer come in, too",
        "many are an attack: somebody forges both ends; they give no sample. At a mirror port, add --mirror; on a router with one arm, --arms one",
    ),
    reason(
        "duplicate",
        "copies",
        "packets that a mirror shows more than once",
        "harmless, but mirror one port, or one direction of all ports, and the probe has half the work",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::untracked_name;
    #[cfg(feature = "live")]
    use crate::recent::Losses;

    #[test]
    fn every_reason_is_explained() {
        for reason in Untracked::ALL {
            let name = untracked_name(reason);
            assert!(UNTRACKED.iter().any(|it| it.key == name), "{name}");
        }
    }

    #[test]
    #[cfg(feature = "live")]
    fn every_loss_is_explained() {
        let losses = serde_json::to_value(Losses::default()).unwrap();
        let mut keys: Vec<_> = losses.as_object().unwrap().keys().filter(|it| *it != "untracked").collect();
        let mut explained = LOSSES.map(|it| it.key);
        keys.sort();
        explained.sort_unstable();
        assert_eq!(keys, explained);
    }
}
