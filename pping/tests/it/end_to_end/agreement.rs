//! pping's samples are those that a capture justifies.

use std::{collections::BTreeMap, time::Duration};

use super::{
    records::{Sample, Tuple},
    reference::Expected,
    statistics::median,
    watch::Seen,
};

/// How far apart pping and tcpdump may see the same packet: their hooks are at different points in the kernel, and
/// other work may run in between. Samples carry no identifier, so this limit also separates one sample from the next.
/// The nearest pairs are matched first.
const SAME_PACKET: Duration = Duration::from_millis(5);
/// The limit for samples during which the CPU was taken away in between, as happens to guests now and then.
const SAME_PACKET_LATE: Duration = Duration::from_millis(100);
/// The percentage of samples that may be this late. Two samples always may: one late packet is the match of one sample
/// and the recording of another.
const LATE: usize = 1;
const LATE_AT_LEAST: usize = 2;
/// The percentage of expected samples that must be present.
const COMPLETE: usize = 99;
/// The percentage, by number alone, where more timestamps are outstanding than can be pending. Two CPUs handle the
/// packets that free entries, and their order decides which packet gets the last entry. tcpdump may see another order,
/// and then pping may record other packets than the reference from there on. The capture justifies those samples as well.
const COMPLETE_WHEN_FULL: usize = 90;
/// The largest median difference between the RTTs. Between the two hooks the kernel copies packets and wakes tcpdump,
/// which takes a busy guest 10 us and more at each end. In a burst tcpdump is also late for each packet, because it
/// copies the earlier ones first.
const SAME_RTT: Duration = Duration::from_micros(100);
const SAME_RTT_PART: u32 = 200;

type MethodAndFlow = (String, Tuple);

/// The samples of pping and of the capture, matched one to one, and the unmatched ones.
struct Pairing<'a> {
    pairs: Vec<(&'a Sample, &'a Expected)>,
    unjustified: Vec<&'a Sample>,
    missing: Vec<&'a Expected>,
}

impl Seen {
    /// At `--rate-limit 0`: asserts that pping has all samples of the capture, except for one in a hundred and the
    /// excused ones, and no others. If more timestamps are outstanding than can be pending, any samples count that the
    /// capture justifies.
    #[track_caller]
    pub(super) fn assert_agreement(&self) {
        self.assert_nothing_unjustified();
        let is_full = self.justified.len() > self.expected.len();
        let (counted, complete) =
            if is_full { (&self.justified, COMPLETE_WHEN_FULL) } else { (&self.expected, COMPLETE) };
        let pairing = pair(&self.records.samples, counted);
        let (found, expected, lost) = (pairing.pairs.len(), self.expected.len(), self.excused);
        let examples = &pairing.missing[..pairing.missing.len().min(5)];
        assert!(
            (found + lost) * 100 >= expected * complete,
            "{found} of {expected} samples, without {lost}; missing: {examples:#?}"
        );
        let differences = pairing.pairs.iter().map(|(sample, expected)| sample.rtt.abs_diff(expected.rtt));
        let difference = Duration::from_nanos(median(differences));
        let rtt = Duration::from_nanos(median(pairing.pairs.iter().map(|(sample, _)| sample.rtt)));
        eprintln!("{found} of {expected} samples, median difference {difference:?} of {rtt:?}");
        let allowed = SAME_RTT.max(rtt / SAME_RTT_PART);
        assert!(difference <= allowed, "the RTTs, {rtt:?} in the median, differ by {difference:?}");
    }

    /// Asserts that the capture justifies every sample.
    #[track_caller]
    pub(super) fn assert_nothing_unjustified(&self) {
        let pairing = pair(&self.records.samples, &self.justified);
        let unjustified = &pairing.unjustified[..pairing.unjustified.len().min(5)];
        assert!(unjustified.is_empty(), "{} unjustified: {unjustified:#?}", pairing.unjustified.len());
    }
}

