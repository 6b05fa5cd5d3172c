//! Writing a file: aside, synced, and then renamed, so that a reader never sees half of it.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, BufWriter},
    path::{Path, PathBuf},
    sync::Arc,
};

use parquet::{
    basic::{Compression, ZstdLevel},
    column::writer::ColumnWriter,
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties, WriterVersion},
        writer::{SerializedColumnWriter, SerializedFileWriter},
    },
    schema::types::ColumnPath,
};

use super::{
    columns::{Columns, GROUP, Values},
    error::Error,
};
use crate::{aggregate::Measurements, groups::SeriesName, quality::Profiles};

/// The extension of files that are being written.
pub(super) const TEMPORARY: &str = "tmp";

/// Rows in a row group. An engine reads at least one row group of a file.
const ROW_GROUP: usize = 16 << 10;

/// Rows in a page. Who looks for one group reads its pages only.
const PAGE: usize = 1024;

/// The columns whose values are hardly ever the same.
const PLAIN: [&str; 12] = [
    "count",
    "sum",
    "min",
    "max",
    "sent_packets",
    "sent_bytes",
    "sent_retransmissions",
    "sent_ce_packets",
    "rec_packets",
    "rec_bytes",
    "rec_retransmissions",
    "rec_ce_packets",
];

/// The names of facts about a file, in its metadata.
pub(super) mod key {
    /// The version of the format.
    pub(in super::super) const FORMAT: &str = "pping.format";
    /// What tells this file from all others.
    pub(in super::super) const ID: &str = "pping.id";
    /// The ids of the files that this one was made of, separated by commas.
    pub(in super::super) const SOURCES: &str = "pping.sources";
    /// The length of an interval, in seconds.
    pub(in super::super) const STEP: &str = "pping.step";
    /// What was counted besides rows, by hour, as JSON.
    pub(in super::super) const COUNTS: &str = "pping.counts";
}

/// A file that is being written. Unless it is [published](Self::publish), nothing of it is left.
pub(super) struct NewFile {
    path: PathBuf,
    writer: SerializedFileWriter<BufWriter<File>>,
    columns: Columns,
    is_published: bool,
}

impl NewFile {
    /// Creates a file that will have this path, with intervals of `step` seconds.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(super) fn create(
        path: &Path,
        step: u64,
        labels: &BTreeSet<Arc<str>>,
        profiles: &Profiles,
    ) -> Result<Self, Error> {
        let columns = Columns::new(step, labels, profiles);
        let file = BufWriter::new(create(&temporary(path)).map_err(|error| Error::write(path, error))?);
        let made = columns
            .schema()
            .and_then(|schema| SerializedFileWriter::new(file, schema, Arc::new(properties()?)));
        let writer = made.map_err(|error| Error::encode(path, &error))?;
        Ok(Self { path: path.to_owned(), writer, columns, is_published: false })
    }

    /// Adds a row, of an interval that begins at `time`. Rows come in their order.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn push(
        &mut self,
        series: &SeriesName,
        time: u64,
        measured: &Measurements,
    ) -> Result<(), Error> {
        self.columns.push(series, time, measured);
        if self.columns.rows >= ROW_GROUP { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        write_rows(&mut self.writer, &self.columns).map_err(|error| Error::encode(&self.path, &error))?;
        self.columns.clear();
        Ok(())
    }

    /// Completes and syncs the file, with these facts about it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn complete(
        &mut self,
        facts: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<(), Error> {
        if self.columns.rows > 0 {
            self.flush()?;
        }
        for (key, value) in facts {
            self.writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        self.writer.finish().map_err(|error| Error::encode(&self.path, &error))?;
        self.writer.inner().get_ref().sync_all().map_err(|error| Error::write(&self.path, error))
    }

    /// Gives the file its name. From then on readers find it.
    ///
    /// # Errors
    /// If the file system refuses.
    pub(super) fn publish(mut self) -> Result<(), Error> {
        let failed = |error| Error::write(&self.path, error);
        fs::rename(temporary(&self.path), &self.path).map_err(failed)?;
        self.is_published = true;
        sync_parent(&self.path).map_err(failed)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_published {
            // If this fails, the next start removes it.
            fs::remove_file(temporary(&self.path)).ok();
        }
    }
}

/// Creates a file, in place of what another run left behind. Whatever has its name is not written to.
fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::create_new(path)
}

fn temporary(path: &Path) -> PathBuf {
    path.with_added_extension(TEMPORARY)
}

/// Makes a change of names in the directory of a file last.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

fn properties() -> Result<WriterProperties, ParquetError> {
    // All columns are compared by their values in the row groups. Groups can also be found by page.
    let properties = WriterProperties::builder()
        .set_created_by(format!("pping {}", env!("CARGO_PKG_VERSION")))
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_max_row_group_row_count(None)
        .set_data_page_row_count_limit(PAGE)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_column_statistics_enabled(ColumnPath::from(GROUP), EnabledStatistics::Page)
        // A label that is cut off would not say which groups there are.
        .set_column_index_truncate_length(None)
        .set_statistics_truncate_length(None);
    // Who reads one page of a column reads the column's dictionary too, which is large if hardly a value comes twice.
    let properties = PLAIN.into_iter().fold(properties, |properties, column| {
        properties.set_column_dictionary_enabled(ColumnPath::from(column), false)
    });
    Ok(properties.build())
}

fn write_rows(
    writer: &mut SerializedFileWriter<BufWriter<File>>,
    columns: &Columns,
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for values in columns.values() {
        let Some(mut column) = group.next_column()? else { break };
        write_values(&mut column, values)?;
        column.close()?;
    }
    group.close()?;
    Ok(())
}

fn write_values(column: &mut SerializedColumnWriter<'_>, values: &Values) -> Result<(), ParquetError> {
    // A column that must have a value has no levels.
    let [definitions, repetitions] = [&values.definitions, &values.repetitions]
        .map(|levels| (!levels.is_empty()).then_some(levels.as_slice()));
    match column.untyped() {
        ColumnWriter::ByteArrayColumnWriter(column) => {
            column.write_batch(&values.texts, definitions, repetitions)?
        }
        ColumnWriter::Int64ColumnWriter(column) => {
            column.write_batch(&values.integers, definitions, repetitions)?
        }
        _ => return Err(ParquetError::General("a column of another type".to_owned())),
    };
    Ok(())
}
