-- Tables for pping's records, in ClickHouse 24.8 or newer:  clickhouse client --queries-file schema.sql
--
-- Insert records of every kind into pping.records, which keeps nothing: views copy each record to the table of its
-- kind. Columns have the names of the records' fields (docs/output.md, docs/schema/record.json). Times are in
-- nanoseconds. host is the box that measured; the program that ships the records adds it. You can run the statements
-- again: they do not change what exists.

CREATE DATABASE IF NOT EXISTS pping;

-- The middle of the bin with this upper bound: the geometric mean of its bounds, 2^(k/8) s and the bound below.
CREATE FUNCTION IF NOT EXISTS ppingMiddle AS (upper) ->
    multiIf(upper <= 954, intDiv(upper, 2), upper > 64000000000, 64000000000, toUInt64(upper * exp2(-1 / 16)));

-- A quantile in ns: part is 0.5 for the median. shortest and longest are the lowest and the highest round-trip time.
-- bins are those of one record, (histogram.upper, histogram.samples), or the sum of any number of records,
-- sumMap(histogram.upper, histogram.samples), since bins are the same on every box. The result is within 4.4 % of the
-- exact one, as pping's own are, and 0 if there are no samples.
CREATE FUNCTION IF NOT EXISTS ppingQuantile AS (part, bins, shortest, longest) ->
    if(empty(bins.1), 0, greatest(shortest, least(longest, ppingMiddle(bins.1[
        arrayFirstIndex(samples -> samples >= greatest(1, ceil(part * arraySum(bins.2))), arrayCumSum(bins.2))]))));

-- Incoming records. A field of a newer pping without a column here is skipped (input_format_skip_unknown_fields).
CREATE TABLE IF NOT EXISTS pping.records
(
    host LowCardinality(String),
    schema_version UInt16,
    type LowCardinality(String),
    timestamp Int64,
    interface LowCardinality(String),
    method LowCardinality(String),
    match_on_egress Nullable(Bool),
    side LowCardinality(String),
    group String,
    sent_packets UInt64,
    sent_bytes UInt64,
    rec_packets UInt64,
    rec_bytes UInt64,
    -- Only in samples, flow events, flow summaries and worst flows.
    src_ip IPv6,
    src_port UInt16,
    dest_ip IPv6,
    dest_port UInt16,
    protocol LowCardinality(String),
    -- Only in samples; min_rtt and smoothed_rtt in worst flows too.
    rtt UInt64,
    min_rtt UInt64,
    smoothed_rtt UInt64,
    side_rtt UInt64,
    dns_id Nullable(UInt16),
    vlan Array(UInt16),
    -- Only in flow events and flow summaries.
    flow_event LowCardinality(String),
    reason LowCardinality(String),
    triggered_by LowCardinality(String),
    -- Only in flow summaries.
    start Int64,
    end Int64,
    src_side LowCardinality(String),
    dest_side LowCardinality(String),
    sent_out_of_order UInt64,
    rec_out_of_order UInt64,
    src_rtt Tuple(samples UInt64, min UInt64, mean UInt64, p50 UInt64, p90 UInt64, p99 UInt64, max UInt64),
    dest_rtt Tuple(samples UInt64, min UInt64, mean UInt64, p50 UInt64, p90 UInt64, p99 UInt64, max UInt64),
    -- Only in flow summaries and aggregates.
    sent_retransmissions UInt64,
    rec_retransmissions UInt64,
    sent_ce_packets UInt64,
    rec_ce_packets UInt64,
    -- Only in aggregates, except for dscp, count, percentiles and histogram, which some other records share.
    interval UInt64,
    prefix String,
    dscp Nullable(UInt8),
    labels Map(LowCardinality(String), String),
    -- Only in records of nodes of the tree of groups (--roll-up). No table has these: their samples are those of the groups.
    level LowCardinality(String),
    path String,
    count UInt64,
    min UInt64,
    mean UInt64,
    p50 UInt64,
    p90 UInt64,
    p95 UInt64,
    p99 UInt64,
    max UInt64,
    histogram Array(Tuple(UInt64, UInt64)),
    quality Map(LowCardinality(String), Nullable(UInt8)),
    -- Length of the interval, in records of intervals other than aggregates.
    window UInt64,
    -- Only in worst flows and worst groups.
    worst LowCardinality(String),
    rank UInt16,
    hosts UInt16,
    ranked_rtt UInt64,
    baseline UInt64,
    inflation UInt64,
    retransmission_ratio Nullable(Float64),
    bytes UInt64,
    -- Only in residence times, which also have count, mean, percentiles and histogram.
    residence LowCardinality(String),
    followed UInt64,
    dropped UInt64,
    replaced UInt64
)
ENGINE = Null;

