//! A second parser for tunnels.

use pping_common::parse::Decap;

use super::{Network, array, number};

/// The content of a tunnel, and its position.
pub(super) enum Inside {
    /// IP.
    Ip(usize),
    /// The content that an ethertype names.
    Ethertype(u16, usize),
    /// Content that the parser does not follow.
    Other,
}

/// Returns the content of a packet if it is a tunnel of a kind in `decap`.
pub(super) fn inside(bytes: &[u8], network: &Network, decap: Decap) -> Option<Inside> {
    let start = network.start;
    let inside = match network.next_header {
        4 | 41 if decap.has(Decap::IPIP) => Some(Inside::Ip(start)),
        47 => match number(bytes, start + 2)? {
            0x88be | 0x22eb if decap.has(Decap::ERSPAN) => erspan(bytes, start),
            0x88be | 0x22eb => return None,
            _ if decap.has(Decap::GRE) => gre(bytes, start),
            _ => return None,
        },
        // A port below 1024 is that of a service, which an attacker may have made answer to the port of a tunnel.
        17 if number(bytes, start)? < 1024 => return None,
        17 => match number(bytes, start + 2)? {
            4789 | 8472 if decap.has(Decap::VXLAN) => vxlan(bytes, start + 8),
            6081 if decap.has(Decap::GENEVE) => geneve(bytes, start + 8),
            2152 if decap.has(Decap::GTP_U) => gtp_u(bytes, start + 8),
            37008 if decap.has(Decap::TZSP) => tzsp(bytes, start + 8),
            _ => return None,
        },
        _ => return None,
    };
    Some(inside.unwrap_or(Inside::Other))
}

fn ethertype(ethertype: u16, at: usize) -> Option<Inside> {
    matches!(ethertype, 0x0800 | 0x86dd | 0x8847 | 0x6558).then_some(Inside::Ethertype(ethertype, at))
}

/// RFC 2784 and RFC 2890. Each of three flags adds four bytes. Returns the flags, and where the content begins.
fn gre_header(bytes: &[u8], at: usize) -> Option<(u16, usize)> {
    let flags = number(bytes, at)?;
    let optional = (flags & 0xb000).count_ones() as usize;
    (flags & 0x4007 == 0).then_some((flags, at + 4 + 4 * optional))
}

fn gre(bytes: &[u8], at: usize) -> Option<Inside> {
    let (_, inside) = gre_header(bytes, at)?;
    ethertype(number(bytes, at + 2)?, inside)
}

/// draft-foschiano-erspan-03, 4. Types II and III have a header; its version is 1 or 2.
fn erspan(bytes: &[u8], at: usize) -> Option<Inside> {
    let (flags, start) = gre_header(bytes, at)?;
    let version = || bytes.get(start).map(|first| first >> 4);
    if number(bytes, at + 2)? == 0x88be {
        return match (flags & 0x1000 != 0, version()) {
            (false, _) => Some(Inside::Ethertype(0x6558, start)),
            (true, Some(1)) => Some(Inside::Ethertype(0x6558, start + 8)),
            (true, _) => None,
        };
    }
    let last = number(bytes, start + 10)?;
    let inside = start + if last % 2 == 1 { 20 } else { 12 };
    match (version()?, last >> 10 & 31) {
        (2, 0) => Some(Inside::Ethertype(0x6558, inside)),
        (2, 2) => Some(Inside::Ip(inside)),
        _ => None,
    }
}

/// RFC 7348, 5.
fn vxlan(bytes: &[u8], at: usize) -> Option<Inside> {
    let has_identifier = bytes.get(at)? & 0x08 != 0;
    has_identifier.then_some(Inside::Ethertype(0x6558, at + 8))
}

/// RFC 8926, 3.4.
fn geneve(bytes: &[u8], at: usize) -> Option<Inside> {
    let [version_and_len, flags, high, low] = array(bytes, at)?;
    let is_data = version_and_len < 0x40 && flags < 0x80;
    let header = 8 + 4 * usize::from(version_and_len & 0x3f);
    if is_data { ethertype(u16::from_be_bytes([high, low]), at + header) } else { None }
}

/// TS 29.281, 5.1 and 5.2.
fn gtp_u(bytes: &[u8], at: usize) -> Option<Inside> {
    let [flags, message] = array(bytes, at)?;
    if flags >> 5 != 1 || flags & 0x10 == 0 || message != 0xff {
        return None;
    }
    let (has_optional, has_extensions) = (flags.trailing_zeros() < 3, flags & 4 != 0);
    let mut at = if has_optional { at + 12 } else { at + 8 };
    if has_extensions {
        let mut headers = 0;
        // The last byte of each header is the type of the next.
        while *bytes.get(at - 1)? != 0 {
            headers += 1;
            match bytes.get(at)? {
                0 => return None,
                units => at += 4 * usize::from(*units),
            }
        }
        if headers > 4 {
            return None;
        }
    }
    Some(Inside::Ip(at))
}

/// A received Ethernet frame behind up to eight fields. Their first byte is their type: 1 ends them, and 0 is alone.
fn tzsp(bytes: &[u8], at: usize) -> Option<Inside> {
    if bytes.get(at..at + 4)? != [1, 0, 0, 1] {
        return None;
    }
    let (mut at, mut fields) = (at + 4, 0);
    while *bytes.get(at)? != 1 {
        fields += 1;
        at += match bytes[at] {
            0 => 1,
            _ => 2 + usize::from(*bytes.get(at + 1)?),
        };
    }
    (fields <= 8).then_some(Inside::Ethertype(0x6558, at + 1))
}
