//! The distributions of all RTTs of a run, for its summary.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use pping_common::{group::Side, method::Method, parse::Direction, series::SeriesCounts};

use super::distribution::Distribution;

/// The highest number of interfaces that are kept apart. Those of sessions and containers come and go without end.
const INTERFACES: usize = 64;

/// The name of all other interfaces. No interface can have it.
const OTHERS: &str = "(others)";

/// What distributions are kept apart by: the interface, if it has a name, the method and, if known, the direction of the
/// echo. Interfaces and directions measure different paths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TotalsKey {
    /// The interface, if it has a name.
    pub interface: Option<Arc<str>>,
    /// The method.
    pub method: Method,
    /// The direction of the echo, if known.
    pub matched: Option<Direction>,
    /// The side of the network that the hosts that reply are on, if sides are told apart.
    pub side: Option<Side>,
}

/// The distributions of a run.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    series: BTreeMap<TotalsKey, Distribution>,
    interfaces: BTreeSet<Arc<str>>,
}

impl Totals {
    /// Adds counts of a series.
    pub fn add(
        &mut self,
        interface: Option<&Arc<str>>,
        method: Method,
        matched: Option<Direction>,
        side: Option<Side>,
        counts: &SeriesCounts,
    ) {
        if !counts.has_samples() {
            return;
        }
        let interface = interface.map(|name| self.kept_apart(name));
        self.series.entry(TotalsKey { interface, method, matched, side }).or_default().add(counts);
    }

    /// The name of an interface, or that of all others if there are too many.
    fn kept_apart(&mut self, name: &Arc<str>) -> Arc<str> {
        if self.interfaces.len() >= INTERFACES && !self.interfaces.contains(name) {
            return OTHERS.into();
        }
        self.interfaces.insert(Arc::clone(name));
        Arc::clone(name)
    }

    /// The distribution of each interface, method and direction that has samples.
    pub fn series(&self) -> impl Iterator<Item = (&TotalsKey, &Distribution)> {
        self.series.iter()
    }

    /// The samples of all of them.
    pub fn samples(&self) -> u64 {
        self.series.values().map(Distribution::count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_methods_and_directions_are_separate() {
        let mut totals = Totals::default();
        let mut counts = SeriesCounts::EMPTY;
        totals.add(None, Method::IcmpEcho, None, None, &counts);
        assert_eq!(totals.series().count(), 0, "no samples");
        counts.sample(5_000_000, 0);
        let (lan, wan): (Arc<str>, Arc<str>) = ("lan0".into(), "wan0".into());
        totals.add(Some(&wan), Method::TcpTs, None, None, &counts);
        totals.add(Some(&lan), Method::TcpTs, None, None, &counts);
        totals.add(Some(&lan), Method::TcpTs, None, None, &counts);
        totals.add(Some(&lan), Method::TcpTs, Some(Direction::Egress), None, &counts);
        let counts: Vec<_> = totals
            .series()
            .map(|(key, it)| (key.interface.as_deref(), key.method, key.matched, it.count()))
            .collect();
        let lan = Some("lan0");
        assert_eq!(
            counts,
            [
                (lan, Method::TcpTs, None, 2),
                (lan, Method::TcpTs, Some(Direction::Egress), 1),
                (Some("wan0"), Method::TcpTs, None, 1),
            ]
        );
    }

    #[test]
    fn interfaces_that_come_and_go_without_end_take_bounded_memory() {
        let mut totals = Totals::default();
        let mut counts = SeriesCounts::EMPTY;
        counts.sample(5_000_000, 0);
        for number in 0..1000 {
            totals.add(Some(&format!("ppp{number}").into()), Method::TcpTs, None, None, &counts);
        }
        assert_eq!(totals.series().count(), INTERFACES + 1);
        let others = totals.series().find(|(key, _)| key.interface.as_deref() == Some(OTHERS)).unwrap();
        assert_eq!(others.1.count(), 1000 - INTERFACES as u64);
    }
}