-- Single round-trip times, kept for a week.
CREATE TABLE IF NOT EXISTS pping.samples
(
    host LowCardinality(String),
    timestamp DateTime64(9) CODEC(Delta, ZSTD),
    src_ip IPv6 CODEC(ZSTD),
    src_port UInt16 CODEC(ZSTD),
    dest_ip IPv6 CODEC(ZSTD),
    dest_port UInt16 CODEC(ZSTD),
    protocol LowCardinality(String),
    method LowCardinality(String),
    interface LowCardinality(String),
    match_on_egress Nullable(Bool),
    side LowCardinality(String),
    rtt UInt64 CODEC(T64, ZSTD),
    min_rtt UInt64 CODEC(T64, ZSTD),
    smoothed_rtt UInt64 CODEC(T64, ZSTD),
    side_rtt UInt64 CODEC(T64, ZSTD),
    sent_packets UInt64 CODEC(Delta, ZSTD),
    sent_bytes UInt64 CODEC(Delta, ZSTD),
    rec_packets UInt64 CODEC(Delta, ZSTD),
    rec_bytes UInt64 CODEC(Delta, ZSTD),
    dns_id Nullable(UInt16) CODEC(ZSTD),
    vlan Array(UInt16) CODEC(ZSTD),
    dscp UInt8 CODEC(ZSTD),
    group String CODEC(ZSTD)
)
ENGINE = MergeTree
PARTITION BY toDate(timestamp)
ORDER BY (src_ip, dest_ip, src_port, dest_port, timestamp)
TTL toDateTime(timestamp) + INTERVAL 7 DAY;

CREATE MATERIALIZED VIEW IF NOT EXISTS pping.to_samples TO pping.samples AS
SELECT host, fromUnixTimestamp64Nano(timestamp) AS timestamp, src_ip, src_port, dest_ip, dest_port, protocol, method,
    interface, match_on_egress, side, rtt, min_rtt, smoothed_rtt, side_rtt, sent_packets, sent_bytes, rec_packets, rec_bytes,
    dns_id, vlan, ifNull(dscp, 0) AS dscp, group
FROM pping.records
WHERE type = 'rtt';

-- Flow directions that opened or closed, kept for a week.
CREATE TABLE IF NOT EXISTS pping.flow_events
(
    host LowCardinality(String),
    timestamp DateTime64(9) CODEC(Delta, ZSTD),
    src_ip IPv6 CODEC(ZSTD),
    src_port UInt16 CODEC(ZSTD),
    dest_ip IPv6 CODEC(ZSTD),
    dest_port UInt16 CODEC(ZSTD),
    protocol LowCardinality(String),
    interface LowCardinality(String),
    flow_event LowCardinality(String),
    reason LowCardinality(String),
    triggered_by LowCardinality(String)
)
ENGINE = MergeTree
PARTITION BY toDate(timestamp)
ORDER BY (src_ip, dest_ip, timestamp)
TTL toDateTime(timestamp) + INTERVAL 7 DAY;

CREATE MATERIALIZED VIEW IF NOT EXISTS pping.to_flow_events TO pping.flow_events AS
SELECT host, fromUnixTimestamp64Nano(timestamp) AS timestamp, src_ip, src_port, dest_ip, dest_port, protocol, interface,
    flow_event, reason, triggered_by
FROM pping.records
WHERE type = 'flow' AND flow_event != 'summary';

