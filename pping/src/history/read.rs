//! Reading a file.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    ops::Range,
    os::unix::fs::FileExt as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
};

use parquet::{
    basic::Type as PhysicalType,
    column::reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader},
    data_type::{ByteArray, ByteArrayType, DataType, Int64Type},
    errors::ParquetError,
    file::{
        metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData},
        page_index::{
            column_index::ColumnIndexMetaData,
            index_reader::{decode_column_index, decode_offset_index},
        },
        reader::{ChunkReader, Length},
        serialized_reader::SerializedPageReader,
        statistics::Statistics,
    },
};
use pping_common::{group::Side, hist, method::Method, parse::Direction, series::Traffic};

use super::{
    columns::{GROUP, LABEL, MICROSECONDS, TIME},
    error::Error,
    row::Row,
    write::key,
};
use crate::{
    aggregate::Measurements,
    groups::{GroupName, SeriesName},
};

/// Rows that are read at a time.
const BATCH: usize = 1024;

/// A file whose bytes are read at any offset, by any thread.
struct Source(Arc<File>);

/// A place in it.
pub(super) struct At {
    file: Arc<File>,
    offset: u64,
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.0.metadata().map_or(0, |it| it.len())
    }
}

impl ChunkReader for Source {
    type T = BufReader<At>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(At { file: Arc::clone(&self.0), offset: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes, ParquetError> {
        let in_file = start.checked_add(length as u64).is_some_and(|end| end <= self.len());
        if !in_file {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} are beyond the end")));
        }
        let mut read = vec![0; length];
        self.0.read_exact_at(&mut read, start)?;
        Ok(read.into())
    }
}

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// An open file, whose footer was read.
pub(super) struct StoredFile {
    path: PathBuf,
    source: Arc<Source>,
    metadata: Arc<ParquetMetaData>,
}

/// The rows that are read of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted<'a> {
    /// The label of the only group; all if there is none.
    pub(super) group: Option<&'a str>,
}

