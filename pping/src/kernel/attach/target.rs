//! Where to attach, and for which run.

use super::clsact::run::Owner;
use crate::kernel::{interfaces::Link, pins::Pins};

/// Where to attach, and for which run.
pub(super) struct Target<'a> {
    pub(super) link: &'a Link,
    /// Where links are pinned, if they are.
    pub(super) pins: Option<&'a Pins>,
    pub(super) owner: &'a mut Owner,
    /// Whether an earlier run left a clsact discipline, which this one is to remove at its end.
    pub(super) has_discipline: bool,
}
