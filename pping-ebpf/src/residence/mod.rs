//! Times that packets spend in this host: [`forwarding`] between two watched interfaces, and [`queue`]ing at the root qdisc. See
//! docs/residence.md.

mod content;
pub(crate) mod forwarding;
pub(crate) mod queue;

use pping_common::{
    abi::{Part, Residence},
    hist,
};

use crate::{maps, shared::prelude::*};

/// A multiplier that spreads a factor over the high bits of the product: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a word into a hash. It needs no key: the hash is compared with that of a packet that somebody else would have to
/// know, numbers and timestamps included.
#[inline(always)]
const fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(SPREAD);
    mixed ^ mixed >> 29
}

/// Adds a time to the times of an interface. Several CPUs may do so at once.
#[inline(always)]
fn count(part: Part, interface_id: u16, time: u64) {
    let Some(residence) = maps::residence(part.index(interface_id)) else { return };
    residence.at(field!(Residence, sum)).add(time);
    if let Some(bin) = residence.at(field!(Residence, bins)).get(hist::bin(time)) {
        bin.add(1);
    }
}
