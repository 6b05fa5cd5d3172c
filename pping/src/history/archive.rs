//! Questions about the past, and their answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    path::PathBuf,
    sync::Arc,
};

use pping_common::{abi::Counters, limits::SECOND};

use super::{
    counts::Counts,
    error::Error,
    found::Found,
    line::{self, Line},
    piece::Piece,
    place::Place,
    read::Wanted,
    store::Store,
    sums::{GroupSum, Series, SeriesSums, by_group},
    tier::Tier,
    time::{DAY, HOUR, LATEST, Moment, local, now, range},
};
use crate::{
    aggregate::Measurements,
    foreign_text::sanitized,
    groups::{GroupName, SeriesName},
    recent::{
        CellAnswer, HistoryAnswer, HistoryQuery, Reading, RecentHistory, RttAnswer, SeriesHistory,
        SeriesQuery, WorstOfRange,
    },
    snapshot::{InterfaceCounters, Place as Standing, Snapshot, Usage},
};

/// The highest number of cells of a series in an answer.
const MAX_CELLS: u64 = 10_000;

/// The number of cells that an answer has at most unless the step is given: one for each pixel or two.
const CELLS: u64 = 400;

/// The steps to choose from, seconds: what people think in.
const STEPS: [u64; 12] = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400];

/// How much of the past is recalled, seconds: what is recent to people.
const RECALLED: u64 = 15 * 60;

/// A history that can be asked.
#[derive(Clone, Debug)]
pub struct Archive {
    directory: PathBuf,
}

/// What is asked of the past.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The first moment, seconds since the Unix epoch.
    pub from: Moment,
    /// The moment after the last.
    pub to: Moment,
    /// The length of a cell, seconds.
    pub step: u64,
    /// The label of the only group; all groups together if it is `None`.
    pub group: Option<String>,
    /// Which series.
    pub series: SeriesQuery,
}

/// What was measured in a range, by series of groups and by hour.
pub(crate) struct Survey {
    /// By series of groups.
    pub(crate) groups: Series,
    /// All groups together, by the start of the hour.
    pub(crate) hours: Cells,
    /// What was counted besides, of all groups.
    pub(crate) counts: Counts,
    /// The seconds in which pping measured, by the start of the hour.
    pub(crate) measured: BTreeMap<Moment, u64>,
    /// What is wrong with files that are left out.
    pub(crate) damaged: Vec<String>,
}

/// The names of what was measured.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The labels of groups.
    pub(super) groups: BTreeSet<Arc<str>>,
    pub(super) interfaces: BTreeSet<Arc<str>>,
}

/// The measurements of series by time.
type Cells = BTreeMap<Place, BTreeMap<u64, Measurements>>;

/// The measurements of series of groups, by time.
type Intervals = BTreeMap<u64, Vec<(SeriesName, Measurements)>>;

impl Asked {
    /// A question, as it is typed.
    ///
    /// # Errors
    /// If a text is no time, or the range cannot be answered, in words.
    pub fn from_texts(query: &HistoryQuery) -> Result<Self, String> {
        let (from, to) = range(query.from.as_deref(), query.to.as_deref(), now())?;
        let step = query.step.as_deref().map(|text| step(text, to - from)).transpose();
        let step = step.map_err(|reason| format!("step: {reason}"))?;
        Ok(Self {
            from,
            to,
            step: step.unwrap_or_else(|| step_for(to - from)),
            group: query.group.clone(),
            series: query.series(),
        })
    }
}

/// Reads the length of a cell of a range, seconds.
fn step(text: &str, length: u64) -> Result<u64, String> {
    const FORM: &str = "give whole minutes, for instance 5m";
    let foreign = sanitized(text);
    let step =
        humantime::parse_duration(text).map_err(|error| format!("`{foreign}`: {error}; {FORM}"))?.as_secs();
    if step == 0 || step % Tier::Minute.step() != 0 || step > LATEST {
        return Err(format!("`{foreign}` is no length that is kept; {FORM}"));
    }
    let cells = length.div_ceil(step);
    if cells > MAX_CELLS {
        let longer = length / MAX_CELLS / 60 + 1;
        return Err(format!("{cells} cells are too many; give a longer step, for instance {longer}m"));
    }
    Ok(step)
}

/// The length of a cell that suits a range, seconds.
fn step_for(length: u64) -> u64 {
    let suits = |step: &u64| length / step <= CELLS;
    let longest = STEPS[STEPS.len() - 1];
    STEPS.into_iter().find(suits).unwrap_or_else(|| (length / CELLS).next_multiple_of(longest))
}

