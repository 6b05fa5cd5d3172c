//! The answers of the recent history, as they go out in JSON. docs/schema/api.json describes them too. Times are in ns of the
//! wall clock since 1970; rates are per second.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::residence::{ResidenceAnswer, TimesAnswer};
use crate::{groups::LongestMatch, quality::Scores};

/// Everything at a glance.
#[derive(Debug, Deserialize, Serialize)]
pub struct Summary {
    /// The version of pping.
    pub version: Cow<'static, str>,
    /// Goes up with each change. A client that finds the same sequence again has missed nothing.
    pub sequence: u64,
    /// The time of the latest change.
    pub time: u64,
    /// The watched interfaces.
    pub interfaces: Vec<Interface>,
    /// The number of known groups.
    pub groups: usize,
    /// What went unmeasured since the start, and why.
    pub losses: Losses,
    /// The cost of pping.
    pub cost: Cost,
}

/// The cost of pping, as shares of a core in the last second.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Cost {
    /// The share of the process. The kernel counts its time in hundredths of a second.
    pub cpu: f64,
    /// Resident memory of the process, bytes.
    pub memory: u64,
    /// The share of the kernel programs: the recent mean time of timed packets, one in 65,536, times the rate of all
    /// packets. Null while too few were timed, and for a capture.
    pub programs: Option<f64>,
}

/// A watched interface.
#[derive(Debug, Deserialize, Serialize)]
pub struct Interface {
    /// Its name.
    pub interface: Arc<str>,
    /// Whether it exists at present.
    pub is_up: bool,
    /// The attach points of the programs, present or last.
    pub attach_points: Vec<Cow<'static, str>>,
    /// The rates of the last second.
    #[serde(flatten)]
    pub rates: InterfaceRates,
    /// The residence times of packets that left by it, in the last minute; absent unless they are measured.
    #[serde(default)]
    pub residence: Option<ResidenceAnswer>,
    /// The measurements of the last minute, by method and by the direction in which echoes passed.
    pub series: Vec<SeriesAnswer>,
}

/// The rates of an interface.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct InterfaceRates {
    /// Coming in.
    pub ingress: Rate,
    /// Going out.
    pub egress: Rate,
    /// Samples of all methods.
    pub samples: f64,
}

/// The rates of a direction.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Rate {
    /// Packets.
    pub packets: f64,
    /// Bits of whole packets.
    pub bits: f64,
    /// Retransmitted TCP segments.
    pub retransmissions: f64,
}

/// What went unmeasured since the start.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Losses {
    /// Packets that were not tracked, by reason.
    pub untracked: BTreeMap<Cow<'static, str>, u64>,
    /// Packets that were not recorded because another CPU had their flow, all slots were taken, or the pool was empty.
    pub recordings_skipped: u64,
    /// Samples that are in no histogram.
    pub unaggregated: u64,
    /// Events that did not reach the agent, and lines that it could not write.
    pub events_lost: u64,
}

/// The measurements of a series.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct SeriesAnswer {
    /// The interface, if it has a name.
    pub interface: Option<Arc<str>>,
    /// The method.
    pub method: Cow<'static, str>,
    /// The direction in which echoes passed: `ingress` or `egress`.
    pub matched: Option<Cow<'static, str>>,
    /// The RTTs; absent without samples.
    pub rtt: Option<RttAnswer>,
    /// The traffic of the hosts whose packets are timed.
    pub sent: TrafficAnswer,
    /// The traffic to them from the hosts that reply.
    pub received: TrafficAnswer,
    /// The score by each profile, from 0 to 100; `None` if it is unknown.
    #[serde(default)]
    pub quality: Scores,
}

/// A distribution of RTTs, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RttAnswer {
    /// Samples.
    pub count: u64,
    /// The lowest.
    pub min: u64,
    /// The mean.
    pub mean: u64,
    /// The median, within 4.4 %, like the other percentiles.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The highest.
    pub max: u64,
}

/// Traffic of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct TrafficAnswer {
    /// Packets.
    pub packets: u64,
    /// Bytes above the transport header.
    pub bytes: u64,
    /// Retransmitted TCP segments.
    pub retransmissions: u64,
}