-- Flows that have ended (--flow-summary), kept for three months.
CREATE TABLE IF NOT EXISTS pping.flow_summaries
(
    host LowCardinality(String),
    timestamp DateTime64(9) CODEC(Delta, ZSTD),
    start DateTime64(9) CODEC(Delta, ZSTD),
    end DateTime64(9) CODEC(Delta, ZSTD),
    src_ip IPv6 CODEC(ZSTD),
    src_port UInt16 CODEC(ZSTD),
    dest_ip IPv6 CODEC(ZSTD),
    dest_port UInt16 CODEC(ZSTD),
    protocol LowCardinality(String),
    interface LowCardinality(String),
    reason LowCardinality(String),
    -- 'inside' or 'outside' with --inside.
    src_side LowCardinality(String),
    dest_side LowCardinality(String),
    sent_packets UInt64 CODEC(T64, ZSTD),
    sent_bytes UInt64 CODEC(T64, ZSTD),
    rec_packets UInt64 CODEC(T64, ZSTD),
    rec_bytes UInt64 CODEC(T64, ZSTD),
    sent_retransmissions UInt64 CODEC(T64, ZSTD),
    rec_retransmissions UInt64 CODEC(T64, ZSTD),
    sent_out_of_order UInt64 CODEC(T64, ZSTD),
    rec_out_of_order UInt64 CODEC(T64, ZSTD),
    sent_ce_packets UInt64 CODEC(T64, ZSTD),
    rec_ce_packets UInt64 CODEC(T64, ZSTD),
    src_rtt Tuple(samples UInt64, min UInt64, mean UInt64, p50 UInt64, p90 UInt64, p99 UInt64, max UInt64) CODEC(ZSTD),
    dest_rtt Tuple(samples UInt64, min UInt64, mean UInt64, p50 UInt64, p90 UInt64, p99 UInt64, max UInt64) CODEC(ZSTD)
)
ENGINE = MergeTree
PARTITION BY toMonday(timestamp)
ORDER BY (dest_ip, src_ip, timestamp)
TTL toDateTime(timestamp) + INTERVAL 3 MONTH;

CREATE MATERIALIZED VIEW IF NOT EXISTS pping.to_flow_summaries TO pping.flow_summaries AS
SELECT host, fromUnixTimestamp64Nano(timestamp) AS timestamp, fromUnixTimestamp64Nano(start) AS start,
    fromUnixTimestamp64Nano(end) AS end, src_ip, src_port, dest_ip, dest_port, protocol, interface, reason, src_side,
    dest_side, sent_packets, sent_bytes, rec_packets, rec_bytes, sent_retransmissions, rec_retransmissions,
    sent_out_of_order, rec_out_of_order, sent_ce_packets, rec_ce_packets, src_rtt, dest_rtt
FROM pping.records
WHERE type = 'flow' AND flow_event = 'summary';

-- Groups by interval (--aggregate), kept for three months. p999 is computed from the histogram, as any other percentile
-- can be.
CREATE TABLE IF NOT EXISTS pping.aggregates
(
    host LowCardinality(String),
    timestamp DateTime64(9) CODEC(Delta, ZSTD),
    interval UInt64 CODEC(T64, ZSTD),
    interface LowCardinality(String),
    method LowCardinality(String),
    match_on_egress Nullable(Bool),
    side LowCardinality(String),
    group String CODEC(ZSTD),
    prefix String CODEC(ZSTD),
    dscp Nullable(UInt8) CODEC(ZSTD),
    labels Map(LowCardinality(String), String) CODEC(ZSTD),
    count UInt64 CODEC(T64, ZSTD),
    min UInt64 CODEC(T64, ZSTD),
    mean UInt64 CODEC(T64, ZSTD),
    p50 UInt64 CODEC(T64, ZSTD),
    p90 UInt64 CODEC(T64, ZSTD),
    p95 UInt64 CODEC(T64, ZSTD),
    p99 UInt64 CODEC(T64, ZSTD),
    p999 UInt64 MATERIALIZED ppingQuantile(0.999, (histogram.upper, histogram.samples), min, max) CODEC(T64, ZSTD),
    max UInt64 CODEC(T64, ZSTD),
    histogram Array(Tuple(upper UInt64, samples UInt64)) CODEC(ZSTD),
    sent_packets UInt64 CODEC(T64, ZSTD),
    sent_bytes UInt64 CODEC(T64, ZSTD),
    rec_packets UInt64 CODEC(T64, ZSTD),
    rec_bytes UInt64 CODEC(T64, ZSTD),
    sent_retransmissions UInt64 CODEC(T64, ZSTD),
    rec_retransmissions UInt64 CODEC(T64, ZSTD),
    sent_ce_packets UInt64 CODEC(T64, ZSTD),
    rec_ce_packets UInt64 CODEC(T64, ZSTD),
    -- By profile. NULL means unknown.
    quality Map(LowCardinality(String), Nullable(UInt8)) CODEC(ZSTD)
)
ENGINE = MergeTree
PARTITION BY toMonday(timestamp)
ORDER BY (group, method, timestamp, host, interface)
TTL toDateTime(timestamp) + INTERVAL 3 MONTH;

