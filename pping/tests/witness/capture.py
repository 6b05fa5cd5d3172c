"""The packets of a capture, as tshark takes them apart.

tshark is told to look at each packet for itself, and at no protocol but those below: what is left has the layers that
the octets say, not what a port or an earlier packet suggests. `frame.protocols` names them from the outside in; a
field that several layers have is listed in the same order, so the fields of the first IP header come first.
"""

import os
import subprocess
import tempfile
from typing import NamedTuple

from rules import Echo, Packet, Segment

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
ECHO_REQUEST, ECHO_REPLY = (8, 128), (0, 129)
# VLAN tags or MPLS labels in a row.
MOST_TAGS = 4

# Between the link layer and the IP header.
BELOW_IP = {"eth", "ethertype", "vlan", "ieee8021ad", "mpls", "pppoes", "ppp"}
LINKS = BELOW_IP | {"sll", "raw", "null", "ppp_hdlc"}
EXTENSIONS = {"ipv6.hopopts", "ipv6.routing", "ipv6.fraghdr", "ipv6.dstopts", "ah"}
ABOVE_IP = {"tcp", "udp", "icmp", "icmpv6", "gre", "vxlan", "geneve", "gtp"}
KNOWN = LINKS | EXTENSIONS | ABOVE_IP | {"frame", "ip", "ipv6", "data"}

FIELDS = [
    "frame.time_epoch",
    "frame.interface_id",
    "frame.interface_name",
    "frame.protocols",
    "sll.ifindex",
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
    "tcp.srcport",
    "tcp.dstport",
    "tcp.flags",
    "tcp.hdr_len",
    "tcp.urgent_pointer",
    "tcp.len",
    "tcp.options",
    "icmp.type",
    "icmp.ident",
    "icmp.seq",
    "icmpv6.type",
    "icmpv6.echo.identifier",
    "icmpv6.echo.sequence_number",
]
# Each packet for itself: nothing put together from several, nothing guessed from those before.
PREFERENCES = [
    "ip.defragment:FALSE",
    "ipv6.defragment:FALSE",
    "tcp.desegment_tcp_streams:FALSE",
    "tcp.analyze_sequence_numbers:FALSE",
]


class Line:
    """What tshark says of one packet."""

    def __init__(self, text):
        self.fields = dict(zip(FIELDS, text.rstrip("\n").split("\t")))

    def text(self, name, occurrence=0):
        values = self.fields[name].split(",")
        # tshark calls a field of no octets missing.
        return values[occurrence].replace("<MISSING>", "") if occurrence < len(values) else ""

    def number(self, name, occurrence=0):
        value = self.text(name, occurrence)
        return int(value, 0) if value else None


def read(file, decap=()):
    """Yields the packets of a capture, looking into the given kinds of tunnels."""
    command = ["tshark", "-n", "-r", file, "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a"]
    command += ["-d", "udp.port==8472,vxlan"]
    for preference in PREFERENCES:
        command += ["-o", preference]
    for field in FIELDS:
        command += ["-e", field]
    with tempfile.TemporaryDirectory() as configuration:
        environment = os.environ | {"WIRESHARK_CONFIG_DIR": configuration}
        with open(os.path.join(configuration, "disabled_protos"), "w", encoding="ascii") as disabled:
            disabled.writelines(f"{protocol}\n" for protocol in unknown_protocols(environment))
        # What tshark has to say besides (that it runs as root, say) matters only if it fails.
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as tshark:
            for text in tshark.stdout:
                packet = packet_of(Line(text), decap)
                if packet is not None:
                    yield packet
            complaint = tshark.stderr.read()
    # In a capture that is cut short in the middle of a packet those before it are fine.
    if tshark.returncode != 0 and "cut short" not in complaint:
        raise SystemExit(f"tshark failed on {file}: {complaint.strip()}")


def unknown_protocols(environment):
    """The filter names of all protocols of tshark that this file does not speak of."""
    command = ["tshark", "-G", "protocols"]
    listing = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    names = {line.split("\t")[2] for line in listing.stdout.splitlines()}
    return sorted(name for name in names if name not in KNOWN and not name.startswith("ipv6.routing."))


def packet_of(line, decap):
    """The packet in a line, or None where it has no time."""
    if not line.text("frame.time_epoch"):
        return None
    now = nanoseconds(line.text("frame.time_epoch"))
    header = measured_header(line, decap)
    content = header and content_of(line, header)
    if content is None:
        return Packet(now)
    source_port, destination_port, content = content
    source = (line.text(header.family + ".src", header.occurrence), source_port)
    target = (line.text(header.family + ".dst", header.occurrence), destination_port)
    return Packet(now, interface_of(line), source, target, content)


def interface_of(line):
    return "/".join(line.text(name) for name in ("frame.interface_id", "frame.interface_name", "sll.ifindex"))


class Header(NamedTuple):
    """An IP header with what is behind it."""

    family: str
    # Which of its family it is.
    occurrence: int
    # Octets behind the header and its extensions, by its length field.
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

    # All layers of the packet: what came before tells which of its kind a layer is.
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


def content_of(line, header):
    """Ports and content of a packet, if it is of a kind that is measured."""
    match header.family, header.inside[0] if header.inside else None:
        case _, "tcp":
            return segment_of(line, header.payload)
        case ("ip", "icmp"):
            names = ("icmp.type", "icmp.ident", "icmp.seq")
        case ("ipv6", "icmpv6"):
            names = ("icmpv6.type", "icmpv6.echo.identifier", "icmpv6.echo.sequence_number")
        case _:
            return None
    # An error quotes a packet, whose fields follow those of the error itself.
    kind, identifier, sequence = (line.number(name) for name in names)
    if kind not in ECHO_REQUEST + ECHO_REPLY or identifier is None or sequence is None:
        return None
    return identifier, identifier, Echo(sequence, kind in ECHO_REQUEST)


def segment_of(line, ip_payload):
    """The ports and the segment, if all of its fixed header is there and the data offset can be right."""
    header_length, length = line.number("tcp.hdr_len"), line.number("tcp.len")
    if header_length is None or header_length < 20 or line.number("tcp.urgent_pointer") is None:
        return None
    if length is None:
        # tshark does not tell the length of a fragment.
        length = ip_payload - header_length
        if length < 0:
            return None
    stamps = timestamps_in(bytes.fromhex(line.text("tcp.options")), header_length - 20)
    if stamps is None:
        return None
    segment = Segment(line.number("tcp.flags"), length, *stamps)
    return line.number("tcp.srcport"), line.number("tcp.dstport"), segment


def timestamps_in(options, length):
    """TSval and TSecr of the first timestamps option, (None, None) without one, None if the capture ends before it."""
    at = 0
    while at < length:
        if at >= len(options):
            return None
        kind = options[at]
        if kind == 0:
            break
        if kind == 1:
            at += 1
            continue
        if at + 1 >= length:
            break
        if at + 1 >= len(options):
            return None
        size = options[at + 1]
        if size < 2 or at + size > length or kind == 8 and size != 10:
            break
        if kind == 8:
            if at + size > len(options):
                return None
            return int.from_bytes(options[at + 2 : at + 6], "big"), int.from_bytes(options[at + 6 : at + 10], "big")
        at += size
    return None, None


def nanoseconds(seconds):
    """A decimal number of seconds as whole nanoseconds; a float would lose the last three digits."""
    whole, _, fraction = seconds.partition(".")
    return int(whole) * 10**9 + int((fraction + "000000000")[:9])
