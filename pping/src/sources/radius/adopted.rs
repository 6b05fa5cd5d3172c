//! Prefixes that an earlier run gave to somebody, and that no session has claimed since.
//!
//! Nobody knows any more which NAS reported them: columns are those of a label, which may have sessions of several. So the end
//! of all sessions of a NAS ends none of these.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Instant,
};

use foldhash::fast::RandomState;
use ipnet::IpNet;

use crate::sources::change::{Change, Name};

/// The highest number of ends that are kept until the prefixes are known.
const MAX_EARLY: usize = 1 << 16;

/// The prefixes.
#[derive(Default)]
pub(super) struct Adopted {
    prefixes: HashMap<IpNet, (Name, Instant), RandomState>,
    /// Whether they are known. Until then no pping has listened.
    pub(super) is_known: bool,
    /// The prefixes with their labels that ended until then.
    early_stops: HashSet<(IpNet, Option<Arc<str>>), RandomState>,
}

impl Adopted {
    /// Adds a prefix, which goes at a deadline. Returns `false` if its session has ended already.
    pub(super) fn add(&mut self, prefix: IpNet, name: Name, deadline: Instant) -> bool {
        let has_ended = self.early_stops.contains(&(prefix, Some(Arc::clone(&name.label))))
            || self.early_stops.contains(&(prefix, None));
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

    /// Removes what has been claimed by nobody for too long.
    pub(super) fn expire(&mut self, now: Instant, changes: &mut Vec<Change>) {
        self.prefixes.retain(|prefix, (_, deadline)| {
            let is_kept = *deadline > now;
            if !is_kept {
                changes.push(Change::Unset(*prefix));
            }
            is_kept
        });
    }
}
