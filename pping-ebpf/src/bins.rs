//! The bins of series, taken from a pool: see [`pping_common::pool`].

use pping_common::{
    pool::{BINS_PER_BLOCK, BinBlock, BinPool, BinTag, MAX_CHAIN, position},
    series::Series,
};

use crate::{
    barrier::barrier_var,
    maps::{self, SeriesTarget},
    shared::prelude::*,
    sync,
};

/// Returns the block with the bin in `target`, of a series in one buffer. If the series has no such block yet, takes one
/// from the pool; `None` if the pool is used up.
#[inline(always)]
pub(crate) fn block(
    series: Shared<Series>,
    buffer: u32,
    target: &mut SeriesTarget,
) -> Option<Shared<BinBlock>> {
    let number = target.bin / BINS_PER_BLOCK as u32;
    let tag = BinTag::new(target.index, number, buffer);
    let chain = series.at(field!(Series, chains)).element(buffer as usize).element(number as usize);
    target.block = find(chain, tag);
    barrier_var(target);
    if target.block == 0 {
        target.block = take(chain, tag, buffer)?;
        barrier_var(target);
    }
    maps::bin_block(target.block.wrapping_sub(1))
}

/// Returns the number of the block with this tag, plus 1; 0 if the chain has none.
#[inline(always)]
fn find(chain: Shared<u32>, tag: BinTag) -> u32 {
    let mut next = chain.read();
    for _ in 0..MAX_CHAIN {
        // The chain ends with 0, and no block is at `0 - 1`.
        let Some(block) = maps::bin_block(next.wrapping_sub(1)) else { return 0 };
        if tag.matches(block.at(field!(BinBlock, tag)).read()) {
            return next;
        }
        next = block.at(field!(BinBlock, next)).read();
    }
    0
}

/// Takes a block from the pool, and returns its number plus 1. If two CPUs do so at once, one link may be lost: the
/// block's counts still count, and later samples take another block.
#[inline(always)]
fn take(chain: Shared<u32>, tag: BinTag, buffer: u32) -> Option<u32> {
    let pool = maps::bin_pool()?;
    let blocks = pool.at(field!(BinPool, blocks)).read();
    let taken = pool.at(field!(BinPool, taken));
    let (own, others) = (taken.element(buffer as usize), taken.element(buffer as usize + 1));
    let is_there = |number: u32| number.wrapping_add(others.read()) < blocks;
    // Checked first, so that the counter does not grow without end.
    if !is_there(own.read()) {
        return None;
    }
    let number = sync::claim_next(own, |number| {
        let block = maps::bin_block(position(buffer, number, blocks))?;
        is_there(number).then(|| block.at(field!(BinBlock, tag)))
    })?;
    let position = position(buffer, number, blocks);
    let block = maps::bin_block(position)?;
    block.at(field!(BinBlock, tag)).add(tag.bits());
    block.at(field!(BinBlock, next)).write(chain.read());
    chain.write(position + 1);
    Some(position + 1)
}