CREATE MATERIALIZED VIEW IF NOT EXISTS pping.to_aggregates TO pping.aggregates AS
SELECT host, fromUnixTimestamp64Nano(timestamp) AS timestamp, interval, interface, method, match_on_egress, side,
    group, prefix, dscp, labels, count, min, mean, p50, p90, p95, p99, max, histogram, sent_packets, sent_bytes, rec_packets, rec_bytes,
    sent_retransmissions, rec_retransmissions, sent_ce_packets, rec_ce_packets, quality
FROM pping.records
WHERE type = 'aggregate' AND level = '';

-- The worst flows and groups of an interval (--worst), kept for three months. Groups have no addresses. A value of 0
-- means no RTT.
CREATE TABLE IF NOT EXISTS pping.worst
(
    host LowCardinality(String),
    timestamp DateTime64(9) CODEC(Delta, ZSTD),
    window UInt64 CODEC(T64, ZSTD),
    worst LowCardinality(String),
    rank UInt16 CODEC(T64, ZSTD),
    src_ip IPv6 CODEC(ZSTD),
    src_port UInt16 CODEC(ZSTD),
    dest_ip IPv6 CODEC(ZSTD),
    dest_port UInt16 CODEC(ZSTD),
    protocol LowCardinality(String),
    group String CODEC(ZSTD),
    interface LowCardinality(String),
    method LowCardinality(String),
    match_on_egress Nullable(Bool),
    side LowCardinality(String),
    -- The RTT that ranks the row, and the RTT that it is compared with. For a flow: its smoothed and its lowest RTT.
    -- For a group: its ranked_rtt and its baseline (docs/groups.md).
    rtt UInt64 CODEC(T64, ZSTD),
    baseline UInt64 CODEC(T64, ZSTD),
    inflation UInt64 CODEC(T64, ZSTD),
    -- NULL for a group with too few packets.
    retransmission_ratio Nullable(Float64) CODEC(ZSTD),
    bytes UInt64 CODEC(T64, ZSTD),
    -- For a flow, the packets of the timed host. For a group, its samples.
    evidence UInt64 CODEC(T64, ZSTD),
    -- For a group: about how many hosts replied, and the 95th percentile of all samples.
    hosts UInt16 CODEC(T64, ZSTD),
    p95 UInt64 CODEC(T64, ZSTD)
)
ENGINE = MergeTree
PARTITION BY toMonday(timestamp)
ORDER BY (host, worst, timestamp, rank)
TTL toDateTime(timestamp) + INTERVAL 3 MONTH;

CREATE MATERIALIZED VIEW IF NOT EXISTS pping.to_worst TO pping.worst AS
SELECT host, fromUnixTimestamp64Nano(timestamp) AS timestamp, window, worst, rank, src_ip, src_port, dest_ip, dest_port, protocol,
    group, interface, method, match_on_egress, side, if(protocol = '', ranked_rtt, smoothed_rtt) AS rtt,
    if(protocol = '', baseline, min_rtt) AS baseline, inflation, retransmission_ratio, bytes,
    if(protocol = '', count, sent_packets) AS evidence, hosts, p95
FROM pping.records
WHERE type = 'worst' AND level = '';

-- Times that packets spent in the box (--residence with --aggregate), kept for three months. residence is 'forwarding'
-- or 'queue'. A row with a group covers the packets of that group. The row of the interface, where group is '',
-- includes them too.
CREATE TABLE IF NOT EXISTS pping.residence
(
    host LowCardinality(String),
    timestamp DateTime64(9) CODEC(Delta, ZSTD),
    window UInt64 CODEC(T64, ZSTD),
    interface LowCardinality(String),
    group String CODEC(ZSTD),
    residence LowCardinality(String),
    count UInt64 CODEC(T64, ZSTD),
    mean UInt64 CODEC(T64, ZSTD),
    p50 UInt64 CODEC(T64, ZSTD),
    p90 UInt64 CODEC(T64, ZSTD),
    p95 UInt64 CODEC(T64, ZSTD),
    p99 UInt64 CODEC(T64, ZSTD),
    histogram Array(Tuple(upper UInt64, samples UInt64)) CODEC(ZSTD),
    followed UInt64 CODEC(T64, ZSTD),
    dropped UInt64 CODEC(T64, ZSTD),
    replaced UInt64 CODEC(T64, ZSTD)
)
ENGINE = MergeTree
PARTITION BY toMonday(timestamp)
ORDER BY (host, interface, residence, group, timestamp)
TTL toDateTime(timestamp) + INTERVAL 3 MONTH;

