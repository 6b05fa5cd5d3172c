//! Warns of a wrong place of measurement: see [`placement`].

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use pping_common::{group::Side, series::SeriesCounts};

use crate::{
    groups::SeriesName,
    placement::{self, EndedFlows, OneDirection},
    snapshot::Snapshot,
};

/// How many samples have to be on one side before that says something.
const LEAST_SAMPLES: u64 = 200;

/// The share of flows with one direction, in percent, below which an interface counts as right again.
const CLEARED: u64 = 5;

/// The shortest time between two lines of the log about flows of one direction.
const INTERVAL: Duration = Duration::from_mins(1);

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// By the names of interfaces.
    flows: BTreeMap<Arc<str>, Flows>,
    /// The interfaces that the log spoke of last, and when.
    logged: Option<(Vec<Arc<str>>, Instant)>,
    /// Samples of hosts inside and outside of the network.
    samples: [u64; 2],
    /// The only side with samples, once the log spoke of it.
    logged_side: Option<Side>,
}

/// Flows of an interface.
#[derive(Clone, Copy, Debug)]
struct Flows {
    /// Those that had ended when the last share was found.
    before: EndedFlows,
    /// The last share with one direction, in percent, while it is too high.
    percent: Option<u64>,
}

impl Flows {
    /// Finds the share of the flows that have ended since the last one, once they are enough.
    fn look(&mut self, ended: EndedFlows) {
        // The counters fall when those of the interface are cleared.
        if ended.all < self.before.all || ended.one_way < self.before.one_way {
            self.before = ended;
        }
        let EndedFlows { one_way, all } = ended;
        let new = EndedFlows { one_way: one_way - self.before.one_way, all: all - self.before.all };
        let Some(percent) = new.percent() else { return };
        self.before = ended;
        let is_wrong = EndedFlows::are_many(percent) || self.percent.is_some() && percent >= CLEARED;
        self.percent = is_wrong.then_some(percent);
    }
}

impl Placement {
    /// Takes the samples of a series.
    pub(super) fn take(&mut self, name: &SeriesName, counts: &SeriesCounts) {
        if let Some(side) = name.side {
            self.samples[usize::from(side == Side::Outside)] += counts.count();
        }
    }

    /// Forgets on which sides samples were: what is inside has changed.
    pub(super) fn forget_sides(&mut self) {
        (self.samples, self.logged_side) = ([0; 2], None);
    }

    /// Looks at the counters of the interfaces. Returns what is wrong at present, in sentences. Logs it once, and again if it
    /// changes.
    pub(super) fn look(&mut self, snapshot: &Snapshot, now: Instant) -> Vec<String> {
        let names: HashSet<_> = snapshot.interfaces.iter().map(|interface| &interface.name).collect();
        self.flows.retain(|name, _| names.contains(name));
        for interface in &snapshot.interfaces {
            let ended = EndedFlows::of(&interface.counters);
            let new = Flows { before: ended, percent: None };
            self.flows.entry(Arc::clone(&interface.name)).or_insert(new).look(ended);
        }
        let wrong: Vec<_> =
            self.flows.iter().filter_map(|(name, flows)| Some((Arc::clone(name), flows.percent?))).collect();
        let said = |(name, percent): &(Arc<str>, u64)| {
            format!("{name}: {}", OneDirection { percent: *percent, is_capture: false })
        };
        let mut warnings: Vec<String> = wrong.iter().map(said).collect();
        let names: Vec<Arc<str>> = wrong.into_iter().map(|(name, _)| name).collect();
        if self.is_new(&names, now) {
            for warning in &warnings {
                tracing::warn!("{warning}");
            }
            self.logged = Some((names, now));
        }
        let only = self.only_side();
        let warning = only.map(|side| format!("--inside: {}", placement::only(side)));
        if only != self.logged_side {
            if let Some(warning) = &warning {
                tracing::warn!("{warning}");
            }
            self.logged_side = only;
        }
        warnings.extend(warning);
        warnings
    }

    /// Whether the log has to name these interfaces.
    fn is_new(&self, names: &[Arc<str>], now: Instant) -> bool {
        !names.is_empty()
            && self
                .logged
                .as_ref()
                .is_none_or(|(logged, at)| logged != names && now.saturating_duration_since(*at) >= INTERVAL)
    }

