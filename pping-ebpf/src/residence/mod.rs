//! Times that packets spend in this host: [`forwarding`] between two watched interfaces, and [`queue`]ing at the root qdisc. See
//! docs/residence.md.

pub(crate) mod forwarding;
pub(crate) mod queue;

use pping_common::{
    abi::{Part, Residence},
    hist,
};

use crate::{maps, shared::prelude::*};

/// Adds a time to the times of an interface. Several CPUs may do so at once.
#[inline(always)]
fn count(part: Part, interface_id: u16, time: u64) {
    let Some(residence) = maps::residence(part.index(interface_id)) else { return };
    residence.at(field!(Residence, sum)).add(time);
    if let Some(bin) = residence.at(field!(Residence, bins)).get(hist::bin(time)) {
        bin.add(1);
    }
}
