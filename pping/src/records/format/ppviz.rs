//! `ppviz`: samples as PPing prints them for its viewer, ppviz. Its times are seconds.

use std::{
    io::Write as _,
    net::{IpAddr, SocketAddr},
};

use super::Encoder;
use crate::records::Record;

const SECOND: u64 = 1_000_000_000;

/// Writes a line per sample: time, RTT, lowest RTT so far, and the flow.
pub(super) struct Ppviz;

impl Encoder for Ppviz {
    fn encode(&mut self, record: &Record, out: &mut Vec<u8>) {
        let Record::Rtt(record) = record else { return };
        let tuple = &record.tuple;
        let end = |address: IpAddr, port| SocketAddr::new(address, port);
        let written = writeln!(
            out,
            "{} {} {} {}+{}",
            Seconds(record.timestamp),
            Seconds(record.rtt),
            Seconds(record.min_rtt),
            end(tuple.src_ip, tuple.src_port),
            end(tuple.dest_ip, tuple.dest_port),
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
    use pping_common::rtt::Method;

    use super::*;
    use crate::records::{RttRecord, Tuple};

    #[test]
    fn times_are_seconds_with_all_digits_and_ipv6_is_in_brackets() {
        let record = RttRecord {
            timestamp: 1_700_000_000_000_000_042,
            tuple: Tuple {
                src_ip: "2001:db8::1".parse().unwrap(),
                src_port: 443,
                dest_ip: "2001:db8::2".parse().unwrap(),
                dest_port: 59528,
                protocol: "TCP",
            },
            rtt: 1_005_425_440,
            min_rtt: 5_000,
            sent_packets: 1,
            sent_bytes: 2,
            rec_packets: 3,
            rec_bytes: 4,
            matched: None,
            method: Method::TcpTs,
            interface: None,
            smoothed_rtt: 5_200_000,
            dns_id: None,
            side_rtt: None,
            vlan: Vec::new(),
            dscp: 0,
            group: None,
        };
        let mut out = Vec::new();
        Ppviz.encode(&Record::Rtt(record), &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "1700000000.000000042 1.005425440 0.000005000 [2001:db8::1]:443+[2001:db8::2]:59528\n"
        );
    }
}
