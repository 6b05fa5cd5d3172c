//! The distribution of all RTTs since the start, for the summary at the end.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use pping_common::{abi::Hook, rtt::Method};

/// Significant digits kept of an RTT.
const DIGITS: u8 = 3;

/// Longest RTT that is told from a longer one, ns: ten minutes.
const HIGHEST: u64 = 600_000_000_000;

/// The distribution of RTTs by method, and by the side that matched where that is known: the two are of different paths.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    series: BTreeMap<(Method, Option<Hook>), Histogram<u64>>,
}

impl Totals {
    /// Takes a sample, in nanoseconds.
    pub fn take(&mut self, method: Method, matched: Option<Hook>, rtt: u64) {
        self.series.entry((method, matched)).or_insert_with(empty).saturating_record(rtt);
    }

    /// Each method and side that has samples, with their distribution in nanoseconds.
    pub fn series(&self) -> impl Iterator<Item = (Method, Option<Hook>, &Histogram<u64>)> {
        self.series.iter().map(|(&(method, matched), histogram)| (method, matched, histogram))
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
            totals.take(Method::TcpTs, None, rtt * 1_000_000);
        }
        let (method, _, histogram) = totals.series().next().unwrap();
        assert_eq!((method, histogram.len()), (Method::TcpTs, 1000));
        assert!(histogram.value_at_quantile(0.9).abs_diff(900_000_000) <= 900_000);
        assert_eq!(totals.series().count(), 1);
        totals.take(Method::TcpTs, Some(Hook::Egress), u64::MAX);
        assert!(totals.series().last().unwrap().2.max() >= HIGHEST);
    }
}
