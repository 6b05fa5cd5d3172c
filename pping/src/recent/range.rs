//! The worst groups of a range of the past.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, de::Error};

#[cfg(feature = "history")]
use super::answers::group_id;
use super::{HistoryQuery, answers::SeriesAnswer, order};
#[cfg(feature = "history")]
use crate::groups::GroupName;
#[cfg(test)]
use crate::schemas;
use crate::worst::MAX_SHOWN;

/// Which groups are ranked, by which series, in what range, and how many are asked for.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorstOfRangeQuery {
    /// Only series of this interface.
    pub interface: Option<String>,
    /// Only series of this method.
    #[serde(deserialize_with = "order::method")]
    #[cfg_attr(test, schemars(with = "Option<schemas::MethodName>"))]
    pub method: Option<String>,
    /// Only series whose echoes passed in this direction.
    #[serde(deserialize_with = "order::matched")]
    #[cfg_attr(test, schemars(with = "Option<schemas::DirectionName>"))]
    pub matched: Option<String>,
    /// Only series whose hosts that reply are on this side of the network.
    #[serde(deserialize_with = "order::side")]
    #[cfg_attr(test, schemars(with = "Option<schemas::SideName>"))]
    pub side: Option<String>,
    /// The first moment, as for `/history`. `-24h` unless set.
    pub from: Option<String>,
    /// The moment after the last, as `from`. `now` unless set.
    pub to: Option<String>,
    /// Highest number of groups in the response.
    #[serde(deserialize_with = "limit")]
    #[cfg_attr(test, schemars(range(max = MAX_SHOWN)))]
    pub limit: usize,
}

impl Default for WorstOfRangeQuery {
    fn default() -> Self {
        let [interface, method, matched, side, from, to] = [const { None }; 6];
        Self { interface, method, matched, side, from, to, limit: 20 }
    }
}

/// Reads the highest number of groups.
fn limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let limit = usize::deserialize(deserializer)?;
    if limit > MAX_SHOWN {
        return Err(D::Error::custom(format_args!("at most {MAX_SHOWN} are ranked")));
    }
    Ok(limit)
}

impl WorstOfRangeQuery {
    /// The same range and series.
    pub fn history(&self) -> HistoryQuery {
        let Self { interface, method, matched, side, from, to, limit: _ } = self.clone();
        HistoryQuery { interface, method, matched, side, from, to, ..HistoryQuery::default() }
    }
}

/// The groups whose worst series have the highest 95th percentiles in a range of the past, the worst first.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorstOfRange {
    /// The first moment, ns since the Unix epoch.
    pub from: u64,
    /// The moment after the last, ns since the Unix epoch.
    pub to: u64,
    /// The groups with at least 20 samples.
    pub groups: Vec<GroupOfRange>,
    /// What is wrong with files of the history that are left out; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
}

/// A group in a range of the past, with the series that ranks it.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupOfRange {
    /// Identifier of the group, the same in every run.
    #[cfg_attr(test, schemars(pattern("^[0-9a-f]{32}$")))]
    pub id: String,
    /// Label of the group.
    pub group: Arc<str>,
    /// First of the group's prefixes at that time; null if it had none.
    pub prefix: Option<Arc<str>>,
    /// Values of the other columns of the groups file at that time, by column.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// The series that ranks the group.
    pub series: SeriesAnswer,
}

#[cfg(feature = "history")]
impl GroupOfRange {
    /// A group with this series.
    pub(crate) fn new(name: &GroupName, series: SeriesAnswer) -> Self {
        let GroupName { label, prefix, columns, .. } = name;
        let labels = columns.iter().cloned().collect();
        Self { id: group_id(name), group: Arc::clone(label), prefix: prefix.clone(), labels, series }
    }
}
