//! `standard`: a line for people, as ePPing prints it.

use std::{env, fmt, io::Write as _, path::Path, sync::Arc};

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use pping_common::{group::Side, limits::SECOND, parse::Direction};

use super::encoder::Encoder;
use crate::records::{
    AggregateRecord, FlowSummaryRecord, FollowedPackets, Rank, Record, ResidenceRecord, Tuple,
    WorstFlowRecord, WorstGroupRecord,
};

/// The lowest width of the column of group labels, characters, so that the columns of most lines align.
const SHORTEST_COLUMN: usize = 18;

/// The file with the time zone of this host.
const LOCAL_TIME: &str = "/etc/localtime";

/// Writes lines for people, in local time with its offset from UTC.
pub(super) struct Standard {
    zone: TimeZone,
    /// The day on which pping started. Lines of other days have the date.
    today: Date,
    /// The last second that was formatted: many records share it.
    second: Second,
    /// The longest label so far, characters.
    widest: usize,
}

impl Default for Standard {
    fn default() -> Self {
        let zone = zone();
        let today = Timestamp::now().to_zoned(zone.clone()).date();
        Self::new(zone, today)
    }
}

impl Standard {
    fn new(zone: TimeZone, today: Date) -> Self {
        let second = Second { number: u64::MAX, clock: String::new(), offset: String::new() };
        Self { zone, today, second, widest: SHORTEST_COLUMN }
    }

    fn second(&mut self, timestamp: u64) -> &Second {
        let number = timestamp / SECOND;
        if self.second.number != number {
            let time = Timestamp::from_second(number as i64).unwrap_or_default().to_zoned(self.zone.clone());
            let clock = if time.date() == self.today { "%H:%M:%S" } else { "%Y-%m-%dT%H:%M:%S" };
            self.second = Second {
                number,
                clock: time.strftime(clock).to_string(),
                offset: time.strftime("%:z").to_string(),
            };
        }
        &self.second
    }
}

/// The time zone of this host: that of `TZ`, else that of /etc/localtime. A host that has neither is in UTC.
fn zone() -> TimeZone {
    TimeZone::try_system().unwrap_or_else(|_| {
        if let Some(name) = env::var_os("TZ") {
            tracing::warn!(
                "TZ={}: this is no time zone that is known here, so times are in UTC; give a name like Europe/Stockholm, \
                 which takes the files of tzdata in /usr/share/zoneinfo, or an offset like CET-1",
                name.display()
            );
        } else if Path::new(LOCAL_TIME).exists() {
            tracing::warn!("{LOCAL_TIME} has no time zone that can be read, so times are in UTC; set TZ");
        }
        TimeZone::UTC
    })
}

/// A second, as lines show it.
struct Second {
    number: u64,
    clock: String,
    offset: String,
}

/// A time, with this many digits of its fraction.
#[derive(Clone, Copy)]
struct Time<'a> {
    second: &'a Second,
    nanoseconds: u64,
    digits: usize,
}

impl fmt::Display for Time<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { second: Second { clock, offset, .. }, nanoseconds, digits } = *self;
        let fraction = nanoseconds / 10_u64.pow(9 - digits as u32);
        write!(f, "{clock}.{fraction:0digits$}{offset}")
    }
}

impl Encoder for Standard {
    fn encode(&mut self, record: &Record, out: &mut Vec<u8>) {
        let timestamp = record.timestamp();
        if let Record::Aggregate(record) = record {
            let name = title(record.group.as_ref(), record.level.as_ref(), record.path.as_ref());
            self.widest = self.widest.max(name.chars().count());
        }
        let widest = self.widest;
        let exact = Time { second: self.second(timestamp), nanoseconds: timestamp % SECOND, digits: 9 };
        let time = Time { digits: 3, ..exact };
        let written = match record {
            Record::Rtt(record) => writeln!(
                out,
                "{exact} {} ms {} ms {}",
                milliseconds(record.rtt),
                milliseconds(record.min_rtt),
                flow(&record.tuple),
            ),
            Record::Flow(record) => writeln!(
                out,
                "{exact} {} {} due to {} from {}",
                flow(&record.tuple),
                record.flow_event,
                record.reason,
                record.triggered_by,
            ),
            Record::FlowSummary(record) => summary(out, exact, record),
            Record::Aggregate(record) => aggregate(out, time, widest, record),
            Record::WorstFlow(record) => worst_flow(out, time, record),
            Record::WorstGroup(record) => worst_group(out, time, record),
            Record::Residence(record) => residence(out, time, record),
        };
        debug_assert!(written.is_ok(), "writing to a `Vec` cannot fail");
    }
}

