//! What the kernel programs count, as metrics.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use pping_common::{
    abi::{Counters, Direction, Lost},
    flow::Reason,
    parse::{Family, Protocol, Untracked},
    rtt::Method,
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};

use super::Fill;
use crate::{
    kernel::{counters::Snapshot, runs::ProgramRuns},
    records::{direction_name, method_name, untracked_name},
};

/// ECN codepoints in the order of their numbers (RFC 3168, 5).
const CODEPOINTS: [&str; 4] = ["not_ect", "ect1", "ect0", "ce"];

/// DNS response codes in the order of their numbers (IANA, "DNS RCODEs"); the rest of 16 is unassigned.
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

/// Response codes that are there from the start, so that a rate of them can be asked for: those of RFC 1035.
const USUAL_RCODES: usize = 6;

/// The latest of what is counted once a second.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    pub(super) snapshot: Snapshot,
    pub(super) fill: Fill,
    pub(super) programs: Vec<ProgramRuns>,
}

pub(super) type State = Arc<Mutex<Counted>>;

/// Encodes the latest snapshot at every scrape. The kernel's maps are not touched from here.
#[derive(Debug)]
pub(super) struct KernelCollector(pub(super) State);

impl Collector for KernelCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let counted = super::lock(&self.0).clone();
        for family in families(&counted) {
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, family.kind)?;
            for (labels, value) in &family.series {
                let labels = labels.as_slice();
                let series = metric.encode_family(&labels)?;
                match family.kind {
                    MetricType::Counter => ConstCounter::new(*value).encode(series)?,
                    _ => ConstGauge::new(*value as i64).encode(series)?,
                }
            }
        }
        run_time(&mut encoder, &counted.programs)
    }
}

