//! The counters of the kernel programs as metrics.

use std::sync::{Arc, Mutex, PoisonError};

use pping_common::{
    abi::{Counters, Lost},
    flow::Reason,
    method::Method,
    parse::{Direction, Family, Protocol, Untracked},
};

use super::{
    exposition::{Exposition, Kind, MetricFamily, Value},
    family::IntegerFamily,
    labels::Labels,
    packet_cost,
    process::Process,
    residence,
};
use crate::{
    labels::untracked_name,
    residence::InterfaceTimes,
    snapshot::{ProgramRuns, Snapshot},
};

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

const RUN_TIME: &str = "Run time of kernel programs while kernel.bpf_stats_enabled is set";

/// The agent's own losses, and the fill of the kernel's maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// Records that were dropped on their way to the output.
    pub lines_lost: u64,
    /// Lines that were dropped on their way to `--hdr-log`.
    pub log_lines_lost: u64,
    /// The highest number of flows per address family.
    pub max_flows: u32,
    /// The number of groups in the kernel.
    pub groups: u32,
    /// The highest number of groups.
    pub max_groups: u32,
    /// The number of series in the kernel.
    pub series: u32,
    /// The highest number of series.
    pub max_series: u32,
}

/// The latest values, which the agent replaces once a second.
#[derive(Clone, Debug, Default)]
pub(super) struct Latest {
    pub(super) snapshot: Snapshot,
    pub(super) fill: Fill,
    pub(super) programs: Vec<ProgramRuns>,
    /// The times of packets in this host, with `--residence`.
    pub(super) residence: Vec<InterfaceTimes>,
    /// The counts of an exporter, if there is one.
    pub(super) pushes: Option<Pushes>,
}

/// The counts of an exporter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushes {
    /// Requests that the receiver accepted.
    pub accepted: u64,
    /// Requests given up by [`Dropped`].
    pub dropped: [u64; Dropped::COUNT],
    /// Attempts that failed by [`Failed`].
    pub failed: [u64; Failed::COUNT],
    /// Data points that the receiver rejected of requests that it accepted.
    pub rejected_points: u64,
}

/// Why a request was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Newer requests needed its room in the queue.
    QueueFull,
    /// The receiver refused it for good.
    Refused,
    /// pping ended before the receiver had accepted it.
    Stopped,
}

impl Dropped {
    const COUNT: usize = 3;
    const NAMES: [&str; Self::COUNT] = ["queue_full", "refused", "stopped"];
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// There was no connection, or it broke.
    Connection,
    /// The TLS handshake failed, for example because the certificate is for another host.
    Tls,
    /// The receiver took too long.
    Timeout,
    /// The receiver answered with a status other than success.
    Status,
    /// The answer was not an OTLP message.
    Answer,
}

impl Failed {
    const COUNT: usize = 5;
    const NAMES: [&str; Self::COUNT] = ["connection", "tls", "timeout", "status", "answer"];
}

pub(super) type State = Arc<Mutex<Latest>>;

/// Writes the latest values, without access to the kernel's maps.
pub(super) fn write(page: &mut dyn Exposition, latest: &State) {
    let latest = latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for IntegerFamily { name, help, kind, series } in families(&latest) {
        page.family(&MetricFamily { name, unit: None, kind, help });
        let prefix = page.prefix(&[]);
        for (labels, value) in &series {
            let labels: Vec<_> = labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
            page.value(&prefix, &Labels::new(&labels), Value::Integer(*value));
        }
    }
    packet_cost::write(page, &latest.snapshot);
    run_time(page, &latest.programs);
}

/// Writes the run time of programs, the only value here that is not an integer.
fn run_time(page: &mut dyn Exposition, programs: &[ProgramRuns]) {
    if programs.is_empty() {
        return;
    }
    page.family(&MetricFamily {
        name: "pping_bpf_run_seconds",
        unit: Some("seconds"),
        kind: Kind::Counter,
        help: RUN_TIME,
    });
    let prefix = page.prefix(&[]);
    for ProgramRuns { program, time, .. } in programs {
        let labels = Labels::new(&[("program", program)]);
        page.value(&prefix, &labels, Value::Nanoseconds(time.as_nanos()));
    }
}

