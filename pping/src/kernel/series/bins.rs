//! The bins of the series, which the programs take from a pool: see [`pping_common::pool`].

use std::{
    io,
    sync::atomic::{AtomicU32, Ordering, fence},
};

use aya::Ebpf;
use pping_common::{
    field,
    pool::{BinBlock, BinPool, BinTag, position},
    shared::Shared,
};

use super::super::{
    memory::{Array, Elements, Parts, atomic},
    object::array,
};
use crate::kernel::Error;

/// The pool.
pub(super) struct Bins {
    pool: Elements<BinPool>,
    blocks: Parts<BinBlock, 1024>,
}

impl Bins {
    /// Takes the maps.
    pub(super) fn new(programs: &mut Ebpf) -> Result<Self, Error> {
        let pool: Elements<BinPool> = Elements::new(array(programs, "BIN_POOL")?, 1)?;
        let blocks = Parts::new(Array::entire(array(programs, "BINS")?)?);
        // The programs only read it, and for pinned maps the value does not change.
        pool.first().at(field!(BinPool, blocks)).write(blocks.len() as u32);
        Ok(Self { pool, blocks })
    }

    /// Returns the blocks of an epoch that has ended, with their tags, in the order of series indexes.
    pub(super) fn taken_in(&self, ended: u32) -> io::Result<Vec<(BinTag, BinBlock)>> {
        let mut taken = Vec::new();
        self.for_each(ended, |tag, block| {
            // No program writes to it any more.
            taken.push((tag, block.load()));
        })?;
        taken.sort_unstable_by_key(|(tag, _)| tag.index());
        Ok(taken)
    }

    /// Frees the blocks of an epoch that has ended. If the agent is killed meanwhile, the next one does this.
    pub(super) fn empty(&mut self, ended: u32) -> io::Result<()> {
        self.for_each(ended, |_, block| {
            // No program uses it until the next rotation. The tag goes last, because it marks a block that must still be freed.
            block.at(field!(BinBlock, bins)).store(&BinBlock::FREE.bins);
            block.at(field!(BinBlock, hosts)).write(BinBlock::FREE.hosts);
            block.at(field!(BinBlock, next)).write(BinBlock::FREE.next);
            fence(Ordering::SeqCst);
            block.at(field!(BinBlock, tag)).write(BinBlock::FREE.tag);
        })?;
        self.taken(ended).store(0, Ordering::SeqCst);
        Ok(())
    }

    fn for_each(&self, ended: u32, mut of: impl FnMut(BinTag, Shared<'_, BinBlock>)) -> io::Result<()> {
        let blocks = self.blocks.len() as u32;
        // Attempts to take a block beyond the last one are counted, too.
        for number in 0..self.taken(ended).load(Ordering::SeqCst).min(blocks) {
            let Some(block) = self.blocks.get(position(ended, number, blocks) as usize)? else { continue };
            // Programs may write to it if it belongs to the other buffer.
            let tag = block.at(field!(BinBlock, tag)).read();
            if let Some(tag) = BinTag::read(tag, ended) {
                of(tag, block);
            }
        }
        Ok(())
    }

    /// The number of blocks taken in the buffer of an epoch.
    fn taken(&self, epoch: u32) -> &AtomicU32 {
        atomic(self.pool.first().at(field!(BinPool, taken)).nth(epoch as usize))
    }
}
