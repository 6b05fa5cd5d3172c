//! Reading a file.

mod column;
mod guard;
mod rows;
mod source;

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use parquet::{
    errors::ParquetError,
    file::{
        metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData},
        page_index::{
            column_index::ColumnIndexMetaData,
            index_reader::{decode_column_index, decode_offset_index},
        },
        reader::ChunkReader as _,
        statistics::Statistics,
    },
    schema::types::SchemaDescriptor,
};

use self::{
    column::{Opener, position},
    guard::{damaged, guarded},
    rows::{Latest, OpenColumns, labels},
    source::Source,
};
use super::{
    columns::{self, GROUP, MICROSECONDS, TIME},
    counts::HourlyCounts,
    error::Error,
    row::Row,
    write::key,
};

/// Rows that are read at a time.
const BATCH: usize = 256;

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
        let source = Source::open(path)?;
        let metadata = guarded(|| ParquetMetaDataReader::new().parse_and_finish(&source));
        let metadata = metadata.map_err(|error| Error::decode(path, &error))?;
        let schema = metadata.file_metadata().schema_descr();
        if let Some(name) = columns::names().find(|name| position(schema, name).is_none()) {
            return Err(Error::damaged(path, format!("it lacks the column `{name}`")));
        }
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

    /// What was counted besides rows.
    pub(super) fn counts(&self) -> HourlyCounts {
        self.fact(key::COUNTS).map(HourlyCounts::from_fact).unwrap_or_default()
    }

    /// The number of rows.
    pub(super) fn count(&self) -> u64 {
        u64::try_from(self.metadata.file_metadata().num_rows()).unwrap_or(0)
    }

    /// The names of the columns of the groups file whose values it has.
    pub(super) fn labels(&self) -> impl Iterator<Item = &str> {
        labels(self.schema())
    }

    /// The starts of its first and its last interval, seconds since the Unix epoch; `None` if there are no rows.
    pub(super) fn times(&self) -> Option<(u64, u64)> {
        let column = position(self.schema(), TIME)?;
        let times = self.metadata.row_groups().iter().filter_map(|group| {
            let Statistics::Int64(it) = group.column(column).statistics()? else { return None };
            let second = |time: i64| u64::try_from(time).ok().map(|time| time / MICROSECONDS);
            Some((second(*it.min_opt()?)?, second(*it.max_opt()?)?))
        });
        times.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }

    fn schema(&self) -> &SchemaDescriptor {
        self.metadata.file_metadata().schema_descr()
    }

    /// Reads rows in their order.
    pub(super) fn rows(&self, wanted: Wanted<'_>) -> Rows {
        let groups = self.metadata.row_groups().iter().enumerate();
        let parts = match (wanted.group, position(self.schema(), GROUP)) {
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

/// Returns the rows of the pages that may have some of a group, by the first and the last label of each page.
fn pages_with(
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

/// Returns the rows from the first to the last of a group, among those that are wanted so far. The other columns then skip all
/// others of their pages.
fn rows_of(opener: &Opener<'_>, label: &str) -> Result<Range<usize>, ParquetError> {
    let mut labels = opener.texts(GROUP)?;
    let mut found: Option<Range<usize>> = None;
    for start in opener.wanted.clone().step_by(BATCH) {
        let batch = start..opener.wanted.end.min(start + BATCH);
        labels.read(batch.len())?;
        for row in batch {
            if labels.take()?.is_some_and(|it| it.data() == label.as_bytes()) {
                found = Some(found.map_or(row, |it| it.start)..row + 1);
            }
        }
    }
    Ok(found.unwrap_or(0..0))
}

fn row_count(group: &RowGroupMetaData) -> Result<usize, ParquetError> {
    usize::try_from(group.num_rows()).map_err(|_| damaged("a row group has a negative number of rows"))
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

impl OpenPart {
    /// Opens a row group; `None` if it has no row that is wanted.
    fn open(
        source: &Arc<Source>,
        metadata: &ParquetMetaData,
        part: &Part,
    ) -> Result<Option<Self>, ParquetError> {
        let group = metadata.row_group(part.number);
        let schema = metadata.file_metadata().schema_descr();
        let mut opener =
            Opener { source, schema, group, rows: row_count(group)?, wanted: 0..row_count(group)? };
        if let (Some(label), Some(column)) = (&part.label, position(schema, GROUP)) {
            opener.wanted = pages_with(source, group, column, label)?;
            opener.prefetch()?;
            opener.wanted = rows_of(&opener, label)?;
        }
        if opener.wanted.is_empty() {
            return Ok(None);
        }
        let columns = OpenColumns::open(&opener)?;
        Ok(Some(Self { left: opener.wanted.len(), ready: 0, label: part.label.clone(), columns }))
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
