//! What a source says of a prefix.

use std::sync::Arc;

use ipnet::IpNet;

use crate::groups::Columns;

/// Who a prefix belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// The label of the group.
    pub(super) label: Arc<str>,
    /// All other columns that this source gives it. `None` for a source that knows nothing of columns.
    pub(super) columns: Option<Columns>,
}

/// A change of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It belongs to somebody from now on.
    Set(IpNet, Name),
    /// It belongs to nobody.
    Unset(IpNet),
}
