"""Which of the headers in a packet is the one whose content is measured.

17. VLAN tags and MPLS labels (up to four each) and PPPoE are skipped. The content of a tunnel is measured if the
    tunnel's kind is listed with --decap and it holds no tunnel itself, listed or not. Else neither the content nor the
    tunnel is measured. GRE is that of version 0 without routing, VXLAN has its I bit set, Geneve is
    of version 0 and no control packet, and of GTP-U version 1 only G-PDUs count.
18. Of an IP packet in fragments, the first is measured and the others are not. Lengths are those of the IP header,
    except that length 0 in IPv4 stands for what the frame has.
"""

from typing import NamedTuple

TUNNELS = ("ipip", "gre", "vxlan", "geneve", "gtp-u")
UDP_TUNNELS = {
    "vxlan": ("vxlan", (4789, 8472)),
    "geneve": ("geneve", (6081,)),
    "gtp": ("gtp-u", (2152,)),
}
ETHERNET, MPLS = 0x6558, (0x8847, 0x8848)
VXLAN_HAS_NETWORK = 0x0800
GENEVE_CONTROL = 0x80
GTP_G_PDU = 0xFF
# VLAN tags or MPLS labels in a row.
MOST_TAGS = 4

# Between the link layer and the IP header.
BELOW_IP = {"eth", "ethertype", "vlan", "ieee8021ad", "mpls", "pppoes", "ppp"}
LINKS = BELOW_IP | {"sll", "raw", "null", "ppp_hdlc"}
EXTENSIONS = {"ipv6.hopopts", "ipv6.routing", "ipv6.fraghdr", "ipv6.dstopts", "ah"}

FIELDS = [
    "frame.protocols",
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
]


class Header(NamedTuple):
    """An IP header with what is behind it."""

    family: str
    # Which of its family it is.
    occurrence: int
    # Bytes behind the header and its extensions, by its length field.
    payload: int
    # The protocols behind them.
    inside: list[str]


def measured_header(line, decap):
    """The IP header in front of what is measured, or None if nothing is."""
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
    """The IP header in front of which these layers have none but those in `below`."""
    at = next((index for index, layer in enumerate(layers) if layer in ("ip", "ipv6")), None)
    if at is None or not below.issuperset(layers[:at]):
        return None
    tags = sum(layer in ("vlan", "ieee8021ad") for layer in layers[:at])
    labels = len(line.fields["mpls.label"].split(",")) if "mpls" in layers[:at] else 0
    if tags > MOST_TAGS or labels > MOST_TAGS:
        return None

    # All layers of the packet: a layer is numbered by those of its kind before it.
    whole = line.text("frame.protocols").split(":")
    offset = len(whole) - len(layers)

    def occurrence(index):
        return whole[: offset + index].count(whole[offset + index])

    which = occurrence(at)
    if layers[at] == "ip":
        payload = (line.number("ip.len", which) or 0) - (line.number("ip.hdr_len", which) or 0)
    else:
        payload = line.number("ipv6.plen", which) or 0
    end = at + 1
    while end < len(layers) and layers[end] in EXTENSIONS:
        payload -= extension_length(line, layers[end], occurrence(end))
        end += 1
        # What kind of routing it is follows as a protocol of its own.
        while end < len(layers) and layers[end].startswith("ipv6.routing."):
            end += 1
    return Header(layers[at], which, payload, layers[end:])


def extension_length(line, layer, occurrence):
    if layer == "ipv6.fraghdr":
        return 8
    if layer == "ah":
        return 4 * (line.number("ah.length", occurrence) or 0) + 8
    return line.number(layer + ".len_oct", occurrence) or 0


def tunnel(line, layers):
    """The kind of tunnel that begins with these layers if one does, what it carries, and what may precede IP there."""
    match layers:
        case ["ip" | "ipv6", *_]:
            return "ipip", layers, set()
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
            if protocol == "vxlan":
                is_data, ethertype = line.number("vxlan.flags") & VXLAN_HAS_NETWORK, ETHERNET
            else:
                is_data = line.number("geneve.version") == 0 and not line.number("geneve.flags") & GENEVE_CONTROL
                ethertype = line.number("geneve.proto_type")
            return kind, inside if is_data else [], carried_by(ethertype)
    return None, [], set()


def carried_by(ethertype):
    """The layers that may stand between a tunnel's header and the IP header inside."""
    if ethertype in MPLS:
        return {"mpls"}
    return BELOW_IP if ethertype == ETHERNET else set()
