//! pping in a virtual machine, on a kernel that is not this machine's: `cargo xtask vm`.
//!
//! Each test is a process of its own, as root, in a system that has nothing else to do. What it prints is on the serial
//! console. The clock counts instructions, so round-trip times can be told to a tenth of a millisecond, and waiting
//! costs nothing; what pping costs cannot be measured here.

mod features;
mod report;
