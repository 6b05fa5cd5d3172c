//! The current groups, in this process and in the kernel.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use aya::maps::MapError;
use ipnet::IpNet;

use super::{
    change_log::{ChangeLog, Done},
    in_kernel::{self, InKernel},
    withdrawn::Withdrawn,
};
use crate::{
    Error,
    groups::{
        Columns, Directory, FileColumns, Labels, Levels, NewestLabels,
        journal::Journal,
        merged,
        overlay::{MAX_PREFIXES, Overlay},
        protocol::{Addition, Effect, FILE_SOURCE, Request},
    },
    kernel::{labels::Prefixes, loaded::Kernel, series::SeriesTable},
    metrics::GroupChanges,
    recent::RecentHistory,
};

/// The current groups.
#[derive(Default)]
pub(super) struct State {
    labels: Labels,
    /// Whether labels are newer than the published ones, and whether a published one has changed.
    are_labels_new: bool,
    are_labels_changed: bool,
    newest: NewestLabels,
    /// The levels of the tree.
    levels: Levels,
    /// The prefixes of the groups file.
    file: Directory,
    /// The other columns of its labels.
    file_columns: FileColumns,
    /// What came by the socket.
    overlay: Overlay,
    /// The prefixes of both.
    directory: Directory,
    /// Whether the screens lack changes of it.
    is_unshown: bool,
    recent: Option<RecentHistory>,
    kernel: Option<InKernel>,
    /// The prefixes that changed since a reload began, while one is in progress.
    touched: Option<BTreeSet<IpNet>>,
    withdrawn: Withdrawn,
    journal: Option<Journal>,
    log: ChangeLog,
    refused: u64,
}

/// What a reload begins with.
pub(super) struct Beginning {
    pub(super) overlay: Overlay,
    pub(super) labels: Labels,
    /// The map, and the number of the new set of prefixes.
    pub(super) kernel: Option<(Prefixes, u32)>,
}

/// What a reload has made.
pub(super) struct Reloaded {
    /// The prefixes of the file.
    pub(super) file: Directory,
    /// The other columns of its labels.
    pub(super) file_columns: FileColumns,
    /// The labels whose columns are others than before.
    pub(super) changed: Vec<u32>,
    /// The prefixes of the file and of the socket.
    pub(super) directory: Directory,
    /// The levels of the tree.
    pub(super) levels: Levels,
    /// The map, and the number of the new set of prefixes.
    pub(super) kernel: Option<(Prefixes, u32)>,
}

/// What a reload has replaced.
pub(super) struct Replaced {
    pub(super) file: Directory,
    pub(super) file_columns: FileColumns,
    pub(super) directory: Directory,
    /// The number of the old set of prefixes.
    pub(super) generation: Option<u32>,
}

impl State {
    /// Begins with a groups file. The `labels` have the columns of the file.
    pub(super) fn begin_with(&mut self, file: Directory, file_columns: FileColumns, labels: Labels) {
        self.directory = file.clone();
        (self.file, self.file_columns) = (file, file_columns);
        self.labels = labels;
        self.are_labels_new = true;
        self.publish();
    }

    /// Repeats changes of an earlier run, and keeps changes in a journal from now on.
    pub(super) fn repeat(&mut self, requests: &[Request]) -> usize {
        let done = self.perform_all(requests);
        self.overlay.begin_counting();
        done.iter().filter(|done| done.is_err()).count()
    }

    /// Keeps changes from now on.
    pub(super) fn keep(&mut self, start: impl FnOnce(&Overlay, &Labels) -> Option<Journal>) {
        self.journal = start(&self.overlay, &self.labels);
    }

    /// Adds the labels of the previous run.
    pub(super) fn remember(&mut self, labels: &[String]) {
        for label in labels {
            self.labels.add_labels_of(label);
        }
        self.are_labels_new = true;
        self.publish();
    }

