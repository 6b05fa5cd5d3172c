//! The distribution of all RTTs since the start, for the summary at the end.

use std::collections::BTreeMap;

use pping_common::{
    abi::{Direction, Tally},
    rtt::Method,
};

use super::Distribution;

/// The distribution of RTTs by method, and by the side that matched where that is known: the two are of different paths.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    series: BTreeMap<(Method, Option<Direction>), Distribution>,
}

impl Totals {
    /// Takes what a series got in some more time.
    pub fn take(&mut self, method: Method, matched: Option<Direction>, tally: &Tally) {
        if tally.has_samples() {
            self.series.entry((method, matched)).or_default().add(tally);
        }
    }

    /// Each method and side that has samples, with their distribution in nanoseconds.
    pub fn series(&self) -> impl Iterator<Item = (Method, Option<Direction>, &Distribution)> {
        self.series.iter().map(|(&(method, matched), distribution)| (method, matched, distribution))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_sides_are_told_apart() {
        let mut totals = Totals::default();
        let mut tally = Tally::EMPTY;
        totals.take(Method::IcmpEcho, None, &tally);
        assert_eq!(totals.series().count(), 0, "no samples, nothing to say");
        tally.sample(5_000_000);
        totals.take(Method::TcpTs, None, &tally);
        totals.take(Method::TcpTs, None, &tally);
        totals.take(Method::TcpTs, Some(Direction::Egress), &tally);
        let counts: Vec<_> =
            totals.series().map(|(method, matched, it)| (method, matched, it.count())).collect();
        assert_eq!(counts, [(Method::TcpTs, None, 2), (Method::TcpTs, Some(Direction::Egress), 1)]);
    }
}
