//! The counters of the kernel programs as metrics.

use std::{borrow::Cow, sync::Arc};

use pping_common::{
    abi::{Counters, Lost, Part, Residence},
    flow::Reason,
    method::Method,
    parse::{Direction, Family, Protocol, Untracked},
};

use self::Read::{All, Count, Directions, IfAny, Labelled};
use super::{
    latest::{Dropped, Failed, Latest},
    metric::{IntegerFamily, Labels, Metric},
};
use crate::{labels::untracked_name, snapshot::ProgramRuns};

/// ECN codepoints in the order of their numbers (RFC 3168, 5).
const CODEPOINTS: [&str; 4] = ["not_ect", "ect1", "ect0", "ce"];

/// DNS response codes in the order of their numbers (IANA, "DNS RCODEs"); 12 to 15 are unassigned.
const RCODES: [&str; 16] = [
    "NOERROR",
    "FORMERR",
    "SERVFAIL",
    "NXDOMAIN",
    "NOTIMP",
    "REFUSED",
    "YXDOMAIN",
    "YXRRSET",
    "NXRRSET",
    "NOTAUTH",
    "NOTZONE",
    "DSOTYPENI",
    "12",
    "13",
    "14",
    "15",
];

/// The response codes of RFC 1035, which are exposed from the start, so that `rate()` sees their first increase.
const COMMON_RCODES: usize = 6;

/// How the values of a metric are read.
enum Read {
    /// A value of each interface.
    Count(fn(&Counters) -> u64),
    /// A value of each direction of each interface.
    Directions(fn(&Counters) -> [u64; 2]),
    /// Values of each interface, with labels besides that of the interface.
    Labelled(fn(&Counters) -> Series),
    /// Values of the program, with all their labels.
    All(fn(&Latest) -> Series),
    /// The same, of a metric that exists only if it has values: what it counts may not be measured at all.
    IfAny(fn(&Latest) -> Series),
}

type Series = Vec<(Labels, u64)>;