/// Returns the times of the kernel programs and of the process, ns.
pub(super) fn times(latest: &Latest, process: Option<&Process>) -> Vec<IntegerFamily> {
    let time = |name, help, series| IntegerFamily { name, help, kind: Kind::Counter, series };
    let runs = latest.programs.iter().map(|ProgramRuns { program, time, .. }| {
        (vec![("program", program.clone())], time.as_nanos() as u64)
    });
    let mut times = vec![time("pping_bpf_run", RUN_TIME, runs.collect())];
    times.extend(process.map(|process| {
        time("process.cpu.time", Process::CPU_TIME, vec![(vec![], (process.cpu_seconds * 1e9) as u64)])
    }));
    times
}

#[expect(clippy::too_many_lines, reason = "a table, one metric after the other")]
pub(super) fn families(latest: &Latest) -> Vec<IntegerFamily> {
    let Latest { snapshot, fill, programs, residence, pushes } = latest;
    let counter = Kind::Counter;
    let gauge = Kind::Gauge;
    // A metric of each interface: labels and values from its counters.
    let each = |name, help, kind, series: &dyn Fn(&Counters) -> Series| IntegerFamily {
        name,
        help,
        kind,
        series: snapshot
            .interfaces
            .iter()
            .flat_map(|interface| {
                series(&interface.counters).into_iter().map(|(labels, value)| {
                    let labels = labels.into_iter().map(|(key, value)| (key, value.to_owned()));
                    (
                        std::iter::once(("interface", interface.name.to_string())).chain(labels).collect(),
                        value,
                    )
                })
            })
            .collect(),
    };
    let entries = |counters: &Counters, family: Family| {
        counters.entries_made[family as usize].saturating_sub(counters.entries_deleted[family as usize])
    };
    let total = snapshot.total();
    let one = |name, value: String, count| (vec![(name, value)], count);
    // Entries and capacity of each map; a capacity of 0 means that the map does not exist.
    let maps = [
        ("FLOWS_V4", entries(&total, Family::V4), fill.max_flows),
        ("FLOWS_V6", entries(&total, Family::V6), fill.max_flows),
        ("GROUPS", fill.groups.into(), fill.max_groups),
        ("SERIES", fill.series.into(), fill.max_series),
    ];
    let maps = || maps.into_iter().filter(|(.., capacity)| *capacity > 0);
    let mut families = vec![
        each("pping_packets", "Packets seen", counter, &|counters| {
            by_protocol(|direction, protocol| counters.of(direction, protocol).packets())
        }),
        each("pping_bytes", "Bytes of the packets seen, link-layer headers included", counter, &|counters| {
            by_protocol(|direction, protocol| counters.of(direction, protocol).bytes)
        }),
        each("pping_ecn_packets", "IP packets seen, by ECN codepoint", counter, &|counters| {
            by_direction(|direction| {
                let values = CODEPOINTS.into_iter().zip(counters.ecn(direction));
                values.map(move |(name, value)| {
                    (vec![("direction", direction.name()), ("codepoint", name)], value)
                })
            })
        }),
        each("pping_samples", "Round-trip times measured", counter, &|counters| {
            by_direction(|direction| {
                Method::ALL.into_iter().map(move |method| {
                    let labels = vec![("method", method.name()), ("matched", direction.name())];
                    (labels, counters.samples[direction as usize][method as usize])
                })
            })
        }),
        each(
            "pping_tcp_retransmissions",
            "TCP segments retransmitted in tracked flows",
            counter,
            &|counters| each_direction(counters.retransmissions),
        ),
        each(
            "pping_tcp_out_of_order_segments",
            "Reordered TCP segments in tracked flows; only TCP timestamps can tell them from retransmissions",
            counter,
            &|counters| each_direction(counters.reordered),
        ),
        each("pping_dns_queries", "DNS queries seen", counter, &|counters| {
            each_direction(counters.dns_queries)
        }),
        each(
            "pping_dns_responses",
            "DNS responses to queries seen, by response code",
            counter,
            &|counters| {
                let codes = RCODES.into_iter().zip(counters.dns_responses).enumerate();
                let exposed = codes.filter(|&(code, (_, count))| code < COMMON_RCODES || count > 0);
                exposed.map(|(_, (name, count))| (vec![("rcode", name)], count)).collect()
            },
        ),
        each(
            "pping_dns_unanswered",
            "DNS queries without a response within 10 seconds",
            counter,
            &|counters| vec![(vec![], counters.dns_unanswered)],
        ),
        each(
            "pping_dns_given_up",
            "DNS queries that were given up while they waited for a response, because newer ones took their place",
            counter,
            &|counters| vec![(vec![], counters.dns_given_up)],
        ),
        each(
            "pping_echo_requests",
            "Echo requests in tracked flows; one that is sent again while it is pending is not counted again",
            counter,
            &|counters| vec![(vec![], counters.echo_requests)],
        ),
        each(
            "pping_echo_replies",
            "Replies to echo requests counted, whether or not they gave a sample",
            counter,
            &|counters| vec![(vec![], counters.echo_replies)],
        ),
        each(
            "pping_echo_requests_not_awaited",
            "Echo requests counted that were given up although a reply could still come, because too many were under way, or another one had the same number",
            counter,
            &|counters| vec![(vec![], counters.echo_not_awaited)],
        ),
        each(
            "pping_untimed_local_packets",
            "Packets not timed because they go to an address of this host, without --include-local",
            counter,
            &|counters| vec![(vec![], counters.to_this_host)],
        ),
        each("pping_untracked_packets", "Packets that were not tracked, by reason", counter, &|counters| {
            by(Untracked::ALL, |it| ("reason", untracked_name(it)), |it| counters.untracked[it as usize])
        }),
        each(
            "pping_recordings_skipped",
            "Packets not recorded because their flow had no room for another pending timestamp (slots_full) or --max-pending was reached (no_pending), recordings given up because a later one was answered or after 10 seconds (gave_way), and packets neither recorded nor matched because another CPU had locked their flow (contended)",
            counter,
            &|counters| {
                let values = [
                    ("slots_full", counters.pending_full),
                    ("no_pending", counters.no_pending),
                    ("gave_way", counters.gave_way),
                    ("contended", counters.contended),
                ];
                values.map(|(reason, value)| (vec![("reason", reason)], value)).into()
            },
        ),
        each("pping_flows_opened", "Flows that opened, by reason", counter, &|counters| {
            by(Reason::OPENING, |it| ("reason", reason_name(it)), |it| counters.opened[it as usize])
        }),
        each("pping_flows_closed", "Flows that closed, by reason", counter, &|counters| {
            by(Reason::CLOSING, |it| ("reason", reason_name(it)), |it| counters.closed[it as usize])
        }),
        each(
            "pping_flows_pushed_out",
            "Flows that were evicted to make room before they were proved: nobody had answered, or only a SYN",
            counter,
            &|counters| vec![(vec![], counters.evicted)],
        ),
        each(
            "pping_one_way_flows",
            "TCP flows that ended with segments of one direction only, beyond a SYN without an answer",
            counter,
            &|counters| vec![(vec![], counters.one_way_flows)],
        ),
        each(
            "pping_still_timestamps_flows",
            "TCP flows that ended before the timestamps of an end moved, so that only its handshake was measured",
            counter,
            &|counters| vec![(vec![], counters.still_timestamps)],
        ),
        each("pping_flows", "Flows in the flow table", gauge, &|counters| {
            by(Family::ALL, |it| ("family", family_name(it)), |it| entries(counters, it))
        }),
        IntegerFamily {
            name: "pping_map_entries",
            help: "Entries in the maps of the kernel programs",
            kind: gauge,
            series: maps().map(|(map, entries, _)| one("map", map.to_owned(), entries)).collect(),
        },
        IntegerFamily {
            name: "pping_map_capacity",
            help: "Capacity of the maps of the kernel programs, in entries",
            kind: gauge,
            series: maps().map(|(map, _, capacity)| one("map", map.to_owned(), capacity.into())).collect(),
        },
        IntegerFamily {
            name: "pping_events_lost",
            help: "Events dropped because the ring buffer or the queue to a file was full, and records or lines that could not be written",
            kind: counter,
            series: [
                ("rtt", total.lost[Lost::Rtt as usize]),
                ("flow", total.lost[Lost::Flow as usize]),
                ("end", total.lost[Lost::End as usize]),
                ("output", fill.lines_lost),
                ("hdr_log", fill.log_lines_lost),
            ]
            .map(|(kind, value)| one("kind", kind.to_owned(), value))
            .into(),
        },
        each(
            "pping_groups_refused",
            "Flow directions counted as the group other because there was no room for their group",
            counter,
            &|counters| vec![(vec![], counters.groups_refused)],
        ),
        each(
            "pping_unaggregated_samples",
            "Samples in no histogram because there was no room for their series",
            counter,
            &|counters| vec![(vec![], counters.unaggregated)],
        ),
        IntegerFamily {
            name: "pping_bpf_runs",
            help: "Runs of kernel programs while kernel.bpf_stats_enabled is set",
            kind: counter,
            series: programs.iter().map(|it| one("program", it.program.clone(), it.runs)).collect(),
        },
        IntegerFamily {
            name: "pping_interface_up",
            help: "State of an interface at each attach point: 1 while it is watched, 0 while it is gone",
            kind: gauge,
            series: snapshot
                .interfaces
                .iter()
                .flat_map(|interface| {
                    interface.attach_points.iter().map(|attach_point| {
                        let labels = vec![
                            ("interface", interface.name.to_string()),
                            ("hook", (*attach_point).to_owned()),
                        ];
                        (labels, interface.is_up.into())
                    })
                })
                .collect(),
        },
    ];
    families.extend(residence::families(residence));
    families.extend(pushes.iter().flat_map(pushed));
    families
}

