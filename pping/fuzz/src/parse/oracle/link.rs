//! A second parser for link headers.

use pping_common::parse::LinkType;

use super::{array, number};

/// Returns where the IP header begins.
pub(super) fn network(bytes: &[u8], link: LinkType, vlan: &mut Vec<u16>) -> Option<usize> {
    match link {
        LinkType::Ethernet => ethernet(bytes, 0, vlan),
        LinkType::Ip => Some(0),
        LinkType::Cooked => follow(bytes, number(bytes, 14)?, 16, vlan),
        LinkType::CookedV2 => follow(bytes, number(bytes, 0)?, 20, vlan),
        LinkType::Loopback => loopback(bytes),
        LinkType::Ppp => ppp(bytes, vlan),
    }
}

/// Returns where the IP header begins in the content of an ethertype.
pub(super) fn follow(bytes: &[u8], mut ethertype: u16, mut at: usize, vlan: &mut Vec<u16>) -> Option<usize> {
    if ethertype == 0x6558 {
        return ethernet(bytes, at, vlan);
    }
    let mut tags = 0;
    while matches!(ethertype, 0x8100 | 0x88a8 | 0x9100) {
        tags += 1;
        vlan.push(number(bytes, at)? & 0xfff);
        ethertype = number(bytes, at + 2)?;
        at += 4;
    }
    if tags > 4 {
        return None;
    }
    if ethertype == 0x8864 {
        let [version_and_type, code, _, _, _, _, high, low] = array(bytes, at)?;
        if (version_and_type, code) != (0x11, 0) {
            return None;
        }
        ethertype = ethertype_of_ppp(&[high, low])?;
        at += 8;
    }
    match ethertype {
        0x0800 => version(bytes, at, 4),
        0x86dd => version(bytes, at, 6),
        0x8847 | 0x8848 => labels(bytes, at),
        _ => None,
    }
}

fn ethernet(bytes: &[u8], at: usize, vlan: &mut Vec<u16>) -> Option<usize> {
    match number(bytes, at + 12)? {
        0x6558 => None,
        ethertype => follow(bytes, ethertype, at + 14, vlan),
    }
}

fn version(bytes: &[u8], at: usize, version: u8) -> Option<usize> {
    (bytes.get(at)? >> 4 == version).then_some(at)
}

/// Returns the position after at most four MPLS labels.
fn labels(bytes: &[u8], at: usize) -> Option<usize> {
    let bottom =
        (0..4).map(|label| at + 4 * label).find(|&at| bytes.get(at + 2).is_some_and(|byte| byte & 1 != 0))?;
    Some(bottom + 4)
}

fn loopback(bytes: &[u8]) -> Option<usize> {
    let ([0, 0, 0, family] | [family, 0, 0, 0]) = array(bytes, 0)? else { return None };
    match family {
        2 => version(bytes, 4, 4),
        10 | 23 | 24 | 28 | 30 => version(bytes, 4, 6),
        _ => None,
    }
}

fn ppp(bytes: &[u8], vlan: &mut Vec<u16>) -> Option<usize> {
    let start = if bytes.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
    // A protocol number ends with the first odd byte (RFC 1661, sections 2 and 6.5).
    let len = if bytes.get(start)? % 2 == 1 { 1 } else { 2 };
    let ethertype = ethertype_of_ppp(bytes.get(start..start + len)?)?;
    follow(bytes, ethertype, start + len, vlan)
}

fn ethertype_of_ppp(protocol: &[u8]) -> Option<u16> {
    match protocol {
        [0x21] | [0, 0x21] => Some(0x0800),
        [0x57] | [0, 0x57] => Some(0x86dd),
        [0x02, 0x81] => Some(0x8847),
        _ => None,
    }
}
