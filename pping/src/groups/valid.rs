//! What prefixes, labels and columns may be. Errors say what to write instead.

use ipnet::{IpNet, Ipv4Net};

use super::{
    labels::{ALL, OTHER, UNLISTED},
    levels::{NO_VALUE, OTHER_NODES},
};
use crate::{
    config::{leading_zero, network, without_host_bits},
    worst::EXPECTED_RTT,
};

/// Checks a label.
pub(crate) fn label(label: &str) -> Result<(), String> {
    if label.is_empty() {
        return Err("the label is empty; name the group that the prefix belongs to".to_owned());
    }
    without_control("label", label)?;
    if [ALL, OTHER, UNLISTED].contains(&label) {
        return Err(format!("`{label}` is the name of one of pping's own groups; choose another label"));
    }
    Ok(())
}

/// Checks a value of another column of a label.
pub(crate) fn column(name: &str, value: &str) -> Result<(), String> {
    without_control(name, value)?;
    if [NO_VALUE, OTHER_NODES].contains(&value) {
        return Err(format!(
            "`{value}` is the name of one of pping's own nodes; leave the {name} empty, or write another one"
        ));
    }
    if name == EXPECTED_RTT && humantime::parse_duration(value).is_err() {
        return Err(format!("`{value}` is not a time; give a number with its unit, like 600ms"));
    }
    Ok(())
}

/// Names of labels that `OpenMetrics` keeps for the parts of histograms and summaries: `pping_group_info` cannot have them.
const RESERVED: [&str; 2] = ["le", "quantile"];

/// Letters that a name may differ in from that of the column with a meaning, and is most likely meant as that.
const TYPING_ERRORS: usize = 2;

/// Refuses control characters, which a line break is too: no reader of records and metrics expects any.
fn without_control(what: &str, text: &str) -> Result<(), String> {
    if text.contains(char::is_control) {
        return Err(format!("the {what} has a control character or a line break; remove it"));
    }
    Ok(())
}

/// Checks the name of a column. An error says what to write instead.
pub(crate) fn column_name(name: &str) -> Result<(), String> {
    without_control("name of the column", name)?;
    let letters =
        |name: &str| name.chars().filter(|it| it.is_alphanumeric()).collect::<String>().to_lowercase();
    if name != EXPECTED_RTT
        && strsim::damerau_levenshtein(&letters(name), &letters(EXPECTED_RTT)) <= TYPING_ERRORS
    {
        return Err(format!(
            "`{name}` is most likely meant as `{EXPECTED_RTT}`; write it like that, or rename the column"
        ));
    }
    if RESERVED.contains(&name) {
        return Err(format!(
            "a column cannot be called `{name}`, a label of histograms and summaries; rename it"
        ));
    }
    Ok(())
}

/// Parses a prefix or an address. An IPv4-mapped IPv6 prefix becomes IPv4. An error says what to write instead.
pub(crate) fn prefix(text: &str) -> Result<IpNet, String> {
    without_control("prefix", text)?;
    Ok(without_mapping(without_host_bits(network(text).ok_or_else(|| no_prefix(text))?)?))
}

/// Returns an IPv4-mapped IPv6 prefix as IPv4, and any other as it is.
pub(super) fn without_mapping(prefix: IpNet) -> IpNet {
    if let IpNet::V6(v6) = prefix
        && let Some(address) = v6.addr().to_ipv4_mapped()
        && let Some(len) = v6.prefix_len().checked_sub(96)
        && let Ok(v4) = Ipv4Net::new(address, len)
    {
        return v4.into();
    }
    prefix
}

fn no_prefix(text: &str) -> String {
    if let Some(reason) = leading_zero(text) {
        return reason;
    }
    let len = |bits| format!("`{text}`: the length is a number from 0 to {bits}");
    match text.split_once('/').and_then(|(address, _)| network(address)) {
        Some(IpNet::V4(_)) => len(32),
        Some(IpNet::V6(_)) => len(128),
        _ if text.is_empty() => {
            "the prefix is missing; give one like 192.0.2.0/24 or 2001:db8::/32".to_owned()
        }
        _ => format!("`{text}` is not a prefix; give one like 192.0.2.0/24 or 2001:db8::/32"),
    }
}
