//! A second parser for link headers.

use pping_common::{bytes::Captured, parse::LinkType};

use super::{array, number};

/// Returns where the IP header begins.
pub(super) fn network(captured: Captured<'_>, link: LinkType, vlan: &mut Vec<u16>) -> Option<usize> {
    let bytes = captured.bytes;
    match link {
        LinkType::Ethernet => ethernet(captured, 0, vlan),
        LinkType::Ip => Some(0),
        LinkType::Cooked => follow(captured, number(bytes, 14)?, 16, vlan),
        LinkType::CookedV2 => follow(captured, number(bytes, 0)?, 20, vlan),
        LinkType::Loopback => loopback(bytes),
        LinkType::Ppp => ppp(captured, vlan),
    }
}

/// Returns where the IP header begins in the content of an ethertype.
pub(super) fn follow(
    captured: Captured<'_>,
    mut ethertype: u16,
    mut at: usize,
    vlan: &mut Vec<u16>,
) -> Option<usize> {
    let bytes = captured.bytes;
    if ethertype == 0x6558 {
        return ethernet(captured, at, vlan);
    }
    let mut tags = 0;
    while matches!(ethertype, 0x8100 | 0x88a8 | 0x9100 | 0x9200) {
        tags += 1;
        vlan.push(number(bytes, at)? & 0xfff);
        ethertype = number(bytes, at + 2)?;
        at += 4;
    }
    if tags > 4 {
        return None;
    }
    // A length: LLC and SNAP follow (IEEE 802.3, RFC 1042).
    if (1..=1500).contains(&ethertype) {
        if array(bytes, at)? != [0xaa, 0xaa, 3, 0, 0, 0] {
            return None;
        }
        ethertype = number(bytes, at + 6)?;
        at += 8;
    }
    if ethertype == 0x8864 {
        if array(bytes, at)? != [0x11, 0] {
            return None;
        }
        at += 6;
        ethertype = session(bytes, &mut at)?;
    }
    match ethertype {
        0x0800 => version(bytes, at, 4),
        0x86dd => version(bytes, at, 6),
        0x8847 | 0x8848 => labels(captured, at),
        _ => None,
    }
}

fn ethernet(captured: Captured<'_>, at: usize, vlan: &mut Vec<u16>) -> Option<usize> {
    match number(captured.bytes, at + 12)? {
        0x6558 => None,
        ethertype => follow(captured, ethertype, at + 14, vlan),
    }
}

fn version(bytes: &[u8], at: usize, version: u8) -> Option<usize> {
    (bytes.get(at)? >> 4 == version).then_some(at)
}

/// Returns the position of an IP header after at most four MPLS labels. Its length must be that of the rest of the frame,
/// with at most 46 bytes of padding. Otherwise it is an Ethernet header, or something else that begins with a 4 or a 6.
fn labels(Captured { bytes, frame_len }: Captured<'_>, at: usize) -> Option<usize> {
    let bottom =
        (0..4).map(|label| at + 4 * label).find(|&at| bytes.get(at + 2).is_some_and(|byte| byte & 1 != 0))?;
    let at = bottom + 4;
    let len = match bytes.get(at)? {
        0x45..=0x4f => number(bytes, at + 2)?.into(),
        0x60..=0x6f => 40 + usize::from(number(bytes, at + 4)?),
        _ => return None,
    };
    let rest = frame_len.checked_sub(at)?;
    (len..=len + 46).contains(&rest).then_some(at)
}

fn loopback(bytes: &[u8]) -> Option<usize> {
    let ([0, 0, 0, family] | [family, 0, 0, 0]) = array(bytes, 0)? else { return None };
    match family {
        2 => version(bytes, 4, 4),
        10 | 23 | 24 | 28 | 30 => version(bytes, 4, 6),
        _ => None,
    }
}

fn ppp(captured: Captured<'_>, vlan: &mut Vec<u16>) -> Option<usize> {
    let mut at = if captured.bytes.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
    let ethertype = session(captured.bytes, &mut at)?;
    follow(captured, ethertype, at, vlan)
}

/// Returns the ethertype of a PPP protocol number, and goes on to what follows it. A number ends with its first odd byte
/// (RFC 1661, sections 2 and 6.5).
fn session(bytes: &[u8], at: &mut usize) -> Option<u16> {
    let start = *at;
    *at += if bytes.get(start)? % 2 == 1 { 1 } else { 2 };
    ethertype_of_ppp(bytes.get(start..*at)?)
}

fn ethertype_of_ppp(protocol: &[u8]) -> Option<u16> {
    match protocol {
        [0x21] | [0, 0x21] => Some(0x0800),
        [0x57] | [0, 0x57] => Some(0x86dd),
        [0x02, 0x81] => Some(0x8847),
        _ => None,
    }
}
