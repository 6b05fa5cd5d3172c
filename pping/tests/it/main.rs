//! pping tested from the outside: its kernel programs in the kernel, its agent on interfaces and on captures, both
//! compared with a reference.
//!
//! Live tests need root: they create network namespaces, and their traffic stays inside. Tests of captures need neither
//! root nor the feature `live`.

#[cfg(feature = "live")]
mod agent;
mod clickhouse;
#[cfg(feature = "live")]
mod end_to_end;
#[cfg(feature = "history")]
mod engines;
#[cfg_attr(
    not(feature = "live"),
    expect(dead_code, reason = "the kernel is shown more of them than captures are")
)]
mod frames;
#[cfg(feature = "live")]
mod kernel;
mod python;
mod replay;
mod schemas;
