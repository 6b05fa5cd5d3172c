//! Ethertypes and the protocol numbers of PPP.

pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(crate) const ETHERTYPE_IPV6: u16 = 0x86dd;
/// MPLS (RFC 3032, 5), unicast and multicast.
pub(crate) const ETHERTYPE_MPLS: u16 = 0x8847;
pub(super) const ETHERTYPE_MPLS_MULTICAST: u16 = 0x8848;
/// IEEE 802.1Q.
const ETHERTYPE_VLAN: u16 = 0x8100;
/// IEEE 802.1ad, the outer tag of `QinQ`.
const ETHERTYPE_SERVICE_VLAN: u16 = 0x88a8;
/// The outer tag of `QinQ` before it was a standard, still in use.
const ETHERTYPE_OLD_SERVICE_VLAN: u16 = 0x9100;
const ETHERTYPE_OLDER_SERVICE_VLAN: u16 = 0x9200;
/// A `PPPoE` session (RFC 2516, 4).
pub(super) const ETHERTYPE_PPPOE_SESSION: u16 = 0x8864;
/// Protocol numbers of PPP (RFC 1332, RFC 5072, RFC 3032).
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
const PPP_MPLS: u16 = 0x0281;

#[inline(always)]
pub(super) fn is_vlan(ethertype: u16) -> bool {
    matches!(
        ethertype,
        ETHERTYPE_VLAN | ETHERTYPE_SERVICE_VLAN | ETHERTYPE_OLD_SERVICE_VLAN | ETHERTYPE_OLDER_SERVICE_VLAN
    )
}

/// Whether an ethertype is the length of an IEEE 802.3 frame.
#[inline(always)]
pub(super) fn is_length(ethertype: u16) -> bool {
    /// The longest frame. Ethertypes begin at 0x600.
    const LONGEST: u16 = 1500;
    ethertype.wrapping_sub(1) < LONGEST
}

/// Returns a PPP protocol number and its length in bytes. `start` has the two bytes where it begins. The first byte of a
/// number is even and the second odd, so the first can be left out if it is 0 (RFC 1661, 6.5).
#[inline(always)]
pub(super) fn ppp_protocol(start: [u8; 2]) -> (u16, usize) {
    if start[0] & 1 == 0 { (u16::from_be_bytes(start), 2) } else { (u16::from(start[0]), 1) }
}

/// Returns the ethertype for a PPP protocol number; 0, which is no ethertype, for an unknown one.
#[inline(always)]
pub(super) fn ethertype_of_ppp(protocol: u16) -> u16 {
    match protocol {
        PPP_IPV4 => ETHERTYPE_IPV4,
        PPP_IPV6 => ETHERTYPE_IPV6,
        PPP_MPLS => ETHERTYPE_MPLS,
        _ => 0,
    }
}
