//! `ppviz`: samples as PPing prints them for its viewer, ppviz. Its times are seconds.

use std::io::Write as _;

use pping_common::limits::SECOND;

use super::encoder::Encoder;
use crate::records::Record;

/// Writes a line per sample: time, RTT, lowest RTT so far, and the flow.
pub(super) struct Ppviz;

impl Encoder for Ppviz {
    fn encode(&mut self, record: &Record, out: &mut Vec<u8>) {
        let Record::Rtt(record) = record else { return };
        let written = writeln!(
            out,
            "{} {} {} {}",
            Seconds(record.timestamp),
            Seconds(record.rtt),
            Seconds(record.min_rtt),
            record.tuple.ends(),
        );
        debug_assert!(written.is_ok(), "writing to a `Vec` cannot fail");
    }
}

/// Nanoseconds, shown as seconds with all their digits.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:09}", self.0 / SECOND, self.0 % SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{RttRecord, Tuple, rtt::tests::example};

    #[test]
    fn times_are_seconds_with_all_digits_and_ipv6_is_in_brackets() {
        let tuple = Tuple {
            src_ip: "2001:db8::1".parse().unwrap(),
            src_port: 443,
            dest_ip: "2001:db8::2".parse().unwrap(),
            ..example().tuple
        };
        let record = RttRecord { tuple, rtt: 1_005_425_440, min_rtt: 5_000, ..example() };
        let mut out = Vec::new();
        Ppviz.encode(&Record::Rtt(record), &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "1700000000.000000042 1.005425440 0.000005000 [2001:db8::1]:443+[2001:db8::2]:59528\n"
        );
    }
}
