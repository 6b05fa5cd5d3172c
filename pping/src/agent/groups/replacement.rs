//! Replacing all that came from one source.

use std::sync::Arc;

use indexmap::{IndexMap, map::Entry};
use ipnet::IpNet;
use tokio::task::yield_now;

use super::{shared::Shared, state::State};
use crate::groups::{
    Columns,
    overlay::MAX_PREFIXES,
    protocol::{Addition, Answer, DEFAULT_SOURCE, Request},
};

/// The changes that are made at a time, while nobody else can use the groups.
const CHANGES_AT_A_TIME: usize = 500;

/// All that a source lists, while it is being sent.
pub(super) struct Replacement<'a> {
    shared: &'a Shared,
    source: Arc<str>,
    additions: IndexMap<IpNet, Addition>,
}

impl<'a> Replacement<'a> {
    /// Begins to replace what a source lists.
    ///
    /// # Errors
    /// If another client does so: their memory is bounded together.
    pub(super) fn begin(shared: &'a Shared, source: Arc<str>) -> Result<Self, String> {
        if !shared.begin_replacing() {
            return Err("another client is replacing prefixes; try again when it is done".to_owned());
        }
        Ok(Self { shared, source, additions: IndexMap::new() })
    }

    /// Adds a prefix to what the source will list.
    ///
    /// # Errors
    /// If it has another label already, comes from another source, or is one too many.
    pub(super) fn add(&mut self, mut addition: Addition) -> Result<(), String> {
        if *addition.source != *DEFAULT_SOURCE && addition.source != self.source {
            return Err(format!("this replaces what comes from `{}`; leave the source out", self.source));
        }
        addition.source = Arc::clone(&self.source);
        if self.additions.len() >= MAX_PREFIXES {
            return Err(format!("there are more than {MAX_PREFIXES} prefixes; remove some"));
        }
        match self.additions.entry(addition.prefix) {
            Entry::Occupied(known) if known.get().label != addition.label => {
                let (prefix, label) = (addition.prefix, &known.get().label);
                Err(format!("{prefix} is in the group `{label}` already; remove one of the two"))
            }
            Entry::Occupied(_) => Ok(()),
            Entry::Vacant(vacant) => {
                vacant.insert(addition);
                Ok(())
            }
        }
    }

    /// Makes the additions all that the source lists. What stays is not touched. Prefixes are added and moved before others are
    /// removed, so that hosts move from one label to another without being unlisted.
    ///
    /// # Errors
    /// If a change is refused. Those before it are made.
    pub(super) async fn commit(mut self) -> Result<Answer, String> {
        let additions = std::mem::take(&mut self.additions);
        let prefixes = Some(additions.len());
        let changes = self.changes(additions, &self.shared.lock());
        let mut changed = 0;
        for changes in changes.chunks(CHANGES_AT_A_TIME) {
            let done = self.shared.lock().perform(changes);
            for done in done {
                done.map_err(|reason| format!("after {changed} changes: {reason}"))?;
                changed += 1;
            }
            yield_now().await;
        }
        self.shared.resolve().await;
        Ok(Answer { prefixes, changed: Some(changed), ..Answer::ok() })
    }

    /// The changes that lead to these additions.
    fn changes(&self, additions: IndexMap<IpNet, Addition>, state: &State) -> Vec<Request> {
        let (overlay, labels) = (state.overlay().clone(), state.labels().clone());
        let known = overlay.known_source(&self.source);
        let mut gone = Vec::new();
        for held in overlay.iter().filter(|held| Some(held.source) == known) {
            if !additions.contains_key(&held.prefix) {
                gone.push(Request::Remove { prefix: held.prefix, source: Arc::clone(&self.source) });
            }
        }
        let is_new = |addition: &Addition| {
            let held = known.and_then(|known| overlay.of_source(addition.prefix, known));
            let Some(held) = held else { return true };
            let columns = overlay.columns_of(held.label, held.source);
            let are_others = |new: &Columns| columns.map_or(!new.is_empty(), |columns| columns != new);
            labels.get(held.label).0 != addition.label || addition.columns.as_ref().is_some_and(are_others)
        };
        additions.into_values().filter(is_new).map(Request::Add).chain(gone).collect()
    }
}

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        self.shared.end_replacing();
    }
}
