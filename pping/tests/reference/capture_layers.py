"""Selects the header in a packet whose content is measured.

17. VLAN tags and MPLS labels (up to four each), SNAP (RFC 1042) and PPPoE are skipped. Behind MPLS labels, a header is IP
    only if its length is that of the rest of the frame, with at most 46 bytes of padding: it may be an Ethernet header
    whose first byte looks like a version (this script checks that outside of tunnels on Ethernet only). The content of a tunnel is measured if the
    tunnel's kind is listed with --decap and the tunnel holds no other tunnel, listed or not. Otherwise neither the
    content nor the tunnel is measured. GRE must have version 0 and no routing, VXLAN must have its I bit set, Geneve
    must have version 0 and not be a control packet, and of GTP-U version 1 only G-PDUs count. GRE with the protocols of
    ERSPAN is not GRE but ERSPAN: type I without a sequence number, otherwise with the version of its type. TZSP must have
    version 1 and be a received Ethernet frame, with at most eight tagged fields before the end.
18. Only the first fragment of an IP packet is measured. Lengths are those of the IP header, except that an IPv4 length
    of 0 stands for the rest of the frame.
"""

from typing import NamedTuple

TUNNELS = ("ipip", "gre", "vxlan", "geneve", "gtp-u", "erspan", "tzsp")
UDP_TUNNELS = {
    "vxlan": ("vxlan", (4789, 8472)),
    "geneve": ("geneve", (6081,)),
    "gtp": ("gtp-u", (2152,)),
    "tzsp": ("tzsp", (37008,)),
}
ETHERNET, MPLS = 0x6558, (0x8847, 0x8848)
VXLAN_HAS_NETWORK = 0x0800
GENEVE_CONTROL = 0x80
GTP_G_PDU = 0xFF
GRE_SEQUENCE = 0x1000
# The GRE protocols of ERSPAN types II and III, and the versions in their headers.
ERSPAN_VERSIONS = {0x88BE: 1, 0x22EB: 2}
# Version, type and encapsulated protocol of a received Ethernet frame, and the most fields before it.
TZSP_RECEIVED, MOST_TZSP_FIELDS = (1, 0, 1), 8
# The most VLAN tags or MPLS labels in a row.
MOST_TAGS = 4
MOST_PADDING = 46
# Bytes of the headers that may come before MPLS labels on Ethernet. An MPLS packet has a PPP protocol number of two bytes.
LENGTHS = {"eth": 14, "ethertype": 0, "vlan": 4, "ieee8021ad": 4, "llc": 8, "pppoes": 6, "ppp": 2}
SNAP = (0xAA, 0xAA, 0x03, 0)

# Between the link layer and the IP header.
BELOW_IP = {"eth", "ethertype", "vlan", "ieee8021ad", "llc", "mpls", "pppoes", "ppp"}
LINKS = BELOW_IP | {"sll", "raw", "null", "ppp_hdlc"}
EXTENSIONS = {"ipv6.hopopts", "ipv6.routing", "ipv6.fraghdr", "ipv6.dstopts", "ah"}

FIELDS = [
    "frame.protocols",
    "frame.len",
    "llc.dsap",
    "llc.ssap",
    "llc.control",
    "llc.oui",
    "mpls.label",
    "ip.src",
    "ip.dst",
    "ip.len",
    "ip.hdr_len",
    "ipv6.src",
    "ipv6.dst",
    "ipv6.plen",
    "ipv6.hopopts.len_oct",
    "ipv6.routing.len_oct",
    "ipv6.dstopts.len_oct",
    "ah.length",
    "gre.flags_and_version",
    "gre.proto",
    "udp.dstport",
    "vxlan.flags",
    "geneve.version",
    "geneve.flags",
    "geneve.proto_type",
    "gtp.flags.version",
    "gtp.message",
    "erspan.version",
    "tzsp.version",
    "tzsp.type",
    "tzsp.encap",
    "tzsp.option_tag",
]


class Header(NamedTuple):
    """An IP header and its content."""

    family: str
    # Its index among the headers of its family.
    occurrence: int
    # Bytes behind the header and its extensions, by its length field.
    payload: int
    # The protocols behind the header and its extensions.
    inside: list[str]


def measured_header(line, decap):
    """Returns the IP header in front of the measured content, or None if nothing is measured."""
    layers = line.text("frame.protocols").split(":")
    outer = ip_header(line, layers, LINKS)
    if outer is None:
        return None
    kind, inside, below = tunnel(line, outer.inside)
    if kind is None:
        return outer
    if kind not in decap:
        return None
    inner = ip_header(line, inside, below)
    return inner if inner is not None and tunnel(line, inner.inside)[0] is None else None


