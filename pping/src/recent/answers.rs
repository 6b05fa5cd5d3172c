//! The answers of the recent history, as they go out in JSON. docs/schema/api.json is made of what is written here.
//! Times are in ns of the wall clock since 1970; rates are per second.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::order::PREFIXES;
use super::{
    figures::{RttAnswer, TrafficAnswer},
    residence::{ResidenceAnswer, TimesAnswer},
    sides::SidesAnswer,
};
#[cfg(test)]
use crate::schemas;
use crate::{
    aggregate::Measurements,
    fingerprint::fingerprint,
    groups::{GroupName, LongestMatch},
    quality::Scores,
};

/// Interfaces, losses and the cost of pping.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Summary {
    /// The version of pping.
    pub version: Cow<'static, str>,
    /// Goes up with each change. A client that finds the same number again has missed nothing.
    pub sequence: u64,
    /// Time of the latest change, ns since the Unix epoch.
    pub time: u64,
    /// Whether sides of the network are told apart, by `--inside`.
    #[serde(default)]
    pub sides: bool,
    /// Whether a history of months is kept, by `--history`.
    #[serde(default)]
    pub history: bool,
    /// Levels of the tree of groups, by `--roll-up`, the outermost first; empty without it.
    #[serde(default)]
    pub levels: Vec<Arc<str>>,
    /// Whether networks at the other end are told apart, by `--remote-groups`.
    #[serde(default)]
    pub networks: bool,
    /// The watched interfaces.
    pub interfaces: Vec<Interface>,
    /// Number of known groups.
    pub groups: usize,
    /// What was lost or not measured since the start.
    pub losses: Losses,
    /// Sentences for people about what is wrong with the place of measurement: one direction of flows that passes elsewhere, or
    /// an `--inside` that does not fit the traffic.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The cost of pping.
    pub cost: Cost,
}

/// The cost of pping in the last second. A share of 1 is a whole core.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cost {
    /// CPU time of the process, as a share of a core. The kernel counts it in hundredths of a second.
    pub cpu: f64,
    /// Resident memory of the process, bytes.
    pub memory: u64,
    /// CPU time of the kernel programs, as a share of a core: the recent mean time of timed packets, one in 65,536, times
    /// the rate of all packets. Null while too few packets have been timed, and for a capture.
    pub programs: Option<f64>,
}

/// A watched interface.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Interface {
    /// Its name.
    pub interface: Arc<str>,
    /// Whether the interface exists now.
    pub is_up: bool,
    /// Attach points of the programs; the last ones if the interface is gone.
    pub attach_points: Vec<Cow<'static, str>>,
    /// The rates of the last second.
    #[serde(flatten)]
    pub rates: InterfaceRates,
    /// Residence times of packets that left by it, in the last minute; null without --residence.
    #[serde(default)]
    pub residence: Option<ResidenceAnswer>,
    /// Measurements of the last minute, by method and by the direction in which echoes passed.
    pub series: Vec<SeriesAnswer>,
}

/// The rates of an interface in the last second.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InterfaceRates {
    /// Traffic that comes in.
    pub ingress: Rate,
    /// Traffic that goes out.
    pub egress: Rate,
    /// Samples per second.
    pub samples: f64,
}

impl InterfaceRates {
    /// Returns the rates of two interfaces together.
    #[must_use]
    pub(super) fn plus(self, other: Self) -> Self {
        let both = |one: Rate, other: Rate| Rate {
            packets: one.packets + other.packets,
            bits: one.bits + other.bits,
            retransmissions: one.retransmissions + other.retransmissions,
        };
        Self {
            ingress: both(self.ingress, other.ingress),
            egress: both(self.egress, other.egress),
            samples: self.samples + other.samples,
        }
    }
}

/// The rates of a direction in the last second.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rate {
    /// Packets per second.
    pub packets: f64,
    /// Bits per second, including link-layer headers.
    pub bits: f64,
    /// Retransmitted TCP segments per second.
    pub retransmissions: f64,
}

/// What was lost or not measured since the start.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Losses {
    /// Packets that were not tracked, by reason. Reasons without packets are absent.
    #[cfg_attr(test, schemars(with = "BTreeMap<schemas::UntrackedName, u64>"))]
    pub untracked: BTreeMap<Cow<'static, str>, u64>,
    /// Packets that were not recorded, because another CPU had locked their flow or because there was no room for another
    /// pending timestamp.
    pub recordings_skipped: u64,
    /// Samples that are in no histogram, because there was no room for their series.
    pub unaggregated: u64,
    /// Events that did not reach the agent, and records, or lines of --hdr-log, that it could not write.
    pub events_lost: u64,
}

