//! Everything that talks to the kernel.

pub mod attach;
pub mod attach_point;
pub(crate) mod bpf;
pub mod clock;
pub mod counters;
pub mod drain;
mod error;
pub mod features;
pub(crate) mod inspect;
pub mod interface_ids;
mod interface_names;
pub mod interfaces;
pub mod labels;
pub mod load;
pub mod load_options;
pub mod loaded;
mod memory;
pub mod netlink;
pub mod object;
pub mod persistent;
pub mod pins;
pub mod promiscuous;
mod random;
pub mod residence;
mod rtnetlink;
pub mod selection;
pub mod series;
mod signals;
pub mod sweep;
pub(crate) mod traffic_control;
mod types;

pub use error::Error;
