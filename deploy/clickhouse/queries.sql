-- The questions of a first week. Each statement names its parameters: clickhouse client takes them as
-- --param_NAME=VALUE, and the HTTP interface as param_NAME=VALUE. Times are in the server's time zone. Percentiles of
-- several rows are computed from the sum of their histograms. `matched` is 'ingress' for the path beyond the interface
-- and 'egress' for this side of it; with --inside, `side` is 'inside' or 'outside' of the network. Interfaces, sides and
-- methods stay apart, because each measures something else: a box that watches lan0 and wan0 has the access lines of its
-- customers and their way to the Internet.

-- Which prefixes were worst last night? The night begins at 18:00 on the date `night` and lasts {hours} hours. Groups
-- with fewer than {least} samples say little, so they are left out. The baseline is the shortest round-trip time of the
-- night and the 7 days before it.
SELECT
    group, interface, matched, side, method, arraySum(bins.2) AS samples, round(baseline / 1e6, 3) AS baseline_ms,
    round(ppingQuantile(0.5, bins, shortest, longest) / 1e6, 3) AS p50_ms,
    round(ppingQuantile(0.95, bins, shortest, longest) / 1e6, 3) AS p95_ms,
    round(ppingQuantile(0.99, bins, shortest, longest) / 1e6, 3) AS p99_ms,
    round(p95_ms - baseline_ms, 3) AS inflation_ms
FROM
(
    WITH toDateTime({night:Date}) + INTERVAL 18 HOUR AS evening
    SELECT
        group, interface, matched, side, method, sumMapIf(hourly.bins, hour >= evening) AS bins,
        minIf(hourly.shortest, hour >= evening) AS shortest, maxIf(hourly.longest, hour >= evening) AS longest, min(hourly.shortest) AS baseline
    FROM pping.aggregates_hourly AS hourly
    WHERE method != 'dns' AND hour >= evening - INTERVAL 7 DAY AND hour < evening + toIntervalHour({hours:UInt8})
    GROUP BY group, interface, matched, side, method
)
WHERE samples >= {least:UInt64}
ORDER BY p95_ms DESC, group, interface, matched, side, method
LIMIT 20;

-- What was this customer's month like, day by day? `customer` is the label of the group, `month` any day of the month.
SELECT
    toDate(hour) AS day, interface, matched, side, method, sum(arraySum(bins.2)) AS samples,
    round(ppingQuantile(0.5, sumMap(bins), min(shortest), max(longest)) / 1e6, 3) AS p50_ms,
    round(ppingQuantile(0.95, sumMap(bins), min(shortest), max(longest)) / 1e6, 3) AS p95_ms,
    round(ppingQuantile(0.99, sumMap(bins), min(shortest), max(longest)) / 1e6, 3) AS p99_ms,
    -- The customer replied, so what the other host sent went to him. With --inside his group also has what others replied.
    sum(if(side = 'outside', rec_bytes, sent_bytes)) AS bytes_to_customer,
    sum(if(side = 'outside', sent_bytes, rec_bytes)) AS bytes_from_customer,
    round(100 * sum(sent_retransmissions) / greatest(1, sum(sent_packets)), 2) AS retransmitted_percent
FROM pping.aggregates_hourly
WHERE group = {customer:String} AND method != 'dns'
    AND hour >= toStartOfMonth({month:Date}) AND hour < toStartOfMonth({month:Date}) + INTERVAL 1 MONTH
GROUP BY day, interface, matched, side, method
ORDER BY day, interface, matched, side, method;

-- What did a change do? Compares {hours} hours before and after the time `change`, without the interval in which the
-- change happened. Groups need {least} samples before and after it.
SELECT
    group, interface, match_on_egress, side, method, arraySum(bins_before.2) AS samples_before,
    arraySum(bins_after.2) AS samples_after,
    round(ppingQuantile(0.5, bins_before, shortest_before, longest_before) / 1e6, 3) AS p50_before_ms,
    round(ppingQuantile(0.5, bins_after, shortest_after, longest_after) / 1e6, 3) AS p50_after_ms,
    round(ppingQuantile(0.95, bins_before, shortest_before, longest_before) / 1e6, 3) AS p95_before_ms,
    round(ppingQuantile(0.95, bins_after, shortest_after, longest_after) / 1e6, 3) AS p95_after_ms,
    round(p95_after_ms - p95_before_ms, 3) AS p95_change_ms
