//! Rates of the counters of interfaces.

use std::{collections::HashMap, sync::Arc};

use pping_common::{
    abi::{Counters, Direction},
    limits::SECOND,
};

use super::answers::{InterfaceRates, Rate};
use crate::snapshot::{InterfaceCounters, Snapshot};

/// The counters of interfaces at two times.
#[derive(Debug, Default)]
pub(super) struct Rates {
    earlier: Counted,
    latest: Counted,
}

#[derive(Debug, Default)]
struct Counted {
    /// The time, ns.
    at: u64,
    interfaces: Vec<InterfaceCounters>,
}

impl Rates {
    /// Takes the counters of a time, ns.
    pub(super) fn count(&mut self, snapshot: &Snapshot, at: u64) {
        // Others come when interfaces change, and would make a rate of a moment.
        if at.abs_diff(self.latest.at) >= SECOND / 2 {
            self.earlier = std::mem::take(&mut self.latest);
            self.latest.at = at;
        }
        self.latest.interfaces.clone_from(&snapshot.interfaces);
    }

    /// The latest counters of each interface, and their rates since the time before.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = (&InterfaceCounters, InterfaceRates)> {
        let before: HashMap<&Arc<str>, &Counters> =
            self.earlier.interfaces.iter().map(|it| (&it.name, &it.counters)).collect();
        let seconds = self.latest.at.saturating_sub(self.earlier.at) as f64 / SECOND as f64;
        self.latest.interfaces.iter().map(move |interface| {
            let rates = match before.get(&interface.name) {
                Some(before) if seconds > 0.0 && self.earlier.at != 0 => {
                    rates(before, &interface.counters, seconds)
                }
                _ => InterfaceRates::default(),
            };
            (interface, rates)
        })
    }
}

fn rates(before: &Counters, now: &Counters, seconds: f64) -> InterfaceRates {
    let per_second =
        |count: &dyn Fn(&Counters) -> u64| count(now).saturating_sub(count(before)) as f64 / seconds;
    let of = |direction: Direction| Rate {
        packets: per_second(&|counters| counters.packets(direction)),
        bits: 8.0
            * per_second(&|counters| {
                counters.traffic[direction as usize].iter().map(|line| line.bytes).sum()
            }),
        retransmissions: per_second(&|counters| counters.retransmissions[direction as usize]),
    };
    InterfaceRates {
        ingress: of(Direction::Ingress),
        egress: of(Direction::Egress),
        samples: per_second(&|counters| counters.samples.iter().flatten().sum()),
    }
}
