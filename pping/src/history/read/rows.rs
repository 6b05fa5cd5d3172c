//! The columns of a row group, and the rows that are made of them.

use std::sync::Arc;

use parquet::{
    data_type::{ByteArray, ByteArrayType, Int64Type},
    errors::ParquetError,
    schema::types::SchemaDescriptor,
};
use pping_common::{group::Side, hist, method::Method, parse::Direction, series::Traffic};

use super::{
    super::{
        columns::{GROUP, LABEL, MICROSECONDS, TIME},
        row::Row,
    },
    column::{Column, Opener},
    guard::damaged,
};
use crate::{
    aggregate::Measurements,
    groups::{GroupName, SeriesName},
};

/// The highest number of packets or bytes of a row: more than 400 Gbit/s have in an hour.
const MAX_COUNT: u64 = 1 << 48;

/// The columns of a row group, without those that follow from others.
pub(super) struct OpenColumns {
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

/// The names of the columns of the groups file whose values a file has.
pub(super) fn labels(schema: &SchemaDescriptor) -> impl Iterator<Item = &str> {
    schema.columns().iter().filter_map(|column| column.path().parts().first()?.strip_prefix(LABEL))
}

impl OpenColumns {
    /// Opens the columns of a row group.
    pub(super) fn open(group: &Opener<'_>) -> Result<Self, ParquetError> {
        let mut traffic = std::array::from_fn(|_| Column::absent());
        for (column, name) in traffic.iter_mut().zip(TRAFFIC) {
            *column = group.integers(name)?;
        }
        let labels = labels(group.schema);
        let labels = labels.map(|name| Ok((name.into(), group.texts(&format!("{LABEL}{name}"))?)));
        Ok(Self {
            time: group.integers(TIME)?,
            group: group.texts(GROUP)?,
            prefix: group.texts("prefix")?,
            dscp: group.integers("dscp")?,
            interface: group.texts("interface")?,
            method: group.texts("method")?,
            matched: group.texts("matched")?,
            side: group.texts("side")?,
            sum: group.integers("sum")?,
            min: group.integers("min")?,
            max: group.integers("max")?,
            upper: group.integers("histogram_upper")?,
            samples: group.integers("histogram_samples")?,
            traffic,
            max_bytes_per_second: group.integers("max_bytes_per_second")?,
            labels: labels.collect::<Result<_, ParquetError>>()?,
        })
    }

    /// Reads the values of as many rows.
    pub(super) fn read(&mut self, rows: usize) -> Result<(), ParquetError> {
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
    pub(super) fn take(&mut self, latest: &mut Latest) -> Result<Row, ParquetError> {
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
            if *number_of > MAX_COUNT {
                return Err(damaged("a counter has an impossible number"));
            }
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
pub(super) struct Latest {
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