/// Writes a flow summary.
fn summary(out: &mut Vec<u8>, time: Time<'_>, record: &FlowSummaryRecord) -> std::io::Result<()> {
    let seconds = record.end.saturating_sub(record.start) as f64 / SECOND as f64;
    write!(
        out,
        "{time} {} ended due to {} after {seconds:.3} s; sent {} packets {} bytes {} retx, received {} \
         packets {} bytes {} retx",
        flow(&record.tuple),
        record.reason,
        record.sent_packets,
        record.sent_bytes,
        record.sent_retransmissions,
        record.rec_packets,
        record.rec_bytes,
        record.rec_retransmissions,
    )?;
    for (end, rtts) in [("src", record.src_rtt), ("dest", record.dest_rtt)] {
        if let Some(rtts) = rtts {
            write!(
                out,
                "; {end} {} samples min {:.3} p50 {:.3} p99 {:.3} max {:.3} ms",
                rtts.samples,
                milliseconds(rtts.min),
                milliseconds(rtts.p50),
                milliseconds(rtts.p99),
                milliseconds(rtts.max),
            )?;
        }
    }
    writeln!(out)
}

/// Writes the times of packets in this host.
fn residence(out: &mut Vec<u8>, time: Time<'_>, record: &ResidenceRecord) -> std::io::Result<()> {
    let ResidenceRecord { interface, group, residence, count, .. } = record;
    write!(out, "{time} {interface} {residence:<10} {count:>7} packets")?;
    let times = record.times.map(|it| [it.mean, it.p50, it.p95, it.p99].map(milliseconds));
    for (index, name) in ["mean", "p50", "p95", "p99"].into_iter().enumerate() {
        match times {
            Some(times) => write!(out, "  {name} {:>7.3}", times[index])?,
            None => write!(out, "  {name} {:>7}", "-")?,
        }
    }
    write!(out, " ms")?;
    if let Some(group) = group {
        write!(out, "  of {group}")?;
    }
    if let Some(FollowedPackets { followed, dropped, replaced }) = record.packets {
        write!(out, "  followed {followed} dropped {dropped} replaced {replaced}")?;
    }
    writeln!(out)
}

/// Returns the label of a group, or the level and the path of a node.
fn title(group: Option<&Arc<str>>, level: Option<&Arc<str>>, path: Option<&Arc<str>>) -> String {
    let words: Vec<_> = [group, level, path].into_iter().flatten().map(|word| &**word).collect();
    words.join(" ")
}

/// Writes an aggregate, in columns that align with those of other lines.
fn aggregate(
    out: &mut Vec<u8>,
    time: Time<'_>,
    widest: usize,
    record: &AggregateRecord,
) -> std::io::Result<()> {
    write!(
        out,
        "{time} {}{:<widest$} {:<14} {:<7} {:>7} samples",
        record.interface.as_deref().map(|name| format!("{name} ")).unwrap_or_default(),
        title(record.group.as_ref(), record.level.as_ref(), record.path.as_ref()),
        record.method.name(),
        place(record.matched, record.side),
        record.count,
    )?;
    let rtts = record.rtts.map(|it| [it.min, it.p50, it.p95, it.p99, it.max].map(milliseconds));
    for (index, name) in ["min", "p50", "p95", "p99", "max"].into_iter().enumerate() {
        match rtts {
            Some(rtts) => write!(out, "  {name} {:>7.3}", rtts[index])?,
            None => write!(out, "  {name} {:>7}", "-")?,
        }
    }
    write!(out, " ms")?;
    for (name, packets, bytes, retransmissions) in [
        ("sent", record.sent_packets, record.sent_bytes, record.sent_retransmissions),
        ("received", record.rec_packets, record.rec_bytes, record.rec_retransmissions),
    ] {
        write!(out, "  {name} {packets:>7} packets {bytes:>10} bytes {retransmissions:>4} retx")?;
    }
    writeln!(out)
}

/// Writes a flow direction among the worst.
fn worst_flow(out: &mut Vec<u8>, time: Time<'_>, record: &WorstFlowRecord) -> std::io::Result<()> {
    write_rank(out, time, &record.rank, record.interface.as_deref())?;
    write!(out, " {} {}", record.method.name(), flow(&record.tuple))?;
    if let (Some(rtt), Some(inflation)) = (record.smoothed_rtt, record.inflation) {
        let (rtt, inflation) = (milliseconds(rtt), milliseconds(inflation));
        write!(out, " smoothed {rtt:.3} ms, {inflation:.3} above its lowest")?;
    }
    writeln!(out, " {:.1} % retx {} bytes", 100.0 * record.retransmission_ratio, record.bytes)
}

