//! The values of a column.

use std::sync::Arc;

use parquet::{
    basic::Type as PhysicalType,
    column::reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader},
    data_type::{ByteArrayType, DataType, Int64Type},
    errors::ParquetError,
    file::{
        metadata::RowGroupMetaData, page_index::index_reader::decode_offset_index, reader::ChunkReader as _,
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
    /// The rows of the group, and how many of them are skipped.
    pub(super) rows: usize,
    pub(super) skipped: usize,
}

/// The number of a column.
pub(super) fn position(schema: &SchemaDescriptor, name: &str) -> Option<usize> {
    schema.columns().iter().position(|column| column.path().parts().first().is_some_and(|it| it == name))
}

impl Opener<'_> {
    pub(super) fn integers(&self, name: &str) -> Result<Column<Int64Type>, ParquetError> {
        self.open(name, PhysicalType::INT64)
    }

    pub(super) fn texts(&self, name: &str) -> Result<Column<ByteArrayType>, ParquetError> {
        self.open(name, PhysicalType::BYTE_ARRAY)
    }

    /// Opens a column. What an older file does not have is without values.
    fn open<T: DataType>(&self, name: &str, physical: PhysicalType) -> Result<Column<T>, ParquetError> {
        let Some(column) = position(self.schema, name) else { return Ok(Column::absent()) };
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
        let pages = SerializedPageReader::new(Arc::clone(self.source), chunk, self.rows, locations)?;
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
