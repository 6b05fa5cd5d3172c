//! pping in a virtual machine, on a kernel that is not this machine's: `cargo xtask vm`.
//!
//! Each test is a process of its own, as root, in a system that has nothing else to do. What it prints is on the serial
//! console. The clock counts instructions, so round-trip times can be told to a tenth of a millisecond, and waiting
//! costs nothing; what pping costs cannot be measured here.
//!
//! `net` has hosts and delays between them, `resolver` what answers queries there, `monitor` and `watched` a pping that
//! watches, `records` and `http` what it tells, and `report` says that a kernel cannot do something.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests; clippy only knows the functions that are tests themselves"
)]

mod agent;
mod attach;
mod check;
mod features;
#[expect(dead_code, reason = "the tests on this machine's kernel use the rest")]
#[path = "../it/frames.rs"]
mod frames;
#[expect(dead_code, reason = "the tests on this machine's kernel use the rest")]
#[path = "../it/agent/http.rs"]
mod http;
mod killed;
mod limits;
#[expect(dead_code, reason = "the tests on this machine's kernel use the rest")]
#[path = "../it/agent/monitor.rs"]
mod monitor;
mod net;
mod pins;
mod programs;
#[expect(dead_code, reason = "the tests on this machine's kernel use the rest")]
#[path = "../it/end_to_end/records.rs"]
mod records;
mod report;
mod resolver;
mod rtt;
mod watched;