/// Writes a group among the worst.
fn worst_group(out: &mut Vec<u8>, time: Time<'_>, record: &WorstGroupRecord) -> std::io::Result<()> {
    write_rank(out, time, &record.rank, record.interface.as_deref())?;
    let side = place(record.matched, record.side);
    let name = title(record.group.as_ref(), record.level.as_ref(), record.path.as_ref());
    write!(out, " {} {side} {name} {} samples", record.method.name(), record.count)?;
    if let Some(hosts) = record.hosts {
        write!(out, " of {hosts} hosts")?;
    }
    if let (Some(p95), Some(ranked), Some(inflation)) = (record.p95, record.ranked_rtt, record.inflation) {
        let [p95, ranked, inflation] = [p95, ranked, inflation].map(milliseconds);
        write!(out, " p95 {p95:.3} ms, ranked by {ranked:.3}, {inflation:.3} above its baseline")?;
    }
    if let Some(ratio) = record.retransmission_ratio {
        write!(out, " {:.1} % retx", 100.0 * ratio)?;
    }
    writeln!(out, " {} bytes", record.bytes)
}

fn write_rank(
    out: &mut Vec<u8>,
    time: Time<'_>,
    rank: &Rank,
    interface: Option<&str>,
) -> std::io::Result<()> {
    write!(out, "{time} worst by {} {:>3}:", rank.worst.name(), rank.rank)?;
    interface.map_or(Ok(()), |interface| write!(out, " {interface}"))
}

/// Where the hosts that replied are: inside or outside of the network, or else the direction in which their packets passed.
fn place(matched: Option<Direction>, side: Option<Side>) -> &'static str {
    side.map(Side::name).or(matched.map(Direction::name)).unwrap_or("-")
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

fn flow(tuple: &Tuple) -> String {
    format!("{} {}", tuple.protocol, tuple.ends())
}

#[cfg(test)]
mod tests {
    use pping_common::{group::GroupKey, method::Method, series::SeriesCounts};

    use super::*;
    use crate::{
        aggregate::{Distribution, Rtts},
        groups::{GroupName, Labels, SeriesName},
        quality::Scores,
        records::{FlowRecord, RttRecord, TimeQuantiles, rtt::tests::example},
    };

    /// The day of the examples.
    const DAY: Date = jiff::civil::date(2023, 11, 14);

    fn line(record: &Record) -> String {
        line_of(record, &mut Standard::new(TimeZone::UTC, DAY))
    }