/// The metrics whose values are integers, but for those of groups, in the order of pages. Pages, exports and the test of
/// docs/metrics.md go through this table.
static TABLE: [(Metric, Read); 42] = [
    (
        Metric::counter("pping_packets", "{packet}", "Packets seen"),
        Labelled(|counters| by_protocol(|direction, protocol| counters.of(direction, protocol).packets())),
    ),
    (
        Metric::counter("pping_bytes", "By", "Bytes of the packets seen, link-layer headers included"),
        Labelled(|counters| by_protocol(|direction, protocol| counters.of(direction, protocol).bytes)),
    ),
    (
        Metric::counter("pping_ecn_packets", "{packet}", "IP packets seen, by ECN codepoint"),
        Labelled(|counters| {
            let codepoints = |direction| CODEPOINTS.into_iter().zip(counters.ecn(direction));
            each(
                "direction",
                Direction::ALL,
                |it| it.name(),
                |direction| by("codepoint", codepoints(direction)),
            )
        }),
    ),
    (
        Metric::counter("pping_samples", "{sample}", "Round-trip times measured"),
        Labelled(|counters| {
            each(
                "method",
                Method::ALL,
                |it| it.name(),
                |method| {
                    let count = |direction| counters.samples[direction as usize][method as usize];
                    by("matched", Direction::ALL.map(|direction| (direction.name(), count(direction))))
                },
            )
        }),
    ),
    (
        Metric::counter(
            "pping_tcp_retransmissions",
            "{segment}",
            "TCP segments retransmitted in tracked flows",
        ),
        Directions(|counters| counters.retransmissions),
    ),
    (
        Metric::counter(
            "pping_tcp_out_of_order_segments",
            "{segment}",
            "Reordered TCP segments in tracked flows; only TCP timestamps can tell them from retransmissions",
        ),
        Directions(|counters| counters.reordered),
    ),
    (
        Metric::counter("pping_dns_queries", "{query}", "DNS queries seen"),
        Directions(|counters| counters.dns_queries),
    ),
    (
        Metric::counter(
            "pping_dns_responses",
            "{response}",
            "DNS responses to queries seen, by response code",
        ),
        Labelled(|counters| {
            let codes = RCODES.into_iter().zip(counters.dns_responses).enumerate();
            let exposed = codes.filter(|&(code, (_, count))| code < COMMON_RCODES || count > 0);
            by("rcode", exposed.map(|(_, code)| code))
        }),
    ),
    (
        Metric::counter(
            "pping_dns_unanswered",
            "{query}",
            "DNS queries without a response within 10 seconds",
        ),
        Count(|counters| counters.dns_unanswered),
    ),
    (
        Metric::counter(
            "pping_dns_given_up",
            "{query}",
            "DNS queries that were given up while they waited for a response, because newer ones took their place",
        ),
        Count(|counters| counters.dns_given_up),
    ),
    (
        Metric::counter(
            "pping_echo_requests",
            "{request}",
            "Echo requests in tracked flows; one that is sent again while it is pending is not counted again",
        ),
        Count(|counters| counters.echo_requests),
    ),
    (
        Metric::counter(
            "pping_echo_replies",
            "{response}",
            "Replies to echo requests counted, whether or not they gave a sample",
        ),
        Count(|counters| counters.echo_replies),
    ),
    (
        Metric::counter(
            "pping_echo_requests_not_awaited",
            "{request}",
            "Echo requests counted that were given up although a reply could still come, because too many were under way, or another one had the same number",
        ),
        Count(|counters| counters.echo_not_awaited),
    ),
    (
        Metric::counter(
            "pping_untimed_local_packets",
            "{packet}",
            "Packets not timed because they go to an address of this host, without --include-local",
        ),
        Count(|counters| counters.to_this_host),
    ),
    (
        Metric::counter("pping_untracked_packets", "{packet}", "Packets that were not tracked, by reason"),
        Labelled(|counters| {
            by("reason", Untracked::ALL.map(|it| (untracked_name(it), counters.untracked[it as usize])))
        }),
    ),
    (
        Metric::counter(
            "pping_recordings_skipped",
            "",
            "Packets not recorded because their flow had no room for another pending timestamp (slots_full) or --max-pending was reached (no_pending), recordings given up because a later one was answered or after 10 seconds (gave_way), and packets neither recorded nor matched because another CPU had locked their flow (contended)",
        ),
        Labelled(|counters| {
            by(
                "reason",
                [
                    ("slots_full", counters.pending_full),
                    ("no_pending", counters.no_pending),
                    ("gave_way", counters.gave_way),
                    ("contended", counters.contended),
                ],
            )
        }),
    ),
    (
        Metric::counter("pping_flows_opened", "{flow}", "Flows that opened, by reason"),
        Labelled(|counters| {
            by("reason", Reason::OPENING.map(|it| (reason_name(it), counters.opened[it as usize])))
        }),
    ),
    (
        Metric::counter("pping_flows_closed", "{flow}", "Flows that closed, by reason"),
        Labelled(|counters| {
            by("reason", Reason::CLOSING.map(|it| (reason_name(it), counters.closed[it as usize])))
        }),
    ),
    (
        Metric::counter(
            "pping_flows_pushed_out",
            "{flow}",
            "Flows that were evicted to make room before they were proved: nobody had answered, or only a SYN",
        ),
        Count(|counters| counters.evicted),
    ),
    (
        Metric::counter(
            "pping_one_way_flows",
            "{flow}",
            "TCP flows that ended with segments of one direction only, beyond a SYN without an answer",
        ),
        Count(|counters| counters.one_way_flows),
    ),
    (
        Metric::counter(
            "pping_still_timestamps_flows",
            "{flow}",
            "TCP flows that ended before the timestamps of an end moved, so that only its handshake was measured",
        ),
        Count(|counters| counters.still_timestamps),
    ),
    (
        Metric::gauge("pping_flows", "{flow}", "Flows in the flow table"),
        Labelled(|counters| by("family", Family::ALL.map(|it| (family_name(it), flows(counters, it))))),
    ),
    (
        Metric::gauge("pping_map_entries", "{entry}", "Entries in the maps of the kernel programs"),
        All(|latest| by("map", maps(latest).map(|(map, entries, _)| (map, entries)))),
    ),
    (
        Metric::gauge(
            "pping_map_capacity",
            "{entry}",
            "Capacity of the maps of the kernel programs, in entries",
        ),
        All(|latest| by("map", maps(latest).map(|(map, _, capacity)| (map, capacity.into())))),
    ),
    (
        Metric::counter(
            "pping_events_lost",
            "{event}",
            "Events dropped because the ring buffer or the queue to a file was full, and records or lines that could not be written",
        ),
        All(|Latest { snapshot, fill, .. }| {
            let lost = snapshot.total().lost;
            by(
                "kind",
                [
                    ("rtt", lost[Lost::Rtt as usize]),
                    ("flow", lost[Lost::Flow as usize]),
                    ("end", lost[Lost::End as usize]),
                    ("output", fill.lines_lost),
                    ("hdr_log", fill.log_lines_lost),
                ],
            )
        }),
    ),
    (
        Metric::counter(
            "pping_history_rows",
            "{row}",
            "Rows of --history that were written, or lost because they could not be",
        ),
        IfAny(|Latest { fill, .. }| {
            let rows = fill.history.map(|it| [("written", it.rows), ("lost", it.lost_rows)]);
            rows.map_or_else(Vec::new, |rows| by("outcome", rows))
        }),
    ),
    (
        Metric::counter(
            "pping_history_damaged_files",
            "{file}",
            "Files of --history that were damaged, and were set aside",
        ),
        IfAny(|Latest { fill, .. }| fill.history.iter().map(|it| (Vec::new(), it.damaged_files)).collect()),
    ),
    (
        Metric::gauge("pping_history_disk_bytes", "By", "Size of all files of --history in bytes"),
        IfAny(|Latest { fill, .. }| fill.history.iter().map(|it| (Vec::new(), it.disk)).collect()),
    ),
    (
        Metric::gauge("pping_group_prefixes", "{prefix}", "Prefixes of groups, by where they come from"),
        IfAny(|Latest { group_changes, .. }| {
            let prefixes = group_changes.iter().flat_map(|changes| &changes.prefixes);
            prefixes.map(|(source, count)| (of_source(source), *count)).collect()
        }),
    ),
    (
        Metric::counter(
            "pping_group_changes",
            "{change}",
            "Changes by the groups socket: of prefixes, and of columns alone",
        ),
        IfAny(|Latest { group_changes, .. }| {
            let sources = group_changes.iter().flat_map(|changes| &changes.changes);
            let of = |(source, counts): &(Arc<str>, [u64; 4])| {
                let kinds = ["added", "moved", "removed", "columns"].into_iter().zip(*counts);
                by("change", kinds)
                    .into_iter()
                    .map(|(labels, count)| ([of_source(source), labels].concat(), count))
                    .collect::<Vec<_>>()
            };
            sources.flat_map(of).collect()
        }),
    ),
    (
        Metric::counter(
            "pping_group_requests_refused",
            "{request}",
            "Requests at the groups socket that were refused",
        ),
        IfAny(|Latest { group_changes, .. }| {
            group_changes.iter().map(|changes| (Vec::new(), changes.refused)).collect()
        }),
    ),
    (
        Metric::counter(
            "pping_groups_refused",
            "",
            "Flow directions counted as the group other because there was no room for their group",
        ),
        Count(|counters| counters.groups_refused),
    ),
    (
        Metric::counter(
            "pping_unaggregated_samples",
            "{sample}",
            "Samples in no histogram because there was no room for their series",
        ),
        Count(|counters| counters.unaggregated),
    ),
    (
        Metric::counter(
            "pping_bpf_runs",
            "{run}",
            "Runs of kernel programs while kernel.bpf_stats_enabled is set",
        ),
        IfAny(|latest| latest.programs.iter().map(|it| (program(it), it.runs)).collect()),
    ),
    (
        Metric::gauge(
            "pping_interface_up",
            "",
            "State of an interface at each attach point: 1 while it is watched, 0 while it is gone",
        ),
        All(|latest| {
            each(
                "interface",
                &latest.snapshot.interfaces,
                |it| it.name.to_string(),
                |interface| {
                    by("hook", interface.attach_points.iter().map(|&hook| (hook, interface.is_up.into())))
                },
            )
        }),
    ),
    (
        Metric::gauge(
            "pping_interface_expected",
            "",
            "1 for each interface that is selected by its name and not by a pattern: it should be there",
        ),
        IfAny(|latest| {
            latest.expected.iter().map(|name| (vec![("interface", name.clone().into())], 1)).collect()
        }),
    ),
    (
        Metric::counter(
            "pping_queue_followed_packets",
            "{packet}",
            "Packets that were followed into the queue of the root qdisc, one in --residence-every",
        ),
        IfAny(|latest| {
            queues(latest)
                .map(|(interface, queue)| (vec![("interface", interface)], queue.followed))
                .collect()
        }),
    ),
    (
        Metric::counter(
            "pping_queue_lost_packets",
            "{packet}",
            "Followed packets without a time in the queue of the root qdisc, by reason",
        ),
        IfAny(|latest| {
            each(
                "interface",
                queues(latest),
                |(interface, _)| interface.clone(),
                |(_, queue)| by("reason", [("dropped", queue.dropped), ("replaced", queue.replaced)]),
            )
        }),
    ),
    (
        Metric::counter(
            "pping_otlp_requests",
            "{request}",
            "Requests with metrics that the receiver of --otlp accepted",
        ),
        IfAny(|latest| latest.pushes.iter().map(|pushes| (vec![], pushes.accepted)).collect()),
    ),
    (
        Metric::counter(
            "pping_otlp_requests_dropped",
            "{request}",
            "Requests with metrics dropped before the receiver of --otlp accepted them, by reason",
        ),
        IfAny(|latest| {
            by(
                "reason",
                latest.pushes.iter().flat_map(|pushes| Dropped::NAMES.into_iter().zip(pushes.dropped)),
            )
        }),
    ),
    (
        Metric::counter(
            "pping_otlp_attempts_failed",
            "{attempt}",
            "Attempts to send a request to the receiver of --otlp that failed, by reason",
        ),
        IfAny(|latest| {
            by("reason", latest.pushes.iter().flat_map(|pushes| Failed::NAMES.into_iter().zip(pushes.failed)))
        }),
    ),
    (
        Metric::counter(
            "pping_otlp_points_rejected",
            "{data_point}",
            "Data points that the receiver of --otlp rejected in requests that it accepted",
        ),
        IfAny(|latest| latest.pushes.iter().map(|pushes| (vec![], pushes.rejected_points)).collect()),
    ),
];

