//! pping in a virtual machine, on a kernel other than this machine's: `cargo xtask vm`.
//!
//! Each test is a separate process, run as root on an idle system. Its output goes to the serial console. The clock
//! counts instructions, so round-trip times are exact to a tenth of a millisecond, and waiting costs nothing. The cost
//! of pping cannot be measured here.
//!
//! `net` has hosts and delays between them, `resolver` a DNS server and its clients, `monitor` and `watched` a running
//! pping, `records` and `http` its output. `report` tells `cargo xtask vm` what a kernel cannot do.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests; clippy only knows the functions that are tests themselves"
)]

mod agent;
mod attach;
#[path = "../it/end_to_end/capture.rs"]
mod capture;
mod check;
mod cpus;
mod features;
#[expect(dead_code, reason = "the tests on this machine's kernel use the rest")]
#[path = "../it/frames.rs"]
mod frames;
#[expect(dead_code, reason = "the tests on this machine's kernel use the rest")]
#[path = "../it/agent/http.rs"]
mod http;
mod killed;
mod limits;
mod mirror;
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
mod residence;
mod resolver;
mod rtt;
mod watched;
