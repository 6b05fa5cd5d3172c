"""The questions of a first week, asked of the history's files with polars (pip install polars).

    python3 history_polars.py '/var/lib/pping/history/1h/**/*.parquet' worst-prefixes --night 2026-11-24 --hours 6 --least 100

`--help` lists the questions, and `python3 history_polars.py FILES QUESTION --help` what each takes. Each question is a function
that takes the rows of `history` and returns a table, for use in a notebook. Percentiles of several rows are computed from
the sum of their histograms, as pping itself does it. Interfaces, sides and methods stay apart, because each measures
something else.
"""

import argparse
import os
import sys
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import polars as pl

SERIES = ["group", "interface", "matched", "side", "method"]
UTC = ZoneInfo("UTC")


def history(files):
    """The rows of all files. `host` is the box if folders are named host=NAME, and null if not."""
    # Files lack columns that others have, because labels and scores come and go.
    rows = pl.scan_parquet(
        files, missing_columns="insert", extra_columns="ignore", hive_partitioning=True, try_parse_hive_dates=False
    )
    columns = rows.collect_schema()
    host = pl.col("host").cast(pl.String) if "host" in columns else pl.lit(None, pl.String).alias("host")
    return rows.with_columns(host, end=pl.col("time") + pl.duration(seconds="step"))


def ms(ns):
    return (ns / 1e6).round(3)