    /// Writes all prefixes into the kernel, and makes them current.
    ///
    /// # Errors
    /// If the kernel has no room for them.
    pub(super) fn enter(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        self.kernel = InKernel::enter(kernel, &self.directory)?;
        Ok(())
    }

    /// Replaces the levels of the tree.
    pub(super) fn set_levels(&mut self, levels: Levels) {
        if self.levels == levels {
            return;
        }
        self.newest.set_levels(levels.clone());
        if let Some(recent) = &self.recent {
            recent.list_levels(levels.clone());
        }
        self.levels = levels;
    }

    /// Shows the groups on screens from now on.
    pub(super) fn show_on(&mut self, recent: RecentHistory) {
        recent.list_levels(self.levels.clone());
        self.recent = Some(recent);
        self.is_unshown = true;
        self.show();
    }

    pub(super) fn newest_labels(&self) -> NewestLabels {
        self.newest.clone()
    }

    pub(super) fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Lends the labels to somebody who adds some.
    pub(super) fn add_labels(&mut self, add: &mut dyn FnMut(&mut Labels)) {
        add(&mut self.labels);
        self.are_labels_new = true;
    }

    pub(super) fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    pub(super) fn file(&self) -> &Directory {
        &self.file
    }

    pub(super) fn file_columns(&self) -> &FileColumns {
        &self.file_columns
    }

    /// Performs changes, each of which succeeds or says why not. [`super::shared::Shared::resolve`] has to follow.
    pub(super) fn perform(&mut self, changes: &[Request]) -> Vec<Result<Done, String>> {
        let done = self.perform_all(changes);
        let (mut lines, mut count) = (Vec::new(), 0);
        for (change, done) in changes.iter().zip(&done) {
            match done {
                Ok(done) => {
                    if self.journal.is_some() {
                        change.write(&mut lines);
                        count += 1;
                    }
                    self.log(change, done);
                }
                Err(reason) => self.refuse(reason),
            }
        }
        if let Some(journal) = self.journal.as_mut().filter(|_| count > 0) {
            journal.append(lines, count);
        }
        done
    }

    fn perform_all(&mut self, changes: &[Request]) -> Vec<Result<Done, String>> {
        let numbers: Vec<u32> = changes.iter().map(|change| self.number(change)).collect();
        // Before any packet can count under a new label, those who name it know it.
        self.publish();
        let perform = |(change, number): (&Request, u32)| match change {
            Request::Add(addition) => self.add(addition, number),
            Request::Remove { prefix, source } => self.remove(*prefix, source),
            Request::Columns { columns, source, .. } => self.give_columns(number, columns, source),
            _ => Err("this request is no change".to_owned()),
        };
        let done = changes.iter().zip(numbers).map(perform).collect();
        // Labels may have lost columns.
        self.publish();
        done
    }

    /// The number of the label of a change; 0 if it has none. The label of an addition has the columns that it will have.
    fn number(&mut self, change: &Request) -> u32 {
        let (label, columns, source) = match change {
            Request::Add(Addition { label, columns, source, .. }) => (label, columns.as_ref(), source),
            Request::Columns { label, .. } => return self.labels.known_number(label).unwrap_or_default(),
            _ => return 0,
        };
        let known = self.labels.known_number(label);
        let source = self.overlay.known_source(source);
        let future = |number: u32, columns: &Columns| {
            let given = self.overlay.columns(number).into_iter();
            let others = given.filter(|(of, _)| Some(*of) != source).map(|(_, columns)| columns);
            merged(self.file_columns.get(number), others.chain([&Arc::new(columns.clone())]))
        };
        match (known, columns) {
            (Some(known), None) => known,
            (Some(known), Some(columns)) => {
                let columns = future(known, columns);
                self.set_columns(known, columns);
                known
            }
            (None, columns) => {
                self.are_labels_new = true;
                self.labels.number(label, columns.cloned().unwrap_or_default())
            }
        }
    }

