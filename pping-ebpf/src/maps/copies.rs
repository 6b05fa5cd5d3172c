//! The packets that passed a moment ago, of [`pping_common::copies`].

use aya_ebpf::{macros::map, maps::Array};
use pping_common::copies::{BUCKETS, Bucket};

use crate::shared::prelude::*;

/// The buckets. The agent makes room for one only if copies are not left out.
#[map]
static COPIES: Array<Bucket> = Array::with_max_entries(BUCKETS, 0);

/// A bucket.
#[inline(always)]
pub(crate) fn copies(number: u32) -> Option<Shared<Bucket>> {
    COPIES.shared(number)
}
