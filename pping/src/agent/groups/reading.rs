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
    groups::{self, Directory, GroupsFile, Labels, Levels, NO_VALUE, overlay::Overlay},
    kernel::{labels, series::Generations},
};

/// The changes of the socket that are repeated at a time, while nobody else can use the groups.
const CHANGES_AT_A_TIME: usize = 1000;

/// Reads the groups file at the start.
///
/// # Errors
/// If the file cannot be read or has an error, or lacks one of these levels.
pub(super) fn read_first(state: &mut State, path: &Path, levels: &Levels) -> Result<(), Error> {
    let mut labels = Labels::default();
    let began = Instant::now();
    let groups = open(path)?.number(|step| step(&mut labels));
    levels.missing_in(&groups.column_names).map_or(Ok(()), |reason| Err(Error::RollUp(reason)))?;
    let file = Directory::new(groups.prefixes, &labels);
    say_read(path, &file, began);
    state.begin_with(file, labels);
    Ok(())
}

/// Reads the groups file again, and makes it current.
///
/// # Errors
/// If the file cannot be read or has an error, or the kernel has no room for its prefixes. The groups stay as they are then.
pub(super) fn reload(shared: &Shared, path: &Path, levels: Levels) -> Result<(), Error> {
    let began = Instant::now();
    let groups = open(path)?.number(|step| shared.lock().add_labels(step));
    let numbers: Vec<u32> = groups.columns.iter().map(|(number, _)| *number).collect();
    let beginning = shared.lock().begin_reload();
    let made = beginning.and_then(|Beginning { overlay, labels, kernel }| {
        let file = Directory::new(groups.prefixes, &labels);
        say_read(path, &file, began);
        let columns = groups.columns.into_iter();
        let columns = columns.filter(|(number, columns)| labels.get(*number).1 != columns).collect();
        let directory = with_overlay(file.clone(), &overlay);
        // The new groups are worth more than the levels that the file no longer has.
        if let Some(reason) = levels.missing_in(&groups.column_names) {
            tracing::warn!("--roll-up: {reason}; groups of the file are `{NO_VALUE}` there");
        }
        switch(shared, path, Reloaded { file, directory, columns, levels, kernel })
    });
    if made.is_err() {
        let mut state = shared.lock();
        state.end_reload();
        state.withdraw_all(numbers.into_iter());
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
    let (new_file, generation) = (reloaded.file.clone(), reloaded.kernel.as_ref().map(|(_, new)| *new));
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
    tracing::info!("--groups {}: now {}, before {}", path.display(), size(&new_file), size(&old.file));
    Generations::wait();
    if let (Some(map), Some(generation)) = (&mut map, old.generation) {
        labels::remove(map, generation, old.directory.prefixes());
    }
    let gone: Vec<u32> = old.file.labels_listed().filter(|&label| !new_file.has_label(label)).collect();
    shared.lock().withdraw_all(gone.into_iter());
    Ok(())
}

/// Adds the prefixes that came by the socket to those of a file.
fn with_overlay(mut file: Directory, overlay: &Overlay) -> Directory {
    for held in overlay.iter() {
        file.set(held.prefix, overlay.current(held.prefix).map(|held| held.label));
    }
    file
}

fn open(path: &Path) -> Result<GroupsFile, Error> {
    groups::open(path).map_err(Error::Groups)
}

fn say_read(path: &Path, file: &Directory, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    tracing::info!("--groups {}: {} read in {seconds:.1} s", path.display(), size(file));
}

/// Says how much a file lists, so that somebody who sees the log finds out if half of it is missing.
fn size(directory: &Directory) -> String {
    let of =
        |number: usize, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
    let (prefixes, groups) = (directory.len(), directory.groups());
    format!("{} of {}", of(prefixes, "prefix", "prefixes"), of(groups, "group", "groups"))
}
