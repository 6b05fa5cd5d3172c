-- The questions of a first week, asked of the history's files in ClickHouse 24.8 or newer. They read pping.history, which
-- clickhouse-files.sql makes of local files, and clickhouse-s3.sql of an object store; README.md beside this file has the
-- commands. Parameters and answers are those of ../clickhouse/queries.sql. Times are in the time zone of the session.
-- Percentiles of several rows are computed from the sum of their histograms. Interfaces, sides and methods stay apart,
-- because each measures something else.

-- These two are those of ../clickhouse/schema.sql, which explains them.
CREATE FUNCTION IF NOT EXISTS ppingMiddle AS (upper) ->
    multiIf(upper <= 954, intDiv(upper, 2), upper > 64000000000, 64000000000, toUInt64(upper * exp2(-1 / 16)));

CREATE FUNCTION IF NOT EXISTS ppingQuantile AS (part, bins, shortest, longest) ->
    if(empty(bins.1), 0, greatest(shortest, least(longest, ppingMiddle(bins.1[
        arrayFirstIndex(samples -> samples >= greatest(1, ceil(part * arraySum(bins.2))), arrayCumSum(bins.2))]))));

-- A quantile in ms, or NULL without samples.
CREATE FUNCTION IF NOT EXISTS ppingMs AS (part, bins, shortest, longest) ->
    if(empty(bins.1), NULL, round(ppingQuantile(part, bins, shortest, longest) / 1e6, 3));

-- Which time do the files cover? Without rows here, no answer below has any.
SELECT host, min(time) AS first, max(time + toIntervalSecond(step)) AS last, count() AS rows, sum(count) AS samples
FROM pping.history
GROUP BY host
ORDER BY host;

-- Which prefixes were worst last night? The night begins at 18:00 on the date `night` and lasts {hours} hours. Groups
-- with fewer than {least} samples say little, so they are left out. The baseline is the shortest round-trip time of the
-- night and the 7 days before it.
SELECT
    group, interface, matched, side, method, arraySum(bins.2) AS samples, round(baseline / 1e6, 3) AS baseline_ms,
    ppingMs(0.5, bins, shortest, longest) AS p50_ms, ppingMs(0.95, bins, shortest, longest) AS p95_ms,
    ppingMs(0.99, bins, shortest, longest) AS p99_ms, round(p95_ms - baseline_ms, 3) AS inflation_ms
FROM
(
    WITH toDateTime(concat(toString({night:Date}), ' 18:00:00')) AS evening
    SELECT
        group, interface, matched, side, method, sumMapIf(histogram_upper, histogram_samples, time >= evening) AS bins,
        minIf(min, time >= evening) AS shortest, maxIf(max, time >= evening) AS longest, min(min) AS baseline
    FROM pping.history
    WHERE method != 'dns' AND time >= evening - INTERVAL 7 DAY AND time < evening + toIntervalHour({hours:UInt8})
    GROUP BY group, interface, matched, side, method
)
WHERE samples >= {least:UInt64}
ORDER BY p95_ms DESC, group, interface, matched, side, method
LIMIT 20;

-- What was this customer's month like, day by day? `customer` is the label of the group, `month` any day of the month.
SELECT
    day, interface, matched, side, method, arraySum(bins.2) AS samples, ppingMs(0.5, bins, shortest, longest) AS p50_ms,
    ppingMs(0.95, bins, shortest, longest) AS p95_ms, ppingMs(0.99, bins, shortest, longest) AS p99_ms, bytes_to_customer,
    bytes_from_customer, retransmitted_percent
FROM
(
    SELECT
        toDate(toTimeZone(time, timezone())) AS day, interface, matched, side, method,
        sumMap(histogram_upper, histogram_samples) AS bins, min(min) AS shortest, max(max) AS longest,
        -- The customer replied, so what the other host sent went to him. With --inside his group also has what others
        -- replied.
        sum(if(side = 'outside', rec_bytes, sent_bytes)) AS bytes_to_customer,
        sum(if(side = 'outside', sent_bytes, rec_bytes)) AS bytes_from_customer,
        round(100 * sum(sent_retransmissions) / greatest(1, sum(sent_packets)), 2) AS retransmitted_percent
    FROM pping.history
    WHERE group = {customer:String} AND method != 'dns' AND time >= toDateTime(toStartOfMonth({month:Date}))
        AND time < toDateTime(toStartOfMonth({month:Date}) + INTERVAL 1 MONTH)
    GROUP BY day, interface, matched, side, method
)
ORDER BY day, interface, matched, side, method;