impl StoredFile {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be read, or is damaged.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|error| Error::read(path, error))?;
        let source = Source(Arc::new(file));
        let metadata = guarded(|| ParquetMetaDataReader::new().parse_and_finish(&source));
        let metadata = metadata.map_err(|error| Error::decode(path, &error))?;
        Ok(Self { path: path.to_owned(), source: Arc::new(source), metadata: Arc::new(metadata) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A fact about the file.
    pub(super) fn fact(&self, name: &str) -> Option<&str> {
        let facts = self.metadata.file_metadata().key_value_metadata()?;
        facts.iter().find(|fact| fact.key == name)?.value.as_deref()
    }

    /// What tells the file from all others.
    pub(super) fn id(&self) -> &str {
        self.fact(key::ID).unwrap_or_default()
    }

    /// The ids of the files that it was made of.
    pub(super) fn sources(&self) -> impl Iterator<Item = &str> {
        self.fact(key::SOURCES).unwrap_or_default().split(',').filter(|id| !id.is_empty())
    }

    /// For how many seconds pping measured.
    pub(super) fn seconds(&self) -> u64 {
        self.fact(key::SECONDS).and_then(|seconds| seconds.parse().ok()).unwrap_or(0)
    }

    /// The number of rows.
    pub(super) fn count(&self) -> u64 {
        u64::try_from(self.metadata.file_metadata().num_rows()).unwrap_or(0)
    }

    /// The names of the columns of the groups file whose values it has.
    pub(super) fn labels(&self) -> impl Iterator<Item = &str> {
        let columns = self.metadata.file_metadata().schema_descr().columns().iter();
        columns.filter_map(|column| column.path().parts().first()?.strip_prefix(LABEL))
    }

    /// The starts of its first and its last interval, seconds since the Unix epoch; `None` if there are no rows.
    pub(super) fn times(&self) -> Option<(u64, u64)> {
        let column = self.column(TIME)?;
        let times = self.metadata.row_groups().iter().filter_map(|group| {
            let Statistics::Int64(it) = group.column(column).statistics()? else { return None };
            let second = |time: i64| u64::try_from(time).ok().map(|time| time / MICROSECONDS);
            Some((second(*it.min_opt()?)?, second(*it.max_opt()?)?))
        });
        times.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }

    fn column(&self, name: &str) -> Option<usize> {
        let columns = self.metadata.file_metadata().schema_descr().columns();
        columns.iter().position(|column| column.path().parts().first().is_some_and(|it| it == name))
    }

    /// Reads rows in their order.
    pub(super) fn rows(&self, wanted: Wanted<'_>) -> Rows {
        let groups = self.metadata.row_groups().iter().enumerate();
        let parts = match (wanted.group, self.column(GROUP)) {
            (Some(label), Some(column)) => groups
                .filter(|(_, group)| may_have(group.column(column), label))
                .map(|(number, _)| Part { number, label: Some(label.to_owned()) })
                .collect(),
            _ => groups.map(|(number, _)| Part { number, label: None }).collect(),
        };
        Rows {
            path: self.path.clone(),
            source: Arc::clone(&self.source),
            metadata: Arc::clone(&self.metadata),
            parts,
            next: 0,
            open: None,
            latest: Latest::default(),
        }
    }
}

/// Whether a row group may have rows of a group, by its statistics.
fn may_have(column: &ColumnChunkMetaData, label: &str) -> bool {
    match column.statistics() {
        Some(Statistics::ByteArray(it)) => {
            it.min_opt().is_none_or(|min| min.data() <= label.as_bytes())
                && it.max_opt().is_none_or(|max| label.as_bytes() <= max.data())
        }
        _ => true,
    }
}

/// A row group to be read.
#[derive(Debug)]
struct Part {
    number: usize,
    /// The only group to be read of it.
    label: Option<String>,
}

/// The rows of a file, in their order. After an error there are no more.
pub(super) struct Rows {
    path: PathBuf,
    source: Arc<Source>,
    metadata: Arc<ParquetMetaData>,
    parts: Vec<Part>,
    next: usize,
    open: Option<OpenPart>,
    latest: Latest,
}

impl Iterator for Rows {
    type Item = Result<Row, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.read() {
            Ok(row) => row.map(Ok),
            Err(error) => {
                self.next = self.parts.len();
                self.open = None;
                Some(Err(Error::decode(&self.path, &error)))
            }
        }
    }
}

impl Rows {
    fn read(&mut self) -> Result<Option<Row>, ParquetError> {
        loop {
            if let Some(open) = &mut self.open {
                if let Some(row) = open.next(&mut self.latest)? {
                    return Ok(Some(row));
                }
                self.open = None;
            }
            let Some(part) = self.parts.get(self.next) else { return Ok(None) };
            self.open = guarded(|| OpenPart::open(&self.source, &self.metadata, part))?;
            self.next += 1;
        }
    }
}

/// Returns the rows of a row group among which are those of a group, by the first and the last label of each page.
fn rows_of(
    source: &Source,
    group: &RowGroupMetaData,
    column: usize,
    label: &str,
) -> Result<Range<usize>, ParquetError> {
    let chunk = group.column(column);
    let rows = row_count(group)?;
    let (Some(index), Some(offsets)) = (chunk.column_index_range(), chunk.offset_index_range()) else {
        return Ok(0..rows);
    };
    let bytes =
        |range: Range<u64>| source.get_bytes(range.start, range.end.saturating_sub(range.start) as usize);
    let ColumnIndexMetaData::BYTE_ARRAY(index) = decode_column_index(&bytes(index)?, chunk.column_type())?
    else {
        return Ok(0..rows);
    };
    let offsets = decode_offset_index(&bytes(offsets)?)?;
    let starts =
        offsets.page_locations().iter().map(|page| usize::try_from(page.first_row_index).unwrap_or(0));
    let starts: Vec<usize> = starts.collect();
    let label = label.as_bytes();
    let has = |page: usize| {
        index.min_value(page).is_none_or(|min| min <= label)
            && index.max_value(page).is_none_or(|max| label <= max)
    };
    let mut pages = (0..starts.len()).filter(|&page| has(page));
    let Some(first) = pages.next() else { return Ok(0..0) };
    let last = pages.next_back().unwrap_or(first);
    let end = starts.get(last + 1).copied().unwrap_or(rows);
    Ok(starts[first].min(rows)..end.min(rows))
}