CREATE MATERIALIZED VIEW IF NOT EXISTS pping.to_residence TO pping.residence AS
SELECT host, fromUnixTimestamp64Nano(timestamp) AS timestamp, window, interface, group, residence, count, mean, p50, p90, p95, p99,
    histogram, followed, dropped, replaced
FROM pping.records
WHERE type = 'residence';

-- Groups by the hour, with summed histograms, kept for three years. Read pping.hours: rows here may not be merged yet.
CREATE TABLE IF NOT EXISTS pping.aggregates_hourly
(
    hour DateTime CODEC(Delta, ZSTD),
    group String CODEC(ZSTD),
    method LowCardinality(String),
    host LowCardinality(String),
    interface LowCardinality(String),
    -- 'ingress', 'egress', or '' if a capture had no directions.
    matched LowCardinality(String),
    -- 'inside' or 'outside' with --inside.
    side LowCardinality(String),
    -- Lowest and highest RTT, from intervals that have samples.
    shortest SimpleAggregateFunction(min, UInt64) CODEC(T64, ZSTD),
    longest SimpleAggregateFunction(max, UInt64) CODEC(T64, ZSTD),
    bins SimpleAggregateFunction(sumMap, Tuple(Array(UInt64), Array(UInt64))) CODEC(ZSTD),
    sent_packets SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD),
    sent_bytes SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD),
    rec_packets SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD),
    rec_bytes SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD),
    sent_retransmissions SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD),
    rec_retransmissions SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (group, method, hour, host, interface, matched, side)
TTL hour + INTERVAL 3 YEAR;

CREATE MATERIALIZED VIEW IF NOT EXISTS pping.to_aggregates_hourly TO pping.aggregates_hourly AS
SELECT
    -- An interval that ends at 14:00 belongs to the hour before.
    toStartOfHour(toDateTime(intDiv(timestamp - 1, 1000000000))) AS hour,
    group, method, host, interface,
    multiIf(match_on_egress IS NULL, '', match_on_egress, 'egress', 'ingress') AS matched, side,
    -- Without samples, the highest possible value, which is never the minimum.
    min(if(records.count = 0, 18446744073709551615, records.min)) AS shortest,
    max(records.max) AS longest,
    sumMap(histogram.1, histogram.2) AS bins,
    sum(records.sent_packets) AS sent_packets, sum(records.sent_bytes) AS sent_bytes,
    sum(records.rec_packets) AS rec_packets, sum(records.rec_bytes) AS rec_bytes,
    sum(records.sent_retransmissions) AS sent_retransmissions, sum(records.rec_retransmissions) AS rec_retransmissions
FROM pping.records AS records
WHERE type = 'aggregate'
GROUP BY hour, group, method, host, interface, matched, side;

-- Percentiles by the hour, over all boxes. Interfaces stay apart: each measures another path.
CREATE VIEW IF NOT EXISTS pping.hours AS
SELECT hour, group, method, interface, matched, side, arraySum(bins.2) AS count,
    ppingQuantile(0.5, bins, shortest, longest) AS p50, ppingQuantile(0.95, bins, shortest, longest) AS p95,
    ppingQuantile(0.99, bins, shortest, longest) AS p99, shortest, longest, bins, sent_packets, sent_bytes, rec_packets,
    rec_bytes, sent_retransmissions, rec_retransmissions
FROM
(
    SELECT hour, group, method, interface, matched, side, min(shortest) AS shortest, max(longest) AS longest,
        sumMap(bins) AS bins, sum(sent_packets) AS sent_packets, sum(sent_bytes) AS sent_bytes,
        sum(rec_packets) AS rec_packets, sum(rec_bytes) AS rec_bytes, sum(sent_retransmissions) AS sent_retransmissions,
        sum(rec_retransmissions) AS rec_retransmissions
    FROM pping.aggregates_hourly
    GROUP BY hour, group, method, interface, matched, side
);
