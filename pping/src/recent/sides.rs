//! The answer about both sides of a group, as it goes out in JSON.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};

use super::figures::{RttAnswer, TrafficAnswer};
#[cfg(test)]
use super::history::CELLS;
use crate::quality::Scores;
#[cfg(test)]
use crate::schemas;

/// Both sides of a group in the last minute.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Sides"))]
pub struct SidesAnswer {
    /// Samples of hosts inside the network; null if the group had none in the last 15 minutes.
    pub inside: Option<SideAnswer>,
    /// Samples of hosts outside the network; null if the group had none in the last 15 minutes.
    pub outside: Option<SideAnswer>,
    /// Traffic in both flow directions, of the side with more packets. It is no sum: a flow counts for both sides.
    pub traffic: TrafficAnswer,
    /// Lower score of the two sides for each profile; null if both are unknown.
    #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, Option<schemas::Score>>"))]
    pub quality: Scores,
}

/// One side of a group, as one interface sees it: the one that the side is beyond (`matched` is `ingress`), or else the busiest.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Side"))]
pub struct SideAnswer {
    /// Name of the interface; null if it has none.
    pub interface: Option<Arc<str>>,
    /// Direction in which echoes passed the interface; null if the capture has no directions.
    #[cfg_attr(test, schemars(with = "Option<schemas::DirectionName>"))]
    pub matched: Option<Cow<'static, str>>,
    /// Methods whose samples are joined in `rtt`, `quality` and `trend`: those of TCP, or else `icmp-echo` or
    /// `quic-handshake`, whichever has more samples; never `dns` or `quic-spin`.
    #[cfg_attr(test, schemars(with = "Vec<schemas::MethodName>"))]
    pub methods: Vec<Cow<'static, str>>,
    /// Distribution of RTTs; null without samples in the last minute.
    pub rtt: Option<RttAnswer>,
    /// Traffic of the hosts whose packets are timed, of all methods.
    pub sent: TrafficAnswer,
    /// Traffic to them from the hosts that reply, of all methods.
    pub received: TrafficAnswer,
    /// Score for each profile, from 0 (unacceptable) to 100 (optimal); null if it is unknown.
    #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, Option<schemas::Score>>"))]
    pub quality: Scores,
    /// 95th percentile, ns, of each cell of ten seconds in the last 15 minutes, the present cell last; null without samples.
    #[cfg_attr(test, schemars(length(equal = CELLS)))]
    pub trend: Vec<Option<u64>>,
}
