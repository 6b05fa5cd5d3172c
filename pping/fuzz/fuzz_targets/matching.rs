//! Any packets of a few flows, through the state machine.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pping_fuzz::matching::check(input));
