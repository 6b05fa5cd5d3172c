//! Any bytes through the reader of captures, and what is in them through the tracker.
#![no_main]

use std::alloc::System;

use cap::Cap;

/// What a capture claims must not be what is allocated: this is many times what any input here takes.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, 32 << 20);

libfuzzer_sys::fuzz_target!(|input: &[u8]| pping_fuzz::capture::check(input));