impl Archive {
    /// The history in a directory.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Returns the cells of series. They begin at multiples of the step.
    ///
    /// # Errors
    /// If there is no history, or it cannot be read. Damaged files are left out, and named in the answer.
    pub fn history(&self, asked: &Asked) -> Result<HistoryAnswer, Error> {
        let found = self.find(asked.from, asked.to, asked.step)?;
        // A step that is no multiple of what is kept would count parts of intervals twice or not at all.
        let step = asked.step.next_multiple_of(found.tier.step());
        let range = found.range.clone();
        let (series, damaged) = found.read(
            Wanted { group: asked.group.as_deref() },
            |series: &mut Cells, row| {
                let place = Place::of(&row.series);
                if range.contains(&row.time) && place.is_asked_for(&asked.series) {
                    let cells = series.entry(place).or_default();
                    cells.entry(row.time - row.time % step).or_default().merge(&row.measured);
                }
            },
            add_cells,
        );
        let series = series.into_iter().map(|(place, cells)| {
            let mut all = Measurements::default();
            for cell in cells.values() {
                all.merge(cell);
            }
            SeriesHistory {
                interface: place.interface,
                method: place.method.name().into(),
                matched: place.matched.map(|it| it.name().into()),
                side: place.side.map(|it| it.name().into()),
                rtt: all.rtts().map(RttAnswer::from),
                cells: cells.iter().map(|(time, it)| CellAnswer::new(time * SECOND, it)).collect(),
            }
        });
        Ok(HistoryAnswer {
            sequence: 0,
            time: asked.to * SECOND,
            cell: step * SECOND,
            series: series.collect(),
            damaged,
        })
    }

    /// Returns the measurements of each group in a range, by series.
    ///
    /// # Errors
    /// As [`Self::history`].
    fn groups(&self, asked: &Asked) -> Result<(Vec<GroupSum>, Vec<String>), Error> {
        let length = asked.to.saturating_sub(asked.from);
        let step = if length > 2 * DAY { Tier::Hour.step() } else { Tier::FiveMinutes.step() };
        let found = self.find(asked.from, asked.to, step)?;
        let range = found.range.clone();
        let (groups, damaged) = found.read(
            Wanted { group: asked.group.as_deref() },
            |groups: &mut SeriesSums, row| {
                if range.contains(&row.time) && Place::of(&row.series).is_asked_for(&asked.series) {
                    groups.add(row);
                }
            },
            SeriesSums::join,
        );
        Ok((by_group(groups.finish()), damaged))
    }

    /// Returns what was measured in a range of whole hours, of the groups that are wanted.
    ///
    /// # Errors
    /// As [`Self::history`].
    pub(crate) fn survey(
        &self,
        range: Range<Moment>,
        is_wanted: impl Fn(&GroupName) -> bool + Sync,
    ) -> Result<Survey, Error> {
        let found = self.find(range.start, range.end, HOUR)?;
        let (mut counts, mut measured) = (Counts::default(), BTreeMap::new());
        for file in &found.files {
            let of_file = file.counts();
            counts.add(&of_file.sum(&range));
            for (hour, seconds) in of_file.measured(&range) {
                *measured.entry(hour).or_default() += seconds;
            }
        }
        let ((groups, hours), damaged) = found.read(
            Wanted::default(),
            |(groups, hours): &mut (SeriesSums, Cells), row| {
                if range.contains(&row.time) && is_wanted(&row.series.group) {
                    let hours = hours.entry(Place::of(&row.series)).or_default();
                    hours.entry(row.time - row.time % HOUR).or_default().merge(&row.measured);
                    groups.add(row);
                }
            },
            |(groups, hours), (other_groups, other_hours)| {
                groups.join(other_groups);
                add_cells(hours, other_hours);
            },
        );
        Ok(Survey { groups: groups.finish(), hours, counts, measured, damaged })
    }

