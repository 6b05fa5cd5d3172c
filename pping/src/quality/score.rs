//! The score of a measurement.

use pping_common::{hist, method::Method, series::Traffic};

use super::profile::{Latency, Profile};
use crate::aggregate::Range;

/// The measurement of a series over some time. `B` iterates over the bins with samples, in order, by [`hist::bin`].
#[derive(Debug)]
pub struct ScoreInput<B> {
    /// The method.
    pub method: Method,
    /// The bins.
    pub bins: B,
    /// The shortest and the longest RTT, ns; `None` without samples.
    pub range: Range,
    /// Traffic sent by the hosts whose packets are timed, and by the hosts that reply.
    pub traffic: [Traffic; 2],
    /// The highest throughput of one side, bits per second: over a second or, in a capture, over an interval.
    pub throughput: f64,
}

impl Profile {
    /// The score, from 0 to 100; `None` is unknown.
    pub(super) fn score<B: Iterator<Item = (usize, u64)>>(
        &self,
        measured: &ScoreInput<impl Fn() -> B>,
    ) -> Option<u8> {
        // The pauses of an application lengthen the RTTs of spin bits, whatever the network does.
        if measured.method == Method::QuicSpin {
            return None;
        }
        let (range, count) = (measured.range?, (measured.bins)().map(|(_, count)| count).sum::<u64>());
        if count < self.samples {
            return None;
        }
        let rtts = self.latency.iter().map(|it| it.threshold.score(measured.rtt(it, count, range) as f64));
        let loss = self.loss.iter().filter_map(|it| Some(it.score(measured.loss()?)));
        let throughput = self
            .throughput
            .iter()
            .filter_map(|&needed| Some(f64::from(u8::from(measured.throughput()? >= needed))));
        let lowest = rtts.chain(loss).chain(throughput).fold(1.0, f64::min);
        Some((100.0 * lowest).round() as u8)
    }
}

impl<B: Iterator<Item = (usize, u64)>, F: Fn() -> B> ScoreInput<F> {
    /// The RTT of a percentile: the upper bound of its bin, so that the score is never too good.
    fn rtt(&self, latency: &Latency, count: u64, (min, max): (u64, u64)) -> u64 {
        let rank = latency.rank(count);
        let mut seen = 0;
        let bin = (self.bins)().find(|&(_, count)| {
            seen += count;
            seen >= rank
        });
        bin.map_or(max, |(bin, _)| hist::upper_bound(bin).clamp(min, max))
    }

    /// The share of TCP segments that were retransmitted, by the side that has the higher share; `None` for other protocols
    /// and without traffic.
    fn loss(&self) -> Option<f64> {
        let is_tcp = matches!(self.method, Method::TcpTs | Method::TcpSeq | Method::TcpHandshake);
        let share = |it: &Traffic| it.retransmissions as f64 / it.packets.max(1) as f64;
        (is_tcp && self.has_traffic()).then(|| self.traffic.iter().map(share).fold(0.0, f64::max))
    }

    /// The throughput, bits per second; `None` without traffic.
    fn throughput(&self) -> Option<f64> {
        self.has_traffic().then_some(self.throughput)
    }

