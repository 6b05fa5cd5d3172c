//! Programs that tell a running pping which prefix belongs to whom: they take it from RADIUS accounting, DHCP leases and
//! LibreQoS, and pass it on to the groups socket. They need no privileges, and give up those that they have.
//!
//! Each of them turns what happens into changes of prefixes, without input or output; `feed` passes these on.

mod change;
mod command;
mod complaints;
mod dhcp;
mod error;
mod feed;
mod radius;
mod run;
mod settled;
mod shaped_devices;
mod text;

pub use command::SourceCommand;
pub use error::Error;
