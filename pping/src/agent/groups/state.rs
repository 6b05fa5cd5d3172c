//! The current groups, in this process and in the kernel.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use aya::maps::MapError;
use ipnet::IpNet;
use pping_common::group::End;

use super::change_log::ChangeLog;
use crate::{
    Error,
    foreign_text::sanitized,
    groups::{
        Columns, Directory, Labels, Levels, NewestLabels,
        journal::Journal,
        overlay::{MAX_PREFIXES, Overlay},
        protocol::{Addition, Effect, FILE_SOURCE, Request},
    },
    kernel::{
        labels::{self, Prefixes},
        loaded::Kernel,
        series::{Generations, SeriesTable},
    },
    metrics::GroupChanges,
    recent::RecentHistory,
};

/// A label is forgotten at the earliest this long after its last prefix: the programs may just have seen it.
const FORGET_AFTER: Duration = Duration::from_secs(2);

/// The interval at which labels are forgotten, unless there are [many](FORGET_MANY).
const FORGET_INTERVAL: Duration = Duration::from_secs(10);

/// The number of labels without a prefix from which on they are forgotten every second.
const FORGET_MANY: usize = 4096;

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
    /// The labels that lost their last prefix, and when.
    withdrawn: HashMap<u32, Instant>,
    last_forgetting: Option<Instant>,
    journal: Option<Journal>,
    log: ChangeLog,
    refused: u64,
}

/// The groups in the kernel.
struct InKernel {
    map: Prefixes,
    generations: Generations,
    /// The current set of prefixes.
    generation: u32,
    /// Whether flows have to look up their groups again.
    is_unresolved: bool,
    last_resolved: Instant,
}

/// What a change did.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) effect: Effect,
    /// The label that the prefix had, and the one that it has.
    pub(super) before: Option<Arc<str>>,
    pub(super) now: Option<Arc<str>>,
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
    /// The prefixes of the file and of the socket.
    pub(super) directory: Directory,
    /// The other columns of labels of the file, where they are others than before.
    pub(super) columns: Vec<(u32, Columns)>,
    /// The levels of the tree.
    pub(super) levels: Levels,
    /// The map, and the number of the new set of prefixes.
    pub(super) kernel: Option<(Prefixes, u32)>,
}

/// What a reload has replaced.
pub(super) struct Replaced {
    pub(super) file: Directory,
    pub(super) directory: Directory,
    /// The number of the old set of prefixes.
    pub(super) generation: Option<u32>,
}

