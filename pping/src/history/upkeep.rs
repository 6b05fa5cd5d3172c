//! What is done with the files of a history besides writing new ones: hours and days are merged, and the oldest go.
//!
//! Nothing but files is remembered from one step to the next, so a killed writer continues where it stopped. A merged file
//! names its sources, and replaces them from the moment it has its name, even while they still exist.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use super::{
    counts::HourlyCounts,
    error::Error,
    merge::{Merged, Sum},
    piece::{Piece, Span},
    read::{StoredFile, Wanted},
    row::Row,
    store::{FORMAT, Store},
    tier::Tier,
    time::{DAY, HOUR},
    write::{NewFile, key},
};
use crate::{config::HistoryLimits, quality::Profiles};

/// What was found, and what is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Upkeep {
    /// Files that were damaged, and are set aside.
    pub(super) damaged: u64,
    /// The bytes that all files take.
    pub(super) disk: u64,
}

/// The facts about a file with intervals of a tier, made of these sources.
pub(super) fn facts(tier: Tier, sources: &[&str], counts: &HourlyCounts) -> Vec<(&'static str, String)> {
    vec![
        (key::FORMAT, FORMAT.to_string()),
        (key::ID, format!("{:016x}", RandomState::new().hash_one(0))),
        (key::STEP, tier.step().to_string()),
        (key::COUNTS, counts.to_fact()),
        (key::SOURCES, sources.join(",")),
    ]
}

/// Merges what can be merged at this time, seconds since the Unix epoch, and removes what exceeds the limits. Damaged files
/// are set aside.
///
/// # Errors
/// If files cannot be read or written. What was done until then stays, and the next call continues.
pub(super) fn keep_up(
    store: &Store,
    now: u64,
    limits: &HistoryLimits,
    profiles: &Profiles,
) -> Result<Upkeep, Error> {
    let merger = Merger { store, profiles };
    let mut damaged = 0;
    while let Err(error) = merger.merge_all(now) {
        let Error::Damaged { path, .. } = &error else { return Err(error) };
        tracing::error!("{error}; it is set aside");
        Store::set_aside(path)?;
        damaged += 1;
    }
    Ok(Upkeep { damaged, disk: limit(store, limits)? })
}

/// Merges files.
struct Merger<'a> {
    store: &'a Store,
    profiles: &'a Profiles,
}

/// A file of the history, open.
struct Input {
    piece: Piece,
    file: StoredFile,
}

