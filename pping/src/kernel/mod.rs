//! Everything that talks to the kernel.

use crate::Error;

pub mod attach;
mod bpf;
pub mod clock;
pub mod counters;
mod detach;
pub mod drain;
pub mod features;
pub(crate) mod inspect;
pub mod interface_ids;
pub mod interfaces;
pub mod labels;
pub mod ledger;
pub mod load;
mod memory;
mod objects;
pub mod pins;
pub mod runs;
pub mod series;
pub mod sweep;
pub mod wanted;

impl From<aya::maps::MapError> for Error {
    fn from(error: aya::maps::MapError) -> Self {
        Self::Map(error.into())
    }
}

impl From<rtnetlink::Error> for Error {
    fn from(error: rtnetlink::Error) -> Self {
        Self::Netlink(error.into())
    }
}
