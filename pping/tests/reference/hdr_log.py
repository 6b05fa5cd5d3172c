#!/usr/bin/env python3
"""Reads a log of `pping --hdr-log` with the package `hdrhistogram` of PyPI, and compares it with aggregate records.

`hdr_log.py LOG < RECORDS`. Prints the number of intervals compared.
"""

import json
import sys
from urllib.parse import unquote

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

PERCENTILES = [50, 90, 95, 99]
HIGHEST = 1 << 37
BEYOND = 10**9 << 6
# The width of a bin, and the precision of the reader, as parts of a value.
BIN = 1 / 8
DIGITS = 1 / 100


def at_rank(histogram, rank):
    """Returns the highest value of the bin that contains this rank."""
    for highest, count in histogram:
        rank -= count
        if rank <= 0:
            return highest
    return histogram[-1][0]


def round_half_up(value):
    """Rounds as that package does for ranks."""
    return max(1, int(value + 0.5))


def main():
    expected = {}
    for line in sys.stdin:
        record = json.loads(line)
        if record.get("count"):
            matched = {True: "egress", False: "ingress"}.get(record.get("match_on_egress"), "-")
            tag = f"{record['group']};{record['method']};{matched};{record.get('interface', '-')}"
            expected[tag, round((record["timestamp"] - record["interval"]) / 1e6)] = record
    reader = HistogramLogReader(sys.argv[1], HdrHistogram(1, HIGHEST, 2))
    found = 0
    while (histogram := reader.get_next_interval_histogram()) is not None:
        key = unquote(histogram.get_tag()), round(histogram.get_start_time_stamp())
        record = expected.pop(key, None)
        assert record, f"no record for {key}; there are {list(expected)[:3]}"
        length = histogram.get_end_time_stamp() - histogram.get_start_time_stamp()
        assert abs(length - record["interval"] / 1e6) <= 1, f"{key}: {length} ms"
        count = histogram.get_total_count()
        assert count == record["count"], f"{key}: {count} samples instead of {record['count']}"
        for percent in PERCENTILES:
            value = histogram.get_value_at_percentile(percent)
            highest = at_rank(record["histogram"], round_half_up(percent * count / 100))
            is_near = (1 - BIN) * highest <= value <= (1 + DIGITS) * highest
            # The first bin also holds all shorter RTTs, and the last one all longer RTTs.
            is_outside = highest < 1000 and value < 1000 or highest == 2**64 - 1 and value >= BEYOND
            assert is_near or is_outside, f"{key}: p{percent} is {value}, and not near {highest}"
        found += 1
    assert not expected, f"not in the log: {list(expected)[:3]}"
    print(found)


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        sys.exit(f"{error}")