/// Matches samples that belong together, then the leftovers that one side saw late, if they are few.
fn pair<'a>(samples: &'a [Sample], expected: &'a [Expected]) -> Pairing<'a> {
    let pairing = pair_within(SAME_PACKET, samples.iter(), expected.iter());
    let left = pairing.unjustified.len();
    if left == 0 || left > (samples.len() * LATE / 100).max(LATE_AT_LEAST) {
        return pairing;
    }
    let Pairing { mut pairs, unjustified, missing } = pairing;
    let late = pair_within(SAME_PACKET_LATE, unjustified, missing);
    pairs.extend(late.pairs);
    Pairing { pairs, ..late }
}

fn pair_within<'a>(
    tolerance: Duration,
    samples: impl IntoIterator<Item = &'a Sample>,
    expected: impl IntoIterator<Item = &'a Expected>,
) -> Pairing<'a> {
    let mut flows: BTreeMap<MethodAndFlow, (Vec<&Sample>, Vec<&Expected>)> = BTreeMap::new();
    for sample in samples {
        flows.entry((sample.method.clone(), sample.tuple.clone())).or_default().0.push(sample);
    }
    for sample in expected {
        flows.entry((sample.method.clone(), sample.tuple.clone())).or_default().1.push(sample);
    }
    let mut pairing = Pairing { pairs: Vec::new(), unjustified: Vec::new(), missing: Vec::new() };
    for (samples, expected) in flows.into_values() {
        pair_direction(tolerance, &samples, &expected, &mut pairing);
    }
    pairing
}

