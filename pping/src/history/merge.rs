//! Merging files: their rows in one order, and sums of rows over longer intervals.

use std::{cmp::Ordering, collections::BinaryHeap};

use super::{
    error::Error,
    read::Rows,
    row::{Row, compare},
};

/// The rows of several files, in their order. Rows of the same series and interval are one.
pub(super) struct Merged {
    inputs: Vec<Rows>,
    heads: BinaryHeap<Head>,
}

/// The next row of an input. The first in the order of rows is the greatest.
struct Head {
    row: Row,
    input: usize,
}

impl Merged {
    /// Merges inputs.
    ///
    /// # Errors
    /// If one of them is damaged.
    pub(super) fn new(inputs: Vec<Rows>) -> Result<Self, Error> {
        let mut merged = Self { heads: BinaryHeap::with_capacity(inputs.len()), inputs };
        (0..merged.inputs.len()).try_for_each(|input| merged.advance(input))?;
        Ok(merged)
    }

    fn advance(&mut self, input: usize) -> Result<(), Error> {
        if let Some(row) = self.inputs[input].next().transpose()? {
            self.heads.push(Head { row, input });
        }
        Ok(())
    }

    /// Returns the next row.
    ///
    /// # Errors
    /// If an input is damaged.
    pub(super) fn next(&mut self) -> Result<Option<Row>, Error> {
        let Some(Head { mut row, input }) = self.heads.pop() else { return Ok(None) };
        self.advance(input)?;
        while let Some(same) = self.heads.peek().filter(|head| order(&head.row, &row).is_eq()) {
            row.measured.merge(&same.row.measured);
            let input = same.input;
            self.heads.pop();
            self.advance(input)?;
        }
        Ok(Some(row))
    }
}

/// The order of rows in a file.
fn order(one: &Row, other: &Row) -> Ordering {
    compare(&one.series, &other.series).then_with(|| one.time.cmp(&other.time))
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        order(&other.row, &self.row).then_with(|| other.input.cmp(&self.input))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

/// Adds rows up over intervals of `step` seconds. Rows come in their order.
pub(super) struct Sum {
    step: u64,
    pending: Option<Row>,
}

impl Sum {
    pub(super) fn new(step: u64) -> Self {
        Self { step, pending: None }
    }

    /// Adds a row. Returns the sum of the interval before, if that is over.
    pub(super) fn add(&mut self, row: &Row) -> Option<Row> {
        let time = row.time - row.time % self.step;
        match &mut self.pending {
            Some(sum) if sum.time == time && compare(&sum.series, &row.series).is_eq() => {
                sum.measured.merge(&row.measured);
                None
            }
            pending => pending.replace(Row { time, ..row.clone() }),
        }
    }

    /// Returns the last sum.
    pub(super) fn finish(self) -> Option<Row> {
        self.pending
    }
}
