//! The kernel programs have the same results as the same code in user space, packet by packet (`BPF_PROG_TEST_RUN`).
//! Needs root.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy only knows the functions that are tests themselves"
)]

mod attached;
mod captures;
mod connections;
mod conversations;
mod copies;
mod cost;
mod dns;
mod echoes;
mod flood;
mod forged;
mod garbage;
mod hooks;
mod interfaces;
mod local;
mod loss;
mod map_full;
mod pending;
mod random;
mod rate_limit;
mod residence;
mod rig;
mod series;
mod settings;
mod shapes;
mod signals;
mod stages;
mod sweep;
mod talk;
mod twin;
mod worst;

use crate::frames;