    /// The columns that count for a label: those of the file, and in their place those of sources.
    fn columns(&self, label: u32) -> Arc<Columns> {
        let given = self.overlay.columns(label).into_iter().map(|(_, columns)| columns);
        merged(self.file_columns.get(label), given)
    }

    /// Makes the columns of a label those that count. One that nothing lists any more keeps its own until it is forgotten: the packets
    /// of its last second are still to be added up.
    fn refresh_columns(&mut self, label: u32) {
        if self.is_used(label) {
            let columns = self.columns(label);
            self.set_columns(label, columns);
        }
    }

    fn set_columns(&mut self, label: u32, columns: Arc<Columns>) {
        if self.labels.set_columns(label, columns) {
            (self.are_labels_new, self.are_labels_changed) = (true, true);
            self.is_unshown = true;
        }
    }

    fn add(&mut self, addition: &Addition, number: u32) -> Result<Done, String> {
        let Addition { prefix, columns, source, .. } = addition;
        // Without columns, an addition leaves those of its label as they are.
        let before = columns.as_ref().map(|_| self.columns(number));
        let added = self.overlay.source(source).and_then(|source| {
            if let Some(columns) = columns {
                self.overlay.check_columns(number, source, columns)?;
            }
            let done = self.move_to(*prefix, number, source)?;
            let are_others =
                columns.as_ref().is_some_and(|given| self.overlay.set_columns(number, source, given));
            let are_columns_changed =
                are_others || before.is_some_and(|before| self.columns(number) != before);
            Ok(self.counted(source, done.with(are_columns_changed)))
        });
        // It may have no prefix after all.
        self.refresh_columns(number);
        self.withdraw(number);
        added
    }

    /// Counts what a source did.
    fn counted(&mut self, source: u16, done: Done) -> Done {
        self.overlay.count_change(source, done.effect);
        done
    }

    fn give_columns(&mut self, number: u32, columns: &Columns, source: &str) -> Result<Done, String> {
        let known = self.overlay.known_source(source);
        let Some(known) = known.filter(|&known| self.overlay.lists(number, known)) else {
            return Err(format!("`{source}` lists no prefix of this label; add one first"));
        };
        self.overlay.check_columns(number, known, columns)?;
        let before = self.columns(number);
        let are_others = self.overlay.set_columns(number, known, columns);
        let are_columns_changed = are_others || self.columns(number) != before;
        self.refresh_columns(number);
        let done = self.done(Effect::Unchanged, Some(number), Some(number));
        Ok(self.counted(known, done.with(are_columns_changed)))
    }

    fn move_to(&mut self, prefix: IpNet, number: u32, source: u16) -> Result<Done, String> {
        let of_source = self.overlay.of_source(prefix, source).map(|held| held.label);
        if of_source.is_none() && !self.overlay.has_room() {
            return Err(format!("{MAX_PREFIXES} prefixes came by the socket already; remove some"));
        }
        let before = self.directory.label(prefix);
        self.write(prefix, before, Some(number))
            .map_err(|error| format!("the kernel takes no more prefixes ({error}); remove some"))?;
        self.overlay.set(prefix, source, number);
        let effect = match before {
            None => Effect::Added,
            Some(before) if before == number => Effect::Unchanged,
            Some(_) => Effect::Moved,
        };
        for label in [of_source, before].into_iter().flatten() {
            self.refresh_columns(label);
            self.withdraw(label);
        }
        Ok(self.done(effect, before, Some(number)))
    }

