//! The values that are read once a second, and their rates.

use std::{collections::HashMap, sync::Arc, time::Duration};

use pping_common::{
    abi::{Counters, Timed},
    limits::SECOND,
    parse::Direction,
};

use super::answers::{Cost, InterfaceRates, Rate};
use crate::{
    packet_cost::Recent,
    snapshot::{InterfaceCounters, Place, Snapshot, Usage},
};

/// The values that are read once a second.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The counters of interfaces.
    pub snapshot: Snapshot,
    /// Lines of output that were lost so far.
    pub lines_lost: u64,
    /// The CPU time that pping took so far, and its memory.
    pub usage: Usage,
    /// Sentences about what is wrong with the place of measurement.
    pub warnings: Vec<String>,
}

/// Two readings, with their times in ns.
#[derive(Debug, Default)]
pub(super) struct Rates {
    earlier: (u64, Reading),
    latest: (u64, Reading),
    /// The recent cost of packets.
    packets: Recent,
}

impl Rates {
    /// Takes a reading at a time, ns.
    pub(super) fn take(&mut self, reading: Reading, at: u64) {
        // Other readings come when interfaces change. Their interval is too short for a rate.
        if at.abs_diff(self.latest.0) >= SECOND / 2 {
            self.earlier = std::mem::take(&mut self.latest);
            self.latest.0 = at;
        }
        let interfaces = &reading.snapshot.interfaces;
        let timed = interfaces.iter().map(|interface| interface.counters.timed());
        self.packets.take(timed.fold(Timed::default(), Timed::plus));
        self.latest.1 = reading;
    }

    /// Returns the seconds between the two readings, if there are two.
    fn seconds(&self) -> Option<f64> {
        let ns = self.latest.0.saturating_sub(self.earlier.0);
        (self.earlier.0 != 0 && ns > 0).then_some(ns as f64 / SECOND as f64)
    }

    /// Returns what is wrong with the place of measurement.
    pub(super) fn warnings(&self) -> &[String] {
        &self.latest.1.warnings
    }

    /// Returns the cost of pping.
    pub(super) fn cost(&self) -> Cost {
        let (before, now) = (&self.earlier.1.usage, &self.latest.1.usage);
        let share = |before: Duration, now: Duration| {
            self.seconds().map_or(0.0, |seconds| now.saturating_sub(before).as_secs_f64() / seconds)
        };
        Cost {
            cpu: share(before.cpu, now.cpu),
            memory: now.memory,
            programs: self.packets.mean().map(|seconds| seconds * self.packets_per_second()),
        }
    }

    /// Returns the rate of all packets, which every program counts.
    fn packets_per_second(&self) -> f64 {
        let each = self.interfaces().filter(|(interface, _)| interface.place != Place::Joined);
        each.map(|(_, rates)| rates.ingress.packets + rates.egress.packets).sum()
    }

    /// Returns the latest counters of each interface, and their rates since the earlier reading.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = (&InterfaceCounters, InterfaceRates)> {
        let before: HashMap<&Arc<str>, &Counters> =
            self.earlier.1.snapshot.interfaces.iter().map(|it| (&it.name, &it.counters)).collect();
        let seconds = self.seconds();
        let interfaces = &self.latest.1.snapshot.interfaces;
        let own = move |interface: &InterfaceCounters| match (before.get(&interface.name), seconds) {
            (Some(before), Some(seconds)) => rates(before, &interface.counters, seconds),
            _ => InterfaceRates::default(),
        };
        interfaces.iter().map(move |interface| {
            let is_part =
                |it: &&InterfaceCounters| matches!(&it.place, Place::OneOf(name) if *name == interface.name);
            let others = if interface.place == Place::Joined { &interfaces[..] } else { &[] };
            let parts = others.iter().filter(is_part);
            (interface, parts.map(&own).fold(own(interface), InterfaceRates::plus))
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
