"""The packets of a capture, dissected by tshark.

tshark dissects each packet by itself, and only the protocols below. So the layers are those in the bytes, not those that
a port or an earlier packet suggests. `frame.protocols` names the layers from the outside in. If several layers have a
field, its values have the same order, so the fields of the first IP header come first.

If PPING_DISSECTED names a folder, tshark's output for each capture is kept there and used again.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile

import capture_dns
import capture_icmp
import capture_layers
import capture_quic
import capture_tcp
from capture_layers import EXTENSIONS, LINKS, measured_header
from rules_base import Packet

FOLDER = "PPING_DISSECTED"

ABOVE_IP = {"tcp", "udp", "icmp", "icmpv6", "gre", "vxlan", "geneve", "gtp", "erspan", "tzsp", "dns"}
KNOWN = LINKS | EXTENSIONS | ABOVE_IP | {"frame", "ip", "ipv6", "data"}

# The direction in the flags of a packet in a pcapng file, and what its values say of going out.
DIRECTION = "frame.packet_flags_direction"
DIRECTIONS = {"1": False, "0x00000001": False, "2": True, "0x00000002": True}

FIELDS = ["frame.time_epoch", "frame.interface_id", "frame.interface_name", "sll.ifindex"]
FIELDS += [DIRECTION]
FIELDS += capture_layers.FIELDS + capture_tcp.FIELDS + capture_icmp.FIELDS
FIELDS += capture_quic.FIELDS + capture_dns.FIELDS


def datagram_of(line, header):
    """Returns the content of a UDP datagram: DNS if a port is a server's, otherwise QUIC."""
    return capture_dns.message_of(line, header) or capture_quic.quic_of(line, header)


# The parser of each protocol. It returns the ports and the content of a packet, or None if no rule measures it.
CONTENTS = {
    ("ip", "tcp"): capture_tcp.segment_of,
    ("ipv6", "tcp"): capture_tcp.segment_of,
    ("ip", "icmp"): capture_icmp.echo_of,
    ("ipv6", "icmpv6"): capture_icmp.echo_of,
    ("ip", "udp"): datagram_of,
    ("ipv6", "udp"): datagram_of,
}
# Each packet by itself: no reassembly, and no guesses from earlier packets.
PREFERENCES = [
    "ip.defragment:FALSE",
    "ipv6.defragment:FALSE",
    "tcp.desegment_tcp_streams:FALSE",
    "tcp.analyze_sequence_numbers:FALSE",
]


class Line:
    """tshark's output for one packet."""

    def __init__(self, text):
        self.fields = dict(zip(FIELDS, text.rstrip("\n").split("\t")))

    def text(self, name, occurrence=0):
        values = self.fields[name].split(",")
        # tshark prints <MISSING> for an empty field.
        return values[occurrence].replace("<MISSING>", "") if occurrence < len(values) else ""

    def number(self, name, occurrence=0):
        value = self.text(name, occurrence)
        return int(value, 0) if value else None


def read(file, decap=()):
    """Yields the packets of a capture, looking into the given kinds of tunnels."""
    folder = os.environ.get(FOLDER)
    with contextlib.nullcontext(folder) if folder else tempfile.TemporaryDirectory() as folder:
        with open(dissected(file, folder), encoding="utf-8") as lines:
            for text in lines:
                packet = packet_of(Line(text), decap)
                if packet is not None:
                    yield packet


def dissected(file, folder):
    """Returns a file in the folder with tshark's output, a line for each packet of a capture."""
    command = ["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-d", "udp.port==8472,vxlan"]
    # An ethertype of tags that tshark does not know.
    command += ["-d", "ethertype==0x9200,ieee8021ad"]
    for preference in PREFERENCES:
        command += ["-o", preference]
    for field in FIELDS:
        command += ["-e", field]
    with open(file, "rb") as capture:
        content = hashlib.sha256(capture.read())
    # Another version of tshark, or with other protocols, may give another output.
    tshark = os.stat(shutil.which("tshark") or "tshark")
    version = repr((sorted(KNOWN), tshark.st_size, tshark.st_mtime_ns)).encode()
    content.update(repr(command).encode() + version)
    without = f"disabled_protos-{hashlib.sha256(version).hexdigest()}"
    with tempfile.TemporaryDirectory() as configuration:
        environment = os.environ | {"WIRESHARK_CONFIG_DIR": configuration}

        def dissect(lines):
            disabled = made_once(folder, without, lambda names: unknown_protocols(environment, names))
            shutil.copy(disabled, os.path.join(configuration, "disabled_protos"))
            # tshark's messages (for example, that it runs as root) matter only if it fails. If a capture ends in the
            # middle of a packet, the packets before it are fine.
            ended = subprocess.run(
                ["tshark", "-n", "-r", file, *command], stdout=lines, stderr=subprocess.PIPE, env=environment
            )
            complaint = ended.stderr.decode(errors="replace")
            if ended.returncode != 0 and "cut short" not in complaint:
                raise SystemExit(f"tshark failed on {file}: {complaint.strip()}")

        return made_once(folder, content.hexdigest(), dissect)


def made_once(folder, name, make):
    """Returns a file in the folder. The first process that needs it creates it."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        # An incomplete file is deleted with its temporary folder.
        with tempfile.TemporaryDirectory(dir=folder) as half_made:
            with open(os.path.join(half_made, name), "wb") as made:
                make(made)
            os.replace(made.name, path)
    return path


def unknown_protocols(environment, names):
    """Writes the filter names of all tshark protocols that are not in KNOWN."""
    command = ["tshark", "-G", "protocols"]
    listing = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    found = {line.split("\t")[2] for line in listing.stdout.splitlines()}
    for name in sorted(found):
        if name not in KNOWN and not name.startswith("ipv6.routing."):
            names.write(f"{name}\n".encode("ascii"))


def packet_of(line, decap):
    """Returns the packet in a line, or None if it has no time."""
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
    return Packet(now, interface_of(line), source, target, content, DIRECTIONS.get(line.text(DIRECTION)))


def interface_of(line):
    return "/".join(line.text(name) for name in ("frame.interface_id", "frame.interface_name", "sll.ifindex"))


def content_of(line, header):
    """Returns ports and content of a packet, if it is of a kind that is measured."""
    take_apart = CONTENTS.get((header.family, header.inside[0] if header.inside else None))
    return take_apart and take_apart(line, header)


def nanoseconds(seconds):
    """Converts decimal seconds to whole nanoseconds. A float would lose the last three digits."""
    whole, _, fraction = seconds.partition(".")
    return int(whole) * 10**9 + int((fraction + "000000000")[:9])