    fn remove(&mut self, prefix: IpNet, source: &Arc<str>) -> Result<Done, String> {
        let known = self.overlay.known_source(source);
        let Some(source) = known.filter(|&known| self.overlay.of_source(prefix, known).is_some()) else {
            return Err(self.why_not_listed(prefix, source));
        };
        let before = self.directory.label(prefix);
        let removed = self.overlay.of_source(prefix, source).map_or(0, |held| held.label);
        let columns_before = self.columns(removed);
        self.overlay.unset(prefix, source);
        let now = self.overlay.current(prefix).map(|held| held.label).or_else(|| self.file.label(prefix));
        // The prefix is in the kernel already unless its label is taken away.
        self.write(prefix, before, now).map_err(|error| error.to_string())?;
        let are_columns_changed = now == Some(removed) && self.columns(removed) != columns_before;
        self.refresh_columns(removed);
        self.withdraw(removed);
        let effect = match now {
            None => Effect::Removed,
            now if now == before => Effect::Unchanged,
            Some(_) => Effect::Moved,
        };
        let done = self.done(effect, before, now);
        Ok(self.counted(source, done.with(are_columns_changed)))
    }

    /// Says where a prefix comes from that a source does not list.
    fn why_not_listed(&self, prefix: IpNet, source: &str) -> String {
        let others = self.overlay.all_of(prefix).map(|held| self.overlay.name(held.source));
        if let Some(other) = others.into_iter().next() {
            return format!(
                "{prefix} comes from the source `{other}`, not from `{source}`; name that as the source"
            );
        }
        match self.file.label(prefix) {
            Some(_) => format!("{prefix} is in the groups file; remove it there, and reload (SIGHUP)"),
            None => format!("{prefix} is not listed; see `pping groups list {prefix}`"),
        }
    }

    fn done(&self, effect: Effect, before: Option<u32>, now: Option<u32>) -> Done {
        let name = |number| self.labels.get(number).0;
        Done { effect, before: before.map(name), now: now.map(name) }
    }

    /// Writes one prefix, and touches no other.
    fn write(&mut self, prefix: IpNet, before: Option<u32>, now: Option<u32>) -> Result<(), MapError> {
        if before == now {
            return Ok(());
        }
        if let Some(kernel) = &mut self.kernel {
            kernel.write(prefix, now)?;
        }
        if let Some(touched) = &mut self.touched {
            touched.insert(prefix);
        }
        self.directory.set(prefix, now);
        self.is_unshown = true;
        Ok(())
    }

    /// Notes a label that may have lost its last prefix.
    fn withdraw(&mut self, label: u32) {
        if !self.is_used(label) {
            self.withdrawn.note(label);
        }
    }

    fn is_used(&self, label: u32) -> bool {
        is_used(label, &self.overlay, &self.file, &self.file_columns)
    }

    fn log(&mut self, change: &Request, done: &Done) {
        let label = done.now.as_deref().and_then(|label| self.labels.known_number(label));
        self.log.change(change, done, self.labels.get(label.unwrap_or_default()).1);
    }

    /// Counts and logs a refused request.
    pub(super) fn refuse(&mut self, reason: &str) {
        self.refused += 1;
        self.log.refuse(reason);
    }

    /// Makes flows look up their groups again if a change asks for that, but at most once in this time. Returns whether nothing is
    /// left to do.
    pub(super) fn resolve_at_most_each(&mut self, interval: Duration) -> bool {
        self.kernel.as_mut().is_none_or(|kernel| kernel.resolve_at_most_each(interval))
    }

    /// Ends a second: shows changes on screens, logs their sums, and keeps the journal short.
    pub(super) fn tick(&mut self) {
        self.show();
        self.log.end_second();
        if let Some(journal) = &mut self.journal {
            journal.tidy(&self.overlay, &self.labels);
        }
    }

    fn show(&mut self) {
        if !std::mem::take(&mut self.is_unshown) {
            return;
        }
        if let Some(recent) = &self.recent {
            self.directory.set_labels(self.labels.clone(), self.file_columns.clone());
            recent.list_groups(self.directory.clone());
        }
    }

    /// Tells those who name groups of new labels.
    fn publish(&mut self) {
        if std::mem::take(&mut self.are_labels_new) {
            self.newest.set(self.labels.clone(), std::mem::take(&mut self.are_labels_changed));
        }
    }

