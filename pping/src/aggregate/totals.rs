//! The distributions of all RTTs of a run, for its summary.

use std::collections::BTreeMap;

use pping_common::{
    abi::{Direction, Tally},
    rtt::Method,
};

use super::distribution::Distribution;

/// Distributions by method and, if known, by the direction of the echo: the two directions measure different paths.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    series: BTreeMap<(Method, Option<Direction>), Distribution>,
}

impl Totals {
    /// Adds a tally of a series.
    pub fn add(&mut self, method: Method, matched: Option<Direction>, tally: &Tally) {
        if tally.has_samples() {
            self.series.entry((method, matched)).or_default().add(tally);
        }
    }

    /// The distribution of each method and direction that has samples.
    pub fn series(&self) -> impl Iterator<Item = (Method, Option<Direction>, &Distribution)> {
        self.series.iter().map(|(&(method, matched), distribution)| (method, matched, distribution))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_directions_are_separate() {
        let mut totals = Totals::default();
        let mut tally = Tally::EMPTY;
        totals.add(Method::IcmpEcho, None, &tally);
        assert_eq!(totals.series().count(), 0, "no samples");
        tally.sample(5_000_000, 0);
        totals.add(Method::TcpTs, None, &tally);
        totals.add(Method::TcpTs, None, &tally);
        totals.add(Method::TcpTs, Some(Direction::Egress), &tally);
        let counts: Vec<_> =
            totals.series().map(|(method, matched, it)| (method, matched, it.count())).collect();
        assert_eq!(counts, [(Method::TcpTs, None, 2), (Method::TcpTs, Some(Direction::Egress), 1)]);
    }
}