-- What did a change do? Compares {hours} hours before and after the time `change`, without the interval in which the
-- change happened. Groups need {least} samples before and after it.
SELECT
    group, interface, matched, side, method, arraySum(bins_before.2) AS samples_before, arraySum(bins_after.2) AS samples_after,
    ppingMs(0.5, bins_before, shortest_before, longest_before) AS p50_before_ms,
    ppingMs(0.5, bins_after, shortest_after, longest_after) AS p50_after_ms,
    ppingMs(0.95, bins_before, shortest_before, longest_before) AS p95_before_ms,
    ppingMs(0.95, bins_after, shortest_after, longest_after) AS p95_after_ms,
    round(p95_after_ms - p95_before_ms, 3) AS p95_change_ms
FROM
(
    SELECT
        group, interface, matched, side, method,
        sumMapIf(histogram_upper, histogram_samples, is_before) AS bins_before,
        minIf(min, is_before) AS shortest_before, maxIf(max, is_before) AS longest_before,
        sumMapIf(histogram_upper, histogram_samples, is_after) AS bins_after,
        minIf(min, is_after) AS shortest_after, maxIf(max, is_after) AS longest_after
    FROM
    (
        SELECT
            group, interface, matched, side, method, min, max, histogram_upper, histogram_samples,
            time + toIntervalSecond(step) <= {change:DateTime} AS is_before, time >= {change:DateTime} AS is_after
        FROM pping.history
        WHERE method != 'dns' AND time >= {change:DateTime} - toIntervalHour({hours:UInt16})
            AND time < {change:DateTime} + toIntervalHour({hours:UInt16})
    )
    GROUP BY group, interface, matched, side, method
)
WHERE samples_before >= {least:UInt64} AND samples_after >= {least:UInt64}
ORDER BY p95_change_ms DESC, group, interface, matched, side, method;

-- Which resolver fails? For each group of hosts that answered queries between {from} and {until}, and each interface and
-- side where these answers passed: how many answers, how slow they were, the share that took more than a second, and the
-- longest time without an answer, in whole intervals. A longer silence than elsewhere or slow answers mean trouble.
SELECT
    group AS resolver, interface, matched, side, arraySum(bins.2) AS answers, ppingMs(0.5, bins, shortest, longest) AS p50_ms,
    ppingMs(0.95, bins, shortest, longest) AS p95_ms,
    -- A bin ends at exactly one second.
    round(100 * arraySum(arrayMap((upper, samples) -> if(upper > 1000000000, samples, 0), bins.1, bins.2)) / answers, 2)
        AS slow_percent,
    -- From the end of an interval with answers to the start of the next.
    arrayMax(arrayMap((start, end) -> greatest(0, start - end), arrayPushBack(starts, toUnixTimestamp({until:DateTime})),
        arrayPushFront(ends, toUnixTimestamp({from:DateTime})))) AS longest_silence_s
FROM
(
    SELECT
        group, interface, matched, side, sumMap(histogram_upper, histogram_samples) AS bins, min(min) AS shortest,
        max(max) AS longest, arraySort(groupArray(toInt64(toUnixTimestamp(time)))) AS starts,
        arraySort(groupArray(toUnixTimestamp(time) + step)) AS ends
    FROM pping.history
    WHERE method = 'dns' AND count > 0 AND time >= {from:DateTime} AND time < {until:DateTime}
    GROUP BY group, interface, matched, side
)
ORDER BY longest_silence_s DESC, slow_percent DESC, resolver, interface, matched, side;

-- Where does inflation start? Lists each box, interface, side and group whose median reached {times} times its shortest
-- round-trip time in an interval with at least {least} samples, between {from} and {until}. The first to do so comes
-- first.
SELECT
    min(time) AS since, host, interface, matched, side, group, method, count() AS intervals,
    round(any(baseline) / 1e6, 3) AS baseline_ms, round(max(p50) / 1e6, 3) AS highest_p50_ms
FROM
(
    SELECT
        time, host, interface, matched, side, group, method, count, p50,
        min(min) OVER (PARTITION BY host, interface, matched, side, group, method) AS baseline
    FROM pping.history
    WHERE count > 0 AND time >= {from:DateTime} AND time < {until:DateTime}
)
WHERE count >= {least:UInt64} AND p50 >= {times:Float64} * baseline
GROUP BY host, interface, matched, side, group, method
ORDER BY since, highest_p50_ms DESC, host, interface, matched, side, group, method;
