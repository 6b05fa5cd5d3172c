//! `standard`: a line for people, as ePPing prints it.

use std::io::Write as _;

use jiff::{Timestamp, tz::TimeZone};
use pping_common::limits::SECOND;

use super::encoder::Encoder;
use crate::records::{AggregateRecord, FlowSummaryRecord, Record, Tuple, direction_name, method_name};

/// The lowest width of the column of group labels, characters, so that the columns of most lines align.
const SHORTEST_COLUMN: usize = 18;

/// Writes lines for people, in local time.
pub(super) struct Standard {
    zone: TimeZone,
    /// The last second that was formatted, with its text: many records share it.
    second: (u64, String),
    /// The longest label so far, characters.
    widest: usize,
}

impl Default for Standard {
    fn default() -> Self {
        Self::new(TimeZone::system())
    }
}

impl Standard {
    fn new(zone: TimeZone) -> Self {
        Self { zone, second: (u64::MAX, String::new()), widest: SHORTEST_COLUMN }
    }

    fn clock(&mut self, timestamp: u64) -> &str {
        let second = timestamp / SECOND;
        if self.second.0 != second {
            let time = Timestamp::from_second(second as i64).unwrap_or_default();
            self.second = (second, time.to_zoned(self.zone.clone()).strftime("%H:%M:%S").to_string());
        }
        &self.second.1
    }
}

impl Encoder for Standard {
    fn encode(&mut self, record: &Record, out: &mut Vec<u8>) {
        let timestamp = record.timestamp();
        if let Record::Aggregate(record) = record {
            self.widest = self.widest.max(record.group.chars().count());
        }
        let widest = self.widest;
        let fraction = timestamp % SECOND;
        let clock = self.clock(timestamp);
        let written = match record {
            Record::Rtt(record) => writeln!(
                out,
                "{clock}.{fraction:09} {} ms {} ms {}",
                milliseconds(record.rtt),
                milliseconds(record.min_rtt),
                flow(&record.tuple),
            ),
            Record::Flow(record) => writeln!(
                out,
                "{clock}.{fraction:09} {} {} due to {} from {}",
                flow(&record.tuple),
                record.flow_event,
                record.reason,
                record.triggered_by,
            ),
            Record::FlowSummary(record) => summary(out, clock, fraction, record),
            Record::Aggregate(record) => aggregate(out, clock, fraction, widest, record),
        };
        debug_assert!(written.is_ok(), "writing to a `Vec` cannot fail");
    }
}

/// Writes a flow summary.
fn summary(out: &mut Vec<u8>, clock: &str, fraction: u64, record: &FlowSummaryRecord) -> std::io::Result<()> {
    let seconds = record.end.saturating_sub(record.start) as f64 / SECOND as f64;
    write!(
        out,
        "{clock}.{fraction:09} {} ended due to {} after {seconds:.3} s; sent {} packets {} bytes {} again, received {} \
         packets {} bytes {} again",
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

/// Writes an aggregate, in columns that align with those of other lines.
fn aggregate(
    out: &mut Vec<u8>,
    clock: &str,
    fraction: u64,
    widest: usize,
    record: &AggregateRecord,
) -> std::io::Result<()> {
    write!(
        out,
        "{clock}.{:03} {}{:<widest$} {:<14} {:<7} {:>7} samples",
        fraction / 1_000_000,
        record.interface.as_deref().map(|name| format!("{name} ")).unwrap_or_default(),
        record.group,
        method_name(record.method),
        record.matched.map_or("-", direction_name),
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
    for (name, packets, bytes, again) in [
        ("sent", record.sent_packets, record.sent_bytes, record.sent_retransmissions),
        ("received", record.rec_packets, record.rec_bytes, record.rec_retransmissions),
    ] {
        write!(out, "  {name} {packets:>7} packets {bytes:>10} bytes {again:>4} again")?;
    }
    writeln!(out)
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

fn flow(tuple: &Tuple) -> String {
    format!("{} {}", tuple.protocol, tuple.ends())
}

#[cfg(test)]
mod tests {
    use pping_common::{abi::Tally, group::GroupKey, rtt::Method};

    use super::*;
    use crate::{
        aggregate::{Distribution, Rtts},
        groups::{GroupName, Labels, SeriesName},
        records::{FlowRecord, rtt::tests::example},
    };

    fn line(record: &Record) -> String {
        let mut out = Vec::new();
        Standard::new(TimeZone::UTC).encode(record, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_are_those_of_epping() {
        assert_eq!(
            line(&Record::Rtt(example())),
            "22:13:20.000000042 5.42544 ms 5 ms TCP 10.11.1.1:5201+10.11.1.2:59528\n"
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
            "22:13:20.000000042 TCP 10.11.1.1:5201+10.11.1.2:59528 opening due to SYN-ACK from dest\n"
        );
    }

    #[test]
    fn the_columns_of_aggregates_align_with_or_without_samples() {
        let series = |label: &str, rtt: Option<u64>| {
            let group =
                GroupName { label: label.into(), ..GroupName::new(&GroupKey::ALL, &Labels::default()) };
            let (method, matched) = (Method::IcmpEcho, Some(pping_common::abi::Direction::Egress));
            let name = SeriesName { interface: None, method, matched, group: group.into() };
            let mut tally = Tally::EMPTY;
            if let Some(rtt) = rtt {
                tally.sample(rtt);
            }
            tally.sent.packets = 7;
            let mut distribution = Distribution::default();
            distribution.add(&tally);
            let end = 1_700_000_000 * SECOND;
            line(&Record::Aggregate(Box::new(AggregateRecord::new(&name, &distribution, end, SECOND))))
        };
        assert_eq!(
            series("192.0.2.0/24", Some(5_425_440)),
            "22:13:20.000 192.0.2.0/24       icmp-echo      egress        1 samples  min   5.425  p50   5.425  p95   5.425  \
             p99   5.425  max   5.425 ms  sent       7 packets          0 bytes    0 again  received       0 packets          \
             0 bytes    0 again\n"
        );
        assert_eq!(
            series("all", None),
            "22:13:20.000 all                icmp-echo      egress        0 samples  min       -  p50       -  p95       -  \
             p99       -  max       - ms  sent       7 packets          0 bytes    0 again  received       0 packets          \
             0 bytes    0 again\n"
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
            interface: None,
        };
        assert_eq!(
            line(&Record::FlowSummary(Box::new(record))),
            "22:13:21.000000042 TCP 10.11.1.1:5201+10.11.1.2:59528 ended due to FIN after 1.000 s; sent 1 packets 2 bytes 5 \
             again, received 3 packets 4 bytes 6 again; src 2 samples min 1.000 p50 1.000 p99 3.000 max 3.000 ms\n"
        );
    }
}
