//! The columns of the files, from which rows are made and into which they are written.
//!
//! All numbers are signed 64-bit ones, because every engine knows those, and all RTTs are in nanoseconds, as in records.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    aggregate::{Measurements, RttSummary},
    groups::{Columns as Labels, SeriesName},
    quality::{Profiles, Scores, scores_of},
};
use parquet::{
    basic::{LogicalType, Repetition, TimeUnit, Type as PhysicalType},
    data_type::ByteArray,
    errors::ParquetError,
    schema::types::{Type, TypePtr},
};

/// Begins the name of a column with the values of a column of the groups file.
pub(super) const LABEL: &str = "label_";

/// Begins the name of a column with the scores by a profile.
const QUALITY: &str = "quality_";

/// The name of the column that says what group a row belongs to.
pub(super) const GROUP: &str = "group";

/// The name of the column with the starts of intervals.
pub(super) const TIME: &str = "time";

/// Microseconds in a second, the unit of [`TIME`].
pub(super) const MICROSECONDS: u64 = 1_000_000;

/// Whether a row has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Required,
    Optional,
    /// Any number of values.
    List,
}

/// What a column has of a row.
#[derive(Clone, Debug)]
enum Source {
    Integer(fn(&Facts<'_>) -> Option<u64>),
    Text(fn(&Facts<'_>) -> Option<Arc<str>>),
    List(fn(&Measurements, &mut Vec<i64>)),
    /// The value of a column of the groups file.
    Label(Arc<str>),
    /// The score by a profile.
    Quality(Arc<str>),
}

/// A row, and what is computed from it.
struct Facts<'a> {
    series: &'a SeriesName,
    /// The start of the interval, seconds since the Unix epoch, and its length.
    time: u64,
    step: u64,
    measured: &'a Measurements,
    rtts: Option<RttSummary>,
    scores: Scores,
}

/// The values of a column that are to be written.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) integers: Vec<i64>,
    pub(super) texts: Vec<ByteArray>,
    pub(super) definitions: Vec<i16>,
    pub(super) repetitions: Vec<i16>,
    /// The latest text, which the next row most likely has too.
    latest: Option<(Arc<str>, ByteArray)>,
}

/// A column that is written.
#[derive(Debug)]
struct Column {
    name: String,
    presence: Presence,
    source: Source,
    values: Values,
}

/// The columns of a file, with the rows that wait to be written.
#[derive(Debug)]
pub(super) struct Columns {
    list: Vec<Column>,
    profiles: Profiles,
    /// The length of an interval, seconds.
    step: u64,
    /// The number of rows that wait.
    pub(super) rows: usize,
}

impl Columns {
    /// The columns of a file with intervals of `step` seconds, whose groups have these labels.
    pub(super) fn new(step: u64, labels: &BTreeSet<Arc<str>>, profiles: &Profiles) -> Self {
        let fixed = fixed().into_iter().map(|(name, presence, source)| (name.to_owned(), presence, source));
        let scores = profiles.iter().map(|it| &it.name);
        let scores = scores.map(|name| (format!("{QUALITY}{name}"), Source::Quality(Arc::clone(name))));
        let labels = labels.iter().map(|name| (format!("{LABEL}{name}"), Source::Label(Arc::clone(name))));
        let named = scores.chain(labels).map(|(name, source)| (name, Presence::Optional, source));
        let column = |(name, presence, source)| Column { name, presence, source, values: Values::default() };
        Self { list: fixed.chain(named).map(column).collect(), profiles: Arc::clone(profiles), step, rows: 0 }
    }

    /// The schema of the file.
    ///
    /// # Errors
    /// None that a name could cause.
    pub(super) fn schema(&self) -> Result<TypePtr, ParquetError> {
        let fields = self.list.iter().map(Column::field).collect::<Result<_, _>>()?;
        Ok(Arc::new(Type::group_type_builder("pping").with_fields(fields).build()?))
    }

    /// Adds a row to those that wait.
    pub(super) fn push(&mut self, series: &SeriesName, time: u64, measured: &Measurements) {
        let (rtts, scores) = (measured.rtts(), scores_of(measured, series.method, &self.profiles));
        let facts = Facts { series, time, step: self.step, measured, rtts, scores };
        for column in &mut self.list {
            column.push(&facts);
        }
        self.rows += 1;
    }

    /// The values that wait, by column.
    pub(super) fn values(&self) -> impl Iterator<Item = &Values> {
        self.list.iter().map(|column| &column.values)
    }

    /// Forgets the rows that wait.
    pub(super) fn clear(&mut self) {
        self.rows = 0;
        for Column { values, .. } in &mut self.list {
            values.integers.clear();
            values.texts.clear();
            values.definitions.clear();
            values.repetitions.clear();
        }
    }
}

impl Column {
    fn field(&self) -> Result<TypePtr, ParquetError> {
        let is_text = matches!(self.source, Source::Text(_) | Source::Label(_));
        let physical = if is_text { PhysicalType::BYTE_ARRAY } else { PhysicalType::INT64 };
        let logical = match self.name.as_str() {
            TIME => Some(LogicalType::timestamp(true, TimeUnit::MICROS)),
            _ => is_text.then_some(LogicalType::String),
        };
        let value = |name: &str, repetition| {
            let builder = Type::primitive_type_builder(name, physical);
            builder.with_repetition(repetition).with_logical_type(logical.clone()).build().map(Arc::new)
        };
        match self.presence {
            Presence::Required => value(&self.name, Repetition::REQUIRED),
            Presence::Optional => value(&self.name, Repetition::OPTIONAL),
            Presence::List => {
                let element = value("element", Repetition::REQUIRED)?;
                let list = Type::group_type_builder("list").with_repetition(Repetition::REPEATED);
                let list = Arc::new(list.with_fields(vec![element]).build()?);
                let group = Type::group_type_builder(&self.name).with_repetition(Repetition::REQUIRED);
                let group = group.with_logical_type(Some(LogicalType::List)).with_fields(vec![list]);
                Ok(Arc::new(group.build()?))
            }
        }
    }

    fn push(&mut self, facts: &Facts<'_>) {
        let Self { presence, source, values, .. } = self;
        let before = values.integers.len();
        let has_value = match source {
            Source::Integer(value) => values.integer(value(facts)),
            Source::Quality(profile) => {
                values.integer(facts.scores.get(&**profile).copied().flatten().map(u64::from))
            }
            Source::Text(value) => values.text(value(facts)),
            Source::Label(name) => {
                let labels: &Labels = &facts.series.group.columns;
                values
                    .text(labels.iter().find(|(known, _)| known == name).map(|(_, value)| Arc::clone(value)))
            }
            Source::List(list) => {
                list(facts.measured, &mut values.integers);
                let elements = values.integers.len() - before;
                values.repetitions.extend((0..elements.max(1)).map(|at| i16::from(at > 0)));
                values.definitions.extend((0..elements.max(1)).map(|_| i16::from(elements > 0)));
                return;
            }
        };
        if *presence == Presence::Optional {
            values.definitions.push(i16::from(has_value));
        }
    }
}

impl Values {
    fn integer(&mut self, value: Option<u64>) -> bool {
        self.integers.extend(value.map(integer));
        value.is_some()
    }

    fn text(&mut self, value: Option<Arc<str>>) -> bool {
        let Some(value) = value else { return false };
        let text = match &self.latest {
            Some((latest, text)) if *latest == value => text.clone(),
            _ => ByteArray::from(value.as_bytes().to_vec()),
        };
        self.texts.push(text.clone());
        self.latest = Some((value, text));
        true
    }
}

/// A number as files have it. None that pping measures is higher than the highest.
fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The names of the columns that every file has. One that a later version adds cannot be among them.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    fixed().into_iter().map(|(name, ..)| name)
}

/// The columns that every file has.
fn fixed() -> Vec<(&'static str, Presence, Source)> {
    use Presence::{List, Optional, Required};
    const fn number(value: fn(&Facts<'_>) -> Option<u64>) -> Source {
        Source::Integer(value)
    }
    const fn text(value: fn(&Facts<'_>) -> Option<Arc<str>>) -> Source {
        Source::Text(value)
    }
    vec![
        (TIME, Required, number(|it| Some(it.time * MICROSECONDS))),
        ("step", Required, number(|it| Some(it.step))),
        (GROUP, Required, text(|it| Some(Arc::clone(&it.series.group.label)))),
        ("prefix", Optional, text(|it| it.series.group.prefix.clone())),
        ("dscp", Optional, number(|it| it.series.group.dscp.map(u64::from))),
        ("interface", Optional, text(|it| it.series.interface.clone())),
        ("method", Required, text(|it| Some(it.series.method.name().into()))),
        ("matched", Optional, text(|it| it.series.matched.map(|it| it.name().into()))),
        ("side", Optional, text(|it| it.series.side.map(|it| it.name().into()))),
        ("count", Required, number(|it| Some(it.rtts.map_or(0, |rtts| rtts.count)))),
        ("sum", Required, number(|it| Some(it.measured.sum))),
        ("min", Optional, number(|it| it.rtts.map(|rtts| rtts.min))),
        ("max", Optional, number(|it| it.rtts.map(|rtts| rtts.max))),
        ("p50", Optional, number(|it| it.rtts.map(|rtts| rtts.percentiles[0]))),
        ("p95", Optional, number(|it| it.rtts.map(|rtts| rtts.percentiles[2]))),
        ("p99", Optional, number(|it| it.rtts.map(|rtts| rtts.percentiles[3]))),
        (
            "histogram_upper",
            List,
            Source::List(|measured, values| {
                values.extend(measured.histogram().map(|(upper, _)| integer(upper)));
            }),
        ),
        (
            "histogram_samples",
            List,
            Source::List(|measured, values| {
                values.extend(measured.histogram().map(|(_, samples)| i64::from(samples)));
            }),
        ),
        ("sent_packets", Required, number(|it| Some(it.measured.traffic[0].packets))),
        ("sent_bytes", Required, number(|it| Some(it.measured.traffic[0].bytes))),
        ("sent_retransmissions", Required, number(|it| Some(it.measured.traffic[0].retransmissions))),
        ("sent_ce_packets", Required, number(|it| Some(it.measured.traffic[0].ce))),
        ("rec_packets", Required, number(|it| Some(it.measured.traffic[1].packets))),
        ("rec_bytes", Required, number(|it| Some(it.measured.traffic[1].bytes))),
        ("rec_retransmissions", Required, number(|it| Some(it.measured.traffic[1].retransmissions))),
        ("rec_ce_packets", Required, number(|it| Some(it.measured.traffic[1].ce))),
        ("max_bytes_per_second", Required, number(|it| Some(it.measured.max_bytes_per_second))),
    ]
}
