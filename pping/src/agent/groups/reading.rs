//! Reading the groups file.
//!
//! A reload makes another set of prefixes beside the current one in the kernel, in a thread. What comes by the socket in the
//! meantime changes the current set at once, and is repeated in the new one before that takes its place.

use std::{path::Path, time::Instant};

use super::{
    shared::Shared,
    state::{Beginning, Reloaded, State},
};
use crate::{
    Error,
    groups::{
        self, Directory, FileColumns, GroupsFile, Labels, Levels, NO_VALUE, PrefixRule, overlay::Overlay,
    },
    kernel::{labels, series::Generations},
    spelling::counted,
};

/// The changes of the socket that are repeated at a time, while nobody else can use the groups.
const CHANGES_AT_A_TIME: usize = 1000;

/// Reads the groups file at the start. Without a socket, labels get prefixes in the file or not at all.
///
/// # Errors
/// If the file cannot be read or has an error, or lacks one of these levels.
pub(super) fn read_first(
    state: &mut State,
    path: &Path,
    levels: &Levels,
    prefixes: PrefixRule,
) -> Result<(), Error> {
    let mut labels = Labels::default();
    let began = Instant::now();
    let groups = open(path, prefixes)?.number(|step| step(&mut labels));
    levels.missing_in(&groups.column_names).map_or(Ok(()), |reason| Err(Error::RollUp(reason)))?;
    let (file, columns) = (Directory::new(groups.prefixes, &labels), FileColumns::new(groups.columns));
    say_read(path, &file, &columns, began);
    state.begin_with(file, columns, labels);
    Ok(())
}

/// Reads the groups file again, and makes it current.
///
/// # Errors
/// If the file cannot be read or has an error, or the kernel has no room for its prefixes. The groups stay as they are then.
pub(super) fn reload(shared: &Shared, path: &Path, levels: Levels) -> Result<(), Error> {
    let began = Instant::now();
    let groups = open(path, shared.prefixes())?.number(|step| shared.lock().add_labels(step));
    let numbers: Vec<u32> = groups.columns.iter().map(|(number, _)| *number).collect();
    let beginning = shared.lock().begin_reload();
    let made = beginning.and_then(|Beginning { overlay, labels, kernel }| {
        let file = Directory::new(groups.prefixes, &labels);
        let file_columns = FileColumns::new(groups.columns);
        say_read(path, &file, &file_columns, began);
        let before = shared.lock().file_columns().clone();
        let all = before.labels().chain(file_columns.labels());
        let changed = all.filter(|&label| before.get(label) != file_columns.get(label)).collect();
        let directory = with_overlay(file.clone(), &overlay);
        // The new groups are worth more than the levels that the file no longer has.
        if let Some(reason) = levels.missing_in(&groups.column_names) {
            tracing::warn!("--roll-up: {reason}; groups of the file are `{NO_VALUE}` there");
        }
        switch(shared, path, Reloaded { file, file_columns, changed, directory, levels, kernel })
    });
    if made.is_err() {
        let mut state = shared.lock();
        state.end_reload();
        state.settle(numbers.into_iter());
    }
    made
}

/// Writes what was read into the kernel, makes it current, and removes what was there before.
fn switch(shared: &Shared, path: &Path, mut reloaded: Reloaded) -> Result<(), Error> {
    if let Some((map, generation)) = &mut reloaded.kernel {
        labels::add(map, *generation, reloaded.directory.prefixes())?;
    }
    let mut map = match &reloaded.kernel {
        Some((map, _)) => Some(labels::open_again(map)?),
        None => None,
    };
    let (new_file, new_columns) = (reloaded.file.clone(), reloaded.file_columns.clone());
    let generation = reloaded.kernel.as_ref().map(|(_, new)| *new);
    let old = loop {
        // Each time, the others get their turn.
        let mut state = shared.lock();
        match state.catch_up(&mut reloaded, CHANGES_AT_A_TIME) {
            Ok(false) => {}
            Ok(true) => break state.switch(reloaded),
            Err(error) => {
                drop(state);
                if let (Some(map), Some(generation)) = (&mut map, generation) {
                    labels::remove(map, generation, reloaded.directory.prefixes());
                }
                return Err(error.into());
            }
        }
    };
    shared.note_switch();
    let (now, before) = (size(&new_file, &new_columns), size(&old.file, &old.file_columns));
    tracing::info!("--groups {}: now {now}, before {before}", path.display());
    Generations::wait();
    if let (Some(map), Some(generation)) = (&mut map, old.generation) {
        labels::remove(map, generation, old.directory.prefixes());
    }
    let all = old.file.labels_listed().chain(old.file_columns.labels());
    let gone = all.filter(|&label| !new_file.has_label(label) && new_columns.get(label).is_none());
    let gone: Vec<u32> = gone.collect();
    shared.lock().settle(gone.into_iter());
    Ok(())
}

/// Adds the prefixes that came by the socket to those of a file.
fn with_overlay(mut file: Directory, overlay: &Overlay) -> Directory {
    for held in overlay.iter() {
        file.set(held.prefix, overlay.current(held.prefix).map(|held| held.label));
    }
    file
}

fn open(path: &Path, prefixes: PrefixRule) -> Result<GroupsFile, Error> {
    groups::open(path, prefixes).map_err(Error::Groups)
}

fn say_read(path: &Path, file: &Directory, columns: &FileColumns, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    tracing::info!("--groups {}: {} read in {seconds:.1} s", path.display(), size(file, columns));
}

/// Says how much a file lists, so that somebody who sees the log finds out if half of it is missing.
fn size(directory: &Directory, columns: &FileColumns) -> String {
    let prefixes = counted(directory.len(), "prefix", "prefixes");
    let size = format!("{prefixes} of {}", counted(directory.groups(), "group", "groups"));
    match columns.labels().filter(|&label| !directory.has_label(label)).count() {
        0 => size,
        others => format!("{size}, and {} without a prefix", counted(others, "label", "labels")),
    }
}
