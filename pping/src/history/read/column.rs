//! The values of a column.

use std::{ops::Range, sync::Arc};

use parquet::{
    basic::Type as PhysicalType,
    column::reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader},
    data_type::{ByteArrayType, DataType, Int64Type},
    errors::ParquetError,
    file::{
        metadata::{ColumnChunkMetaData, RowGroupMetaData},
        page_index::{index_reader::decode_offset_index, offset_index::PageLocation},
        reader::ChunkReader as _,
        serialized_reader::SerializedPageReader,
    },
    schema::types::SchemaDescriptor,
};

use super::{guard::damaged, source::Source};

/// Opens columns of a row group.
pub(super) struct Opener<'a> {
    pub(super) source: &'a Arc<Source>,
    pub(super) schema: &'a SchemaDescriptor,
    pub(super) group: &'a RowGroupMetaData,
    /// The number of rows of the group.
    pub(super) rows: usize,
    /// Those that are read.
    pub(super) wanted: Range<usize>,
}

/// The number of a column.
pub(super) fn position(schema: &SchemaDescriptor, name: &str) -> Option<usize> {
    schema.columns().iter().position(|column| column.path().parts().first().is_some_and(|it| it == name))
}

/// The places of the pages of a column, if the file has them.
fn pages(source: &Source, chunk: &ColumnChunkMetaData) -> Result<Option<Vec<PageLocation>>, ParquetError> {
    let Some(range) = chunk.offset_index_range() else { return Ok(None) };
    let bytes = source.get_bytes(range.start, range.end.saturating_sub(range.start) as usize)?;
    Ok(Some(decode_offset_index(&bytes)?.page_locations().clone()))
}

impl Opener<'_> {
    /// Has the pages with wanted rows fetched, of all columns at once: hardly any of them is left out later.
    pub(super) fn prefetch(&self) -> Result<(), ParquetError> {
        for chunk in self.group.columns() {
            let Some(pages) = pages(self.source, chunk)? else { continue };
            let offset = |offset: i64| u64::try_from(offset).unwrap_or(0);
            if let Some((dictionary, page)) = chunk.dictionary_page_offset().zip(pages.first()) {
                self.source.prefetch(offset(dictionary)..offset(page.offset));
            }
            let row = |page: &PageLocation| usize::try_from(page.first_row_index).unwrap_or(0);
            let begin = pages.partition_point(|page| row(page) <= self.wanted.start).saturating_sub(1);
            let end = pages.partition_point(|page| row(page) < self.wanted.end);
            let wanted = pages.get(begin..end).unwrap_or_default();
            if let Some((first, last)) = wanted.first().zip(wanted.last()) {
                let end = offset(last.offset).saturating_add(offset(last.compressed_page_size.into()));
                self.source.prefetch(offset(first.offset)..end);
            }
        }
        Ok(())
    }

    pub(super) fn integers(&self, name: &str) -> Result<Column<Int64Type>, ParquetError> {
        self.open(name, PhysicalType::INT64)
    }

    pub(super) fn texts(&self, name: &str) -> Result<Column<ByteArrayType>, ParquetError> {
        self.open(name, PhysicalType::BYTE_ARRAY)
    }

    /// Opens a column. One that only later versions write is without values.
    fn open<T: DataType>(&self, name: &str, physical: PhysicalType) -> Result<Column<T>, ParquetError> {
        let Some(column) = position(self.schema, name) else { return Ok(Column::absent()) };
        let chunk = self.group.column(column);
        if chunk.column_type() != physical {
            return Err(damaged("a column has another type than pping gives it"));
        }
        // With the places of pages, only those that are wanted are read, and nothing is read ahead.
        let locations = pages(self.source, chunk)?;
        let pages = SerializedPageReader::new(Arc::clone(self.source), chunk, self.rows, locations)?;
        let description = chunk.column_descr_ptr();
        let levels = (description.max_def_level(), description.max_rep_level());
        let mut reader = get_typed_column_reader::<T>(get_column_reader(description, Box::new(pages)));
        if reader.skip_records(self.wanted.start)? != self.wanted.start {
            return Err(damaged("a column has too few rows"));
        }
        Ok(Column { reader: Some(reader), levels, ..Column::absent() })
    }
}

/// A column that is being read: the values of a batch, and how far they were taken.
pub(super) struct Column<T: DataType> {
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
    pub(super) fn absent() -> Self {
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
    pub(super) fn read(&mut self, rows: usize) -> Result<(), ParquetError> {
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
    pub(super) fn take(&mut self) -> Result<Option<&T::T>, ParquetError> {
        if self.reader.is_none() || !self.is_defined()? {
            return Ok(None);
        }
        let value = self.values.get(self.taken.0).ok_or_else(|| damaged("a column has too few values"))?;
        self.taken.0 += 1;
        Ok(Some(value))
    }

    /// The values of the next row, which is a list.
    pub(super) fn take_list(&mut self) -> Result<&[T::T], ParquetError> {
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
