//! The N worst by each figure.

use pping_common::abi::{Candidate, Figure, Threshold};

/// A flow direction or a group that can be among the worst.
pub trait Ranked: Clone {
    /// The value of each figure; 0 if there is none.
    fn figures(&self) -> &[u64; Figure::COUNT];

    /// Whether both are of the same flow direction or group.
    fn is_same(&self, other: &Self) -> bool;
}

/// The N worst by each figure, each with the highest value that it had.
#[derive(Clone, Debug)]
pub struct Ranking<T> {
    limit: usize,
    /// By [`Figure`], the worst first.
    worst: [Vec<T>; Figure::COUNT],
}

impl<T: Ranked> Ranking<T> {
    /// Creates an empty ranking of up to `limit` by each figure.
    pub fn new(limit: usize) -> Self {
        Self { limit, worst: Default::default() }
    }

    /// The threshold that a flow direction has to exceed to be among them. Each end must have sent `packets` packets, too.
    pub fn threshold(&self, packets: u64) -> Threshold {
        let above = Figure::ALL.map(|figure| {
            // While there is room, every value above 0 is enough.
            let last = self.worst[figure as usize].get(self.limit.saturating_sub(1));
            last.map_or(0, |last| last.figures()[figure as usize])
        });
        Threshold { above, packets }
    }

    /// Adds an item by each figure by which it is among the worst.
    pub fn add(&mut self, item: &T) {
        for figure in Figure::ALL {
            self.add_by(figure, item);
        }
    }

    fn add_by(&mut self, figure: Figure, item: &T) {
        let value = |it: &T| it.figures()[figure as usize];
        let worst = &mut self.worst[figure as usize];
        if value(item) == 0 {
            return;
        }
        if let Some(known) = worst.iter().position(|it| it.is_same(item)) {
            if value(&worst[known]) >= value(item) {
                return;
            }
            worst.remove(known);
        }
        let at = worst.partition_point(|it| value(it) >= value(item));
        if at < self.limit {
            worst.insert(at, item.clone());
            worst.truncate(self.limit);
        }
    }

    /// The worst by a figure, the worst first.
    pub fn worst(&self, figure: Figure) -> &[T] {
        &self.worst[figure as usize]
    }

    /// All items, some of them several times.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.worst.iter().flatten()
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        self.worst.iter_mut().for_each(Vec::clear);
    }
}

impl Ranked for Candidate {
    fn figures(&self) -> &[u64; Figure::COUNT] {
        &self.figures
    }

    fn is_same(&self, other: &Self) -> bool {
        self.endpoints == other.endpoints && self.direction == other.direction
    }
}

#[cfg(test)]
mod tests {
    use pping_common::{abi::Endpoints, series::SeriesRef};
    use proptest::prelude::*;

    use super::*;

    fn candidate(port: u16, figures: [u64; Figure::COUNT]) -> Candidate {
        let endpoints = Endpoints {
            source: [1; 16],
            destination: [2; 16],
            source_port: port,
            destination_port: 2,
            interface: 0,
            protocol: 0,
            reserved: 0,
        };
        Candidate {
            endpoints,
            figures,
            min_rtt: 0,
            packets: 0,
            series: SeriesRef::NONE,
            method: 0,
            direction: 0,
            reserved: [0; 6],
        }
    }

    proptest! {
        #[test]
        fn the_n_are_the_n_worst_of_all(
            seen in prop::collection::vec((0_u16..30, any::<[u8; 4]>()), 0..200),
            limit in 1_usize..8,
        ) {
            let (mut ranking, mut highest) = (Ranking::new(limit), std::collections::BTreeMap::new());
            for (port, figures) in seen {
                let figures = figures.map(u64::from);
                let threshold = ranking.threshold(1);
                let before: Vec<Vec<u64>> = values(&ranking);
                ranking.add(&candidate(port, figures));
                // A candidate that does not exceed the threshold changes nothing, so the sweep need not report it.
                prop_assert!(threshold.is_exceeded(&figures) || values(&ranking) == before);
                let known = highest.entry(port).or_insert([0; 4]);
                for (known, figure) in known.iter_mut().zip(figures) {
                    *known = (*known).max(figure);
                }
            }
            for figure in Figure::ALL {
                let of = |figures: &[u64; 4]| figures[figure as usize];
                let mut expected: Vec<u64> = highest.values().map(of).filter(|&value| value > 0).collect();
                expected.sort_unstable_by(|one, other| other.cmp(one));
                expected.truncate(limit);
                prop_assert_eq!(&values(&ranking)[figure as usize], &expected);
            }
        }
    }

    fn values(ranking: &Ranking<Candidate>) -> Vec<Vec<u64>> {
        let of =
            |figure: Figure| ranking.worst(figure).iter().map(|it| it.figures[figure as usize]).collect();
        Figure::ALL.map(of).into()
    }
}