static RUN_TIME: Metric = Metric::counter(
    "pping_bpf_run",
    "s",
    "Run time of kernel programs while kernel.bpf_stats_enabled is set",
);

/// Returns the metrics of this file.
#[cfg(test)]
pub(super) fn metrics() -> impl Iterator<Item = &'static Metric> {
    TABLE.iter().map(|(metric, _)| metric).chain([&RUN_TIME])
}

/// Reads all metrics of the table, without access to the kernel's maps.
pub(super) fn families(latest: &Latest) -> impl Iterator<Item = IntegerFamily> {
    TABLE.iter().filter_map(|(metric, read)| {
        let of_interfaces = |series: &dyn Fn(&Counters) -> Series| {
            let interfaces = &latest.snapshot.interfaces;
            each("interface", interfaces, |it| it.name.to_string(), |interface| series(&interface.counters))
        };
        let series = match read {
            Count(read) => of_interfaces(&|counters| vec![(vec![], read(counters))]),
            Directions(read) => of_interfaces(&|counters| {
                by("direction", Direction::ALL.map(Direction::name).into_iter().zip(read(counters)))
            }),
            Labelled(read) => of_interfaces(&|counters| read(counters)),
            All(read) | IfAny(read) => read(latest),
        };
        let exists = !matches!(read, IfAny(_)) || !series.is_empty();
        exists.then_some(IntegerFamily { metric, series })
    })
}