/// Returns the metrics of an exporter.
fn pushed(pushes: &Pushes) -> [IntegerFamily; 4] {
    let by_reason = |names: &[&str], counts: &[u64]| {
        let reasons = names.iter().map(|&name| vec![("reason", name.to_owned())]);
        reasons.zip(counts.iter().copied()).collect()
    };
    let counter = |name, help, series| IntegerFamily { name, help, kind: Kind::Counter, series };
    [
        counter(
            "pping_otlp_requests",
            "Requests with metrics that the receiver of --otlp accepted",
            vec![(vec![], pushes.accepted)],
        ),
        counter(
            "pping_otlp_requests_dropped",
            "Requests with metrics dropped before the receiver of --otlp accepted them, by reason",
            by_reason(&Dropped::NAMES, &pushes.dropped),
        ),
        counter(
            "pping_otlp_attempts_failed",
            "Attempts to send a request to the receiver of --otlp that failed, by reason",
            by_reason(&Failed::NAMES, &pushes.failed),
        ),
        counter(
            "pping_otlp_points_rejected",
            "Data points that the receiver of --otlp rejected in requests that it accepted",
            vec![(vec![], pushes.rejected_points)],
        ),
    ]
}

type Label = (&'static str, &'static str);
type Series = Vec<(Vec<Label>, u64)>;

