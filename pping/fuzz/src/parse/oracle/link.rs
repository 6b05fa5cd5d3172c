//! Link headers, once more.

use pping_common::parse::LinkType;

use super::{array, number};

/// Where the IP header begins.
pub(super) fn network(octets: &[u8], link: LinkType, vlan: &mut Vec<u16>) -> Option<usize> {
    match link {
        LinkType::Ethernet => ethernet(octets, 0, vlan),
        LinkType::Ip => Some(0),
        LinkType::Cooked => follow(octets, number(octets, 14)?, 16, vlan),
        LinkType::CookedV2 => follow(octets, number(octets, 0)?, 20, vlan),
        LinkType::Loopback => loopback(octets),
        LinkType::Ppp => ppp(octets, vlan),
    }
}

/// Where the IP header begins in what an ethertype announces.
pub(super) fn follow(octets: &[u8], mut ethertype: u16, mut at: usize, vlan: &mut Vec<u16>) -> Option<usize> {
    if ethertype == 0x6558 {
        return ethernet(octets, at, vlan);
    }
    let mut tags = 0;
    while matches!(ethertype, 0x8100 | 0x88a8 | 0x9100) {
        tags += 1;
        vlan.push(number(octets, at)? & 0xfff);
        ethertype = number(octets, at + 2)?;
        at += 4;
    }
    if tags > 4 {
        return None;
    }
    if ethertype == 0x8864 {
        let [version_and_type, code, _, _, _, _, high, low] = array(octets, at)?;
        if (version_and_type, code) != (0x11, 0) {
            return None;
        }
        ethertype = ethertype_of_ppp(&[high, low])?;
        at += 8;
    }
    match ethertype {
        0x0800 => version(octets, at, 4),
        0x86dd => version(octets, at, 6),
        0x8847 | 0x8848 => labels(octets, at),
        _ => None,
    }
}

fn ethernet(octets: &[u8], at: usize, vlan: &mut Vec<u16>) -> Option<usize> {
    match number(octets, at + 12)? {
        0x6558 => None,
        ethertype => follow(octets, ethertype, at + 14, vlan),
    }
}

fn version(octets: &[u8], at: usize, version: u8) -> Option<usize> {
    (octets.get(at)? >> 4 == version).then_some(at)
}

/// Behind at most four MPLS labels.
fn labels(octets: &[u8], at: usize) -> Option<usize> {
    let bottom = (0..4)
        .map(|label| at + 4 * label)
        .find(|&at| octets.get(at + 2).is_some_and(|octet| octet & 1 != 0))?;
    Some(bottom + 4)
}

fn loopback(octets: &[u8]) -> Option<usize> {
    let ([0, 0, 0, family] | [family, 0, 0, 0]) = array(octets, 0)? else { return None };
    match family {
        2 => version(octets, 4, 4),
        10 | 23 | 24 | 28 | 30 => version(octets, 4, 6),
        _ => None,
    }
}

fn ppp(octets: &[u8], vlan: &mut Vec<u16>) -> Option<usize> {
    let start = if octets.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
    // A protocol number ends with the first odd octet (RFC 1661, 2 and 6.5).
    let len = if octets.get(start)? % 2 == 1 { 1 } else { 2 };
    let ethertype = ethertype_of_ppp(octets.get(start..start + len)?)?;
    follow(octets, ethertype, start + len, vlan)
}

fn ethertype_of_ppp(protocol: &[u8]) -> Option<u16> {
    match protocol {
        [0x21] | [0, 0x21] => Some(0x0800),
        [0x57] | [0, 0x57] => Some(0x86dd),
        [0x02, 0x81] => Some(0x8847),
        _ => None,
    }
}