def ip_header(line, layers, below):
    """Returns the first IP header in these layers, if only layers in `below` precede it."""
    at = next((index for index, layer in enumerate(layers) if layer in ("ip", "ipv6")), None)
    if at is None or not below.issuperset(layers[:at]):
        return None
    tags = sum(layer in ("vlan", "ieee8021ad") for layer in layers[:at])
    labels = len(line.fields["mpls.label"].split(",")) if "mpls" in layers[:at] else 0
    if tags > MOST_TAGS or labels > MOST_TAGS:
        return None

    # The occurrence of a layer is the number of layers of its kind before it in the whole packet.
    whole = line.text("frame.protocols").split(":")
    offset = len(whole) - len(layers)

    def occurrence(index):
        return whole[: offset + index].count(whole[offset + index])

    if "llc" in layers[:at] and not is_snap(line, occurrence(layers.index("llc"))):
        return None
    which = occurrence(at)
    if layers[at] == "ip":
        length = line.number("ip.len", which) or 0
        payload = length - (line.number("ip.hdr_len", which) or 0)
    else:
        payload = line.number("ipv6.plen", which) or 0
        length = 40 + payload
    if layers[0] == "eth" and offset == 0 and "mpls" in layers[:at]:
        rest = line.number("frame.len") - 4 * labels - sum(LENGTHS.get(layer, 0) for layer in layers[:at])
        if not 0 <= rest - length <= MOST_PADDING:
            return None
    end = at + 1
    while end < len(layers) and layers[end] in EXTENSIONS:
        payload -= extension_length(line, layers[end], occurrence(end))
        end += 1
        # tshark lists the type of a routing header as a protocol of its own.
        while end < len(layers) and layers[end].startswith("ipv6.routing."):
            end += 1
    return Header(layers[at], which, payload, layers[end:])


def is_snap(line, occurrence):
    fields = ("llc.dsap", "llc.ssap", "llc.control", "llc.oui")
    return tuple(line.number(field, occurrence) for field in fields) == SNAP


def extension_length(line, layer, occurrence):
    if layer == "ipv6.fraghdr":
        return 8
    if layer == "ah":
        return 4 * (line.number("ah.length", occurrence) or 0) + 8
    return line.number(layer + ".len_oct", occurrence) or 0


def tunnel(line, layers):
    """Returns the kind of tunnel that begins with these layers, what it carries, and which layers may precede IP there."""
    match layers:
        case ["ip" | "ipv6", *_]:
            return "ipip", layers, set()
        case ["gre", "erspan", *inside]:
            return "erspan", inside if is_mirrored(line) else [], BELOW_IP
        case ["gre", *inside]:
            # Version 0 without routing; bits that RFC 2784 and 2890 do not know are ignored.
            is_plain = line.number("gre.flags_and_version") & 0x4007 == 0
            return "gre", inside if is_plain else [], carried_by(line.number("gre.proto"))
        case ["udp", protocol, *inside] if protocol in UDP_TUNNELS:
            kind, ports = UDP_TUNNELS[protocol]
            if line.number("udp.dstport") not in ports:
                return None, [], set()
            if protocol == "gtp":
                is_data = line.number("gtp.flags.version") == 1 and line.number("gtp.message") == GTP_G_PDU
                return kind, inside if is_data else [], set()
            if protocol == "tzsp":
                # The end is a field too.
                fields = len(line.fields["tzsp.option_tag"].split(",")) - 1
                start = tuple(line.number("tzsp." + name) for name in ("version", "type", "encap"))
                return kind, inside if start == TZSP_RECEIVED and fields <= MOST_TZSP_FIELDS else [], BELOW_IP
            if protocol == "vxlan":
                is_data, ethertype = line.number("vxlan.flags") & VXLAN_HAS_NETWORK, ETHERNET
            else:
                is_data = line.number("geneve.version") == 0 and not line.number("geneve.flags") & GENEVE_CONTROL
                ethertype = line.number("geneve.proto_type")
            return kind, inside if is_data else [], carried_by(ethertype)
    return None, [], set()


def is_mirrored(line):
    """Returns whether the headers of GRE and ERSPAN agree on the type."""
    flags, protocol = line.number("gre.flags_and_version"), line.number("gre.proto")
    if flags & 0x4007:
        return False
    is_headed = protocol != 0x88BE or flags & GRE_SEQUENCE
    return not is_headed or line.number("erspan.version") == ERSPAN_VERSIONS[protocol]


def carried_by(ethertype):
    """Returns the layers that may come between a tunnel's header and the IP header inside."""
    if ethertype in MPLS:
        return {"mpls"}
    return BELOW_IP if ethertype == ETHERNET else set()