/// Matches the samples of one direction of one flow.
fn pair_direction<'a>(
    tolerance: Duration,
    samples: &[&'a Sample],
    expected: &[&'a Expected],
    pairing: &mut Pairing<'a>,
) {
    let mut near: Vec<_> = samples
        .iter()
        .enumerate()
        .flat_map(|(i, sample)| {
            let distances = expected.iter().map(|expected| distance(tolerance, sample, expected)).enumerate();
            distances.filter_map(move |(j, distance)| distance.map(|distance| (distance, i, j)))
        })
        .collect();
    near.sort_unstable();
    let (mut is_paired, mut is_found) = (vec![false; samples.len()], vec![false; expected.len()]);
    for (_, i, j) in near {
        if !is_paired[i] && !is_found[j] {
            (is_paired[i], is_found[j]) = (true, true);
            pairing.pairs.push((samples[i], expected[j]));
        }
    }
    let left = |is_paired: Vec<bool>| (0..is_paired.len()).filter(move |&i| !is_paired[i]);
    pairing.unjustified.extend(left(is_paired).map(|i| samples[i]));
    pairing.missing.extend(left(is_found).map(|j| expected[j]));
}

/// Returns the sum of the distances between the packets of two samples, unless one exceeds the tolerance.
fn distance(tolerance: Duration, sample: &Sample, expected: &Expected) -> Option<u64> {
    let recorded = sample.recorded_at().abs_diff(expected.recorded_at);
    let matched = sample.timestamp.abs_diff(expected.matched_at);
    (u128::from(recorded.max(matched)) <= tolerance.as_nanos()).then_some(recorded + matched)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::end_to_end::records::Records;

    fn tuple(port: u16) -> Tuple {
        let [src_ip, dest_ip] = [1, 2].map(|host| Ipv4Addr::new(10, 0, 0, host).into());
        Tuple { src_ip, src_port: port, dest_ip, dest_port: 80 }
    }

    /// A sample, from times in ms.
    fn sample(matched_at: u64, rtt: u64) -> Sample {
        Sample {
            timestamp: matched_at * 1_000_000,
            tuple: tuple(1000),
            protocol: "TCP".to_owned(),
            rtt: rtt * 1_000_000,
            method: "tcp-ts".to_owned(),
            match_on_egress: false,
            interface: "wan0".to_owned(),
            dns_id: None,
            side_rtt: None,
        }
    }

    fn expected(matched_at: u64, rtt: u64) -> Expected {
        let (matched_at, rtt) = (matched_at * 1_000_000, rtt * 1_000_000);
        let recorded_at = matched_at - rtt;
        Expected { method: "tcp-ts".to_owned(), tuple: tuple(1000), rtt, recorded_at, matched_at }
    }

    fn counts(samples: &[Sample], expected: &[Expected]) -> (usize, usize, usize) {
        let pairing = pair(samples, expected);
        (pairing.pairs.len(), pairing.unjustified.len(), pairing.missing.len())
    }

    #[test]
    fn pairs_are_one_to_one() {
        let both = [expected(100, 20), expected(101, 20)];
        assert_eq!(counts(&[sample(101, 20), sample(100, 20)], &both), (2, 0, 0));
        assert_eq!(counts(&[sample(100, 20), sample(100, 20), sample(100, 20)], &both), (2, 1, 0));
        assert_eq!(counts(&[sample(100, 20)], &both), (1, 0, 1));
    }

    #[test]
    fn only_samples_of_one_direction_and_time_pair() {
        assert_eq!(counts(&[sample(201, 121)], &[expected(100, 20)]), (0, 1, 1));
        assert_eq!(counts(&[sample(200, 121)], &[expected(200, 20)]), (0, 1, 1));
        let elsewhere = Sample { tuple: tuple(1001), ..sample(100, 20) };
        assert_eq!(counts(&[elsewhere], &[expected(100, 20)]), (0, 1, 1));
        let otherwise = Sample { method: "icmp-echo".to_owned(), ..sample(100, 20) };
        assert_eq!(counts(&[otherwise], &[expected(100, 20)]), (0, 1, 1));
    }

    #[test]
    fn one_sample_in_a_hundred_may_be_late() {
        let expected: Vec<_> = (0..200).map(|number| expected(200 * number + 200, 20)).collect();
        for late in 1..=3 {
            let samples: Vec<_> = (0..200)
                .map(|number| sample(200 * number + 200, if number < late { 26 } else { 20 }))
                .collect();
            let left = if late <= 2 { 0 } else { late as usize };
            assert_eq!(counts(&samples, &expected), (200 - left, left, left), "{late} late");
        }
    }

    #[test]
    #[should_panic(expected = "1 unjustified")]
    fn an_unjustified_sample_fails() {
        let samples = vec![sample(100, 20), sample(200, 20)];
        let records = Records { samples, flow_events: Vec::new() };
        let expected = vec![expected(100, 20)];
        Seen { records, justified: expected.clone(), expected, excused: 0 }.assert_agreement();
    }

    #[test]
    #[should_panic(expected = "98 of 100 samples")]
    fn two_missing_samples_in_a_hundred_fail() {
        let samples = (2..100).map(|number| sample(100 * number, 20)).collect();
        let records = Records { samples, flow_events: Vec::new() };
        let expected: Vec<_> = (0..100).map(|number| expected(100 + 100 * number, 20)).collect();
        Seen { records, justified: expected.clone(), expected, excused: 0 }.assert_agreement();
    }

    #[test]
    fn missing_samples_are_accepted_where_excused() {
        let samples = (2..100).map(|number| sample(100 * number, 20)).collect();
        let records = Records { samples, flow_events: Vec::new() };
        let expected: Vec<_> = (0..100).map(|number| expected(100 + 100 * number, 20)).collect();
        Seen { records, justified: expected.clone(), expected, excused: 1 }.assert_agreement();
    }

    #[test]
    #[should_panic(expected = "21ms in the median, differ by 1ms")]
    fn different_values_fail() {
        let samples = (1..100).map(|number| sample(100 * number, 21)).collect();
        let records = Records { samples, flow_events: Vec::new() };
        let expected: Vec<_> = (1..100).map(|number| expected(100 * number, 20)).collect();
        Seen { records, justified: expected.clone(), expected, excused: 0 }.assert_agreement();
    }
}
