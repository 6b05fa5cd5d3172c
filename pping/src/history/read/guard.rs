//! Bytes that may be damaged.

use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe, catch_unwind},
    sync::Once,
};

use parquet::errors::ParquetError;

thread_local! {
    /// Whether a panic of this thread is expected.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs what reads bytes that may be damaged: the library panics at some of them. That is an error like others, and no
/// message about a fault of pping is printed.
pub(super) fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                print(panic);
            }
        }));
    });
    let was_guarded = IS_GUARDED.replace(true);
    let read = catch_unwind(AssertUnwindSafe(read));
    IS_GUARDED.set(was_guarded);
    read.unwrap_or_else(|_| Err(damaged("its bytes contradict each other")))
}

/// An error for bytes that pping would not have written.
pub(super) fn damaged(reason: &str) -> ParquetError {
    ParquetError::General(reason.to_owned())
}