/// Returns the run times of the kernel programs, ns, if the kernel takes them.
pub(super) fn run_times(latest: &Latest) -> Option<IntegerFamily> {
    let series = latest.programs.iter().map(|it| (program(it), it.time.as_nanos() as u64)).collect();
    (!latest.programs.is_empty()).then_some(IntegerFamily { metric: &RUN_TIME, series })
}

/// Returns series that differ in a label.
fn by(label: &'static str, values: impl IntoIterator<Item = (&'static str, u64)>) -> Series {
    values.into_iter().map(|(name, value)| (vec![(label, name.into())], value)).collect()
}

/// Returns the series of all items, with a label for each item before their own.
fn each<T, N: Into<Cow<'static, str>>>(
    label: &'static str,
    items: impl IntoIterator<Item = T>,
    name: impl Fn(&T) -> N,
    series: impl Fn(T) -> Series,
) -> Series {
    let mut all = Vec::new();
    for item in items {
        let name: Cow<'static, str> = name(&item).into();
        all.extend(series(item).into_iter().map(|(mut labels, value)| {
            labels.insert(0, (label, name.clone()));
            (labels, value)
        }));
    }
    all
}

fn by_protocol(count: impl Fn(Direction, Protocol) -> u64) -> Series {
    each(
        "direction",
        Direction::ALL,
        |it| it.name(),
        |direction| {
            by(
                "protocol",
                Protocol::ALL.map(|protocol| (protocol_name(protocol), count(direction, protocol))),
            )
        },
    )
}

