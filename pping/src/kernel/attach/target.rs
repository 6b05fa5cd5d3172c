//! The target of attaching: interface, pins, owner.

use super::clsact::run::Owner;
use crate::kernel::{Error, error::innermost, interfaces::Link, pins::Pins};

/// The target of attaching.
pub(super) struct Target<'a> {
    pub(super) link: &'a Link,
    /// The directory for pinned links, if they are pinned.
    pub(super) pins: Option<&'a Pins>,
    pub(super) owner: &'a mut Owner,
    /// Whether an earlier run left a clsact discipline, which this run must remove at its end.
    pub(super) has_discipline: bool,
}

/// The error of a target that refuses a program at tc.
pub(super) fn refused_at_tc(link: &Link, error: &dyn std::error::Error) -> Error {
    Error::Attach { interface: link.name.clone(), attach_point: "tc", reason: innermost(error) }
}
