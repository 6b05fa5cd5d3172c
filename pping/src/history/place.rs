//! Where, and by what method, a series is measured.

use std::sync::Arc;

use pping_common::{group::Side, method::Method, parse::Direction};
use serde::{Serialize, Serializer};

use crate::{
    groups::SeriesName,
    labels::{serialize_method, serialize_side},
    recent::SeriesQuery,
};

/// What series of different groups are added up by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub(crate) struct Place {
    pub(crate) interface: Option<Arc<str>>,
    #[serde(serialize_with = "serialize_method")]
    pub(crate) method: Method,
    #[serde(serialize_with = "direction")]
    pub(crate) matched: Option<Direction>,
    #[serde(serialize_with = "serialize_side")]
    pub(crate) side: Option<Side>,
}

impl Place {
    pub(crate) fn of(SeriesName { interface, method, matched, side, group: _ }: &SeriesName) -> Self {
        Self { interface: interface.clone(), method: *method, matched: *matched, side: *side }
    }

    pub(super) fn is_asked_for(&self, query: &SeriesQuery) -> bool {
        let (matched, side) = (self.matched.map(Direction::name), self.side.map(Side::name));
        query.has(self.interface.as_deref(), self.method.name(), matched, side)
    }
}

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference to the field"
)]
fn direction<S: Serializer>(matched: &Option<Direction>, serializer: S) -> Result<S::Ok, S::Error> {
    matched.map(Direction::name).serialize(serializer)
}
