"""The DNS messages over UDP in a capture."""

from rules_dns import Message

# The ports are among the fields of QUIC.
FIELDS = ["dns.id", "dns.flags"]
HEADERS = 8 + 12
PORTS = (53,)


def message_of(line, header):
    """Returns the ports and the message, if it has a whole header and goes to or comes from a server."""
    if header.inside[1:2] != ["dns"] or header.payload < HEADERS:
        return None
    # An outer header may be UDP too.
    before = line.text("frame.protocols").split(":").count("udp") - header.inside.count("udp")
    source, target = line.number("udp.srcport", before), line.number("udp.dstport", before)
    identifier, flags = line.number("dns.id"), line.number("dns.flags")
    if identifier is None or flags is None:
        return None
    is_response = flags >> 15 == 1
    if (source if is_response else target) not in PORTS:
        return None
    return source, target, Message(identifier, is_response, flags & 15)