    /// Fills a recent history with the 15 minutes before a moment, as it was then. Returns what is wrong with files that are left
    /// out.
    ///
    /// # Errors
    /// As [`Self::history`], and if nothing was measured in these minutes.
    pub(crate) fn recall(&self, at: Moment, recent: &RecentHistory) -> Result<Vec<String>, Error> {
        let from = at.saturating_sub(RECALLED);
        let found = self.find(from, at, Tier::Minute.step())?;
        let (step, range) = (found.tier.step(), found.range.clone());
        let (intervals, damaged) = found.read(
            Wanted::default(),
            |intervals: &mut Intervals, row| {
                if range.contains(&row.time) {
                    intervals.entry(row.time).or_default().push((row.series, row.measured));
                }
            },
            |intervals, others| {
                for (time, series) in others {
                    intervals.entry(time).or_default().extend(series);
                }
            },
        );
        if intervals.is_empty() {
            let (minutes, at, extent) = (RECALLED / 60, local(at), self.extent()?);
            let text = format!("nothing was measured in the {minutes} minutes before {at}; {extent}");
            return Err(Error::empty(text, &damaged));
        }
        let series = intervals.values().flatten();
        let interfaces: BTreeSet<_> = series.filter_map(|(series, _)| series.interface.clone()).collect();
        for (time, series) in intervals {
            recent.restore(&series, (time + step).min(at) * SECOND);
        }
        let interface = |name| InterfaceCounters {
            name,
            attach_points: Vec::new(),
            is_up: true,
            counters: Counters::ZERO,
            place: Standing::Alone,
        };
        let snapshot = Snapshot { interfaces: interfaces.into_iter().map(interface).collect() };
        let reading = Reading { snapshot, lines_lost: 0, usage: Usage::default(), warnings: Vec::new() };
        recent.take_reading(reading, at * SECOND);
        Ok(damaged)
    }

    /// Returns the groups whose worst series have the highest 95th percentiles in a range, at most `limit`, and what is wrong with
    /// files that are left out.
    ///
    /// # Errors
    /// As [`Self::history`].
    pub fn worst(&self, asked: &Asked, limit: usize) -> Result<(Vec<Line>, Vec<String>), Error> {
        let (groups, damaged) = self.groups(asked)?;
        Ok((line::worst(&groups, limit), damaged))
    }

    /// Returns the same groups as [`Self::worst`], as the API lists them.
    ///
    /// # Errors
    /// As [`Self::history`].
    pub fn worst_of_range(&self, asked: &Asked, limit: usize) -> Result<WorstOfRange, Error> {
        let (groups, damaged) = self.groups(asked)?;
        let (from, to) = (asked.from * SECOND, asked.to * SECOND);
        Ok(WorstOfRange { from, to, groups: line::worst_groups(&groups, limit), damaged })
    }

    /// Returns the names of what was measured in a range.
    ///
    /// # Errors
    /// As [`Self::history`].
    pub(super) fn known(&self, asked: &Asked) -> Result<Known, Error> {
        let found = self.find(asked.from, asked.to, asked.step)?;
        let range = found.range.clone();
        let (known, _) = found.read(
            Wanted::default(),
            |known: &mut Known, row| {
                if range.contains(&row.time) {
                    let SeriesName { group, interface, .. } = row.series;
                    note(&mut known.groups, &group.label);
                    if let Some(interface) = interface {
                        note(&mut known.interfaces, &interface);
                    }
                }
            },
            |known, others| {
                known.groups.extend(others.groups);
                known.interfaces.extend(others.interfaces);
            },
        );
        Ok(known)
    }

    /// Says of which time there are measurements: what to ask for instead.
    ///
    /// # Errors
    /// If there is no history, or its directory cannot be read.
    pub(crate) fn extent(&self) -> Result<String, Error> {
        let store = Store::open(&self.directory)?;
        let times = |piece: &Piece| Some((store.open_piece(piece).ok()?.times()?, piece.tier.step()));
        let mut extent: Option<(Moment, Moment)> = None;
        for tier in Tier::ALL {
            let pieces = store.pieces(tier)?;
            let ends = [pieces.iter().find_map(times), pieces.iter().rev().find_map(times)];
            for ((first, last), step) in ends.into_iter().flatten() {
                let (from, to) = extent.unwrap_or((first, last + step));
                extent = Some((from.min(first), to.max(last + step)));
            }
        }
        Ok(extent.map_or_else(
            || "the history has no measurements yet".to_owned(),
            |(from, to)| format!("the history is of {} to {}", local(from), local(to)),
        ))
    }

    /// Finds the files with intervals of at most `step` seconds in a range, or longer ones where nothing else is left.
    ///
    /// # Errors
    /// If there is no history, or it cannot be read.
    pub(super) fn find(&self, from: Moment, to: Moment, step: u64) -> Result<Found, Error> {
        Found::find(&self.directory, from, to, step)
    }
}

fn note(names: &mut BTreeSet<Arc<str>>, name: &Arc<str>) {
    if !names.contains(name) {
        names.insert(Arc::clone(name));
    }
}

fn add_cells(series: &mut Cells, others: Cells) {
    for (place, others) in others {
        let cells = series.entry(place).or_default();
        for (time, other) in others {
            cells.entry(time).or_default().merge(&other);
        }
    }
}
