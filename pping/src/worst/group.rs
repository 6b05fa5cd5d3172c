//! The figures that rank groups.

use std::{sync::Arc, time::Duration};

use pping_common::{
    abi::{Candidate, Figure},
    method::Method,
};

use super::hosts::Hosts;

/// The column of the groups file with the expected RTT of a group, for instance of satellite links or another continent.
pub const EXPECTED_RTT: &str = "expected_rtt";

/// The measurement of a group by one method and in one direction.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredGroup<'a> {
    /// The method.
    pub method: Method,
    /// Samples.
    pub count: u64,
    /// The 95th percentile, ns; 0 without samples.
    pub p95: u64,
    /// The hosts behind the samples: the group is ranked by as much of the percentile as they support.
    pub hosts: &'a Hosts,
    /// The RTT that it is compared with, ns: the expected RTT of the group, or else the lowest that is known.
    pub baseline: u64,
    /// Packets of both sides.
    pub packets: u64,
    /// TCP segments retransmitted by both sides.
    pub retransmissions: u64,
    /// Bytes of both sides.
    pub bytes: u64,
}

impl MeasuredGroup<'_> {
    /// The value of each [`Figure`]; 0 if there is none, or fewer samples or packets than this.
    pub fn figures(&self, min_samples: u64) -> [u64; Figure::COUNT] {
        let has_rtt = self.count >= min_samples.max(1) && Candidate::has_rtts(self.method as u8);
        let rtt = if has_rtt { self.hosts.supported_p95(self.p95) } else { 0 };
        let inflation = rtt.saturating_sub(self.baseline);
        if !self.has_packets(min_samples) {
            return [rtt, inflation, 0, 0];
        }
        [rtt, inflation, Candidate::share(self.retransmissions, self.packets), self.bytes]
    }

    /// Whether there are enough packets to know the share that was retransmitted.
    pub fn has_packets(&self, min_samples: u64) -> bool {
        self.packets >= min_samples.max(1)
    }
}

/// The expected RTT of a group, from the other columns of the groups file, ns. If both ends have one, the longer counts.
pub fn expected_rtt(labels: &[(Arc<str>, Arc<str>)]) -> Option<u64> {
    let (_, value) = labels.iter().find(|(column, _)| **column == *EXPECTED_RTT)?;
    let times = value.split('+').filter_map(|time| humantime::parse_duration(time).ok());
    times.max().map(|time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use pping_common::series::SeriesCounts;

    use super::*;

    const MEASURED: MeasuredGroup<'_> = MeasuredGroup {
        method: Method::TcpTs,
        count: 20,
        p95: 50,
        hosts: &Hosts::NONE,
        baseline: 30,
        packets: 1000,
        retransmissions: 3,
        bytes: 70,
    };

    #[test]
    fn figures_take_min_samples() {
        assert_eq!(MEASURED.figures(20), [50, 20, 3_000, 70]);
        assert_eq!(MEASURED.figures(21), [0, 0, 3_000, 70]);
        assert_eq!(MEASURED.figures(1001), [0; 4]);
        assert_eq!(MeasuredGroup { baseline: 60, ..MEASURED }.figures(20), [50, 0, 3_000, 70]);
        assert_eq!(MeasuredGroup { method: Method::QuicSpin, ..MEASURED }.figures(20), [0, 0, 3_000, 70]);
        assert_eq!(MeasuredGroup { packets: 0, count: 0, ..MEASURED }.figures(0), [0; 4]);
    }

    #[test]
    fn rtts_count_as_far_as_hosts_support_them() {
        let (mut counts, mut hosts) = (SeriesCounts::EMPTY, Hosts::NONE);
        counts.sample(70_000_000, 1);
        (0..10).for_each(|number| counts.sample(15_000, 1 << number));
        hosts.add(&counts);
        let measured = MeasuredGroup { p95: 70_000_000, baseline: 13_000, hosts: &hosts, ..MEASURED };
        let [rtt, inflation, again, bytes] = measured.figures(20);
        assert!((15_000..30_000).contains(&rtt), "{rtt}");
        assert_eq!((inflation, again, bytes), (rtt - 13_000, 3_000, 70));
    }

    #[test]
    fn what_is_expected_is_a_column() {
        let labels = |value: &str| vec![("site".into(), "b".into()), (EXPECTED_RTT.into(), value.into())];
        assert_eq!(expected_rtt(&labels("600ms")), Some(600_000_000));
        assert_eq!(expected_rtt(&labels("20ms+600ms")), Some(600_000_000));
        assert_eq!(expected_rtt(&[]), None);
    }
}
