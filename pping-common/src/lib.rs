//! What pping's kernel programs and agent agree on.
//!
//! A packet's way through this crate is the way through its modules: [`bytes`] reads a frame without
//! ever leaving it, [`parse`] finds the addresses and the transport header, [`flow`] names the flow and
//! keeps what is known of it, [`rtt`] decides what is recorded and what is matched, [`dns`] the same of queries, which
//! belong to no flow, [`group`] says with whom a sample is taken together and [`hist`] where it is counted, and [`abi`]
//! fixes what kernel and agent exchange.
//! [`limits`] holds every number that both sides need.
//!
//! Nothing here allocates, panics, or reads a clock, so the same code runs under the BPF verifier, in
//! the agent, and in a unit test.
#![no_std]

#[cfg(any(test, feature = "model"))]
extern crate std;

pub mod abi;
pub mod bytes;
pub mod dns;
pub mod exchange;
pub mod flow;
pub mod group;
pub mod hist;
pub mod limits;
pub mod method;
#[cfg(any(test, feature = "model"))]
pub mod model;
pub mod parse;
pub mod rtt;
pub mod series;
pub mod table;
#[cfg(test)]
mod testing;