FROM
(
    SELECT
        group, interface, match_on_egress, side, method,
        sumMapIf(histogram.upper, histogram.samples, is_before) AS bins_before,
        minIf(min, is_before AND count > 0) AS shortest_before, maxIf(max, is_before) AS longest_before,
        sumMapIf(histogram.upper, histogram.samples, is_after) AS bins_after,
        minIf(min, is_after AND count > 0) AS shortest_after, maxIf(max, is_after) AS longest_after
    FROM
    (
        SELECT
            group, interface, match_on_egress, side, method, count, min, max, histogram,
            timestamp <= {change:DateTime} AS is_before,
            timestamp - toIntervalNanosecond(interval) >= {change:DateTime} AS is_after
        FROM pping.aggregates
        WHERE method != 'dns' AND timestamp > {change:DateTime} - toIntervalHour({hours:UInt16})
            AND timestamp <= {change:DateTime} + toIntervalHour({hours:UInt16})
    )
    GROUP BY group, interface, match_on_egress, side, method
)
WHERE samples_before >= {least:UInt64} AND samples_after >= {least:UInt64}
ORDER BY p95_change_ms DESC, group, interface, match_on_egress, side, method;

-- Which resolver fails? For each group of hosts that answered queries between {from} and {until}, and each interface and
-- side where these answers passed: how many answers, how slow they were, the share that took more than a second, and the
-- longest time without an answer. A longer silence than elsewhere or slow answers mean trouble. The metrics count response
-- codes and queries without response, by interface (docs/metrics.md).
SELECT
    group AS resolver, interface, match_on_egress, side, sum(count) AS answers,
    round(ppingQuantile(0.5, sumMap(histogram.upper, histogram.samples), minIf(min, count > 0), max(max)) / 1e6, 3) AS p50_ms,
    round(ppingQuantile(0.95, sumMap(histogram.upper, histogram.samples), minIf(min, count > 0), max(max)) / 1e6, 3) AS p95_ms,
    -- A bin ends at exactly one second.
    round(100 * sum(arraySum(arrayMap(bin -> if(bin.1 > 1000000000, bin.2, 0), histogram))) / answers, 2) AS slow_percent,
    arrayMax(arrayDifference(arraySort(arrayConcat(groupArray(toUnixTimestamp(timestamp)),
        [toUnixTimestamp({from:DateTime}), toUnixTimestamp({until:DateTime})])))) AS longest_silence_s
FROM pping.aggregates
WHERE method = 'dns' AND count > 0 AND timestamp > {from:DateTime} AND timestamp <= {until:DateTime}
GROUP BY resolver, interface, match_on_egress, side
ORDER BY longest_silence_s DESC, slow_percent DESC, resolver, interface, match_on_egress, side;

-- Where does inflation start? Lists each box, interface, side and group whose median reached {times} times its shortest
-- round-trip time in an interval with at least {least} samples, between {from} and {until}. The first to do so comes
-- first.
SELECT
    min(timestamp) AS since, host, interface, match_on_egress, side, group, method, count() AS intervals,
    round(any(baseline) / 1e6, 3) AS baseline_ms, round(max(p50) / 1e6, 3) AS highest_p50_ms
FROM
(
    SELECT
        *, min(min) OVER (PARTITION BY host, interface, match_on_egress, side, group, method) AS baseline
    FROM pping.aggregates
    WHERE count > 0 AND timestamp > {from:DateTime} AND timestamp <= {until:DateTime}
)
WHERE count >= {least:UInt64} AND p50 >= {times:Float64} * baseline
GROUP BY host, interface, match_on_egress, side, group, method
ORDER BY since, highest_p50_ms DESC, host, interface, match_on_egress, side, group, method;
