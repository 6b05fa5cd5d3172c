//! Programs to compare pping's with, and programs that make traffic for it.
#![no_std]

pub mod exchange;

/// The programs.
#[cfg(feature = "compiled")]
pub static BASELINE: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/pping-baseline"));

/// The same without atomic instructions that return the old value, for kernels before Linux 5.12.
#[cfg(feature = "compiled")]
pub static BASELINE_ADD_ONLY: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/pping-baseline-add-only"));
