#![cfg_attr(feature = "std", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "std"),
    doc = "Passive round-trip times from packets: parsing and the rules of matching. The feature `std` adds the matcher."
)]
#![no_std]

// Code that pping's kernel programs and agent share. The modules, in the order in which a packet meets them. Each uses only
// those before it:
//
// 1. `limits` has all numbers that both sides need, `method` the methods of measuring an RTT, `bytes` reads a frame within
//    its bounds, and `hash` has the hashes.
// 2. `parse` finds the addresses and the transport header. `arm` says from which side of an interface a packet comes, and
//    `rings` bound what a source can begin.
//    `copies` tells what a mirror port shows twice.
// 3. `dns` matches queries, which belong to no flow. `rtt` has the state of each other method and matches its packets.
// 4. `group` says which samples are counted together, `hist` defines their bins, `pool` has the memory of the bins, and
//    `series` what is counted.
// 5. `flow` has the key and the state of a flow, and applies packets to it. `table` finds flows, and `shared` is memory that
//    several CPUs use.
// 6. `abi` is what kernel programs and agent exchange. `matcher` keeps flows and queries in user space.
//
// Nothing here panics or reads a clock, and nothing but `matcher` allocates, so the same code runs under the BPF verifier,
// in the agent, and in a unit test. What is hidden from the documentation serves pping itself.

// Kernel and agent read the same 64-bit words in memory, some of them by halves.
#[cfg(any(target_endian = "big", not(target_pointer_width = "64")))]
compile_error!(
    "pping needs a little-endian processor with 64 bits, such as x86-64 or arm64: build it for one of those"
);

#[cfg(any(test, feature = "model", feature = "std"))]
extern crate std;

#[doc(hidden)]
pub mod abi;
#[doc(hidden)]
pub mod arm;
pub mod bytes;
#[doc(hidden)]
pub mod copies;
#[doc(hidden)]
pub mod dns;
#[doc(hidden)]
pub mod flow;
#[doc(hidden)]
pub mod group;
#[doc(hidden)]
pub mod hash;
#[doc(hidden)]
pub mod hist;
mod layout;
#[doc(hidden)]
pub mod limits;
#[cfg(feature = "std")]
pub mod matcher;
#[cfg(test)]
mod memory_order;
pub mod method;
#[cfg(any(test, feature = "model"))]
#[doc(hidden)]
pub mod model;
pub mod parse;
#[doc(hidden)]
pub mod pool;
#[doc(hidden)]
pub mod rings;
pub mod rtt;
#[doc(hidden)]
pub mod series;
#[doc(hidden)]
pub mod shared;
#[doc(hidden)]
pub mod table;
#[cfg(test)]
mod testing;
