//! The sweep: the kernel adds up what flows sent, deletes idle ones, and gives up on DNS queries.

mod renewer;
mod requests;
mod scan;
mod sweeper;

pub use self::sweeper::{MAX_FLUSHED, Sweeper};
pub(super) use self::sweeper::{SweepScope, due_len};