/// What programs cost, the one thing here that is no whole number.
fn run_time(encoder: &mut DescriptorEncoder<'_>, programs: &[ProgramRuns]) -> fmt::Result {
    if programs.is_empty() {
        return Ok(());
    }
    let help = "Time that kernel programs ran";
    let mut metric =
        encoder.encode_descriptor("pping_bpf_run", help, Some(&Unit::Seconds), MetricType::Counter)?;
    for ProgramRuns { program, time, .. } in programs {
        let labels = [("program", program.as_str())];
        ConstCounter::new(time.as_secs_f64()).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

/// A metric and its series.
struct MetricFamily {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    series: Vec<(Vec<(&'static str, String)>, u64)>,
}

#[expect(clippy::too_many_lines, reason = "a table, one metric after the other")]
fn families(counted: &Counted) -> Vec<MetricFamily> {
    let Counted { snapshot, fill, programs } = counted;
    let counter = MetricType::Counter;
    let gauge = MetricType::Gauge;
    // A metric that every interface has, with labels and values made from its counters.
    let each = |name, help, kind, series: &dyn Fn(&Counters) -> Series| MetricFamily {
        name,
        help,
        kind,
        series: snapshot
            .interfaces
            .iter()
            .flat_map(|(watched, counters)| {
                series(counters).into_iter().map(|(labels, value)| {
                    let labels = labels.into_iter().map(|(key, value)| (key, value.to_owned()));
                    (std::iter::once(("interface", watched.name.to_string())).chain(labels).collect(), value)
                })
            })
            .collect(),
    };
    let entries = |counters: &Counters, family: Family| {
        counters.entries_made[family as usize].saturating_sub(counters.entries_deleted[family as usize])
    };
    let total = snapshot.total();
    let one = |name, value: String, count| (vec![(name, value)], count);
    // What each map holds and has room for; none has no room.
    let maps = [
        ("FLOWS_V4", entries(&total, Family::V4), fill.max_flows),
        ("FLOWS_V6", entries(&total, Family::V6), fill.max_flows),
        ("GROUPS", fill.groups.into(), fill.max_groups),
        ("SERIES", fill.series.into(), fill.max_series),
    ];
    let maps = || maps.into_iter().filter(|(.., capacity)| *capacity > 0);
    vec![
        each("pping_packets", "Packets seen", counter, &|counters| by_protocol(&counters.packets)),
        each("pping_bytes", "Bytes of whole frames seen", counter, &|counters| by_protocol(&counters.bytes)),
        each("pping_ecn_packets", "IP packets by ECN codepoint", counter, &|counters| {
            by_direction(|direction| {
                let values = CODEPOINTS.into_iter().zip(counters.ecn[direction as usize]);
                values.map(move |(name, value)| {
                    (vec![("direction", direction_name(direction)), ("codepoint", name)], value)
                })
            })
        }),
        each("pping_samples", "Round-trip times measured", counter, &|counters| {
            by_direction(|direction| {
                Method::ALL.into_iter().map(move |method| {
                    let labels =
                        vec![("method", method_name(method)), ("matched", direction_name(direction))];
                    (labels, counters.samples[direction as usize][method as usize])
                })
            })
        }),
        each(
            "pping_tcp_retransmissions",
            "TCP segments sent again, of flows followed",
            counter,
            &|counters| {
                by(
                    Direction::ALL,
                    |it| ("direction", direction_name(it)),
                    |it| counters.retransmissions[it as usize],
                )
            },
        ),
        each(
            "pping_tcp_out_of_order_segments",
            "TCP segments that others overtook on the way, as far as timestamps tell, of flows followed",
            counter,
            &|counters| {
                by(
                    Direction::ALL,
                    |it| ("direction", direction_name(it)),
                    |it| counters.reordered[it as usize],
                )
            },
        ),
        each("pping_dns_queries", "DNS queries seen", counter, &|counters| {
            by(Direction::ALL, |it| ("direction", direction_name(it)), |it| counters.dns_queries[it as usize])
        }),
        each(
            "pping_dns_responses",
            "DNS responses to queries seen, by response code",
            counter,
            &|counters| {
                let codes = RCODES.into_iter().zip(counters.dns_responses).enumerate();
                let exposed = codes.filter(|&(code, (_, count))| code < USUAL_RCODES || count > 0);
                exposed.map(|(_, (name, count))| (vec![("rcode", name)], count)).collect()
            },
        ),
        each(
            "pping_dns_unanswered",
            "DNS queries seen that nobody answered within 10 seconds",
            counter,
            &|counters| vec![(vec![], counters.dns_unanswered)],
        ),
        each("pping_untracked_packets", "Packets whose flow is not measured", counter, &|counters| {
            by(Untracked::ALL, |it| ("reason", untracked_name(it)), |it| counters.untracked[it as usize])
        }),
        each(
            "pping_recordings_skipped",
            "Timestamps not recorded for want of a slot, and packets not matched as another CPU was busy with their flow",
            counter,
            &|counters| {
                let values = [("slots_full", counters.pending_full), ("contended", counters.contended)];
                values.map(|(reason, value)| (vec![("reason", reason)], value)).into()
            },
        ),
        each("pping_flows_opened", "Flows that opened", counter, &|counters| {
            by(Reason::OPENING, |it| ("reason", reason_name(it)), |it| counters.opened[it as usize])
        }),
        each("pping_flows_closed", "Flows that closed", counter, &|counters| {
            by(Reason::CLOSING, |it| ("reason", reason_name(it)), |it| counters.closed[it as usize])
        }),
        each(
            "pping_flows_pushed_out",
            "Flows that nobody had answered, forgotten to make room for others",
            counter,
            &|counters| vec![(vec![], counters.evicted)],
        ),
        each("pping_flows", "Flows that are followed", gauge, &|counters| {
            by(Family::ALL, |it| ("family", family_name(it)), |it| entries(counters, it))
        }),
        MetricFamily {
            name: "pping_map_entries",
            help: "Entries of the kernel's maps",
            kind: gauge,
            series: maps().map(|(map, entries, _)| one("map", map.to_owned(), entries)).collect(),
        },
        MetricFamily {
            name: "pping_map_capacity",
            help: "Entries that the kernel's maps have room for",
            kind: gauge,
            series: maps().map(|(map, _, capacity)| one("map", map.to_owned(), capacity.into())).collect(),
        },
        MetricFamily {
            name: "pping_events_lost",
            help: "Events that found no room on their way out",
            kind: counter,
            series: [
                ("rtt", total.lost[Lost::Rtt as usize]),
                ("flow", total.lost[Lost::Flow as usize]),
                ("end", total.lost[Lost::End as usize]),
                ("output", fill.lines_lost),
            ]
            .map(|(kind, value)| one("kind", kind.to_owned(), value))
            .into(),
        },
        each(
            "pping_groups_refused",
            "Flow directions aggregated as those of another group for want of room",
            counter,
            &|counters| vec![(vec![], counters.groups_refused)],
        ),
        each("pping_unaggregated_samples", "Samples that no series had room for", counter, &|counters| {
            vec![(vec![], counters.unaggregated)]
        }),
        MetricFamily {
            name: "pping_bpf_runs",
            help: "Runs of kernel programs, while the kernel keeps statistics (kernel.bpf_stats_enabled)",
            kind: counter,
            series: programs.iter().map(|it| one("program", it.program.clone(), it.runs)).collect(),
        },
        MetricFamily {
            name: "pping_interface_up",
            help: "1 for each attach point at which an interface is watched, 0 while the interface is gone",
            kind: gauge,
            series: snapshot
                .interfaces
                .iter()
                .flat_map(|(watched, _)| {
                    let attach_points = watched.attach_points;
                    let both =
                        (attach_points.ingress != attach_points.egress).then_some(attach_points.egress);
                    std::iter::once(attach_points.ingress).chain(both).map(|attach_point| {
                        let hook = ("hook", attach_point.name().to_owned());
                        (vec![("interface", watched.name.to_string()), hook], watched.is_up.into())
                    })
                })
                .collect(),
        },
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

fn by_direction<I: Iterator<Item = (Vec<Label>, u64)>>(series: impl Fn(Direction) -> I) -> Series {
    Direction::ALL.into_iter().flat_map(series).collect()
}

fn by_protocol(counters: &[[u64; Protocol::COUNT]; 2]) -> Series {
    by_direction(|direction| {
        Protocol::ALL.into_iter().map(move |protocol| {
            let labels =
                vec![("direction", direction_name(direction)), ("protocol", protocol_name(protocol))];
            (labels, counters[direction as usize][protocol as usize])
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
    use crate::kernel::{
        attach::{AttachPoint, AttachPoints},
        counters::Watched,
    };

    #[test]
    fn unusual_response_codes_are_there_once_they_came() {
        let counted = |counters| {
            let attach_points = AttachPoints { ingress: AttachPoint::Tcx, egress: AttachPoint::Tcx };
            let watched = Watched { name: "eth0".into(), id: 0, attach_points, is_up: true };
            let snapshot = Snapshot { interfaces: vec![(watched, counters)] };
            let families = families(&Counted { snapshot, ..Counted::default() });
            let responses = families.into_iter().find(|it| it.name == "pping_dns_responses").unwrap();
            let codes = responses.series.into_iter().map(|(labels, count)| (labels[1].1.clone(), count));
            codes.collect::<Vec<_>>()
        };
        let usual = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];
        assert_eq!(counted(Counters::ZERO), usual.map(|code| (code.to_owned(), 0)));
        let mut counters = Counters::ZERO;
        (counters.dns_responses[3], counters.dns_responses[9], counters.dns_responses[12]) = (5, 6, 7);
        let found = counted(counters);
        assert_eq!(found.len(), 8);
        for expected in [("NXDOMAIN", 5), ("NOTAUTH", 6), ("12", 7)] {
            assert!(found.iter().any(|(code, count)| (code.as_str(), *count) == expected), "{found:?}");
        }
    }
}
