//! Which groups have a label of their own in metrics, so that there is a bound to how many do.
//!
//! At most N have one, those with the most samples. What a group without one gets is counted under
//! [`OTHER`](crate::groups::OTHER). No count is ever moved from one label to another: a counter of a label only grows, and
//! what all of them grow by is what was measured.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use foldhash::fast::RandomState;

use crate::groups::{ALL, OTHER, UNLISTED};

/// How long samples are counted before groups are compared by them.
const WINDOW: Duration = Duration::from_mins(5);

/// A group takes the label of another when it has had this many times its samples. Two that are about as busy would
/// otherwise take turns, and neither would have a graph without gaps.
const HYSTERESIS: (u64, u64) = (5, 4);

/// The groups that have a label.
#[derive(Debug)]
pub(super) struct Exposed {
    limit: usize,
    began: Instant,
    groups: HashMap<Arc<str>, Group, RandomState>,
    /// How many of them have a label.
    labelled: usize,
}

#[derive(Debug, Default)]
struct Group {
    /// Samples in the window that is under way.
    samples: u64,
    is_labelled: bool,
}

impl Exposed {
    /// No group yet; `limit` of them may have a label.
    pub(super) fn new(limit: usize, now: Instant) -> Self {
        Self { limit, began: now, groups: HashMap::default(), labelled: 0 }
    }

    /// Takes samples of a group, and tells whether they count under its own label. A label that is free goes to the first
    /// that has samples.
    pub(super) fn take(&mut self, group: &Arc<str>, samples: u64) -> bool {
        if is_free(group) {
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
        is_free(group) || self.groups.get(group).is_some_and(|group| group.is_labelled)
    }

    /// Forgets a group that is no more.
    pub(super) fn forget(&mut self, group: &str) {
        if let Some(group) = self.groups.remove(group) {
            self.labelled -= usize::from(group.is_labelled);
        }
    }

    /// Lets `limit` groups have a label from now on. Where there are more, those with the fewest samples lose theirs.
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

    /// Takes a group of a run before this one, which had a label or had not.
    pub(super) fn adopt(&mut self, group: &Arc<str>, had_label: bool) {
        if is_free(group) || self.groups.contains_key(group) {
            return;
        }
        let is_labelled = had_label && self.labelled < self.limit;
        self.labelled += usize::from(is_labelled);
        self.groups.insert(Arc::clone(group), Group { samples: 0, is_labelled });
    }

    /// Ends the window if it is time: labels go from those with the fewest samples to those with clearly more. Whether it
    /// was.
    pub(super) fn roll(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.began) < WINDOW {
            return false;
        }
        self.began = now;
        let mut labelled = Vec::new();
        let mut others = Vec::new();
        for (label, group) in &mut self.groups {
            // By name where samples do not decide, so that equal input has equal output.
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

/// Labels that are always there.
pub(super) fn is_free(label: &str) -> bool {
    matches!(label, OTHER | UNLISTED | ALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<Arc<str>> {
        (0..count).map(|number| format!("group-{number}").into()).collect()
    }

    fn labelled(exposed: &Exposed, groups: &[Arc<str>]) -> Vec<usize> {
        (0..groups.len()).filter(|&index| exposed.is_labelled(&groups[index])).collect()
    }

    #[test]
    fn the_first_get_a_label_at_once_and_those_with_more_samples_at_the_end_of_the_window() {
        let (start, groups) = (Instant::now(), names(4));
        let mut exposed = Exposed::new(2, start);
        for (group, samples) in groups.iter().zip([0, 100, 100, 124]) {
            exposed.take(group, samples);
        }
        assert_eq!(labelled(&exposed, &groups), [1, 2], "no label without a sample");
        exposed.roll(start + WINDOW);
        assert_eq!(labelled(&exposed, &groups), [1, 2], "not by so little");
        for (group, samples) in groups.iter().zip([126, 200, 100, 110]) {
            exposed.take(group, samples);
        }
        exposed.roll(start + WINDOW * 3 / 2);
        assert_eq!(labelled(&exposed, &groups), [1, 2], "not within a window");
        exposed.roll(start + 2 * WINDOW);
        assert_eq!(labelled(&exposed, &groups), [0, 1]);
        // An idle group is no match for one with a single sample.
        exposed.take(&groups[3], 1);
        exposed.roll(start + 3 * WINDOW);
        assert_eq!(labelled(&exposed, &groups), [1, 3]);
    }

    #[test]
    fn a_label_is_free_again_when_its_group_is_no_more() {
        let (start, groups) = (Instant::now(), names(3));
        let mut exposed = Exposed::new(1, start);
        assert!(exposed.take(&groups[0], 5) && !exposed.take(&groups[1], 5));
        exposed.forget(&groups[0]);
        exposed.forget(&groups[0]);
        assert!(exposed.take(&groups[1], 1) && !exposed.take(&groups[2], 9));
    }

    #[test]
    fn some_labels_take_no_place() {
        let mut exposed = Exposed::new(0, Instant::now());
        assert!([OTHER, UNLISTED, ALL].iter().all(|&label| exposed.take(&label.into(), 1)));
        assert!(!exposed.take(&"10.0.0.0/8".into(), 1));
    }
}
