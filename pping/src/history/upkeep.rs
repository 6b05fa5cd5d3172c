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
#[derive(Debug)]
pub(super) struct Upkeep {
    /// Files that were damaged, and are set aside.
    pub(super) damaged: u64,
    /// Files that exceeded the limits, and are removed.
    pub(super) removed: u64,
    /// The bytes that all files take.
    pub(super) disk: u64,
    /// Why not all was merged that can be. The next call continues.
    pub(super) merged: Result<(), Error>,
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

/// Merges what can be merged at this time, seconds since the Unix epoch, and removes what exceeds the limits, also if
/// merging fails: it may be for want of room. Damaged files are set aside. `free` is the room on the disk, bytes, if
/// some of it is to stay free.
///
/// # Errors
/// If files cannot be listed or removed. What was done until then stays, and the next call continues.
pub(super) fn keep_up(
    store: &Store,
    now: u64,
    limits: &HistoryLimits,
    free: Option<u64>,
    profiles: &Profiles,
) -> Result<Upkeep, Error> {
    let merger = Merger { store, profiles };
    let mut damaged = 0;
    let merged = loop {
        let Err(error) = merger.merge_all(now) else { break Ok(()) };
        let Error::Damaged { path, .. } = &error else { break Err(error) };
        tracing::error!("{error}; it is set aside");
        if let Err(error) = Store::set_aside(path) {
            break Err(error);
        }
        damaged += 1;
    };
    let (removed, disk) = limit(store, now, limits, free)?;
    Ok(Upkeep { damaged, removed, disk, merged })
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
        let mut unread = Ok(());
        for minutes in hours.values() {
            match self.merge_hour(minutes) {
                // A file that cannot be read does not keep the others from being merged.
                Err(error @ Error::Read { .. }) if !error.is_gone() => unread = Err(error),
                merged => merged?,
            }
        }
        let unmerged: BTreeSet<u64> = self.minutes()?.iter().map(Piece::day).collect();
        for tier in [Tier::FiveMinutes, Tier::Hour] {
            let mut days: BTreeMap<u64, Vec<Piece>> = BTreeMap::new();
            for piece in self.store.pieces(tier)? {
                days.entry(piece.day()).or_default().push(piece);
            }
            // The sources of an hour say which of its minutes are in it, and the merged day would hide them.
            days.retain(|day, _| *day != now / DAY && !unmerged.contains(day));
            for pieces in days.values() {
                match self.merge_day(tier, pieces) {
                    Err(error @ Error::Read { .. }) if !error.is_gone() => unread = Err(error),
                    merged => merged?,
                }
            }
        }
        unread
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
            let file = self.store.begin(output, &labels, self.profiles)?;
            writers.push((file, Sum::new(output.tier.step())));
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

/// Removes what exceeds the limits, and the oldest of the finest if less than a tenth of the room that is or could be free is
/// so. Returns the number of files that are removed, and the bytes of those that are left.
fn limit(store: &Store, now: u64, limits: &HistoryLimits, free: Option<u64>) -> Result<(u64, u64), Error> {
    let (mut left, mut removed) = (Vec::new(), 0);
    for tier in Tier::ALL {
        let mut pieces = store.pieces(tier)?;
        // Days are counted and not dated: a clock that is wrong for a moment must not remove everything. The present day
        // is not over, and one of the future is an error.
        let days: BTreeSet<u64> = pieces.iter().map(Piece::day).filter(|&day| day < now / DAY).collect();
        let kept = limits.keep.0[tier as usize].as_secs().div_ceil(DAY);
        let first = days.iter().rev().nth(usize::try_from(kept).unwrap_or(usize::MAX)).copied();
        let is_old = |piece: &Piece| first.is_some_and(|first| piece.day() <= first);
        for old in pieces.extract_if(.., |piece| is_merged(piece) && is_old(piece)) {
            store.remove(&old)?;
            removed += 1;
        }
        left.extend(pieces.into_iter().map(|piece| (piece, store.size(&piece))));
    }
    let mut disk: u64 = left.iter().map(|(_, size)| size).sum();
    let room = free.map_or(u64::MAX, |free| disk.saturating_add(free) / 10 * 9);
    // They are sorted by tier and time. Minutes that are not merged go last, because no other tier has them; those of the
    // present hour stay.
    let (merged, mut minutes): (Vec<_>, Vec<_>) = left.into_iter().partition(|(piece, _)| is_merged(piece));
    minutes.retain(|(piece, _)| piece.start / HOUR != now / HOUR);
    for (piece, size) in merged.iter().chain(&minutes) {
        // Hours are small, and are all that is left of what was long ago.
        let is_for_room = piece.tier != Tier::Hour && is_merged(piece);
        if disk <= limits.disk && !(is_for_room && disk > room) {
            continue;
        }
        store.remove(piece)?;
        removed += 1;
        disk -= size;
    }
    Ok((removed, disk))
}

/// Whether a file was merged. Minutes were not: they are in no other tier yet.
fn is_merged(piece: &Piece) -> bool {
    piece.span != Span::Minute
}