/// The recent past of an interface or a group.
#[derive(Debug, Deserialize, Serialize)]
pub struct HistoryAnswer {
    /// As in [`Summary`].
    pub sequence: u64,
    /// The time of the latest change.
    pub time: u64,
    /// The length of a cell, ns.
    pub cell: u64,
    /// The series.
    pub series: Vec<SeriesHistory>,
}

/// The cells of a series.
#[derive(Debug, Deserialize, Serialize)]
pub struct SeriesHistory {
    /// The interface, if it has a name.
    pub interface: Option<Arc<str>>,
    /// The method.
    pub method: Cow<'static, str>,
    /// The direction in which echoes passed.
    pub matched: Option<Cow<'static, str>>,
    /// The cells in which packets passed, the oldest first.
    pub cells: Vec<CellAnswer>,
}

/// The measurements of a series in a cell.
#[derive(Debug, Deserialize, Serialize)]
pub struct CellAnswer {
    /// The start of the cell.
    pub time: u64,
    /// The RTTs; absent without samples.
    pub rtt: Option<RttAnswer>,
    /// The highest RTT of each bin with samples, ns, and their number.
    pub histogram: Vec<(u64, u32)>,
    /// The traffic of the hosts whose packets are timed.
    pub sent: TrafficAnswer,
    /// The traffic to them from the hosts that reply.
    pub received: TrafficAnswer,
}

/// Groups, in the order and the number that were asked for.
#[derive(Debug, Deserialize, Serialize)]
pub struct GroupsAnswer {
    /// As in [`Summary`].
    pub sequence: u64,
    /// The time of the latest change.
    pub time: u64,
    /// How many groups are known.
    pub known: usize,
    /// How many of them match the filter.
    pub found: usize,
    /// The group that the addresses of the filter belong to, whether or not it is known.
    #[serde(default)]
    pub longest_match: Option<LongestMatchAnswer>,
    /// Why an address found no group.
    #[serde(default)]
    pub note: Option<String>,
    /// The groups that were asked for.
    pub groups: Vec<GroupAnswer>,
}

/// The group of an address, by the groups file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LongestMatchAnswer {
    /// The label.
    pub group: Arc<str>,
    /// The prefix; none if the groups file does not list the address.
    pub prefix: Option<String>,
}

impl From<LongestMatch> for LongestMatchAnswer {
    fn from(found: LongestMatch) -> Self {
        Self { group: found.group, prefix: found.prefix.map(|prefix| prefix.to_string()) }
    }
}

/// A group in the last minute.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct GroupAnswer {
    /// The id in `/api/v1/groups/{id}`, the same in every run.
    pub id: String,
    /// The label.
    pub group: Arc<str>,
    /// The first of the prefixes, in the order of addresses. A group of two ends may have two, joined by `+`.
    pub prefix: Option<Arc<str>>,
    /// The prefixes: that of a group by prefix, or those that the groups file lists. A few of many; all but those beyond
    /// a thousand if the answer is about this group alone.
    #[serde(default)]
    pub prefixes: Vec<String>,
    /// How many prefixes the group has.
    #[serde(default)]
    pub prefix_count: usize,
    /// The differentiated services codepoint, if groups are separated by it.
    pub dscp: Option<u8>,
    /// The other columns of the groups file.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// The measurements of the group, by interface, method and direction.
    pub series: Vec<SeriesAnswer>,
    /// The times that packets of its round trips spent in queues of this host, by interface; empty unless they are measured.
    #[serde(default)]
    pub queues: Vec<GroupQueue>,
}

/// The times in the queue of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct GroupQueue {
    /// The interface by which the packets left, if it has a name.
    pub interface: Option<Arc<str>>,
    /// The times of followed packets.
    #[serde(flatten)]
    pub times: TimesAnswer,
}

/// A group, with its recent past.
#[derive(Debug, Deserialize, Serialize)]
pub struct GroupDetail {
    /// The last minute.
    #[serde(flatten)]
    pub group: GroupAnswer,
    /// The last 15 minutes.
    pub history: HistoryAnswer,
}