    /// Whether packets were counted for the series. All packets of a flow count for one method, so the series of
    /// another method of the flow has samples alone.
    fn has_traffic(&self) -> bool {
        self.traffic.iter().any(|it| it.packets > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::profile::Threshold;

    const MS: f64 = 1e6;

    fn between(optimal: f64, unacceptable: f64) -> Threshold {
        Threshold { optimal, unacceptable }
    }

    fn latency(percentile: f64, optimal: f64, unacceptable: f64) -> Latency {
        Latency { percentile, threshold: between(optimal * MS, unacceptable * MS) }
    }

    /// The requirements of the draft's example (section 6.4).
    fn example() -> Profile {
        Profile {
            name: "example".into(),
            latency: vec![latency(99.0, 200.0, 500.0), latency(99.9, 300.0, 600.0)],
            loss: Some(between(0.01, 0.05)),
            throughput: Some(4e6),
            samples: 1000,
        }
    }

    /// RTTs in bins, as they are measured.
    fn score_of(
        profile: &Profile,
        method: Method,
        rtts: &[(u64, f64)],
        lost: u64,
        throughput: f64,
    ) -> Option<u8> {
        let ns = |rtt: f64| (rtt * MS) as u64;
        let bins = || rtts.iter().map(|&(count, rtt)| (hist::bin(ns(rtt)), count));
        let range = rtts.first().zip(rtts.last()).map(|(low, high)| (ns(low.1), ns(high.1)));
        let traffic = |retransmissions| Traffic { packets: 1000, retransmissions, ..Traffic::default() };
        profile.score(&ScoreInput { method, bins, range, traffic: [traffic(lost), traffic(0)], throughput })
    }

    #[test]
    fn the_example_of_the_draft_scores_50() {
        let [at_99, at_999] = [350.0, 375.0];
        let profile = example();
        let scores =
            profile.latency.iter().zip([at_99, at_999]).map(|(it, rtt)| it.threshold.score(rtt * MS));
        assert_eq!(scores.collect::<Vec<_>>(), [0.5, 0.75]);
        assert!((profile.loss.unwrap().score(0.02) - 0.75).abs() < 1e-9);
        // The same from a histogram, whose bins are not finer than 9 %: 350 ms become 353.6, 375 ms are the longest.
        let rtts = [(980, 40.0), (19, 350.0), (1, 375.0)];
        assert_eq!(score_of(&profile, Method::TcpTs, &rtts, 20, 28e6), Some(49));
    }

    #[test]
    fn the_other_figure_of_the_draft_has_both_ends() {
        let profile = Profile {
            latency: vec![latency(99.0, 100.0, 200.0), latency(99.9, 200.0, 300.0)],
            loss: Some(between(0.001, 0.02)),
            throughput: None,
            ..example()
        };
        let score = |rtt, lost| score_of(&profile, Method::TcpTs, &[(990, rtt), (10, rtt)], lost, 0.0);
        assert_eq!(
            (score(99.0, 0), score(99.0, 1), score(200.0, 0), score(40.0, 20)),
            (Some(100), Some(100), Some(0), Some(0))
        );
        assert_eq!((score(40.0, 2), score(900.0, 900)), (Some(95), Some(0)));
    }

    #[test]
    fn a_percentile_is_never_taken_for_shorter_than_it_is() {
        let profile =
            Profile { latency: vec![latency(50.0, 0.0, 1000.0)], loss: None, throughput: None, ..example() };
        for rtt in 1..1000 {
            let exact = (1.0 - f64::from(rtt) / 1000.0) * 100.0;
            let rtts = [(1, 0.5), (999, f64::from(rtt)), (1, 2000.0)];
            let score = f64::from(score_of(&profile, Method::TcpTs, &rtts, 0, 0.0).unwrap());
            assert!(
                score <= exact + 0.5 && score >= exact - 0.5 - 0.0906 * f64::from(rtt) / 10.0,
                "{rtt}: {score}"
            );
        }
    }

    #[test]
    fn a_score_of_few_samples_or_of_spin_bits_is_unknown() {
        let profile = example();
        assert_eq!(score_of(&profile, Method::TcpTs, &[(999, 1.0)], 0, 28e6), None);
        assert_eq!(score_of(&profile, Method::TcpTs, &[], 0, 28e6), None);
        assert_eq!(score_of(&profile, Method::TcpTs, &[(1000, 1.0)], 0, 28e6), Some(100));
        assert_eq!(score_of(&profile, Method::QuicSpin, &[(1000, 1.0)], 0, 28e6), None);
    }

    #[test]
    fn low_throughput_scores_0_and_only_tcp_has_loss() {
        let profile = example();
        assert_eq!(score_of(&profile, Method::TcpTs, &[(1000, 1.0)], 0, 3.9e6), Some(0));
        assert_eq!(score_of(&profile, Method::TcpTs, &[(1000, 1.0)], 50, 4e6), Some(0));
        assert_eq!(score_of(&profile, Method::QuicHandshake, &[(1000, 1.0)], 50, 4e6), Some(100));
    }

    #[test]
    fn a_series_without_packets_is_scored_by_latency_alone() {
        let bins = || std::iter::once((hist::bin(1_000_000), 1000_u64));
        for method in [Method::Dns, Method::TcpHandshake, Method::QuicHandshake] {
            let measured = ScoreInput {
                method,
                bins,
                range: Some((1_000_000, 1_000_000)),
                traffic: [Traffic::default(); 2],
                throughput: 0.0,
            };
            assert_eq!((measured.loss(), measured.throughput()), (None, None), "{method:?}");
            assert_eq!(example().score(&measured), Some(100), "{method:?}");
        }
    }
}
