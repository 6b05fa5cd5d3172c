//! Any bytes on any link, through the parser.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pping_fuzz::parse::check(input));
