//! Which groups have their other rows shown.

use std::collections::HashSet;

/// Whether the other rows of groups are shown: for all alike, except for some.
#[derive(Debug, Default)]
pub(super) struct Folds {
    is_unfolded: bool,
    /// The ids of groups for which it is the other way round.
    exceptions: HashSet<String>,
}

impl Folds {
    /// Whether the other rows of the group with this id are shown.
    pub(super) fn is_unfolded(&self, id: &str) -> bool {
        self.is_unfolded != self.exceptions.contains(id)
    }

    /// Shows or hides the other rows of a group; `None` changes it.
    pub(super) fn fold(&mut self, id: &str, is_unfolded: Option<bool>) {
        let is_unfolded = is_unfolded.unwrap_or(!self.is_unfolded(id));
        if is_unfolded == self.is_unfolded {
            self.exceptions.remove(id);
        } else {
            self.exceptions.insert(id.to_owned());
        }
    }

    /// Shows or hides the other rows of all groups.
    pub(super) fn fold_all(&mut self) {
        self.is_unfolded = !self.is_unfolded;
        self.exceptions.clear();
    }
}