/// Measurements of a series in the last minute, or in a range of the past: by one method, with echoes in one direction.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Series"))]
pub struct SeriesAnswer {
    /// Name of the interface; null if it has none.
    pub interface: Option<Arc<str>>,
    /// Method that measured the RTTs.
    #[cfg_attr(test, schemars(with = "schemas::MethodName"))]
    pub method: Cow<'static, str>,
    /// Direction in which echoes passed the interface; null if the capture has no directions.
    #[cfg_attr(test, schemars(with = "Option<schemas::DirectionName>"))]
    pub matched: Option<Cow<'static, str>>,
    /// Side of the network that the hosts that reply are on; absent without `--inside`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<schemas::SideName>"))]
    pub side: Option<Cow<'static, str>>,
    /// Distribution of RTTs; null without samples.
    pub rtt: Option<RttAnswer>,
    /// Traffic of the hosts whose packets are timed.
    pub sent: TrafficAnswer,
    /// Traffic to them from the hosts that reply.
    pub received: TrafficAnswer,
    /// Score for each profile, in the order of the file of profiles (docs/groups.md), from 0 (unacceptable) to 100 (optimal);
    /// null if it is unknown. Empty for a range of the past.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Option<schemas::Score>>"))]
    pub quality: Scores,
}

/// The last 15 minutes, or a range of the past.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "History"))]
pub struct HistoryAnswer {
    /// Goes up with each change. A client that finds the same number again has missed nothing.
    pub sequence: u64,
    /// Time of the latest change, ns since the Unix epoch.
    pub time: u64,
    /// The length of a cell, ns.
    pub cell: u64,
    /// The series.
    pub series: Vec<SeriesHistory>,
    /// What is wrong with files of the history that are left out; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
}

/// The cells of a series.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SeriesHistory {
    /// Name of the interface; null if it has none.
    pub interface: Option<Arc<str>>,
    /// Method that measured the RTTs.
    #[cfg_attr(test, schemars(with = "schemas::MethodName"))]
    pub method: Cow<'static, str>,
    /// Direction in which echoes passed the interface; null if the capture has no directions.
    #[cfg_attr(test, schemars(with = "Option<schemas::DirectionName>"))]
    pub matched: Option<Cow<'static, str>>,
    /// Side of the network that the hosts that reply are on; absent without `--inside`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<schemas::SideName>"))]
    pub side: Option<Cow<'static, str>>,
    /// Distribution of the RTTs of all cells together; absent without samples, and for the last 15 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<RttAnswer>,
    /// Cells in which packets passed, the oldest first.
    pub cells: Vec<CellAnswer>,
}

/// Measurements of a series in a cell.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Cell"))]
pub struct CellAnswer {
    /// Start of the cell, ns since the Unix epoch.
    pub time: u64,
    /// Distribution of RTTs; null without samples.
    pub rtt: Option<RttAnswer>,
    /// Bins that have samples.
    #[cfg_attr(test, schemars(with = "Vec<schemas::Bin>"))]
    pub histogram: Vec<(u64, u32)>,
    /// Traffic of the hosts whose packets are timed.
    pub sent: TrafficAnswer,
    /// Traffic to them from the hosts that reply.
    pub received: TrafficAnswer,
}

impl CellAnswer {
    /// The answer for a cell that began at `time`, ns since the Unix epoch.
    pub(crate) fn new(time: u64, measured: &Measurements) -> Self {
        let [sent, received] = measured.traffic.map(TrafficAnswer::from);
        let (rtt, histogram) = (measured.rtts().map(RttAnswer::from), measured.histogram().collect());
        Self { time, rtt, histogram, sent, received }
    }
}

/// Groups, filtered, sorted and limited as requested.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Groups"))]
pub struct GroupsAnswer {
    /// Goes up with each change. A client that finds the same number again has missed nothing.
    pub sequence: u64,
    /// Time of the latest change, ns since the Unix epoch.
    pub time: u64,
    /// Number of known groups; with `by`, of known nodes of that level, or of networks.
    pub known: usize,
    /// Number of groups, or nodes, that match the filter.
    pub found: usize,
    /// Group that the addresses of `filter` belong to by the groups file, whether or not it had traffic; null if `filter` is no
    /// address or prefix, and without a groups file.
    #[serde(default)]
    pub longest_match: Option<LongestMatchAnswer>,
    /// Why nothing was found, in words: the group of the address that `filter` is had no traffic or is not under the node, or the
    /// address is mistyped. Null if groups were found, and without `filter` and `under`.
    #[serde(default)]
    pub note: Option<String>,
    /// The groups, or nodes, that were asked for.
    pub groups: Vec<GroupAnswer>,
}