    fn line_of(record: &Record, encoder: &mut Standard) -> String {
        let mut out = Vec::new();
        encoder.encode(record, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn local_times_have_offset_and_date_of_other_days() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let record = Record::Rtt(example());
        // It is after midnight there.
        let shown = line_of(&record, &mut Standard::new(zone.clone(), DAY.tomorrow().unwrap()));
        assert!(shown.starts_with("00:13:20.000000042+02:00 5.42544 ms "), "{shown}");
        let mut encoder = Standard::new(zone, DAY);
        let shown = line_of(&record, &mut encoder);
        assert!(shown.starts_with("2023-11-15T00:13:20.000000042+02:00 5.42544 ms "), "{shown}");
        let before = Record::Rtt(RttRecord { timestamp: example().timestamp - 3600 * SECOND, ..example() });
        let shown = line_of(&before, &mut encoder);
        assert!(shown.starts_with("23:13:20.000000042+02:00 5.42544 ms "), "{shown}");
    }

    #[test]
    fn lines_are_those_of_epping() {
        assert_eq!(
            line(&Record::Rtt(example())),
            "22:13:20.000000042+00:00 5.42544 ms 5 ms TCP 10.11.1.1:5201+10.11.1.2:59528\n"
        );
        let flow = FlowRecord {
            timestamp: 1_700_000_000_000_000_042,
            tuple: example().tuple,
            flow_event: "opening",
            reason: "SYN-ACK",
            triggered_by: "dest",
            interface: Some("eth0".into()),
        };
        assert_eq!(
            line(&Record::Flow(flow)),
            "22:13:20.000000042+00:00 TCP 10.11.1.1:5201+10.11.1.2:59528 opening due to SYN-ACK from dest\n"
        );
    }

    #[test]
    fn the_columns_of_aggregates_align_with_or_without_samples() {
        let series = |label: &str, rtt: Option<u64>| {
            let group =
                GroupName { label: label.into(), ..GroupName::new(&GroupKey::ALL, &Labels::default()) };
            let (method, matched) = (Method::IcmpEcho, Some(Direction::Egress));
            let name = SeriesName { interface: None, method, matched, side: None, group: group.into() };
            let mut counts = SeriesCounts::EMPTY;
            if let Some(rtt) = rtt {
                counts.sample(rtt, 0);
            }
            counts.sent.packets = 7;
            let mut distribution = Distribution::default();
            distribution.add(&counts);
            let end = 1_700_000_000 * SECOND;
            line(&Record::Aggregate(Box::new(AggregateRecord::new(
                &name,
                &distribution,
                end,
                SECOND,
                Scores::new(),
            ))))
        };
        assert_eq!(
            series("192.0.2.0/24", Some(5_425_440)),
            "22:13:20.000+00:00 192.0.2.0/24       icmp-echo      egress        1 samples  min   5.425  p50   5.425  p95   5.425  \
             p99   5.425  max   5.425 ms  sent       7 packets          0 bytes    0 retx  received       0 packets          \
             0 bytes    0 retx\n"
        );
        assert_eq!(
            series("all", None),
            "22:13:20.000+00:00 all                icmp-echo      egress        0 samples  min       -  p50       -  p95       -  \
             p99       -  max       - ms  sent       7 packets          0 bytes    0 retx  received       0 packets          \
             0 bytes    0 retx\n"
        );
    }

    #[test]
    fn times_in_a_queue_are_a_line_of_the_interface_or_of_a_group() {
        let record = |group: Option<&str>, packets| ResidenceRecord {
            timestamp: 1_700_000_000 * SECOND,
            window: SECOND,
            interface: "wan0".into(),
            group: group.map(Into::into),
            residence: "queue",
            count: u64::from(group.is_some()),
            times: group.map(|_| TimeQuantiles {
                mean: 5_425_440,
                p50: 5_425_440,
                p90: 0,
                p95: 1,
                p99: 2_000,
            }),
            histogram: Vec::new(),
            packets,
        };
        let shown = |record| line(&Record::Residence(Box::new(record)));
        let packets = FollowedPackets { followed: 3, dropped: 2, replaced: 1 };
        assert_eq!(
            shown(record(None, Some(packets))),
            "22:13:20.000+00:00 wan0 queue            0 packets  mean       -  p50       -  p95       -  p99       - ms  \
             followed 3 dropped 2 replaced 1\n"
        );
        assert_eq!(
            shown(record(Some("customer-7"), None)),
            "22:13:20.000+00:00 wan0 queue            1 packets  mean   5.425  p50   5.425  p95   0.000  p99   0.002 ms  of \
             customer-7\n"
        );
    }

    #[test]
    fn a_flow_summary_is_a_line() {
        let rtts = Rtts {
            samples: 2,
            min: 1_000_000,
            mean: 2_000_000,
            p50: 1_000_000,
            p90: 3,
            p99: 3_000_000,
            max: 3_000_000,
        };
        let record = FlowSummaryRecord {
            timestamp: 1_700_000_001_000_000_042,
            tuple: example().tuple,
            flow_event: "summary",
            reason: "FIN",
            start: 1_700_000_000_000_000_042,
            end: 1_700_000_001_000_000_042,
            sent_packets: 1,
            sent_bytes: 2,
            rec_packets: 3,
            rec_bytes: 4,
            sent_retransmissions: 5,
            rec_retransmissions: 6,
            sent_out_of_order: 9,
            rec_out_of_order: 10,
            sent_ce_packets: 7,
            rec_ce_packets: 8,
            src_rtt: Some(rtts),
            dest_rtt: None,
            src_side: None,
            dest_side: None,
            interface: None,
        };
        assert_eq!(
            line(&Record::FlowSummary(Box::new(record))),
            "22:13:21.000000042+00:00 TCP 10.11.1.1:5201+10.11.1.2:59528 ended due to FIN after 1.000 s; sent 1 packets 2 bytes 5 \
             retx, received 3 packets 4 bytes 6 retx; src 2 samples min 1.000 p50 1.000 p99 3.000 max 3.000 ms\n"
        );
    }
}
