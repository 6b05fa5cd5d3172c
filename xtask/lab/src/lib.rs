//! Hosts, wires that hold frames, and traffic for tests, benches and the demo.
//!
//! A passive monitor can only be tested with packets that really cross a kernel. This crate builds a network for that
//! from what every Linux has: [`Namespace`]s as hosts, [`veth`] pairs as cables, and a [`Wire`] between two of them
//! that holds each frame for a while, because `netem` is a module that not every machine can load. [`Topology`]
//! combines them as *client - router - server*; [`Process`], [`Capture`] and [`traffic`] run things in it. Everything
//! is removed when its guard is dropped, also after a panic.
//!
//! Everything here needs root, and says so.
//!
//! The time that a wire holds a frame is a lower bound and no reference: the scheduler adds to it. Compare measured
//! round-trip times with a [`Capture`] of the same packets on the same interface.

mod bpf;
mod capture;
mod cpu;
mod disk;
mod error;
mod interrupt;
mod namespace;
mod packet;
mod pings;
mod process;
mod queue;
mod run;
mod seconds;
mod topology;
pub mod traffic;
pub mod veth;
mod wire;

pub use bpf::BpfObject;
pub use capture::{Capture, Captured};
pub use cpu::stay_on;
pub use disk::on_small_disk;
pub use error::{Error, Result};
pub use interrupt::{Interrupt, uninterrupted};
pub use namespace::Namespace;
pub use nix::sys::signal::Signal;
pub use packet::{PacketSocket, Received};
pub use pings::{Echoes, ping_in_turn};
pub use process::Process;
pub use run::run;
pub use seconds::Seconds;
pub use topology::{Topology, TopologyBuilder};
pub use wire::{Fate, Leg, Wire, WireStats};
