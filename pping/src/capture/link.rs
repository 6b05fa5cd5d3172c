//! Link types by their numbers in capture files: <https://www.tcpdump.org/linktypes.html>.

use pping_common::parse::LinkType;

/// The link types that [`of_number`] knows, for messages.
pub(super) const SUPPORTED: &str = "supported are Ethernet (1), raw IP (101, 12, 14, 228, 229), Linux \
                                    cooked (113, 276), loopback (0, 108) and PPP (9, 50)";

/// The link type of a number, if it is supported.
pub(super) fn of_number(number: u32) -> Option<LinkType> {
    match number {
        1 => Some(LinkType::Ethernet),
        // The list says 101. Some systems write the number of their own DLT_RAW, or one per IP version.
        12 | 14 | 101 | 228 | 229 => Some(LinkType::Ip),
        113 => Some(LinkType::Cooked),
        276 => Some(LinkType::CookedV2),
        0 | 108 => Some(LinkType::Loopback),
        9 | 50 => Some(LinkType::Ppp),
        _ => None,
    }
}

/// Names common link types that are not supported. Messages append this to the number.
pub(super) fn name(number: u32) -> &'static str {
    match number {
        105 => " (IEEE 802.11)",
        127 => " (IEEE 802.11 with radiotap)",
        147..=162 => " (private use)",
        187 | 201 => " (Bluetooth)",
        189 | 220 | 249 => " (USB)",
        195 | 230 => " (IEEE 802.15.4)",
        227 => " (CAN)",
        239 => " (netfilter log)",
        252 => " (Wireshark's upper PDUs)",
        253 => " (netlink)",
        _ => "",
    }
}
