//! The measurements of a series in ten seconds, as the past keeps them.

use pping_common::{limits::SECOND, series::Traffic};
use prost::encoding::{decode_varint, encode_varint};

use crate::aggregate::Measurements;

/// The length of a cell, ns.
pub const CELL: u64 = 10 * SECOND;

/// The measurements of a series in a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cell {
    /// The number of the cell: its start in units of [`CELL`] since the epoch.
    pub(super) number: u64,
    pub(super) measured: Measurements,
}

impl Cell {
    pub(super) fn new(number: u64) -> Self {
        Self { number, ..Self::default() }
    }

    /// Appends the cell in a compact form: numbers are varints of Protocol Buffers, most of which take one or two bytes.
    pub(super) fn pack(&self, bytes: &mut Vec<u8>) {
        let Measurements { bins, sum, range, traffic, max_bytes_per_second } = &self.measured;
        let (min, max) = range.unwrap_or((1, 0));
        let traffic = traffic.iter().flat_map(|it| [it.packets, it.bytes, it.retransmissions, it.ce]);
        let head = [self.number, *sum, min, max, *max_bytes_per_second].into_iter().chain(traffic);
        head.for_each(|number| encode_varint(number, bytes));
        for &(bin, count) in bins {
            bytes.push(bin);
            encode_varint(count.into(), bytes);
        }
    }

    /// Returns the number of a packed cell.
    pub(super) fn number_of(mut packed: &[u8]) -> u64 {
        number(&mut packed)
    }

    /// Returns the lowest RTT in a packed cell, ns.
    pub(super) fn lowest_of(mut packed: &[u8]) -> Option<u64> {
        let [_, _, min, max] = [(); 4].map(|()| number(&mut packed));
        (min <= max).then_some(min)
    }

    /// Unpacks a cell.
    pub(super) fn unpack(mut packed: &[u8]) -> Self {
        let bytes = &mut packed;
        let [cell, sum, min, max, max_bytes_per_second] = [(); 5].map(|()| number(bytes));
        let traffic = [(); 2].map(|()| Traffic {
            packets: number(bytes),
            bytes: number(bytes),
            retransmissions: number(bytes),
            ce: number(bytes),
        });
        let mut bins = Vec::new();
        while let Some((&bin, rest)) = bytes.split_first() {
            *bytes = rest;
            bins.push((bin, number(bytes) as u32));
        }
        let range = (min <= max).then_some((min, max));
        Self { number: cell, measured: Measurements { bins, sum, range, traffic, max_bytes_per_second } }
    }
}

/// Reads the next number of a packed cell; 0 after its end.
fn number(bytes: &mut &[u8]) -> u64 {
    decode_varint(bytes).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use pping_common::series::SeriesCounts;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_packed_cell_is_the_same(
            number in any::<u64>(),
            seconds in prop::collection::vec(
                (prop::collection::vec(0_u64..80_000_000_000, 0..20), any::<[u32; 8]>()),
                0..10,
            ),
        ) {
            let mut cell = Cell::new(number);
            for (rtts, traffic) in seconds {
                let mut counts = SeriesCounts::EMPTY;
                for rtt in rtts {
                    counts.sample(rtt, 0);
                }
                let of = |part: &[u32]| Traffic {
                    packets: part[0].into(),
                    bytes: part[1].into(),
                    retransmissions: part[2].into(),
                    ce: part[3].into(),
                };
                (counts.sent, counts.received) = (of(&traffic[..4]), of(&traffic[4..]));
                cell.measured.add(&counts);
            }
            let mut packed = Vec::new();
            cell.pack(&mut packed);
            prop_assert_eq!((Cell::number_of(&packed), Cell::lowest_of(&packed)), (number, cell.measured.lowest()));
            prop_assert_eq!(Cell::unpack(&packed), cell);
        }
    }
}
