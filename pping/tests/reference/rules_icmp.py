"""icmp-echo

 9. An echo reply matches the pending request with the same identifier, sequence number and first 16 bytes of data. The data
    counts as none if there is less, or if the capture has less. If a request comes while one with the same three is pending, neither is pending from then on; but one that comes less than 2^20 ns after the first is a
    copy, and changes nothing. Packets quoted in ICMP errors do not count, nor do echoes with a code other than 0.
10. A flow begins with an echo request. After that, replies are packets of the flow too.
E1. The latest eight requests of a flow, by either endpoint, are always pending. So the ninth pushes out the oldest.
E2. A request that is pushed out is lost if it gives way: it is older than the request of a sample of the same endpoint,
    or at least 10 s old. Otherwise it is kept, if it is the rate limit or more after the newest kept request and after
    the newest request of a sample of the same endpoint.
E3. Eight requests are kept. If there are more, the oldest kept request is lost if it gives way, and otherwise the one
    that was pushed out.
E4. The rate limit is between the requests of two samples of an endpoint: a reply frees its request without a sample if
    that was sent less than the limit before or after the newest request of a sample.
Rules 1 and 2 hold. When time is set back (rule 14), all requests are forgotten, and samples.
"""

from typing import NamedTuple

from rules_base import COPY_WITHIN, OVERWRITE_AFTER, Flow, Match, live_flow

IDLE = 30


class Echo(NamedTuple):
    """The fields of an echo request or reply that the rules use."""

    sequence: int
    is_request: bool
    data: object = None


class Sender:
    """One endpoint of a flow."""

    def __init__(self):
        # When the newest request of a sample was sent.
        self.sampled = None

    def set_back(self):
        self.sampled = None


class EchoFlow(Flow):
    """The echoes of one identifier between two hosts."""

    def __init__(self, packet, limits):
        super().__init__(packet, Sender)
        self.limits = limits
        # The times of requests by their sender, sequence number and data, in the order in which they came.
        self.latest, self.kept = {}, {}

    def idle_limit(self):
        return IDLE

    def see(self, now, second):
        newest = self.newest
        super().see(now, second)
        if self.newest < newest:
            self.miss()

    def miss(self):
        self.latest, self.kept = {}, {}

    def gives_way(self, request, sent, now):
        """The first half of rule E2."""
        sampled = self.direction(request[0]).sampled
        return sampled is not None and sent < sampled or now - sent >= OVERWRITE_AFTER

    def request(self, source, content, now):
        request = (source, content.sequence, content.data)
        before = self.latest.get(request, self.kept.get(request))
        if before is not None:
            if now - before >= COPY_WITHIN:
                self.latest.pop(request, None)
                self.kept.pop(request, None)
            return
        if len(self.latest) == self.limits.pending:
            pushed = min(self.latest, key=self.latest.get)
            self.push_out(pushed, self.latest.pop(pushed), now)
        self.latest[request] = now

    def push_out(self, request, sent, now):
        if self.gives_way(request, sent, now):
            return
        before = [*self.kept.values()]
        sampled = self.direction(request[0]).sampled
        if sampled is not None:
            before.append(sampled)
        if self.limits.rate and before and sent - max(before) < self.limits.rate:
            return
        if len(self.kept) == self.limits.pending:
            oldest = min(self.kept, key=self.kept.get)
            if not self.gives_way(oldest, self.kept[oldest], now):
                return
            del self.kept[oldest]
        self.kept[request] = sent

    def reply(self, requester, content, now):
        """Returns when the request was sent that a reply answers, if that gives a sample."""
        request, sender = (requester, content.sequence, content.data), self.direction(requester)
        sent = self.latest.pop(request, self.kept.pop(request, None))
        if sent is None or sent > now:
            return None
        if sender.sampled is not None and self.limits.rate and abs(sent - sender.sampled) < self.limits.rate:
            return None
        sender.sampled = sent if sender.sampled is None else max(sent, sender.sampled)
        return sent


class Echoes:
    """All echoes."""

    def __init__(self, limits):
        self.limits = limits
        self.flows = {}

    def visit(self, packet, second):
        if "icmp-echo" not in self.limits.methods:
            return []
        content = packet.content
        flow = live_flow(self.flows, packet, second)
        if flow is None:
            if not content.is_request:
                return []
            flow = self.flows[packet.key()] = EchoFlow(packet, self.limits)
        if flow.passes_by(packet, second, self.limits):
            return []
        flow.see(packet.time, second)
        if content.is_request:
            flow.request(packet.source, content, packet.time)
            return []
        sent = flow.reply(packet.target, content, packet.time)
        return [] if sent is None else [Match("icmp-echo", content.sequence, sent)]
