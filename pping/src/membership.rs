//! The group and the side of a host.

use std::sync::Arc;

use pping_common::group::Side;

/// What a sample's series says of the host that replied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// The label of its group; `None` if there are no groups, or it is in no group.
    pub group: Option<Arc<str>>,
    /// Its side of the network, if `--inside` tells sides apart.
    pub side: Option<Side>,
}
