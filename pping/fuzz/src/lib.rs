//! Properties that must hold for any input to pping. Each fuzz target has a function that takes any bytes and panics if
//! a property does not hold. libFuzzer searches for such bytes, and the tests replay the inputs in `corpus/`.
//!
//! [`parse`] takes any frame, [`matching`] any packets of a few flows, [`forged`] any packets beside those of a connection,
//! [`capture`] any file.

pub mod capture;
pub mod forged;
pub mod matching;
pub mod parse;
