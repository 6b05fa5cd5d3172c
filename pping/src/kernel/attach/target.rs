//! The target of attaching: interface, pins, owner.

use super::clsact::run::Owner;
use crate::kernel::{interfaces::Link, pins::Pins};

/// The target of attaching.
pub(super) struct Target<'a> {
    pub(super) link: &'a Link,
    /// The directory for pinned links, if they are pinned.
    pub(super) pins: Option<&'a Pins>,
    pub(super) owner: &'a mut Owner,
    /// Whether an earlier run left a clsact discipline, which this run must remove at its end.
    pub(super) has_discipline: bool,
}
