"""The packets of a capture, dissected by tshark.

tshark dissects each packet by itself, and only the protocols below: the layers are those in the bytes, not those that
a port or an earlier packet suggests. `frame.protocols` names them from the outside in; a
field that several layers have is listed in the same order, so the fields of the first IP header come first.
"""

import os
import subprocess
import tempfile

import capture_dns
import capture_icmp
import capture_layers
import capture_quic
import capture_tcp
from capture_layers import EXTENSIONS, LINKS, measured_header
from rules_base import Packet

ABOVE_IP = {"tcp", "udp", "icmp", "icmpv6", "gre", "vxlan", "geneve", "gtp", "dns"}
KNOWN = LINKS | EXTENSIONS | ABOVE_IP | {"frame", "ip", "ipv6", "data"}

FIELDS = ["frame.time_epoch", "frame.interface_id", "frame.interface_name", "sll.ifindex"]
FIELDS += capture_layers.FIELDS + capture_tcp.FIELDS + capture_icmp.FIELDS
FIELDS += capture_quic.FIELDS + capture_dns.FIELDS


def datagram_of(line, header):
    """The content of a UDP datagram: DNS by the port of the server, or else QUIC."""
    return capture_dns.message_of(line, header) or capture_quic.quic_of(line, header)


# The parser of each content: ports and content of a packet, or None for a kind that is not measured.
CONTENTS = {
    ("ip", "tcp"): capture_tcp.segment_of,
    ("ipv6", "tcp"): capture_tcp.segment_of,
    ("ip", "icmp"): capture_icmp.echo_of,
    ("ipv6", "icmpv6"): capture_icmp.echo_of,
    ("ip", "udp"): datagram_of,
    ("ipv6", "udp"): datagram_of,
}
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
        # tshark calls a field of no bytes missing.
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


def content_of(line, header):
    """Ports and content of a packet, if it is of a kind that is measured."""
    take_apart = CONTENTS.get((header.family, header.inside[0] if header.inside else None))
    return take_apart and take_apart(line, header)


def nanoseconds(seconds):
    """A decimal number of seconds as whole nanoseconds; a float would lose the last three digits."""
    whole, _, fraction = seconds.partition(".")
    return int(whole) * 10**9 + int((fraction + "000000000")[:9])
