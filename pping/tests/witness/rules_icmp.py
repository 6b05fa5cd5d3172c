"""icmp-echo

 9. An echo request is recorded, and replaces an earlier one with the same identifier and sequence number. An echo
    reply matches the request with the same two. Packets quoted in ICMP errors do not count.
10. A flow begins with an echo request. After that, replies are packets of the flow too.
"""

from typing import NamedTuple

from rules_base import Flow, Match, Pending, live_flow

IDLE = 30


class Echo(NamedTuple):
    """The fields of an echo request or reply that the rules use."""

    sequence: int
    is_request: bool


class EchoFlow(Flow):
    """The echoes of one identifier between two hosts."""

    def idle_limit(self):
        return IDLE


class Echoes:
    """All echoes."""

    def __init__(self, limits):
        self.limits = limits
        self.flows = {}

    def visit(self, packet, second):
        if "icmp-echo" not in self.limits.methods:
            return []
        sequence, is_request = packet.content
        flow = live_flow(self.flows, packet, second)
        if flow is None:
            if not is_request:
                return []
            flow = self.flows[packet.key()] = EchoFlow(packet, lambda: Pending(self.limits, self.limits.pending))
        flow.see(packet.time, second)
        if is_request:
            flow.direction(packet.source).record(sequence, packet.time)
            return []
        freed = flow.direction(packet.target).free(lambda identifier: identifier == sequence)
        return [Match("icmp-echo", sequence, time) for time in freed.values()]
