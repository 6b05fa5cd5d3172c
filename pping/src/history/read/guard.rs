//! Bytes that may be damaged.

use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::errors::ParquetError;

/// Runs what reads bytes that may be damaged: the library panics at some of them.
pub(super) fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let read = catch_unwind(AssertUnwindSafe(read));
    read.unwrap_or_else(|_| Err(damaged("its bytes contradict each other")))
}

/// An error for bytes that pping would not have written.
pub(super) fn damaged(reason: &str) -> ParquetError {
    ParquetError::General(reason.to_owned())
}
