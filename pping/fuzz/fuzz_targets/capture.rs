//! Any bytes through the reader of captures, and their packets through the tracker.
#![no_main]

use std::alloc::System;

use cap::Cap;

/// Limits memory to 32 MiB, many times what any input needs. It catches a reader that allocates what a capture claims.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, 32 << 20);

libfuzzer_sys::fuzz_target!(|input: &[u8]| pping_fuzz::capture::check(input));