fn flows(counters: &Counters, family: Family) -> u64 {
    counters.entries_made[family as usize].saturating_sub(counters.entries_deleted[family as usize])
}

/// Returns name, entries and capacity of each map of the kernel programs that exists.
fn of_source(source: &Arc<str>) -> Labels {
    vec![("source", source.to_string().into())]
}

fn maps(Latest { snapshot, fill, .. }: &Latest) -> impl Iterator<Item = (&'static str, u64, u32)> {
    let total = snapshot.total();
    let maps = [
        ("FLOWS_V4", flows(&total, Family::V4), fill.max_flows),
        ("FLOWS_V6", flows(&total, Family::V6), fill.max_flows),
        ("GROUPS", fill.groups.into(), fill.max_groups),
        ("INTERFACES", fill.interfaces.into(), fill.max_interfaces),
        ("SERIES", fill.series.into(), fill.max_series),
    ];
    maps.into_iter().filter(|(.., capacity)| *capacity > 0)
}

fn program(runs: &ProgramRuns) -> Labels {
    vec![("program", runs.program.clone().into())]
}

/// Returns the residence of packets in the queue of each interface; nothing where none are followed.
fn queues(latest: &Latest) -> impl Iterator<Item = (Cow<'static, str>, &Residence)> {
    let is_measured = latest.residence.iter().any(|it| it.times.is_measured(Part::Queue));
    let queues = latest.residence.iter().filter(move |_| is_measured);
    queues.map(|it| (it.interface.to_string().into(), it.times.part(Part::Queue)))
}

fn family_name(family: Family) -> &'static str {
    match family {
        Family::V4 => "ipv4",
        Family::V6 => "ipv6",
    }
}

fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::NonIp => "non_ip",
        Protocol::Other => "other",
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Icmp => "icmp",
        Protocol::Icmpv6 => "icmpv6",
    }
}

fn reason_name(reason: Reason) -> &'static str {
    match reason {
        Reason::FirstObserved => "first_observed",
        Reason::Syn => "syn",
        Reason::SynAck => "syn_ack",
        Reason::Fin => "fin",
        Reason::Rst => "rst",
        Reason::Timeout => "timeout",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{InterfaceCounters, Place, Snapshot};

    #[test]
    fn rare_response_codes_are_exposed_once_seen() {
        let latest = |counters| {
            let interface = InterfaceCounters {
                name: "eth0".into(),
                attach_points: vec!["tcx"],
                is_up: true,
                counters,
                place: Place::Alone,
            };
            let snapshot = Snapshot { interfaces: vec![interface] };
            let latest = Latest { snapshot, ..Latest::default() };
            let responses = families(&latest).find(|it| it.metric.name == "pping_dns_responses").unwrap();
            let codes = responses.series.into_iter().map(|(labels, count)| (labels[1].1.to_string(), count));
            codes.collect::<Vec<_>>()
        };
        let usual = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];
        assert_eq!(latest(Counters::ZERO), usual.map(|code| (code.to_owned(), 0)));
        let mut counters = Counters::ZERO;
        (counters.dns_responses[3], counters.dns_responses[9], counters.dns_responses[12]) = (5, 6, 7);
        let found = latest(counters);
        assert_eq!(found.len(), 8);
        for expected in [("NXDOMAIN", 5), ("NOTAUTH", 6), ("12", 7)] {
            assert!(found.iter().any(|(code, count)| (code.as_str(), *count) == expected), "{found:?}");
        }
    }
}
