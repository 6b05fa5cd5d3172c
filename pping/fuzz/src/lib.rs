//! What must hold whatever pping meets. A function per fuzz target: it takes any bytes and panics where
//! something does not hold. libFuzzer looks for such bytes, and the tests replay those kept in `corpus/`.
//!
//! [`parse`] is any frame, [`matching`] any packets of a few flows, [`capture`] any file.

pub mod capture;
pub mod matching;
pub mod parse;