fn row_count(group: &RowGroupMetaData) -> Result<usize, ParquetError> {
    usize::try_from(group.num_rows()).map_err(|_| damaged("a row group has a negative number of rows"))
}

/// Runs what reads bytes that may be damaged: the library panics at some of them.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let read = catch_unwind(AssertUnwindSafe(read));
    read.unwrap_or_else(|_| Err(damaged("its bytes contradict each other")))
}

fn damaged(reason: &str) -> ParquetError {
    ParquetError::General(reason.to_owned())
}

/// A row group that is being read.
struct OpenPart {
    /// The rows that are still to be read.
    left: usize,
    /// The rows that were read and not yet returned.
    ready: usize,
    /// The rows of other groups are left out.
    label: Option<String>,
    columns: OpenColumns,
}

/// The columns of a row group, without those that follow from others.
struct OpenColumns {
    time: Column<Int64Type>,
    group: Column<ByteArrayType>,
    prefix: Column<ByteArrayType>,
    dscp: Column<Int64Type>,
    interface: Column<ByteArrayType>,
    method: Column<ByteArrayType>,
    matched: Column<ByteArrayType>,
    side: Column<ByteArrayType>,
    sum: Column<Int64Type>,
    min: Column<Int64Type>,
    max: Column<Int64Type>,
    upper: Column<Int64Type>,
    samples: Column<Int64Type>,
    traffic: [Column<Int64Type>; 8],
    max_bytes_per_second: Column<Int64Type>,
    labels: Vec<(Arc<str>, Column<ByteArrayType>)>,
}

/// The names of the columns of traffic, in the order of [`OpenColumns::traffic`].
const TRAFFIC: [&str; 8] = [
    "sent_packets",
    "sent_bytes",
    "sent_retransmissions",
    "sent_ce_packets",
    "rec_packets",
    "rec_bytes",
    "rec_retransmissions",
    "rec_ce_packets",
];

impl OpenPart {
    /// Opens a row group; `None` if it has no row that is wanted.
    fn open(
        source: &Arc<Source>,
        metadata: &ParquetMetaData,
        part: &Part,
    ) -> Result<Option<Self>, ParquetError> {
        let group = metadata.row_group(part.number);
        let schema = metadata.file_metadata().schema_descr();
        let position = |name: &str| {
            schema
                .columns()
                .iter()
                .position(|column| column.path().parts().first().is_some_and(|it| it == name))
        };
        let rows = match (&part.label, position(GROUP)) {
            (Some(label), Some(column)) => rows_of(source, group, column, label)?,
            _ => 0..row_count(group)?,
        };
        if rows.is_empty() {
            return Ok(None);
        }
        let open = Opener { source, group, skipped: rows.start };
        let names = schema.columns().iter().filter_map(|it| it.path().parts().first()?.strip_prefix(LABEL));
        let labels = names.map(|name| Ok((name.into(), open.texts(position(&format!("{LABEL}{name}")))?)));
        let [a, b, c, d, e, f, g, h] = TRAFFIC;
        let integers = |name| open.integers(position(name));
        let texts = |name| open.texts(position(name));
        let columns = OpenColumns {
            time: integers(TIME)?,
            group: texts(GROUP)?,
            prefix: texts("prefix")?,
            dscp: integers("dscp")?,
            interface: texts("interface")?,
            method: texts("method")?,
            matched: texts("matched")?,
            side: texts("side")?,
            sum: integers("sum")?,
            min: integers("min")?,
            max: integers("max")?,
            upper: integers("histogram_upper")?,
            samples: integers("histogram_samples")?,
            traffic: [
                integers(a)?,
                integers(b)?,
                integers(c)?,
                integers(d)?,
                integers(e)?,
                integers(f)?,
                integers(g)?,
                integers(h)?,
            ],
            max_bytes_per_second: integers("max_bytes_per_second")?,
            labels: labels.collect::<Result<_, ParquetError>>()?,
        };
        Ok(Some(Self { left: rows.len(), ready: 0, label: part.label.clone(), columns }))
    }

