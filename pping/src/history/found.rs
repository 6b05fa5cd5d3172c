//! The files that answer a question, and their rows.

use std::{
    collections::HashSet,
    ops::Range,
    panic::resume_unwind,
    path::Path,
    slice,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::{
    error::Error,
    piece::{Piece, Span},
    read::{StoredFile, Wanted},
    row::Row,
    store::Store,
    tier::Tier,
    time::{HOUR, Moment},
};

/// How often files are listed again, if some of them vanish because they were merged meanwhile.
const ATTEMPTS: usize = 5;

/// The files that a question is answered from.
pub(super) struct Found {
    pub(super) tier: Tier,
    /// The intervals that have some of the range that was asked for: it begins and ends with one.
    pub(super) range: Range<Moment>,
    pub(super) files: Vec<StoredFile>,
    /// What is wrong with others.
    pub(super) damaged: Vec<String>,
}

impl Found {
    /// As [`super::archive::Archive::find`].
    pub(super) fn find(directory: &Path, from: Moment, to: Moment, step: u64) -> Result<Self, Error> {
        let store = Store::open(directory)?;
        let mut attempts = 0;
        loop {
            let found = find(&store, from, to, step);
            attempts += 1;
            match found {
                Err(error) if error.is_gone() && attempts < ATTEMPTS => {}
                found => return found,
            }
        }
    }

    /// Reads all rows that are wanted, with two threads. Each of them adds the rows of its files to a sum, and the sums are joined.
    /// Returns the sum, and what is wrong with files, whose further rows are left out.
    pub(super) fn read<Sum: Default + Send>(
        self,
        wanted: Wanted<'_>,
        add: impl Fn(&mut Sum, Row) + Sync,
        join: impl FnOnce(&mut Sum, Sum),
    ) -> (Sum, Vec<String>) {
        let Self { files, mut damaged, .. } = self;
        let next = AtomicUsize::new(0);
        let (own, other) = by_two_threads(|| {
            let (mut sum, mut damaged) = (Sum::default(), Vec::new());
            while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                for row in file.rows(wanted) {
                    match row {
                        Ok(row) => add(&mut sum, row),
                        Err(error) => damaged.push(error.to_string()),
                    }
                }
            }
            (sum, damaged)
        });
        let (mut sum, own_damaged) = own;
        damaged.extend(own_damaged);
        if let Some((other, other_damaged)) = other {
            join(&mut sum, other);
            damaged.extend(other_damaged);
        }
        damaged.sort_unstable();
        (sum, damaged)
    }
}

fn find(store: &Store, from: Moment, to: Moment, step: u64) -> Result<Found, Error> {
    let pieces = Tier::ALL.map(|tier| store.pieces(tier));
    let mut kept = Vec::new();
    for (tier, pieces) in Tier::ALL.into_iter().zip(pieces) {
        kept.push((tier, pieces?));
    }
    let in_range = |piece: &Piece| piece.start < to && from < piece.end();
    for (_, pieces) in &mut kept {
        pieces.retain(in_range);
    }
    // Minutes that are not merged are in no tier yet, and belong to each.
    let minutes: Vec<Piece> = kept[0].1.extract_if(.., |piece| piece.span == Span::Minute).collect();
    let wanted = kept.iter().rposition(|(tier, _)| tier.step() <= step).unwrap_or(0);
    // Finer tiers go first. A range of which a finer one has less is answered by one that has all of it.
    let has_all = |at: &usize| kept[at + 1..].iter().all(|(_, coarser)| covers(&kept[*at].1, coarser));
    let at = (wanted..kept.len()).find(has_all).unwrap_or(kept.len() - 1);
    let tier = kept[at].0;
    let mut chosen = kept[at].1.clone();
    // A file that was damaged is set aside, and finer ones may have its time.
    for (_, finer) in kept[..at].iter().rev() {
        let lacks = |piece: &&Piece| !covers(&chosen, slice::from_ref(*piece));
        let lacking: Vec<Piece> = finer.iter().filter(lacks).copied().collect();
        chosen.extend(lacking);
    }
    chosen.sort_unstable();
    let (mut files, mut damaged) = (Vec::new(), Vec::new());
    for opened in open(store, &chosen.iter().chain(&minutes).collect::<Vec<_>>()) {
        match opened {
            Ok(file) => files.push(file),
            Err(error) if error.is_gone() => return Err(error),
            Err(error) => damaged.push(error.to_string()),
        }
    }
    let merged: HashSet<String> = files.iter().flat_map(StoredFile::sources).map(ToOwned::to_owned).collect();
    files.retain(|file| !merged.contains(file.id()));
    let range = from - from % tier.step()..to.next_multiple_of(tier.step());
    Ok(Found { tier, range, files, damaged })
}

/// Opens files, in their order.
fn open(store: &Store, pieces: &[&Piece]) -> Vec<Result<StoredFile, Error>> {
    let next = AtomicUsize::new(0);
    let (own, other) = by_two_threads(|| {
        let mut opened = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(at) else { return opened };
            opened.push((at, store.open_piece(piece)));
        }
    });
    let mut opened: Vec<_> = own.into_iter().chain(other.into_iter().flatten()).collect();
    opened.sort_unstable_by_key(|(at, _)| *at);
    opened.into_iter().map(|(_, file)| file).collect()
}

/// Does a work with two threads, so that a question takes half the time and leaves most of a box to its packets. If no thread can be
/// started, this one does all of it.
fn by_two_threads<T: Send>(work: impl Fn() -> T + Sync) -> (T, Option<T>) {
    thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, &work).ok();
        (work(), other.map(|it| it.join().unwrap_or_else(|panic| resume_unwind(panic))))
    })
}

/// Whether files have all times that those of a coarser tier have. Of a day that is merged, some minutes suffice: an hour
/// without anything may have no file.
fn covers(finer: &[Piece], coarser: &[Piece]) -> bool {
    let days: HashSet<u64> = finer.iter().map(Piece::day).collect();
    let of_day = finer.iter().filter(|piece| piece.span == Span::Day);
    let merged: HashSet<u64> = of_day.map(Piece::day).collect();
    let hours: HashSet<u64> = finer.iter().map(|piece| piece.start / HOUR).collect();
    coarser.iter().all(|piece| match piece.span {
        Span::Day => days.contains(&piece.day()),
        _ => merged.contains(&piece.day()) || hours.contains(&(piece.start / HOUR)),
    })
}