def quantile(part):
    """What pping reports for the bins of a series, which are sorted: the middle of the bin that has the sample of this
    rank, but no less than the shortest and no more than the longest round-trip time."""
    rank = (part * pl.col("samples").sum()).ceil()
    upper = pl.col("upper").filter(pl.col("samples").cum_sum() >= rank).first()
    middle = (
        pl.when(upper <= 954)
        .then(upper // 2)
        .when(upper > 64_000_000_000)
        .then(64_000_000_000)
        .otherwise((upper * 2 ** (-1 / 16)).floor().cast(pl.Int64))
    )
    return ms(middle.clip(pl.col("shortest").min(), pl.col("longest").max())).alias(f"p{round(100 * part)}_ms")


def percentiles(rows, series):
    """The samples and percentiles of each series that has samples. `series` lists the columns that tell series apart."""
    bins = rows.select(
        *series, upper="histogram_upper", samples="histogram_samples", shortest="min", longest="max"
    ).explode("upper", "samples")
    sums = (
        bins.filter(pl.col("upper").is_not_null())
        .group_by(*series, "upper")
        .agg(pl.col("samples").sum(), pl.col("shortest").min(), pl.col("longest").max())
    )
    return (
        sums.sort("upper")
        .group_by(*series, maintain_order=True)
        .agg(quantile(0.5), quantile(0.95), quantile(0.99), pl.col("samples").sum())
        .select(*series, "samples", "p50_ms", "p95_ms", "p99_ms")
    )


def covers(rows):
    """Which time do the files cover? Without rows here, no other answer has any."""
    return (
        rows.group_by("host")
        .agg(first=pl.col("time").min(), last=pl.col("end").max(), rows=pl.len(), samples=pl.col("count").sum())
        .sort("host", nulls_last=True)
        .collect()
    )


def worst_prefixes(rows, night, hours, least, zone=UTC):
    """Which prefixes were worst last night? The night begins at 18:00 on the date `night` and lasts `hours` hours. Groups
    with fewer than `least` samples say little, so they are left out. The baseline is the shortest round-trip time of the
    night and the 7 days before it."""
    # Files have times in UTC, and polars does not compare those of different zones.
    evening, week_ago = (datetime.combine(day, time(18), zone).astimezone(UTC) for day in [night, night - timedelta(days=7)])
    until = evening + timedelta(hours=hours)
    week = rows.filter(pl.col("method") != "dns", pl.col("time") >= week_ago, pl.col("time") < until)
    baselines = week.group_by(SERIES).agg(baseline_ms=ms(pl.col("min").min()))
    return (
        percentiles(week.filter(pl.col("time") >= evening), SERIES)
        .filter(pl.col("samples") >= least)
        .join(baselines, on=SERIES, nulls_equal=True)
        .select(
            *SERIES, "samples", "baseline_ms", "p50_ms", "p95_ms", "p99_ms",
            inflation_ms=(pl.col("p95_ms") - pl.col("baseline_ms")).round(3),
        )
        .sort("p95_ms", *SERIES, descending=[True] + [False] * 5, nulls_last=True)
        .head(20)
        .collect()
    )


def month_of_customer(rows, customer, month, zone=UTC):
    """What was this customer's month like, day by day? `customer` is the label of the group, `month` any day of the
    month."""
    next_month = (month.replace(day=28) + timedelta(days=4)).replace(day=1)
    first, after = (
        datetime.combine(day, time(), zone).astimezone(UTC) for day in [month.replace(day=1), next_month]
    )
    rows = rows.filter(
        pl.col("group") == customer, pl.col("method") != "dns", pl.col("time") >= first, pl.col("time") < after
    ).with_columns(day=pl.col("time").dt.convert_time_zone(str(zone)).dt.date())
    # The customer replied, so what the other host sent went to him. With --inside his group also has what others replied.
    is_outside = pl.col("side").eq_missing("outside")
    series = ["day", *SERIES[1:]]
    traffic = rows.group_by(series).agg(
        bytes_to_customer=pl.when(is_outside).then("rec_bytes").otherwise("sent_bytes").sum(),
        bytes_from_customer=pl.when(is_outside).then("sent_bytes").otherwise("rec_bytes").sum(),
        retransmitted_percent=(
            100 * pl.col("sent_retransmissions").sum() / pl.max_horizontal(1, pl.col("sent_packets").sum())
        ).round(2),
    )
    return (
        traffic.join(percentiles(rows, series), on=series, how="left", nulls_equal=True)
        .with_columns(pl.col("samples").fill_null(0))
        .select(
            *series, "samples", "p50_ms", "p95_ms", "p99_ms", "bytes_to_customer", "bytes_from_customer",
            "retransmitted_percent",
        )
        .sort(series, nulls_last=True)
        .collect()
    )


def before_and_after(rows, change, hours, least):
    """What did a change do? Compares `hours` hours before and after the time `change`, without the interval in which the
    change happened. Groups need `least` samples before and after it."""
    rows = rows.filter(pl.col("method") != "dns")
    length = timedelta(hours=hours)

    def side(name, rows):
        names = {"samples": f"samples_{name}", "p50_ms": f"p50_{name}_ms", "p95_ms": f"p95_{name}_ms"}
        return percentiles(rows, SERIES).filter(pl.col("samples") >= least).drop("p99_ms").rename(names)

    before = side("before", rows.filter(pl.col("time") >= change - length, pl.col("time") < change, pl.col("end") <= change))
    after = side("after", rows.filter(pl.col("time") >= change, pl.col("time") < change + length))
    return (
        before.join(after, on=SERIES, nulls_equal=True)
        .select(
            *SERIES, "samples_before", "samples_after", "p50_before_ms", "p50_after_ms", "p95_before_ms", "p95_after_ms",
            p95_change_ms=(pl.col("p95_after_ms") - pl.col("p95_before_ms")).round(3),
        )
        .sort("p95_change_ms", *SERIES, descending=[True] + [False] * 5, nulls_last=True)
        .collect()
    )


def failing_resolvers(rows, from_, until):
    """Which resolver fails? For each group of hosts that answered queries between `from` and `until`, and each interface
    and side where these answers passed: how many answers, how slow they were, the share that took more than a second, and
    the longest time without an answer, in whole intervals. A longer silence than elsewhere or slow answers mean
    trouble."""
    series = ["resolver", *SERIES[1:4]]
    rows = rows.filter(
        pl.col("method") == "dns", pl.col("count") > 0, pl.col("time") >= from_, pl.col("time") < until
    ).rename({"group": "resolver"})
    # A bin ends at exactly one second.
    is_slow = pl.col("histogram_upper") > 1_000_000_000
    slow = (
        rows.select(*series, "histogram_upper", "histogram_samples")
        .explode("histogram_upper", "histogram_samples")
        .group_by(series)
        .agg(slow=pl.col("histogram_samples").filter(is_slow).sum())
    )
    between = pl.col("time") - pl.col("end").shift(1, fill_value=from_)
    after = until - pl.col("end").max()
    silences = (
        rows.sort("time")
        .group_by(series)
        .agg(longest_silence_s=pl.max_horizontal(between.max(), after, timedelta(0)).dt.total_seconds())
    )
    return (
        percentiles(rows, series)
        .join(slow, on=series, nulls_equal=True)
        .join(silences, on=series, nulls_equal=True)
        .select(
            *series, pl.col("samples").alias("answers"), "p50_ms", "p95_ms",
            (100 * pl.col("slow") / pl.col("samples")).round(2).alias("slow_percent"), "longest_silence_s",
        )
        .sort("longest_silence_s", "slow_percent", *series, descending=[True, True] + [False] * 4, nulls_last=True)
        .collect()
    )


def start_of_inflation(rows, from_, until, least, times):
    """Where does inflation start? Lists each box, interface, side and group whose median reached `times` times its
    shortest round-trip time in an interval with at least `least` samples, between `from` and `until`. The first to do so
    comes first."""
    series = ["host", "interface", "matched", "side", "group", "method"]
    return (
        rows.filter(pl.col("count") > 0, pl.col("time") >= from_, pl.col("time") < until)
        .with_columns(baseline=pl.col("min").min().over(series))
        .filter(pl.col("count") >= least, pl.col("p50") >= times * pl.col("baseline"))
        .group_by(series)
        .agg(
            since=pl.col("time").min(), intervals=pl.len(), baseline_ms=ms(pl.col("baseline").first()),
            highest_p50_ms=ms(pl.col("p50").max()),
        )
        .select("since", *series, "intervals", "baseline_ms", "highest_p50_ms")
        .sort("since", "highest_p50_ms", *series, descending=[False, True] + [False] * 6, nulls_last=True)
        .collect()
    )


def parser():
    main = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    main.add_argument("files", help="a pattern like 'DIR/1h/**/*.parquet', or of an object store: 's3://BUCKET/host=*/1h/*.parquet'")
    main.add_argument("--zone", type=ZoneInfo, default=UTC, help="the time zone of dates and times (default: UTC)")
    main.add_argument("--json", action="store_true", help="write a JSON object for each row")
    questions = main.add_subparsers(dest="question", required=True, metavar="QUESTION")
    whole, text = {"type": int}, {"type": str}
    day, moment = {"type": date.fromisoformat, "metavar": "DATE"}, {"type": datetime.fromisoformat, "metavar": "TIME"}
    for ask, options in [
        (covers, {}),
        (worst_prefixes, {"night": day, "hours": whole, "least": whole}),
        (month_of_customer, {"customer": text, "month": day}),
        (before_and_after, {"change": moment, "hours": whole, "least": whole}),
        (failing_resolvers, {"from": moment, "until": moment}),
        (start_of_inflation, {"from": moment, "until": moment, "least": whole, "times": {"type": float}}),
    ]:
        name, summary = ask.__name__.replace("_", "-"), ask.__doc__.split("?")[0] + "?"
        question = questions.add_parser(name, help=summary, description=ask.__doc__)
        question.set_defaults(ask=ask)
        for option, how in options.items():
            question.add_argument(f"--{option}", dest="from_" if option == "from" else option, required=True, **how)
    return main


def main():
    arguments = vars(parser().parse_args())
    files, ask, zone, as_json = (arguments.pop(name) for name in ["files", "ask", "zone", "json"])
    del arguments["question"]
    if ask in (worst_prefixes, month_of_customer):
        arguments["zone"] = zone
    for name, value in arguments.items():
        if isinstance(value, datetime):
            arguments[name] = (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC)
    try:
        rows = history(files)
    except (FileNotFoundError, pl.exceptions.ComputeError) as error:
        sys.exit(f"{files}: no history is there, or it cannot be read: {error}")
    answer = ask(rows, **arguments)
    if as_json:
        print(answer.write_ndjson(), end="")
    elif answer.is_empty():
        print(f"no rows: these files have measurements of the following times\n{covers(rows)}")
    else:
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200, tbl_hide_dataframe_shape=True):
            print(answer)


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has enough. Python would complain again when it closes the output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