    /// Begins a reload: from now on, changes are noted.
    ///
    /// # Errors
    /// If the kernel's map cannot be opened once more.
    pub(super) fn begin_reload(&mut self) -> Result<Beginning, Error> {
        let kernel = self.kernel.as_ref().map(InKernel::begin_again).transpose()?;
        self.touched = Some(BTreeSet::new());
        Ok(Beginning { overlay: self.overlay.clone(), labels: self.labels.clone(), kernel })
    }

    /// Ends a reload that failed.
    pub(super) fn end_reload(&mut self) {
        self.touched = None;
    }

    /// Notes labels that the file does not list any more, or that come from a file that is not used after all.
    pub(super) fn settle(&mut self, labels: impl Iterator<Item = u32>) {
        for label in labels {
            self.refresh_columns(label);
            self.withdraw(label);
        }
        self.publish();
    }

    /// Repeats up to `max` changes that came during a reload. Returns whether none is left.
    ///
    /// # Errors
    /// If the kernel has no room for a prefix.
    pub(super) fn catch_up(&mut self, reloaded: &mut Reloaded, max: usize) -> Result<bool, MapError> {
        let Some(touched) = &mut self.touched else { return Ok(true) };
        for _ in 0..max {
            let Some(prefix) = touched.pop_first() else { return Ok(true) };
            let current = self.overlay.current(prefix).map(|held| held.label);
            let label = current.or_else(|| reloaded.file.label(prefix));
            if let Some((map, generation)) = &mut reloaded.kernel {
                in_kernel::write(map, *generation, prefix, label)?;
            }
            reloaded.directory.set(prefix, label);
        }
        Ok(touched.is_empty())
    }

    /// Makes what was loaded current.
    pub(super) fn switch(
        &mut self,
        Reloaded { file, file_columns, changed, directory, levels, kernel: new }: Reloaded,
    ) -> Replaced {
        self.touched = None;
        let file = std::mem::replace(&mut self.file, file);
        let file_columns = std::mem::replace(&mut self.file_columns, file_columns);
        for label in changed {
            self.refresh_columns(label);
        }
        self.are_labels_new = true;
        self.publish();
        self.set_levels(levels);
        let new = self.kernel.as_mut().zip(new);
        let generation = new.map(|(kernel, (_, generation))| kernel.switch(generation));
        let directory = std::mem::replace(&mut self.directory, directory);
        self.is_unshown = true;
        self.show();
        Replaced { file, file_columns, directory, generation }
    }

    /// Forgets labels that neither a prefix nor a series has any more.
    pub(super) fn forget_unused(&mut self, series: &SeriesTable) {
        let Self { withdrawn, overlay, file, file_columns, .. } = self;
        let forgotten = withdrawn.take_due(series, |label| is_used(label, overlay, file, file_columns));
        for label in forgotten {
            self.labels.forget(label);
            (self.are_labels_new, self.are_labels_changed) = (true, true);
        }
        self.publish();
    }

    /// The counts of prefixes and of changes.
    pub(super) fn changes(&self) -> GroupChanges {
        let file = (Arc::from(FILE_SOURCE), self.file.len() as u64);
        let sources = self.overlay.sources();
        let listed = sources.iter().map(|source| (Arc::clone(&source.name), source.prefixes as u64));
        GroupChanges {
            prefixes: [file].into_iter().chain(listed).collect(),
            changes: sources.iter().map(|source| (Arc::clone(&source.name), source.changes)).collect(),
            refused: self.refused,
        }
    }

    /// Waits until everything is kept.
    pub(super) fn close(&mut self) {
        self.tick();
        self.journal = None;
    }
}

/// Whether the socket or the file lists a label.
fn is_used(label: u32, overlay: &Overlay, file: &Directory, file_columns: &FileColumns) -> bool {
    overlay.uses(label) || file.has_label(label) || file_columns.get(label).is_some()
}
