//! The common ground of pping's kernel programs and agent.
//!
//! The modules in the order in which a packet meets them, each of which uses only those before it:
//!
//! 1. [`limits`] has every number that both sides need, [`method`] the ways to measure a round-trip time, and [`bytes`] reads a
//!    frame without ever leaving it.
//! 2. [`parse`] finds the addresses and the transport header.
//! 3. [`dns`] matches queries, which belong to no flow; [`rtt`] has a state per method, and matches the rest.
//! 4. [`group`] says which samples are taken together, [`hist`] has the bins they are counted in, [`pool`] the memory for those, and
//!    [`series`] what is counted.
//! 5. [`flow`] names a flow, keeps the states of both directions, and applies a packet to them; [`table`] finds flows.
//! 6. [`abi`] is what kernel programs and agent exchange.
//!
//! Nothing here allocates, panics, or reads a clock, so the same code runs under the BPF verifier, in
//! the agent, and in a unit test.
#![no_std]

// Kernel and agent exchange words of 64 bits that both read as they lie in memory, half by half in places.
#[cfg(any(target_endian = "big", not(target_pointer_width = "64")))]
compile_error!(
    "pping needs a little-endian processor with 64 bits, such as x86-64 or arm64: build it for one of those"
);

#[cfg(any(test, feature = "model"))]
extern crate std;

pub mod abi;
pub mod bytes;
pub mod dns;
pub mod flow;
pub mod group;
pub mod hist;
mod layout;
pub mod limits;
pub mod method;
#[cfg(any(test, feature = "model"))]
pub mod model;
pub mod parse;
pub mod pool;
pub mod rtt;
pub mod series;
pub mod table;
#[cfg(test)]
mod testing;
