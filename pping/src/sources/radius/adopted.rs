//! Prefixes that an earlier run gave to somebody, and that no session has claimed since.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Instant,
};

use foldhash::fast::RandomState;
use ipnet::IpNet;

use crate::sources::change::{Change, Name};

/// The column that has the NAS.
pub(super) const NAS: &str = "nas";

/// The highest number of ends that are kept until the prefixes are known.
const MAX_EARLY: usize = 1 << 16;

/// The prefixes.
#[derive(Default)]
pub(super) struct Adopted {
    prefixes: HashMap<IpNet, (Name, Instant), RandomState>,
    /// Whether they are known. Until then no pping has listened.
    pub(super) is_known: bool,
    /// What ended until then: prefixes with their labels, and all of a NAS.
    early_stops: HashSet<(IpNet, Option<Arc<str>>), RandomState>,
    early_nases: HashSet<Arc<str>, RandomState>,
}

impl Adopted {
    /// Adds a prefix, which goes at a deadline. Returns `false` if its session has ended already.
    pub(super) fn add(&mut self, prefix: IpNet, name: Name, deadline: Instant) -> bool {
        let has_ended = self.early_stops.contains(&(prefix, Some(Arc::clone(&name.label))))
            || self.early_stops.contains(&(prefix, None))
            || nas(&name).is_some_and(|nas| self.early_nases.contains(nas));
        if !has_ended {
            self.prefixes.insert(prefix, (name, deadline));
        }
        !has_ended
    }

    /// A session has claimed a prefix.
    pub(super) fn forget(&mut self, prefix: &IpNet) {
        self.prefixes.remove(prefix);
    }

    /// A session that is not known has ended. What has the same label was its.
    pub(super) fn stop(
        &mut self,
        prefixes: impl Iterator<Item = IpNet>,
        label: Option<&str>,
        changes: &mut Vec<Change>,
    ) {
        for prefix in prefixes {
            if !self.is_known {
                if self.early_stops.len() < MAX_EARLY {
                    self.early_stops.insert((prefix, label.map(Into::into)));
                }
                continue;
            }
            let Some((name, _)) = self.prefixes.get(&prefix) else { continue };
            if label.is_none_or(|label| *label == *name.label) {
                self.prefixes.remove(&prefix);
                changes.push(Change::Unset(prefix));
            }
        }
    }

    /// A NAS has no sessions any more.
    pub(super) fn end_all_of(&mut self, ended: &Arc<str>, changes: &mut Vec<Change>) {
        if !self.is_known && self.early_nases.len() < MAX_EARLY {
            self.early_nases.insert(Arc::clone(ended));
        }
        self.remove_if(|name, _| nas(name) == Some(ended), changes);
    }

    /// Removes what has been claimed by nobody for too long.
    pub(super) fn expire(&mut self, now: Instant, changes: &mut Vec<Change>) {
        self.remove_if(|_, deadline| deadline <= now, changes);
    }

    fn remove_if(&mut self, is_gone: impl Fn(&Name, Instant) -> bool, changes: &mut Vec<Change>) {
        self.prefixes.retain(|prefix, (name, deadline)| {
            let is_gone = is_gone(name, *deadline);
            if is_gone {
                changes.push(Change::Unset(*prefix));
            }
            !is_gone
        });
    }
}

fn nas(name: &Name) -> Option<&Arc<str>> {
    name.columns.iter().flatten().find(|(column, _)| &**column == NAS).map(|(_, nas)| nas)
}
