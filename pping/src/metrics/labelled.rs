//! The groups that have a label of their own, a bounded number: those with the most samples.
//!
//! Other groups count under [`OTHER`](crate::groups::OTHER). No count moves from one label to another: the counters of
//! a label only grow, and together they grow by what all groups measure.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use foldhash::fast::RandomState;

use crate::groups::{ALL, OTHER, OTHER_NODES, UNLISTED};

/// The period after which groups are compared by their samples.
const PERIOD: Duration = Duration::from_mins(5);

/// A group takes the label of another if the ratio of their samples is higher than this. Otherwise two groups that are
/// about equally busy would alternate, and both graphs would have gaps.
const HYSTERESIS: (u64, u64) = (5, 4);

/// All groups, with or without a label.
#[derive(Debug)]
pub(super) struct LabelledGroups {
    limit: usize,
    began: Instant,
    groups: HashMap<Arc<str>, Group, RandomState>,
    /// The number of them that have a label.
    labelled: usize,
}

#[derive(Debug, Default)]
struct Group {
    /// Samples in the present period.
    samples: u64,
    is_labelled: bool,
}

impl LabelledGroups {
    /// No groups; at most `limit` of them will have a label.
    pub(super) fn new(limit: usize, now: Instant) -> Self {
        Self { limit, began: now, groups: HashMap::default(), labelled: 0 }
    }

    /// Counts samples of a group. Returns whether they belong to its own label. A free label goes to the first group with a
    /// sample.
    pub(super) fn count(&mut self, group: &Arc<str>, samples: u64) -> bool {
        if is_always_labelled(group) {
            return true;
        }
        let Some(known) = self.groups.get_mut(group) else {
            let is_labelled = samples > 0 && self.labelled < self.limit;
            self.labelled += usize::from(is_labelled);
            self.groups.insert(Arc::clone(group), Group { samples, is_labelled });
            return is_labelled;
        };
        known.samples += samples;
        if !known.is_labelled && samples > 0 && self.labelled < self.limit {
            known.is_labelled = true;
            self.labelled += 1;
        }
        known.is_labelled
    }

    /// Whether a group has a label.
    pub(super) fn is_labelled(&self, group: &str) -> bool {
        is_always_labelled(group) || self.groups.get(group).is_some_and(|group| group.is_labelled)
    }

    /// Removes a group, which frees its label.
    pub(super) fn forget(&mut self, group: &str) {
        if let Some(group) = self.groups.remove(group) {
            self.labelled -= usize::from(group.is_labelled);
        }
    }

    /// Changes the highest number of labels. If too many groups have one, those with the fewest samples lose theirs.
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        let mut labelled: Vec<(u64, Arc<str>)> = self
            .groups
            .iter()
            .filter(|(_, group)| group.is_labelled)
            .map(|(label, group)| (group.samples, Arc::clone(label)))
            .collect();
        labelled.sort_unstable();
        for (_, label) in labelled.iter().take(self.labelled.saturating_sub(limit)) {
            if let Some(group) = self.groups.get_mut(label) {
                group.is_labelled = false;
                self.labelled -= 1;
            }
        }
    }

    /// Adds a group of an earlier run, with a label if it had one.
    pub(super) fn resume(&mut self, group: &Arc<str>, had_label: bool) {
        if is_always_labelled(group) || self.groups.contains_key(group) {
            return;
        }
        let is_labelled = had_label && self.labelled < self.limit;
        self.labelled += usize::from(is_labelled);
        self.groups.insert(Arc::clone(group), Group { samples: 0, is_labelled });
    }

    /// Ends the period if it is over: labels pass from the groups with the fewest samples to those with clearly more.
    /// Returns whether it was over.
    pub(super) fn roll(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.began) < PERIOD {
            return false;
        }
        self.began = now;
        let mut labelled = Vec::new();
        let mut others = Vec::new();
        for (label, group) in &mut self.groups {
            // Ties are decided by name, so that equal input has equal output.
            let ranked = (group.samples, Arc::clone(label));
            if group.is_labelled {
                labelled.push(ranked);
            } else {
                others.push(ranked);
            }
            group.samples = 0;
        }
        labelled.sort_unstable();
        others.sort_unstable_by(|a, b| b.cmp(a));
        let (times, of) = HYSTERESIS;
        let swaps = labelled.iter().zip(&others).take_while(|((few, _), (many, _))| many * of > few * times);
        for ((_, from), (_, to)) in swaps {
            for (label, is_labelled) in [(from, false), (to, true)] {
                if let Some(group) = self.groups.get_mut(label) {
                    group.is_labelled = is_labelled;
                }
            }
        }
        true
    }
}

/// Whether this label exists regardless of the limit.
pub(super) fn is_always_labelled(label: &str) -> bool {
    matches!(label, OTHER | UNLISTED | ALL | OTHER_NODES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<Arc<str>> {
        (0..count).map(|number| format!("group-{number}").into()).collect()
    }

    fn labelled(all: &LabelledGroups, groups: &[Arc<str>]) -> Vec<usize> {
        (0..groups.len()).filter(|&index| all.is_labelled(&groups[index])).collect()
    }

    #[test]
    fn busier_groups_take_labels_after_the_period() {
        let (start, groups) = (Instant::now(), names(4));
        let mut all = LabelledGroups::new(2, start);
        for (group, samples) in groups.iter().zip([0, 100, 100, 124]) {
            all.count(group, samples);
        }
        assert_eq!(labelled(&all, &groups), [1, 2], "no label without a sample");
        all.roll(start + PERIOD);
        assert_eq!(labelled(&all, &groups), [1, 2], "not by so little");
        for (group, samples) in groups.iter().zip([126, 200, 100, 110]) {
            all.count(group, samples);
        }
        all.roll(start + PERIOD * 3 / 2);
        assert_eq!(labelled(&all, &groups), [1, 2], "not within a period");
        all.roll(start + 2 * PERIOD);
        assert_eq!(labelled(&all, &groups), [0, 1]);
        // A single sample is enough to replace an idle group.
        all.count(&groups[3], 1);
        all.roll(start + 3 * PERIOD);
        assert_eq!(labelled(&all, &groups), [1, 3]);
    }

    #[test]
    fn a_removed_group_frees_its_label() {
        let (start, groups) = (Instant::now(), names(3));
        let mut all = LabelledGroups::new(1, start);
        assert!(all.count(&groups[0], 5) && !all.count(&groups[1], 5));
        all.forget(&groups[0]);
        all.forget(&groups[0]);
        assert!(all.count(&groups[1], 1) && !all.count(&groups[2], 9));
    }

    #[test]
    fn reserved_labels_do_not_count_towards_the_limit() {
        let mut all = LabelledGroups::new(0, Instant::now());
        assert!([OTHER, UNLISTED, ALL].iter().all(|&label| all.count(&label.into(), 1)));
        assert!(!all.count(&"10.0.0.0/8".into(), 1));
    }
}