impl Merger<'_> {
    /// Merges the hours and days that are over.
    fn merge_all(&self, now: u64) -> Result<(), Error> {
        let mut hours: BTreeMap<u64, Vec<Piece>> = BTreeMap::new();
        for piece in self.minutes()? {
            hours.entry(piece.start / HOUR).or_default().push(piece);
        }
        hours.remove(&(now / HOUR));
        hours.values().try_for_each(|minutes| self.merge_hour(minutes))?;
        let unmerged: BTreeSet<u64> = self.minutes()?.iter().map(Piece::day).collect();
        for tier in [Tier::FiveMinutes, Tier::Hour] {
            let mut days: BTreeMap<u64, Vec<Piece>> = BTreeMap::new();
            for piece in self.store.pieces(tier)? {
                days.entry(piece.day()).or_default().push(piece);
            }
            // The sources of an hour say which of its minutes are in it, and the merged day would hide them.
            days.retain(|day, _| *day != now / DAY && !unmerged.contains(day));
            days.values().try_for_each(|pieces| self.merge_day(tier, pieces))?;
        }
        Ok(())
    }

    fn minutes(&self) -> Result<Vec<Piece>, Error> {
        let mut pieces = self.store.pieces(Tier::Minute)?;
        pieces.retain(|piece| piece.span == Span::Minute);
        Ok(pieces)
    }

    /// Merges the minutes of an hour into a file of each tier.
    fn merge_hour(&self, minutes: &[Piece]) -> Result<(), Error> {
        let inputs = self.open(minutes)?;
        let Some(first) = inputs.first().map(|input| input.piece) else { return Ok(()) };
        // After a merge that was not completed, some tiers have the minutes.
        let mut missing: BTreeMap<Vec<usize>, Vec<Tier>> = BTreeMap::new();
        for tier in Tier::ALL {
            let known = self.sources_at(tier, first.start)?;
            let new = inputs.iter().enumerate().filter(|(_, input)| !known.contains(input.file.id()));
            missing.entry(new.map(|(at, _)| at).collect()).or_default().push(tier);
        }
        for (new, tiers) in missing.iter().filter(|(new, _)| !new.is_empty()) {
            let inputs: Vec<&Input> = new.iter().map(|&at| &inputs[at]).collect();
            let outputs = tiers.iter().map(|&tier| Piece::first(tier, Span::Hour, first.start));
            self.merge(&inputs, &outputs.collect::<Vec<_>>())?;
        }
        inputs.iter().try_for_each(|input| self.store.remove(&input.piece))
    }

    /// Merges the files of a day.
    fn merge_day(&self, tier: Tier, pieces: &[Piece]) -> Result<(), Error> {
        let mut inputs = self.open(pieces)?;
        let merged: HashSet<String> = sources(&inputs);
        for old in inputs.extract_if(.., |input| merged.contains(input.file.id())) {
            self.store.remove(&old.piece)?;
        }
        let Some(first) = inputs.first() else { return Ok(()) };
        if inputs.len() == 1 && first.piece.span == Span::Day {
            return Ok(());
        }
        let output = Piece::first(tier, Span::Day, first.piece.start);
        self.merge(&inputs.iter().collect::<Vec<_>>(), &[output])?;
        inputs.iter().try_for_each(|input| self.store.remove(&input.piece))
    }

    /// The ids of the files that those of a tier at a time were made of.
    fn sources_at(&self, tier: Tier, time: u64) -> Result<HashSet<String>, Error> {
        let mut pieces = self.store.pieces(tier)?;
        pieces.retain(|piece| piece.span != Span::Minute && (piece.start..piece.end()).contains(&time));
        Ok(sources(&self.open(&pieces)?))
    }

    fn open(&self, pieces: &[Piece]) -> Result<Vec<Input>, Error> {
        let open = |&piece| Ok(Input { piece, file: self.store.open_piece(&piece)? });
        pieces.iter().map(open).collect()
    }

    /// Merges inputs into an output of each tier. All are complete before the first has its name.
    fn merge(&self, inputs: &[&Input], outputs: &[Piece]) -> Result<(), Error> {
        let labels: BTreeSet<Arc<str>> =
            inputs.iter().flat_map(|input| input.file.labels()).map(Arc::from).collect();
        let mut writers = Vec::new();
        for &output in outputs {
            let path = self.store.path(&self.store.free(output).path());
            let step = output.tier.step();
            writers.push((NewFile::create(&path, step, &labels, self.profiles)?, Sum::new(step)));
        }
        let rows = inputs.iter().map(|input| input.file.rows(Wanted::default()));
        let mut merged = Merged::new(rows.collect())?;
        while let Some(row) = merged.next()? {
            for (file, sum) in &mut writers {
                if let Some(Row { series, time, measured }) = sum.add(&row) {
                    file.push(&series, time, &measured)?;
                }
            }
        }
        let sources: Vec<&str> = inputs.iter().map(|input| input.file.id()).collect();
        let mut counts = HourlyCounts::default();
        for input in inputs {
            counts.add(&input.file.counts());
        }
        let mut complete = Vec::new();
        for ((mut file, sum), output) in writers.into_iter().zip(outputs) {
            if let Some(Row { series, time, measured }) = sum.finish() {
                file.push(&series, time, &measured)?;
            }
            file.complete(facts(output.tier, &sources, &counts))?;
            complete.push(file);
        }
        complete.into_iter().try_for_each(NewFile::publish)
    }
}

/// The ids of the files that these were made of.
fn sources(inputs: &[Input]) -> HashSet<String> {
    inputs.iter().flat_map(|input| input.file.sources()).map(ToOwned::to_owned).collect()
}

/// Removes what exceeds the limits. Returns the bytes that are left.
fn limit(store: &Store, limits: &HistoryLimits) -> Result<u64, Error> {
    let mut left = Vec::new();
    for tier in Tier::ALL {
        let mut pieces = store.pieces(tier)?;
        // Days are counted and not dated: a clock that is wrong for a moment must not remove everything.
        let days: BTreeSet<u64> = pieces.iter().map(Piece::day).collect();
        let kept = limits.keep.0[tier as usize].as_secs().div_ceil(DAY);
        let first = days.iter().rev().nth(usize::try_from(kept).unwrap_or(usize::MAX)).copied();
        let is_old = |piece: &Piece| first.is_some_and(|first| piece.day() <= first);
        for old in pieces.extract_if(.., |piece| is_merged(piece) && is_old(piece)) {
            store.remove(&old)?;
        }
        left.extend(pieces.into_iter().map(|piece| (piece, store.size(&piece))));
    }
    let mut disk: u64 = left.iter().map(|(_, size)| size).sum();
    // They are sorted by tier and time.
    for (piece, size) in left.iter().filter(|(piece, _)| is_merged(piece)) {
        if disk <= limits.disk {
            break;
        }
        store.remove(piece)?;
        disk -= size;
    }
    Ok(disk)
}

/// Whether a file was merged. Minutes were not: they are in no other tier yet.
fn is_merged(piece: &Piece) -> bool {
    piece.span != Span::Minute
}
