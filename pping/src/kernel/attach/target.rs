//! Where to attach.

use super::clsact::run::Owner;
use crate::kernel::{interfaces::Link, pins::Pins};

/// Where to attach, and for whom.
pub(super) struct Target<'a> {
    pub(super) link: &'a Link,
    /// Where links are pinned, if they are.
    pub(super) pins: Option<&'a Pins>,
    pub(super) owner: &'a mut Owner,
    /// Whether there is a clsact discipline that a run before this one made and nobody else knows to remove.
    pub(super) has_discipline: bool,
}
