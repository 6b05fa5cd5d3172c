//! Everything that talks to the kernel.

pub mod attach;
pub mod capabilities;
pub mod clock;
pub mod counters;
pub mod drain;
pub mod interfaces;
pub mod load;
pub mod sweep;
