"""The rules on packets made by hand."""

import self_test_capture
import self_test_disorder
import self_test_dns
import self_test_hooks
import self_test_icmp
import self_test_quic
import self_test_tcp_again
import self_test_tcp_forged
import self_test_tcp_handshake
import self_test_tcp_kinds
import self_test_tcp_seq
import self_test_tcp_ts
import self_test_tcp_unusable
import self_test_tcp_windows
import self_test_time

PARTS = [
    self_test_tcp_ts,
    self_test_tcp_seq,
    self_test_tcp_handshake,
    self_test_tcp_kinds,
    self_test_tcp_again,
    self_test_tcp_forged,
    self_test_tcp_unusable,
    self_test_tcp_windows,
    self_test_icmp,
    self_test_hooks,
    self_test_dns,
    self_test_quic,
    self_test_time,
    self_test_capture,
    self_test_disorder,
]


def run():
    for part in PARTS:
        part.run()
