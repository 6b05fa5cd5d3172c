//! What groups there are.

use pping_common::group::Grouping;

use super::Contradiction;

/// What groups a list of networks, ends and classes makes, and a file that has their prefixes if there is one.
pub(super) fn grouping(list: &[String], has_file: bool) -> Result<Grouping, Contradiction> {
    let refused = |value: &str, hint| Err(Contradiction::new("group-by", value, hint));
    let mut grouping = Grouping { by_label: u8::from(has_file), ..Grouping::NONE };
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
                None => {
                    return refused(item, "give `/24,/48`, `source`, `destination`, `both` or `dscp`");
                }
            },
        }
    }
    match *lens {
        [] if !has_file && has_end => {
            return refused(&list.join(","), "say how long the prefixes are too, as in `/24,/48,both`");
        }
        [] => {}
        [v4_len @ ..=32, v6_len @ ..=128] => (grouping.v4_len, grouping.v6_len) = (v4_len, v6_len),
        _ => {
            return refused(
                &list.join(","),
                "give the bits of IPv4 prefixes, then those of IPv6 prefixes: `/24,/48`",
            );
        }
    }
    if !has_end && (has_file || !lens.is_empty()) {
        grouping.by_source = 1;
    }
    Ok(grouping)
}
