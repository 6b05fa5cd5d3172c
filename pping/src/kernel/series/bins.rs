//! The bins of the series, which the programs take from a pool: see [`pping_common::pool`].

use std::{
    io,
    sync::atomic::{AtomicU32, Ordering, fence},
};

use aya::Ebpf;
use pping_common::{
    abi::{BinBlock, BinPool, BinTag},
    pool::position,
};

use super::super::{
    lookup::array,
    memory::{Array, Elements, Parts},
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
        // SAFETY: inside the mapping. The programs only read it, and for pinned maps the value does not change.
        unsafe { (&raw mut (*pool.first()).blocks).write_volatile(blocks.len() as u32) };
        Ok(Self { pool, blocks })
    }

    /// Returns the blocks of an epoch that has ended, with their tags, in the order of series indexes.
    pub(super) fn taken_in(&self, ended: u32) -> io::Result<Vec<(BinTag, BinBlock)>> {
        let mut taken = Vec::new();
        self.for_each(ended, |tag, block| {
            // SAFETY: inside the mapping, and no program writes to it any more.
            taken.push((tag, unsafe { block.read() }));
        })?;
        taken.sort_unstable_by_key(|(tag, _)| tag.index());
        Ok(taken)
    }

    /// Frees the blocks of an epoch that has ended. If the agent is killed meanwhile, the next one does this.
    pub(super) fn empty(&mut self, ended: u32) -> io::Result<()> {
        self.for_each(ended, |_, block| {
            // SAFETY: inside the mapping, and no program uses it until the next rotation. The tag goes last, because it
            // marks a block that must still be freed.
            unsafe {
                (&raw mut (*block).bins).write(BinBlock::FREE.bins);
                (&raw mut (*block).hosts).write(BinBlock::FREE.hosts);
                (&raw mut (*block).next).write(BinBlock::FREE.next);
                fence(Ordering::SeqCst);
                (&raw mut (*block).tag).write_volatile(BinBlock::FREE.tag);
            }
        })?;
        self.taken(ended).store(0, Ordering::SeqCst);
        Ok(())
    }

    fn for_each(&self, ended: u32, mut of: impl FnMut(BinTag, *mut BinBlock)) -> io::Result<()> {
        let blocks = self.blocks.len() as u32;
        // Attempts to take a block beyond the last one are counted, too.
        for number in 0..self.taken(ended).load(Ordering::SeqCst).min(blocks) {
            let Some(block) = self.blocks.get(position(ended, number, blocks) as usize)? else { continue };
            // SAFETY: inside the mapping. Programs may write to it if it belongs to the other phase.
            let tag = unsafe { (&raw const (*block).tag).read_volatile() };
            if let Some(tag) = BinTag::read(tag, ended) {
                of(tag, block);
            }
        }
        Ok(())
    }

    /// The number of blocks taken in the phase of an epoch.
    fn taken(&self, epoch: u32) -> &AtomicU32 {
        // SAFETY: inside the mapping, which lives as long as `self`, aligned, and only accessed as an atomic.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.pool.first()).taken[epoch as usize & 1]) }
    }
}