    fn next(&mut self, latest: &mut Latest) -> Result<Option<Row>, ParquetError> {
        loop {
            if self.ready == 0 {
                self.ready = self.left.min(BATCH);
                self.left -= self.ready;
                if self.ready == 0 {
                    return Ok(None);
                }
                guarded(|| self.columns.read(self.ready))?;
            }
            self.ready -= 1;
            let row = self.columns.take(latest)?;
            if self.label.as_ref().is_none_or(|label| **label == *row.series.group.label) {
                return Ok(Some(row));
            }
        }
    }
}

/// Opens columns of a row group.
struct Opener<'a> {
    source: &'a Arc<Source>,
    group: &'a RowGroupMetaData,
    skipped: usize,
}

impl Opener<'_> {
    fn integers(&self, column: Option<usize>) -> Result<Column<Int64Type>, ParquetError> {
        self.open(column, PhysicalType::INT64)
    }

    fn texts(&self, column: Option<usize>) -> Result<Column<ByteArrayType>, ParquetError> {
        self.open(column, PhysicalType::BYTE_ARRAY)
    }

    /// Opens a column. What an older file does not have is without values.
    fn open<T: DataType>(
        &self,
        column: Option<usize>,
        physical: PhysicalType,
    ) -> Result<Column<T>, ParquetError> {
        let Some(column) = column else { return Ok(Column::absent()) };
        let chunk = self.group.column(column);
        if chunk.column_type() != physical {
            return Err(damaged("a column has another type than pping gives it"));
        }
        // With the places of pages, only those that are wanted are read, and nothing is read ahead.
        let locations = match chunk.offset_index_range() {
            Some(range) => {
                let length = range.end.saturating_sub(range.start) as usize;
                let bytes = self.source.get_bytes(range.start, length)?;
                Some(decode_offset_index(&bytes)?.page_locations().clone())
            }
            None => None,
        };
        let pages =
            SerializedPageReader::new(Arc::clone(self.source), chunk, row_count(self.group)?, locations)?;
        let description = chunk.column_descr_ptr();
        let levels = (description.max_def_level(), description.max_rep_level());
        let mut reader = get_typed_column_reader::<T>(get_column_reader(description, Box::new(pages)));
        if reader.skip_records(self.skipped)? != self.skipped {
            return Err(damaged("a column has too few rows"));
        }
        Ok(Column { reader: Some(reader), levels, ..Column::absent() })
    }
}

/// A column that is being read: the values of a batch, and how far they were taken.
struct Column<T: DataType> {
    /// None if the file does not have the column.
    reader: Option<ColumnReaderImpl<T>>,
    /// The highest definition and repetition level.
    levels: (i16, i16),
    values: Vec<T::T>,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    /// The number of values, and of levels, that were taken.
    taken: (usize, usize),
}

impl<T: DataType> Column<T> {
    fn absent() -> Self {
        Self {
            reader: None,
            levels: (0, 0),
            values: Vec::new(),
            definitions: Vec::new(),
            repetitions: Vec::new(),
            taken: (0, 0),
        }
    }

