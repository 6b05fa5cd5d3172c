#!/usr/bin/env python3
"""Compares pping's aggregates with the samples that it reports beside them.

Reads records of `pping --format jsonl --with-samples`, with `--aggregate` or `--flow-summary` or both, and computes
from the RTT records what the aggregate records and the flow summaries must contain. It uses only pping's documentation.
`--everything LABEL` names the group of samples without one.
"""

import argparse
import json
import sys
from bisect import bisect_left
from collections import defaultdict
from decimal import Decimal, localcontext

SECOND = 10**9
BEYOND = SECOND << 6
with localcontext(prec=60):
    BOUNDS = [int(SECOND * Decimal(2) ** (Decimal(k) / 8)) for k in range(-160, 49)]
PERCENTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}


def bounds(rtt):
    """Returns the bounds of an RTT's bin; the bin includes the upper one only. Bounds are 2^(k/8) s, from 2^-20 s to 2^6 s,
    rounded down to ns. Two more bins hold shorter and longer RTTs."""
    number = bisect_left(BOUNDS, rtt)
    if number == 0:
        return -1, BOUNDS[0]
    if number == len(BOUNDS):
        return BEYOND, 2**64 - 1
    return BOUNDS[number - 1], BOUNDS[number]


def percentile(ordered, percent):
    """Returns the percentile by nearest rank."""
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]


def check_rtts(reported, rtts, what):
    """Compares reported statistics with the RTTs that they are about."""
    ordered = sorted(rtts)
    exact = {"min": ordered[0], "max": ordered[-1], "mean": sum(ordered) // len(ordered)}
    for name, value in exact.items():
        assert reported[name] == value, f"{what}: {name} is {reported[name]} instead of {value}"
    for name, percent in PERCENTILES.items():
        if name in reported:
            value = percentile(ordered, percent)
            low, high = bounds(value)
            # The value of an RTT beyond all bins is unknown.
            low -= low == BEYOND
            assert low < reported[name] <= high, f"{what}: {name} is {reported[name]}, and not near {value}"


def series(record, everything):
    matched = record.get("match_on_egress")
    return record.get("interface"), record.get("group", everything), record["method"], matched


def check_aggregates(records, everything):
    samples = defaultdict(list)
    for record in records:
        if "rtt" in record:
            samples[series(record, everything)].append((record["timestamp"], record["rtt"]))
    for of_series in samples.values():
        of_series.sort()
    counted = 0
    for record in (record for record in records if "histogram" in record):
        end = record["timestamp"]
        key = series(record, everything)
        what = f"{key} until {end}"
        of_series = samples[key]
        first, last = (bisect_left(of_series, (time,)) for time in (end - record["interval"], end))
        rtts = [rtt for _, rtt in of_series[first:last]]
        assert record["count"] == len(rtts), f"{what}: {record['count']} samples instead of {len(rtts)}"
        counted += len(rtts)
        histogram = defaultdict(int)
        for rtt in rtts:
            histogram[bounds(rtt)[1]] += 1
        assert record["histogram"] == [list(bin) for bin in sorted(histogram.items())], f"{what}: histogram"
        if rtts:
            check_rtts(record, rtts, what)
        else:
            assert "mean" not in record, f"{what}: RTTs without samples"
    there_are = sum(len(of_series) for of_series in samples.values())
    assert counted == there_are, f"{counted} samples are in aggregates instead of {there_are}"
    return counted


def check_summaries(records):
    """Compares flow summaries with the samples. Several flows may have the same endpoints in succession, so this compares
    their sums. DNS queries belong to no flow."""
    ends = ["src_ip", "src_port", "dest_ip", "dest_port"]
    swapped = ["dest_ip", "dest_port", "src_ip", "src_port"]
    rtts = defaultdict(list)
    for record in records:
        if "rtt" in record and record["protocol"] != "DNS":
            rtts[(record.get("interface"), record["protocol"], *(record[end] for end in ends))].append(record["rtt"])
    reported = defaultdict(list)
    for record in records:
        if record.get("flow_event") == "summary":
            for name, tuple_ends in [("src_rtt", ends), ("dest_rtt", swapped)]:
                if name in record:
                    key = (record.get("interface"), record["protocol"], *(record[end] for end in tuple_ends))
                    reported[key].append(record[name])
    assert set(reported) == set(rtts), f"flows differ: {set(reported) ^ set(rtts)}"
    for key, summaries in reported.items():
        samples = sum(summary["samples"] for summary in summaries)
        assert samples == len(rtts[key]), f"{key}: {samples} samples instead of {len(rtts[key])}"
        if len(summaries) == 1:
            check_rtts(summaries[0], rtts[key], key)
        else:
            assert min(summary["min"] for summary in summaries) == min(rtts[key]), key
            assert max(summary["max"] for summary in summaries) == max(rtts[key]), key
    return sum(len(of_flow) for of_flow in rtts.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--everything", default="all")
    parser.add_argument("what", choices=["aggregates", "summaries"])
    arguments = parser.parse_args()
    records = [json.loads(line) for line in sys.stdin]
    if arguments.what == "aggregates":
        print(check_aggregates(records, arguments.everything))
    else:
        print(check_summaries(records))


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        sys.exit(f"{error}")
