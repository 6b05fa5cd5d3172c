//! Questions to the kernel: interfaces, programs, maps, drivers. Nothing here changes anything.

pub(crate) mod ethtool;
pub(crate) mod flow_tables;
pub(crate) mod links;
pub(crate) mod maps;
pub(crate) mod packets;
pub(crate) mod programs;
pub(crate) mod xdp;
