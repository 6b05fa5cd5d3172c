"""Measures what records take in ClickHouse's engine (chDB), and how fast they are loaded: docs/lab/scale.md, "Records".

    cargo build --release -p pping && cargo xtask setup --tests
    target/python/bin/python3 benches/clickhouse.py target/release/pping

A capture is made of 1,000 networks with a host each, in ten minutes, with 20 pings per network and 10 s whose round-trip times are
log-normal. pping reads it twice: samples alone, and groups by interval. Their lines go into the tables of deploy/clickhouse.
"""

import os
import random
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["TZ"] = "UTC"

from chdb import session  # noqa: E402

NETWORKS, INTERVALS, SAMPLES, LENGTH = 1000, 60, 20, 10
BEGIN = int(time.time()) // 3600 * 3600 - 7200
TABLES = Path(__file__).parent.parent / "deploy/clickhouse/schema.sql"
# The size of an insert, bytes.
INSERT = 32 << 20


def capture(path):
    random.seed(21)
    ethernet = bytes(12) + b"\x08\x00"
    base = [random.lognormvariate(0, 0.6) * 0.012 for _ in range(NETWORKS)]
    packets = []
    for interval in range(INTERVALS):
        for network in range(NETWORKS):
            remote, local = bytes([10, network >> 8, network & 255, 1]), bytes([192, 0, 2, 1])
            for sample in range(SAMPLES):
                at = BEGIN + (interval + random.random()) * LENGTH
                rtt = base[network] * (1 + random.lognormvariate(-2, 1))
                echo = struct.pack("!HH", network, interval * SAMPLES + sample)
                packets.append((at, local + remote, b"\x08\0\0\0" + echo))
                packets.append((at + rtt, remote + local, b"\0\0\0\0" + echo))
    packets.sort(key=lambda packet: packet[0])
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 0, 1))
        header = b"\x45\0\0\x1c\0\0\x40\0\x40\x01\0\0"
        for at, addresses, message in packets:
            frame = ethernet + header + addresses + message
            seconds = int(at)
            file.write(struct.pack("<IIII", seconds, int((at - seconds) * 1e9), len(frame), len(frame)) + frame)


def statements(text):
    code = "\n".join(line.split("--")[0].rstrip() for line in text.splitlines())
    return [statement for statement in code.split(";\n") if statement.strip()]


def main():
    pping = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        trace = f"{folder}/trace.pcap"
        capture(trace)
        engine = session.Session(f"{folder}/data")
        for statement in statements(TABLES.read_text()):
            engine.query(statement)
        print("| table | rows | bytes a line | zstd -1 | rows/s of one core | MB/s of one core | bytes a row in ClickHouse |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        for table, options in [
            ("samples", ["--rate-limit", "0"]),
            ("aggregates", ["--rate-limit", "0", "--aggregate", f"{LENGTH}s", "--group-by", "/24,/48"]),
        ]:
            lines = f"{folder}/{table}.jsonl"
            command = [pping, "-r", trace, "--format", "jsonl", *options, "-w", lines]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
            text = Path(lines).read_text().replace('\n{"schema_version":1,', '\n{"host":"gw1","schema_version":1,')
            if table == "samples":
                text = "".join(line + "\n" for line in text.splitlines() if '"rtt":' in line)
            parts, at = [], 0
            while at < len(text):
                end = text.rfind("\n", at, at + INSERT) + 1
                parts.append(text[at:end])
                at = end
            # All threads of the engine are of this process.
            begin = time.process_time()
            for part in parts:
                engine.query(f"INSERT INTO pping.records SETTINGS input_format_skip_unknown_fields=1 FORMAT JSONEachRow\n{part}")
            took = time.process_time() - begin
            packed = len(subprocess.run(["zstd", "-1", "-c"], input=text.encode(), capture_output=True, check=True).stdout)
            engine.query(f"OPTIMIZE TABLE pping.{table} FINAL")
            size, rows = map(int, engine.query(
                "SELECT sum(data_compressed_bytes), sum(rows) FROM system.parts "
                f"WHERE active AND database = 'pping' AND table = '{table}'", "CSV").bytes().decode().split(","))
            print(f"| {table} | {rows:,} | {len(text) / rows:.0f} | {packed / rows:.0f} | {rows / took:,.0f} "
                  f"| {len(text) / took / 1e6:.0f} | {size / rows:.1f} |", flush=True)
        size, rows = map(int, engine.query(
            "SELECT sum(data_compressed_bytes), sum(rows) FROM system.parts "
            "WHERE active AND database = 'pping' AND table = 'aggregates_hourly'", "CSV").bytes().decode().split(","))
        print(f"| aggregates_hourly | {rows:,} | | | | | {size / rows:.1f} |")


main()
