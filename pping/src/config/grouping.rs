//! `--group-by`.

use pping_common::group::Grouping;

use super::{error::SettingError, model::Aggregation};

/// The level of networks at the other end (`--remote-groups`), in records, metrics and answers: they are told apart from groups as the
/// nodes of the tree are.
pub const NETWORK: &str = "network";

/// Parses a list of prefix lengths, ends and classes of service. With a groups file (`has_file`), the list has no lengths.
pub(super) fn group_by(list: &[String], has_file: bool) -> Result<Grouping, SettingError> {
    let refused = |value: &str, reason| Err(SettingError::contradiction("group-by", value, reason));
    let mut grouping = Grouping::NONE;
    let (mut lens, mut has_end) = (Vec::new(), false);
    for item in list {
        match item.as_str() {
            "source" => (grouping.by_source, has_end) = (1, true),
            "destination" => (grouping.by_destination, has_end) = (1, true),
            "both" => (grouping.by_source, grouping.by_destination, has_end) = (1, 1, true),
            "dscp" => grouping.by_dscp = 1,
            item => match item.strip_prefix('/').and_then(|len| len.parse::<u8>().ok()) {
                Some(_) if has_file => {
                    return refused(item, "the prefixes are those of --groups; leave this out");
                }
                Some(len) => lens.push(len),
                None => return refused(item, "give `/24,/48`, `source`, `destination`, `both` or `dscp`"),
            },
        }
    }
    let all = || list.join(",");
    match *lens {
        [] if !has_file && has_end => {
            return refused(&all(), "say how long the prefixes are too, as in `/24,/48,both`");
        }
        [] => {}
        [v4_len @ ..=32, v6_len @ ..=128] => {
            (grouping.v4_len, grouping.v6_len) = (v4_len, v6_len);
            grouping.by_source |= u8::from(!has_end);
        }
        _ => {
            return refused(&all(), "give the bits of IPv4 prefixes, then those of IPv6 prefixes: `/24,/48`");
        }
    }
    Ok(grouping)
}

/// The error of a list of levels (`--roll-up`), if it has one. Whether the groups file has the columns is found out when it is
/// read.
pub(super) fn roll_up_error(list: &[String], has_groups: bool) -> Option<SettingError> {
    let refused = |reason| Some(SettingError::contradiction("roll-up", list.join(","), reason));
    if !list.is_empty() && !has_groups {
        return refused(
            "its columns are those of listed groups; name their file with --groups, or use --groups-socket",
        );
    }
    let mut before = list;
    while let [rest @ .., level] = before {
        if level == NETWORK {
            return refused("`network` is the level of --remote-groups; rename the column");
        }
        if level.is_empty() {
            return refused("a level has no name; name columns of the groups file, such as `site,ap`");
        }
        if rest.contains(level) {
            return refused("a column is listed twice; each level needs another one");
        }
        before = rest;
    }
    None
}

impl Aggregation {
    /// Combines `--group-by`, `--groups` and `--groups-socket`.
    pub fn grouping(&self) -> Grouping {
        let mut grouping = self.group_by;
        if self.groups.is_some() || self.groups_socket.is_some() {
            grouping.by_label = 1;
            grouping.by_source |= u8::from(grouping.by_destination == 0);
        }
        grouping.inside = if self.inside.prefixes.is_empty() { 0 } else { Grouping::INSIDE_LISTED };
        if self.inside.groups {
            grouping.inside |= Grouping::INSIDE_LABELLED;
        }
        grouping
    }
}