impl GroupsAnswer {
    /// No groups, at the time of a summary.
    #[cfg(feature = "top")]
    pub(crate) fn none(Summary { sequence, time, .. }: &Summary) -> Self {
        let (sequence, time) = (*sequence, *time);
        Self { sequence, time, known: 0, found: 0, longest_match: None, note: None, groups: Vec::new() }
    }
}

/// The longest prefix of the groups file that contains an address or a prefix.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "LongestMatch"))]
pub struct LongestMatchAnswer {
    /// Label of the group; `unlisted` if no prefix contains it.
    pub group: Arc<str>,
    /// The prefix; null if none contains it.
    pub prefix: Option<String>,
}

impl From<LongestMatch> for LongestMatchAnswer {
    fn from(found: LongestMatch) -> Self {
        Self { group: found.group, prefix: found.prefix.map(|prefix| prefix.to_string()) }
    }
}

/// Returns the id of a group: a hash of its label, which may be long and have any characters. The id of a node is one of its
/// level and path.
pub(super) fn group_id(name: &GroupName) -> String {
    let parts: Vec<&str> = name.level.iter().chain([&name.label]).map(|part| &**part).collect();
    format!("{:032x}", fingerprint(&parts))
}

/// The place of a node in the tree of groups (`--roll-up`), and its members; or that it is a network at the other end
/// (`--remote-groups`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Node"))]
pub struct NodeAnswer {
    /// Level of the node: a column of the groups file; `network` for a network.
    pub level: Arc<str>,
    /// Label of a network, such as `AS64500 Example`. Path of a node, as `under` takes it: the values of its level and of the levels above it, the outermost first, joined by
    /// `/`. A `/` or `\` in a value has a `\` before it; groups without a value are in `(none)`.
    pub path: Arc<str>,
    /// Number of its groups: the labels that the groups file and the groups socket put there, and at least the active ones. Absent for
    /// a network, as are the next two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<usize>,
    /// Number of these with measurements of the last 15 minutes that the parameters choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<usize>,
    /// Number of the active ones that are bad now: those that score less than 50 for the first profile in one of their series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad: Option<usize>,
}

impl NodeAnswer {
    /// The answer about a network.
    pub(super) fn of_network(name: &GroupName) -> Self {
        let level = name.level.clone().unwrap_or_default();
        Self { level, path: Arc::clone(&name.label), members: None, active: None, bad: None }
    }
}

/// Measurements of a group in the last minute, of a node of the tree of groups: of all its groups together, or of a network: of all
/// flows with a host of it at their other end.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Group"))]
pub struct GroupAnswer {
    /// Identifier of the group, the same in every run.
    #[cfg_attr(test, schemars(pattern("^[0-9a-f]{32}$")))]
    pub id: String,
    /// Label of the group, or path of the node.
    pub group: Arc<str>,
    /// What a node has beside; absent for a group.
    #[serde(flatten)]
    pub node: Option<NodeAnswer>,
    /// First of the group's prefixes, in the order of addresses; null if it has none. If both ends of a flow make the group, the
    /// first of each, joined by `+`: that of the host that replied comes first.
    pub prefix: Option<Arc<str>>,
    /// Prefixes of the group, of the current groups file or of --group-by; those of the host that replied come first. If there
    /// are more, the first 16, or the first 1,000 in a response about this group alone.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = PREFIXES)))]
    pub prefixes: Vec<String>,
    /// Number of prefixes of the group, those that are not listed here included.
    #[serde(default)]
    pub prefix_count: usize,
    /// Differentiated services codepoint of the group; null if groups are not separated by it.
    #[cfg_attr(test, schemars(range(max = 63)))]
    pub dscp: Option<u8>,
    /// Values of the other columns of the groups file, by column; of a node, those of its level and of the levels above it.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Measurements of the group, by interface, method and direction.
    pub series: Vec<SeriesAnswer>,
    /// Time that packets which begin round trips of the group spent in queues of this host in the last minute, for each interface
    /// by which they left; empty without --residence.
    #[serde(default)]
    pub queues: Vec<GroupQueue>,
    /// Both sides of the network in one row; absent without `view=sides`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sides: Option<SidesAnswer>,
}

/// Times in the queue of an interface, ns. Percentiles are accurate to within 4.4 %.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupQueue {
    /// Name of the interface by which the packets left; null if it has none.
    pub interface: Option<Arc<str>>,
    /// The times of followed packets.
    #[serde(flatten)]
    pub times: TimesAnswer,
}

/// A group with its last 15 minutes.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = super::schema::all_prefixes))]
pub struct GroupDetail {
    /// The last minute.
    #[serde(flatten)]
    pub group: GroupAnswer,
    /// The last 15 minutes.
    pub history: HistoryAnswer,
}
