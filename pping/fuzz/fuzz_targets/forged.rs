//! A connection of two honest ends, and what somebody beside its path sends.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pping_fuzz::forged::check(input));