impl State {
    /// Begins with a groups file.
    pub(super) fn begin_with(&mut self, file: Directory, labels: Labels) {
        self.directory = file.clone();
        self.file = file;
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
        let generation = labels::next(kernel.series.generation());
        let Some(mut map) = kernel.labels.take() else { return Ok(()) };
        labels::add(&mut map, generation, self.directory.prefixes())?;
        kernel.series.set_generation(generation);
        // A pinned map may have the prefixes of the previous run.
        labels::retain_generation(&mut map, generation)?;
        let generations = kernel.series.generations()?;
        self.kernel = Some(InKernel {
            map,
            generations,
            generation,
            is_unresolved: false,
            last_resolved: Instant::now(),
        });
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
            _ => Err("this request is no change".to_owned()),
        };
        changes.iter().zip(numbers).map(perform).collect()
    }

    /// The number of the label of a change; 0 if it has none.
    fn number(&mut self, change: &Request) -> u32 {
        let Request::Add(Addition { label, columns, .. }) = change else { return 0 };
        let Some(known) = self.labels.known_number(label) else {
            self.are_labels_new = true;
            return self.labels.number(label, columns.clone().unwrap_or_default());
        };
        if columns.as_ref().is_some_and(|columns| self.labels.set_columns(known, columns)) {
            self.are_labels_new = true;
            self.are_labels_changed = true;
        }
        known
    }

    fn add(&mut self, addition: &Addition, number: u32) -> Result<Done, String> {
        let Addition { prefix, columns, source, .. } = addition;
        let done = self.overlay.source(source).and_then(|source| self.move_to(*prefix, number, source));
        // It may have no prefix after all.
        self.withdraw(number);
        if let (Ok(_), Some(columns)) = (&done, columns) {
            self.overlay.set_columns(number, columns.clone());
        }
        done
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
        self.overlay.count_change(source, effect);
        for label in [of_source, before].into_iter().flatten() {
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
        let removed = self.overlay.unset(prefix, source);
        let now = self.overlay.current(prefix).map(|held| held.label).or_else(|| self.file.label(prefix));
        // The prefix is in the kernel already unless its label is taken away.
        self.write(prefix, before, now).map_err(|error| error.to_string())?;
        if let Some(label) = removed {
            self.withdraw(label);
        }
        let effect = match now {
            None => Effect::Removed,
            now if now == before => Effect::Unchanged,
            Some(_) => Effect::Moved,
        };
        self.overlay.count_change(source, effect);
        Ok(self.done(effect, before, now))
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
        if let Some(InKernel { map, generation, is_unresolved, .. }) = &mut self.kernel {
            match now {
                Some(label) => labels::set(map, *generation, prefix, label)?,
                None => labels::unset(map, *generation, prefix),
            }
            *is_unresolved = true;
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
            self.withdrawn.insert(label, Instant::now());
        }
    }

    fn is_used(&self, label: u32) -> bool {
        self.overlay.uses(label) || self.file.has_label(label)
    }

    fn log(&mut self, change: &Request, Done { effect, before, now }: &Done) {
        let (Request::Add(Addition { prefix, source, .. }) | Request::Remove { prefix, source }) = change
        else {
            return;
        };
        if *effect == Effect::Unchanged || !self.log.is_single(*effect) {
            return;
        }
        let [before, now] = [before, now].map(|label| label.as_deref().map(sanitized));
        match (before, now) {
            (None, Some(now)) => tracing::info!("--groups-socket: {prefix} is now `{now}` (from {source})"),
            (Some(before), Some(now)) => {
                tracing::info!("--groups-socket: {prefix} is now `{now}`, before `{before}` (from {source})");
            }
            (Some(before), None) => {
                tracing::info!("--groups-socket: {prefix} is removed, before `{before}` (from {source})");
            }
            (None, None) => {}
        }
    }

    /// Counts and logs a refused request.
    pub(super) fn refuse(&mut self, reason: &str) {
        self.refused += 1;
        self.log.refuse(reason);
    }

    /// Makes flows look up their groups again if a change asks for that, but at most once in this time. Returns whether nothing is
    /// left to do.
    pub(super) fn resolve_at_most_each(&mut self, interval: Duration) -> bool {
        let Some(kernel) = self.kernel.as_mut().filter(|kernel| kernel.is_unresolved) else { return true };
        if kernel.last_resolved.elapsed() < interval {
            return false;
        }
        kernel.generations.resolve_again();
        kernel.last_resolved = Instant::now();
        kernel.is_unresolved = false;
        true
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
            self.directory.set_labels(self.labels.clone());
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
        let kernel = match &self.kernel {
            Some(kernel) => Some((labels::open_again(&kernel.map)?, labels::next(kernel.generation))),
            None => None,
        };
        self.touched = Some(BTreeSet::new());
        Ok(Beginning { overlay: self.overlay.clone(), labels: self.labels.clone(), kernel })
    }

    /// Ends a reload that failed.
    pub(super) fn end_reload(&mut self) {
        self.touched = None;
    }

    /// Notes labels of a file that is not used.
    pub(super) fn withdraw_all(&mut self, labels: impl Iterator<Item = u32>) {
        for label in labels {
            self.withdraw(label);
        }
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
                match label {
                    Some(label) => labels::set(map, *generation, prefix, label)?,
                    None => labels::unset(map, *generation, prefix),
                }
            }
            reloaded.directory.set(prefix, label);
        }
        Ok(touched.is_empty())
    }

    /// Makes what was loaded current.
    pub(super) fn switch(
        &mut self,
        Reloaded { file, directory, columns, levels, kernel: new }: Reloaded,
    ) -> Replaced {
        self.touched = None;
        for (number, columns) in &columns {
            self.are_labels_changed |= self.labels.set_columns(*number, columns);
        }
        for (number, columns) in self.overlay.columns() {
            self.labels.set_columns(number, columns);
        }
        self.are_labels_new = true;
        self.publish();
        self.set_levels(levels);
        let mut old_generation = None;
        if let (Some(kernel), Some((_, generation))) = (&mut self.kernel, new) {
            old_generation = Some(std::mem::replace(&mut kernel.generation, generation));
            kernel.generations.set(generation);
            (kernel.is_unresolved, kernel.last_resolved) = (false, Instant::now());
        }
        let file = std::mem::replace(&mut self.file, file);
        let directory = std::mem::replace(&mut self.directory, directory);
        self.is_unshown = true;
        self.show();
        Replaced { file, directory, generation: old_generation }
    }

    /// Forgets labels that neither a prefix nor a series has any more.
    pub(super) fn forget_unused(&mut self, series: &SeriesTable) {
        let is_due = self.last_forgetting.is_none_or(|last| last.elapsed() >= FORGET_INTERVAL);
        if self.withdrawn.is_empty() || !is_due && self.withdrawn.len() < FORGET_MANY {
            return;
        }
        self.last_forgetting = Some(Instant::now());
        let ends = series.keys().flat_map(|key| [key.group.source(), key.group.destination()]);
        let counted: HashSet<u32> = ends
            .filter_map(|end| match end {
                End::Label(label) => Some(label),
                End::Any | End::Prefix { .. } => None,
            })
            .collect();
        let is_old = |since: &Instant| since.elapsed() >= FORGET_AFTER;
        let mut withdrawn = std::mem::take(&mut self.withdrawn);
        withdrawn.retain(|&label, since| {
            if self.is_used(label) {
                return false;
            }
            let is_kept = counted.contains(&label) || !is_old(since);
            if !is_kept {
                self.labels.forget(label);
                (self.are_labels_new, self.are_labels_changed) = (true, true);
            }
            is_kept
        });
        self.withdrawn = withdrawn;
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