    /// Reads the values of as many rows.
    fn read(&mut self, rows: usize) -> Result<(), ParquetError> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        self.values.clear();
        self.definitions.clear();
        self.repetitions.clear();
        self.taken = (0, 0);
        let (definitions, repetitions) = (&mut self.definitions, &mut self.repetitions);
        let (read, ..) = reader.read_records(rows, Some(definitions), Some(repetitions), &mut self.values)?;
        if read == rows { Ok(()) } else { Err(damaged("a column has too few rows")) }
    }

    /// The value of the next row, if it has one.
    fn take(&mut self) -> Result<Option<&T::T>, ParquetError> {
        if self.reader.is_none() || !self.is_defined()? {
            return Ok(None);
        }
        let value = self.values.get(self.taken.0).ok_or_else(|| damaged("a column has too few values"))?;
        self.taken.0 += 1;
        Ok(Some(value))
    }

    /// The values of the next row, which is a list.
    fn take_list(&mut self) -> Result<&[T::T], ParquetError> {
        let first = self.taken.0;
        if self.reader.is_some() {
            loop {
                if self.is_defined()? {
                    self.taken.0 += 1;
                }
                if self.repetitions.get(self.taken.1).is_none_or(|&level| level == 0) {
                    break;
                }
            }
        }
        self.values.get(first..self.taken.0).ok_or_else(|| damaged("a list has too few values"))
    }

    /// Whether there is a value at the next level.
    fn is_defined(&mut self) -> Result<bool, ParquetError> {
        let (highest, _) = self.levels;
        if highest == 0 {
            return Ok(true);
        }
        let level =
            self.definitions.get(self.taken.1).ok_or_else(|| damaged("a column has too few levels"))?;
        self.taken.1 += 1;
        Ok(*level == highest)
    }
}

impl OpenColumns {
    /// Reads the values of as many rows.
    fn read(&mut self, rows: usize) -> Result<(), ParquetError> {
        let Self { time, dscp, sum, min, max, upper, samples, traffic, max_bytes_per_second, .. } = self;
        for column in [time, dscp, sum, min, max, upper, samples, max_bytes_per_second] {
            column.read(rows)?;
        }
        traffic.iter_mut().try_for_each(|column| column.read(rows))?;
        let Self { group, prefix, interface, method, matched, side, labels, .. } = self;
        for column in [group, prefix, interface, method, matched, side] {
            column.read(rows)?;
        }
        labels.iter_mut().try_for_each(|(_, column)| column.read(rows))
    }

    /// Makes the next row.
    fn take(&mut self, latest: &mut Latest) -> Result<Row, ParquetError> {
        let missing = || damaged("a row lacks a value");
        let time = number(self.time.take()?)?.ok_or_else(missing)? / MICROSECONDS;
        let dscp = number(self.dscp.take()?)?.and_then(|dscp| u8::try_from(dscp).ok());
        let labels = self.labels.iter_mut().filter_map(|(name, column)| match column.take() {
            Ok(value) => value.map(|value| Ok((&*name, value))),
            Err(error) => Some(Err(error)),
        });
        let labels: Vec<(&Arc<str>, &ByteArray)> = labels.collect::<Result<_, _>>()?;
        let label = self.group.take()?.ok_or_else(missing)?;
        let group = latest.group(label, self.prefix.take()?, dscp, &labels)?;
        let interface = latest.interface(self.interface.take()?)?;
        let method = self.method.take()?.ok_or_else(missing)?;
        let method = Method::ALL.into_iter().find(|it| it.name().as_bytes() == method.data());
        let method = method.ok_or_else(|| damaged("a method is unknown"))?;
        let matched = self.matched.take()?;
        let directions = [Direction::Ingress, Direction::Egress];
        let matched =
            directions.into_iter().find(|it| matched.is_some_and(|name| it.name().as_bytes() == name.data()));
        let side = self.side.take()?;
        let side =
            Side::ALL.into_iter().find(|it| side.is_some_and(|name| it.name().as_bytes() == name.data()));
        let series = SeriesName { interface, method, matched, side, group };
        Ok(Row { series, time, measured: self.measurements()? })
    }

