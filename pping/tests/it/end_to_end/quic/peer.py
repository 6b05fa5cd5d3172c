#!/usr/bin/env python3
"""One end of QUIC connections, with aioquic.

    peer.py server CERTIFICATE KEY PORT SPIN           echoes all streams until it is killed
    peer.py client ADDRESS PORT SPIN CONNECTIONS       talks, and fails if an echo is missing or different

SPIN says how to set the spin bit: `on` (as in RFC 9000, 17.4), `off` (always 0), `random` (anew in each packet) or
`greased`: on, and the QUIC bit is random in all packets but Initials (RFC 9287). aioquic has no option for this: it spins
in all connections, and sets and expects the QUIC bit.
"""

import asyncio
import random
import ssl
import sys

import aioquic.asyncio
from aioquic.quic import packet, packet_builder
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.packet_builder import QuicPacketBuilder

ALPN = ["pping-test"]
MESSAGE = b"0123456789abcdef" * 4
MESSAGES = 400
PAUSE = 0.005
PATIENCE = 20
# Long, so that a busy machine does not retransmit an Initial. A retransmission would leave the handshake without a
# sample.
INITIAL_RTT = 5


class GreasedBit(int):
    """In place of the QUIC bit: random where it is set, and set where it is read."""

    def __or__(self, other):
        return random.choice((0, int(self))) | other

    def __rand__(self, other):
        return int(self)


def grease_quic_bit():
    bit = GreasedBit(packet.PACKET_FIXED_BIT)
    encode_long = packet_builder.encode_long_header_first_byte

    def encode(version, packet_type, bits):
        first = encode_long(version, packet_type, bits)
        is_handshake = packet_type == packet.QuicPacketType.HANDSHAKE
        return first & ~int(bit) | (bit | 0) if is_handshake else first

    packet_builder.encode_long_header_first_byte = encode
    packet_builder.PACKET_FIXED_BIT = packet.PACKET_FIXED_BIT = bit


def set_spin(spin):
    """Makes all packets with a short header carry the requested bit, whatever the connection sets."""
    if spin == "greased":
        grease_quic_bit()
        return
    choose = {"off": lambda: False, "random": lambda: random.random() < 0.5}.get(spin)
    if choose is None:
        assert spin == "on", spin
        return
    # The builder reads this for each packet.
    QuicPacketBuilder._spin_bit = property(lambda _: choose(), lambda _, _value: None)


async def echo(reader, writer):
    while bytes := await reader.read(65536):
        writer.write(bytes)
    writer.write_eof()


async def serve(certificate, key, port):
    configuration = QuicConfiguration(is_client=False, alpn_protocols=ALPN, initial_rtt=INITIAL_RTT)
    configuration.load_cert_chain(certificate, key)
    tasks = set()

    def begin(reader, writer):
        # The event loop holds only weak references to tasks.
        task = asyncio.ensure_future(echo(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    await aioquic.asyncio.serve("::", port, configuration=configuration, stream_handler=begin)
    print("listening", flush=True)
    await asyncio.Future()


async def talk(address, port):
    # The identity of the server does not matter here.
    configuration = QuicConfiguration(alpn_protocols=ALPN, verify_mode=ssl.CERT_NONE, initial_rtt=INITIAL_RTT)
    async with aioquic.asyncio.connect(address, port, configuration=configuration) as connection:
        reader, writer = await connection.create_stream()
        echoed = asyncio.ensure_future(reader.readexactly(MESSAGES * len(MESSAGE)))
        # The messages follow each other faster than the round trip, so that an end never waits long to pass the spin
        # bit on.
        for _ in range(MESSAGES):
            writer.write(MESSAGE)
            await asyncio.sleep(PAUSE)
        writer.write_eof()
        assert await echoed == MESSAGES * MESSAGE


async def talk_at_once(address, port, connections):
    await asyncio.wait_for(asyncio.gather(*(talk(address, port) for _ in range(connections))), PATIENCE)


def main():
    role, *arguments = sys.argv[1:]
    if role == "server":
        certificate, key, port, spin = arguments
        work = serve(certificate, key, int(port))
    else:
        address, port, spin, connections = arguments
        work = talk_at_once(address, int(port), int(connections))
    set_spin(spin)
    asyncio.run(work)


if __name__ == "__main__":
    main()
