//! The times of packets in queues by group, under the labels of groups. Each run starts from zero.

use std::{sync::Arc, time::SystemTime};

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use pping_common::series::SeriesCounts;

use super::{
    export::{ExportTotals, Family, Point, Points},
    exposition::Exposition,
    histogram::RttHistogram,
    labels::FormattedLabels,
    metric::{Kind, Metric},
};
use crate::{config::Temporality, groups::QueueName};

pub(super) static QUEUE: Metric = Metric::new(
    Kind::Histogram,
    "pping_group_queue",
    "s",
    "Time that followed packets spent in the queue of the root qdisc, by the group of the round trip that the packet begins",
);

/// The interface and the label of a group.
type Id = (Arc<str>, Arc<str>);

#[derive(Debug)]
struct Queue {
    labels: FormattedLabels,
    times: RttHistogram,
    /// The counts for an exporter, if there is one.
    pushed: Option<ExportTotals>,
}

/// The times of all groups that have, or had, a label.
#[derive(Debug, Default)]
pub(super) struct Queues(IndexMap<Id, Queue, RandomState>);

impl Queues {
    /// Adds the times of an epoch that began at `since`, under a label. `pushed` is when the exporter's counts begin,
    /// if there is an exporter.
    pub(super) fn add(
        &mut self,
        name: &QueueName,
        label: &Arc<str>,
        counts: &SeriesCounts,
        since: SystemTime,
        pushed: Option<SystemTime>,
    ) {
        let id = (name.interface.clone().unwrap_or_default(), Arc::clone(label));
        let new = |id: &Id| Queue {
            labels: FormattedLabels::new(&[("interface", &id.0), ("group", &id.1)]),
            times: RttHistogram::new(since),
            pushed: pushed.map(ExportTotals::new),
        };
        let queue = self.0.entry(id.clone()).or_insert_with(|| new(&id));
        queue.times.add(counts);
        if let Some(pushed) = &mut queue.pushed {
            pushed.add(counts);
        }
    }

    /// Removes the times of a group that expired.
    pub(super) fn forget(&mut self, name: &QueueName) {
        self.0.swap_remove(&(name.interface.clone().unwrap_or_default(), Arc::clone(&name.group.label)));
    }

    /// Removes the times of all groups of an interface.
    pub(super) fn forget_interface(&mut self, interface: &str) {
        self.0.retain(|(of, _), _| **of != *interface);
    }

    /// Counts for an exporter from `since` on.
    pub(super) fn begin_exports(&mut self, since: SystemTime) {
        for queue in self.0.values_mut() {
            queue.pushed = Some(ExportTotals::new(since));
        }
    }

    /// Writes the times of groups that have a label; nothing if no times are measured.
    pub(super) fn write(&self, page: &mut dyn Exposition, is_labelled: impl Fn(&str) -> bool) {
        if self.0.is_empty() {
            return;
        }
        page.family(&QUEUE);
        for (_, Queue { labels, times, .. }) in self.0.iter().filter(|((_, label), _)| is_labelled(label)) {
            page.histogram(labels, times);
        }
    }

    /// Returns the times as values. With [`Temporality::Delta`] their counts start again.
    pub(super) fn take(
        &mut self,
        is_labelled: impl Fn(&str) -> bool,
        temporality: Temporality,
        at: SystemTime,
    ) -> Family {
        let mut points = Vec::new();
        for ((interface, label), queue) in self.0.iter_mut().filter(|((_, label), _)| is_labelled(label)) {
            let Some(pushed) = queue.pushed.as_mut().filter(|pushed| pushed.distribution.range.is_some())
            else {
                continue;
            };
            let attributes =
                vec![("interface".into(), Arc::clone(interface)), ("group".into(), Arc::clone(label))];
            let (since, value) = (pushed.since, pushed.distribution.clone());
            points.push(Point { attributes, since, value });
            if temporality == Temporality::Delta {
                *pushed = ExportTotals::new(at);
            }
        }
        Family { metric: &QUEUE, points: Points::Distributions(points) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pping_common::group::GroupKey;

    use super::*;
    use crate::{
        groups::{GroupName, Labels as Known},
        metrics::{page::Encoding, text::Text},
    };

    fn name() -> QueueName {
        let group = Arc::new(GroupName::new(&GroupKey::ALL, &Known::default()));
        QueueName { interface: Some("wan0".into()), group }
    }

    fn counts(times: &[u64]) -> SeriesCounts {
        let mut counts = SeriesCounts::EMPTY;
        for &time in times {
            counts.sample(time, 0);
        }
        counts
    }

    fn page(queues: &Queues, is_labelled: bool) -> String {
        let mut text: Box<dyn Exposition> = Box::new(Text::new(true, Encoding::Identity));
        queues.write(&mut *text, |_| is_labelled);
        text.finish().text()
    }

    #[test]
    fn times_add_up_by_interface_and_label() {
        let (mut queues, began) = (Queues::default(), SystemTime::now());
        assert!(!page(&queues, true).contains(QUEUE.name));
        for label in ["a", "a", "b"] {
            queues.add(&name(), &label.into(), &counts(&[1_000_000, 3_000_000]), began, None);
        }
        let text = page(&queues, true);
        assert!(text.contains(r#"pping_group_queue_seconds_count{interface="wan0",group="a"} 4"#), "{text}");
        assert!(
            text.contains(r#"pping_group_queue_seconds_sum{interface="wan0",group="b"} 0.004"#),
            "{text}"
        );
        assert!(!page(&queues, false).contains("_count"));
        let group = Arc::new(GroupName { label: "a".into(), ..(*name().group).clone() });
        queues.forget(&QueueName { group, ..name() });
        assert!(!page(&queues, true).contains(r#"group="a""#));
    }

    #[test]
    fn deltas_begin_again_with_an_exporter() {
        let (mut queues, began) = (Queues::default(), SystemTime::now() - Duration::from_secs(5));
        let exported = |family: Family| match family.points {
            Points::Distributions(points) => {
                points.iter().map(|it| it.value.bins.iter().sum::<u64>()).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        queues.add(&name(), &"a".into(), &counts(&[1]), began, None);
        queues.begin_exports(began);
        let delta = Temporality::Delta;
        assert_eq!(exported(queues.take(|_| true, delta, began)), [0; 0]);
        queues.add(&name(), &"a".into(), &counts(&[1, 2]), began, Some(began));
        assert_eq!(exported(queues.take(|_| true, Temporality::Cumulative, began)), [2]);
        assert_eq!(exported(queues.take(|_| true, delta, began)), [2]);
        assert_eq!(exported(queues.take(|_| true, delta, began)), [0; 0]);
    }
}
