-- The questions of a first week, asked of the history's files in DuckDB. Variables name the files and what is asked for;
-- README.md beside this file has the commands. Times are in the zone of the session (SET TimeZone). Percentiles of
-- several rows are computed from the sum of their histograms. `matched` is 'ingress' for the path beyond the interface
-- and 'egress' for this side of it; with --inside, `side` is 'inside' or 'outside' of the network. Interfaces, sides and
-- methods stay apart, because each measures something else: a box that watches lan0 and wan0 has the access lines of its
-- customers and their way to the Internet.

-- The value of a variable. Without this, one that is not set would only leave answers empty.
CREATE OR REPLACE TEMP MACRO asked(name) AS
    CASE WHEN getvariable(name) IS NULL THEN error('set the variable `' || name || '`') ELSE getvariable(name) END;

-- The rows of all files. A file may lack columns that others have, because labels and scores come and go. `host` is the
-- box if folders are named host=NAME, and NULL if not.
CREATE OR REPLACE TEMP VIEW history AS
SELECT NULL::VARCHAR AS host WHERE false
UNION ALL BY NAME
SELECT *
FROM read_parquet(getvariable('files'), union_by_name = true, hive_partitioning = true, hive_types_autocast = false);

-- What pping reports for a bin with this upper bound, in ms: its middle, but no less than the shortest and no more than
-- the longest round-trip time.
CREATE OR REPLACE TEMP MACRO pping_ms(upper, shortest, longest) AS
    round(greatest(shortest, least(longest, CASE
        WHEN upper <= 954 THEN upper // 2
        WHEN upper > 64000000000 THEN 64000000000
        ELSE floor(upper * pow(2, -1 / 16)) END)) / 1e6, 3);

-- The samples and percentiles of each series. `rows` names a table with rows of the history, and with a column `series`
-- of whatever tells series apart.
CREATE OR REPLACE TEMP MACRO percentiles(rows) AS TABLE
WITH bins AS
(
    SELECT series, unnest(histogram_upper) AS upper, unnest(histogram_samples) AS samples, min, max
    FROM query_table(rows)
),
sums AS
(
    SELECT series, upper, sum(samples) AS samples, min(min) AS shortest, max(max) AS longest
    FROM bins
    GROUP BY series, upper
),
ranks AS
(
    SELECT *, sum(samples) OVER (PARTITION BY series ORDER BY upper) AS up_to, sum(samples) OVER (PARTITION BY series) AS total
    FROM sums
)
SELECT series, sum(samples)::BIGINT AS samples,
    pping_ms(min(upper) FILTER (up_to >= ceil(0.5e0 * total)), min(shortest), max(longest)) AS p50_ms,
    pping_ms(min(upper) FILTER (up_to >= ceil(0.95e0 * total)), min(shortest), max(longest)) AS p95_ms,
    pping_ms(min(upper) FILTER (up_to >= ceil(0.99e0 * total)), min(shortest), max(longest)) AS p99_ms
FROM ranks
GROUP BY series;

-- Which time do the files cover? Without rows here, no answer below has any.
SELECT host, min(time) AS first, max(time + to_seconds(step)) AS last, count(*) AS rows, sum(count)::BIGINT AS samples
FROM history
GROUP BY host
ORDER BY host;

-- Which prefixes were worst last night? The night begins at 18:00 on the date `night` and lasts `hours` hours. Groups
-- with fewer than `least` samples say little, so they are left out. The baseline is the shortest round-trip time of the
-- night and the 7 days before it.
WITH week AS
(
    SELECT {'group': "group", interface: interface, matched: matched, side: side, method: method} AS series, *
    FROM history
    WHERE method != 'dns' AND time >= (asked('night')::DATE - 7 + TIME '18:00')::TIMESTAMPTZ
        AND time < (asked('night')::DATE + TIME '18:00')::TIMESTAMPTZ + to_hours(asked('hours')::INTEGER)
),
night AS
(
    SELECT * FROM week WHERE time >= (asked('night')::DATE + TIME '18:00')::TIMESTAMPTZ
),
baselines AS
(
    SELECT series, round(min(min) / 1e6, 3) AS baseline_ms FROM week GROUP BY series
)
SELECT unnest(series), samples, baseline_ms, p50_ms, p95_ms, p99_ms, round(p95_ms - baseline_ms, 3) AS inflation_ms
FROM percentiles('night') JOIN baselines USING (series)
WHERE samples >= asked('least')::BIGINT
ORDER BY p95_ms DESC, series
LIMIT 20;

