"""The echoes in a capture."""

from rules_icmp import Echo

FIELDS = [
    "icmp.type",
    "icmp.code",
    "icmp.ident",
    "icmp.seq",
    "icmpv6.type",
    "icmpv6.code",
    "icmpv6.echo.identifier",
    "icmpv6.echo.sequence_number",
    "icmp.data_time",
    "data.data",
]
NAMES = {
    "ip": ("icmp.type", "icmp.code", "icmp.ident", "icmp.seq"),
    "ipv6": ("icmpv6.type", "icmpv6.code", "icmpv6.echo.identifier", "icmpv6.echo.sequence_number"),
}
ECHO_REQUEST, ECHO_REPLY = (8, 128), (0, 129)
# Hexadecimal digits of the data that are compared, and of the time that tshark may find at its beginning.
COMPARED, TIME = 32, 16


def echo_of(line, header):
    """Returns the identifier, as both ports, and the echo."""
    # An error quotes a packet, whose fields follow those of the error itself.
    kind, code, identifier, sequence = (line.number(name) for name in NAMES[header.family])
    if kind not in ECHO_REQUEST + ECHO_REPLY or code != 0 or identifier is None or sequence is None:
        return None
    return identifier, identifier, Echo(sequence, kind in ECHO_REQUEST, first_data(line))


def first_data(line):
    """Returns the first 16 bytes of data, as text; nothing if there are fewer."""
    # The time has a comma.
    time, data = line.fields["icmp.data_time"], line.text("data.data")
    compared = COMPARED - TIME if time else COMPARED
    return (time, data[:compared]) if len(data) >= compared else None