fn by<T: Copy>(
    values: impl IntoIterator<Item = T>,
    label: impl Fn(T) -> Label,
    count: impl Fn(T) -> u64,
) -> Series {
    values.into_iter().map(|value| (vec![label(value)], count(value))).collect()
}

fn each_direction(counts: [u64; 2]) -> Series {
    by(Direction::ALL, |it| ("direction", it.name()), |it| counts[it as usize])
}

fn by_direction<I: Iterator<Item = (Vec<Label>, u64)>>(series: impl Fn(Direction) -> I) -> Series {
    Direction::ALL.into_iter().flat_map(series).collect()
}

fn by_protocol(count: impl Fn(Direction, Protocol) -> u64) -> Series {
    let count = &count;
    by_direction(|direction| {
        Protocol::ALL.into_iter().map(move |protocol| {
            let labels = vec![("direction", direction.name()), ("protocol", protocol_name(protocol))];
            (labels, count(direction, protocol))
        })
    })
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
    use crate::snapshot::InterfaceCounters;

    #[test]
    fn rare_response_codes_are_exposed_once_seen() {
        let latest = |counters| {
            let interface =
                InterfaceCounters { name: "eth0".into(), attach_points: vec!["tcx"], is_up: true, counters };
            let snapshot = Snapshot { interfaces: vec![interface] };
            let families = families(&Latest { snapshot, ..Latest::default() });
            let responses = families.into_iter().find(|it| it.name == "pping_dns_responses").unwrap();
            let codes = responses.series.into_iter().map(|(labels, count)| (labels[1].1.clone(), count));
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