    fn measurements(&mut self) -> Result<Measurements, ParquetError> {
        let missing = || damaged("a row lacks a value");
        let sum = number(self.sum.take()?)?.ok_or_else(missing)?;
        let range = number(self.min.take()?)?.zip(number(self.max.take()?)?);
        let (upper, samples) = (self.upper.take_list()?, self.samples.take_list()?);
        if upper.len() != samples.len() || upper.len() > hist::BINS {
            return Err(damaged("a histogram has bins without samples"));
        }
        let mut bins: Vec<(u8, u32)> = Vec::with_capacity(upper.len());
        for (&upper, &samples) in upper.iter().zip(samples) {
            let bin = hist::bin(u64::try_from(upper).map_err(|_| damaged("a bin ends below zero"))?) as u8;
            let count = u32::try_from(samples).ok().filter(|&count| count > 0);
            let count = count.ok_or_else(|| damaged("a bin has an impossible number of samples"))?;
            if bins.last().is_some_and(|&(last, _)| last >= bin) {
                return Err(damaged("the bins of a histogram are not in order"));
            }
            bins.push((bin, count));
        }
        if bins.is_empty() != range.is_none() || range.is_some_and(|(min, max)| min > max) {
            return Err(damaged("the extremes of a row are not those of its histogram"));
        }
        let mut numbers = [0; TRAFFIC.len()];
        for (number_of, column) in numbers.iter_mut().zip(&mut self.traffic) {
            *number_of = number(column.take()?)?.unwrap_or(0);
        }
        let [sent, received] = [&numbers[..4], &numbers[4..]].map(|it| Traffic {
            packets: it[0],
            bytes: it[1],
            retransmissions: it[2],
            ce: it[3],
        });
        let max_bytes_per_second = number(self.max_bytes_per_second.take()?)?.unwrap_or(0);
        Ok(Measurements { bins, sum, range, traffic: [sent, received], max_bytes_per_second })
    }
}

fn number(value: Option<&i64>) -> Result<Option<u64>, ParquetError> {
    value.map(|&value| u64::try_from(value).map_err(|_| damaged("a number is negative"))).transpose()
}

fn text(value: &ByteArray) -> Result<Arc<str>, ParquetError> {
    Ok(value.as_utf8()?.into())
}

/// The latest names, since those of the next row are most likely the same.
#[derive(Default)]
struct Latest {
    group: Option<Arc<GroupName>>,
    interface: Option<Arc<str>>,
}

impl Latest {
    fn group(
        &mut self,
        label: &ByteArray,
        prefix: Option<&ByteArray>,
        dscp: Option<u8>,
        labels: &[(&Arc<str>, &ByteArray)],
    ) -> Result<Arc<GroupName>, ParquetError> {
        let is_same =
            |known: &Arc<GroupName>| {
                known.label.as_bytes() == label.data()
                    && known.prefix.as_ref().map(|it| it.as_bytes()) == prefix.map(ByteArray::data)
                    && known.dscp == dscp
                    && known.columns.len() == labels.len()
                    && known.columns.iter().zip(labels).all(|((name, value), (other, bytes))| {
                        name == *other && value.as_bytes() == bytes.data()
                    })
            };
        if let Some(known) = self.group.as_ref().filter(|known| is_same(known)) {
            return Ok(Arc::clone(known));
        }
        let columns = labels.iter().map(|(name, value)| Ok((Arc::clone(name), text(value)?)));
        let columns = columns.collect::<Result<_, ParquetError>>()?;
        let prefix = prefix.map(text).transpose()?;
        let group = Arc::new(GroupName { prefix, dscp, columns, ..GroupName::named(label.as_utf8()?) });
        self.group = Some(Arc::clone(&group));
        Ok(group)
    }

    fn interface(&mut self, name: Option<&ByteArray>) -> Result<Option<Arc<str>>, ParquetError> {
        let Some(name) = name else { return Ok(None) };
        if self.interface.as_ref().is_none_or(|known| known.as_bytes() != name.data()) {
            self.interface = Some(text(name)?);
        }
        Ok(self.interface.clone())
    }
}