-- What was this customer's month like, day by day? `customer` is the label of the group, `month` any day of the month.
WITH rows AS
(
    SELECT {day: time::DATE, interface: interface, matched: matched, side: side, method: method} AS series, *
    FROM history
    WHERE "group" = asked('customer') AND method != 'dns'
        AND time >= date_trunc('month', asked('month')::DATE::TIMESTAMPTZ)
        AND time < date_trunc('month', asked('month')::DATE::TIMESTAMPTZ) + INTERVAL 1 MONTH
),
traffic AS
(
    -- The customer replied, so what the other host sent went to him. With --inside his group also has what others replied.
    SELECT series, sum(if(side = 'outside', rec_bytes, sent_bytes))::BIGINT AS bytes_to_customer,
        sum(if(side = 'outside', sent_bytes, rec_bytes))::BIGINT AS bytes_from_customer,
        round(100 * sum(sent_retransmissions) / greatest(1, sum(sent_packets)), 2) AS retransmitted_percent
    FROM rows
    GROUP BY series
)
SELECT unnest(series), coalesce(samples, 0) AS samples, p50_ms, p95_ms, p99_ms, bytes_to_customer, bytes_from_customer,
    retransmitted_percent
FROM traffic LEFT JOIN percentiles('rows') USING (series)
ORDER BY series;

-- What did a change do? Compares `hours` hours before and after the time `change`, without the interval in which the
-- change happened. Groups need `least` samples before and after it.
WITH named AS
(
    SELECT {'group': "group", interface: interface, matched: matched, side: side, method: method} AS series, *
    FROM history
    WHERE method != 'dns'
),
before AS
(
    SELECT * FROM named
    WHERE time >= asked('change')::TIMESTAMPTZ - to_hours(asked('hours')::INTEGER) AND time < asked('change')::TIMESTAMPTZ
        AND time + to_seconds(step) <= asked('change')::TIMESTAMPTZ
),
after AS
(
    SELECT * FROM named
    WHERE time >= asked('change')::TIMESTAMPTZ AND time < asked('change')::TIMESTAMPTZ + to_hours(asked('hours')::INTEGER)
)
SELECT unnest(series), one.samples AS samples_before, other.samples AS samples_after, one.p50_ms AS p50_before_ms,
    other.p50_ms AS p50_after_ms, one.p95_ms AS p95_before_ms, other.p95_ms AS p95_after_ms,
    round(other.p95_ms - one.p95_ms, 3) AS p95_change_ms
FROM percentiles('before') AS one JOIN percentiles('after') AS other USING (series)
WHERE one.samples >= asked('least')::BIGINT AND other.samples >= asked('least')::BIGINT
ORDER BY p95_change_ms DESC, series;

-- Which resolver fails? For each group of hosts that answered queries between `from` and `until`, and each interface and
-- side where these answers passed: how many answers, how slow they were, the share that took more than a second, and the
-- longest time without an answer, in whole intervals. A longer silence than elsewhere or slow answers mean trouble.
WITH rows AS
(
    SELECT {resolver: "group", interface: interface, matched: matched, side: side} AS series, *
    FROM history
    WHERE method = 'dns' AND count > 0 AND time >= asked('from')::TIMESTAMPTZ AND time < asked('until')::TIMESTAMPTZ
),
slow AS
(
    -- A bin ends at exactly one second.
    SELECT series, sum(list_sum(list_transform(list_zip(histogram_upper, histogram_samples),
        lambda bin: if(bin[1] > 1000000000, bin[2], 0)))) AS slow
    FROM rows
    GROUP BY series
),
times AS
(
    SELECT series, time AS start, time + to_seconds(step) AS over FROM rows
    UNION ALL
    SELECT DISTINCT series, asked('until')::TIMESTAMPTZ, asked('until')::TIMESTAMPTZ FROM rows
),
silences AS
(
    SELECT series, max(epoch(start) - epoch(before)) AS longest
    FROM (SELECT *, lag(over, 1, asked('from')::TIMESTAMPTZ) OVER (PARTITION BY series ORDER BY start) AS before FROM times)
    GROUP BY series
)
SELECT unnest(series), samples AS answers, p50_ms, p95_ms, round(100 * slow / samples, 2) AS slow_percent,
    greatest(0, longest)::BIGINT AS longest_silence_s
FROM percentiles('rows') JOIN slow USING (series) JOIN silences USING (series)
ORDER BY longest_silence_s DESC, slow_percent DESC, series;

-- Where does inflation start? Lists each box, interface, side and group whose median reached `times` times its shortest
-- round-trip time in an interval with at least `least` samples, between `from` and `until`. The first to do so comes
-- first.
WITH rows AS
(
    SELECT *, min(min) OVER (PARTITION BY host, interface, matched, side, "group", method) AS baseline
    FROM history
    WHERE count > 0 AND time >= asked('from')::TIMESTAMPTZ AND time < asked('until')::TIMESTAMPTZ
)
SELECT min(time) AS since, host, interface, matched, side, "group", method, count(*) AS intervals,
    round(any_value(baseline) / 1e6, 3) AS baseline_ms, round(max(p50) / 1e6, 3) AS highest_p50_ms
FROM rows
WHERE count >= asked('least')::BIGINT AND p50 >= asked('times')::DOUBLE * baseline
GROUP BY host, interface, matched, side, "group", method
ORDER BY since, highest_p50_ms DESC, host, interface, matched, side, "group", method;