    /// The only side with samples, once they are enough.
    fn only_side(&self) -> Option<Side> {
        match self.samples {
            [inside, 0] if inside >= LEAST_SAMPLES => Some(Side::Inside),
            [0, outside] if outside >= LEAST_SAMPLES => Some(Side::Outside),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use pping_common::abi::Counters;

    use super::*;
    use crate::snapshot::{InterfaceCounters, Place};

    fn snapshot(interfaces: &[(&str, u64, u64)]) -> Snapshot {
        let interface = |&(name, one_way, all): &(&str, u64, u64)| InterfaceCounters {
            name: name.into(),
            attach_points: Vec::new(),
            is_up: true,
            counters: Counters { one_way_flows: one_way, entries_deleted: [all, 0], ..Counters::ZERO },
            place: Place::Alone,
        };
        Snapshot { interfaces: interfaces.iter().map(interface).collect() }
    }

    /// The warnings after each of these, second by second, and whether each was logged.
    #[expect(clippy::type_complexity, reason = "lists of names and numbers")]
    fn after(states: &[(u64, &[(&str, u64, u64)])]) -> Vec<(Vec<String>, bool)> {
        let (mut placement, start) = (Placement::default(), Instant::now());
        let mut seen = Vec::new();
        for (seconds, state) in states {
            let at = start + Duration::from_secs(*seconds);
            let warnings = placement.look(&snapshot(state), at);
            seen.push((warnings, placement.logged.as_ref().is_some_and(|(_, logged)| *logged == at)));
        }
        seen
    }

    #[test]
    fn one_direction_is_logged_by_interface_and_once() {
        let seen = after(&[
            (0, &[("tap0", 500, 1_000), ("wan0", 3, 1_000)]),
            (1, &[("tap0", 500, 1_000), ("wan0", 3, 1_000)]),
            (2, &[("tap0", 540, 1_049), ("wan0", 3, 1_000)]),
            (3, &[("tap0", 541, 1_050), ("wan0", 5, 1_060)]),
            (4, &[("tap0", 600, 1_110), ("wan0", 5, 1_060)]),
        ]);
        let none = (Vec::new(), false);
        assert_eq!(
            seen[..3],
            [none.clone(), none.clone(), none],
            "what came before the start does not count"
        );
        let [(first, is_logged), (second, again)] = &seen[3..] else { panic!("{seen:?}") };
        assert!(*is_logged && !again);
        assert_eq!((first.len(), second.len()), (1, 1));
        assert!(first[0].starts_with("tap0: the other direction of 82 % of the flows was not seen; "));
        assert!(second[0].starts_with("tap0: the other direction of 98 % of the flows was not seen; "));
    }

    #[test]
    fn one_direction_is_logged_again_if_it_changed_after_a_minute() {
        let seen = after(&[
            (0, &[("tap0", 0, 0), ("tap1", 0, 0)]),
            (1, &[("tap0", 60, 60), ("tap1", 0, 0)]),
            (2, &[("tap0", 60, 60), ("tap1", 60, 60)]),
            (61, &[("tap0", 60, 60), ("tap1", 60, 60)]),
            (62, &[("tap0", 60, 60), ("tap1", 60, 60)]),
            (200, &[("tap0", 60, 60), ("tap1", 60, 60)]),
        ]);
        let shown: Vec<_> = seen.iter().map(|(warnings, is_logged)| (warnings.len(), *is_logged)).collect();
        assert_eq!(shown, [(0, false), (1, true), (2, false), (2, true), (2, false), (2, false)]);
    }

    #[test]
    fn a_warning_ends_when_few_flows_have_one_direction() {
        let seen = after(&[
            (0, &[("tap0", 0, 0)]),
            (1, &[("tap0", 60, 60)]),
            (2, &[("tap0", 66, 160)]),
            (3, &[("tap0", 70, 260)]),
            (4, &[("tap0", 75, 360)]),
            (5, &[("tap0", 0, 0)]),
            (6, &[("tap0", 0, 10)]),
        ]);
        let shown: Vec<_> = seen.iter().map(|(warnings, _)| warnings.len()).collect();
        assert_eq!(shown, [0, 1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn a_side_without_samples_is_logged_until_it_has_one() {
        let (mut placement, now) = (Placement::default(), Instant::now());
        let mut look = |samples: [u64; 2]| {
            placement.samples = samples;
            let warnings = placement.look(&Snapshot::default(), now);
            (warnings, placement.logged_side)
        };
        assert_eq!(look([0, 199]), (Vec::new(), None));
        let (warnings, logged) = look([0, 200]);
        assert!(warnings[0].starts_with("--inside: no host inside of the network replied"), "{warnings:?}");
        assert_eq!(logged, Some(Side::Outside));
        assert_eq!(look([1, 9_000]), (Vec::new(), None));
        assert!(look([200, 0]).0[0].starts_with("--inside: no host outside of the network replied"));
    }
}
