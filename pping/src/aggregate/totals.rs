//! The distribution of all RTTs since the start, for the summary at the end.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use pping_common::rtt::Method;

/// Significant digits kept of an RTT.
const DIGITS: u8 = 3;

/// Longest RTT that is told from a longer one, ns: ten minutes.
const HIGHEST: u64 = 600_000_000_000;

/// The distribution of RTTs by method.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    methods: BTreeMap<Method, Histogram<u64>>,
}

impl Totals {
    /// Takes a sample, in nanoseconds.
    pub fn take(&mut self, method: Method, rtt: u64) {
        self.methods.entry(method).or_insert_with(empty).saturating_record(rtt);
    }

    /// Each method that has samples, with their distribution in nanoseconds.
    pub fn methods(&self) -> impl Iterator<Item = (Method, &Histogram<u64>)> {
        self.methods.iter().map(|(method, histogram)| (*method, histogram))
    }
}

/// 1 ns to [`HIGHEST`], which takes some 200 KB.
fn empty() -> Histogram<u64> {
    #[expect(clippy::expect_used, reason = "both arguments are constants that it documents as valid")]
    Histogram::new_with_max(HIGHEST, DIGITS).expect("constant bounds are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_exact_to_a_thousandth() {
        let mut totals = Totals::default();
        for rtt in 1..=1000 {
            totals.take(Method::TcpTs, rtt * 1_000_000);
        }
        let (method, histogram) = totals.methods().next().unwrap();
        assert_eq!((method, histogram.len()), (Method::TcpTs, 1000));
        assert!(histogram.value_at_quantile(0.9).abs_diff(900_000_000) <= 900_000);
        assert_eq!(totals.methods().count(), 1);
        totals.take(Method::IcmpEcho, u64::MAX);
        assert!(totals.methods().last().unwrap().1.max() >= HIGHEST);
    }
}
