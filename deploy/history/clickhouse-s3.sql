-- Makes pping.history of copies in an object store. Parameters: `files`, for instance
-- https://storage.example/pping/host=*/5m/*.parquet, and the keys of S3, `key` and `secret`. Name one tier only: each has
-- the whole time, so two of them would count it twice.
CREATE DATABASE IF NOT EXISTS pping;

-- All columns are named here, because finding them takes a request for each file. Add `label_NAME Nullable(String)` for a
-- column of the groups file, and `quality_NAME Nullable(UInt8)` for a profile of yours. A column that a file lacks is
-- NULL in its rows.
CREATE OR REPLACE TABLE pping.history_files AS s3({files:String}, {key:String}, {secret:String}, Parquet,
    'time DateTime64(6, \'UTC\'), step Int64, group String, prefix Nullable(String), dscp Nullable(UInt8), interface Nullable(String), method String, matched Nullable(String), side Nullable(String), count UInt64, sum UInt64, min Nullable(UInt64), max Nullable(UInt64), p50 Nullable(UInt64), p95 Nullable(UInt64), p99 Nullable(UInt64), histogram_upper Array(UInt64), histogram_samples Array(UInt64), sent_packets UInt64, sent_bytes UInt64, sent_retransmissions UInt64, sent_ce_packets UInt64, rec_packets UInt64, rec_bytes UInt64, rec_retransmissions UInt64, rec_ce_packets UInt64, max_bytes_per_second UInt64, `quality_video-call` Nullable(UInt8), quality_game Nullable(UInt8), quality_web Nullable(UInt8)')
SETTINGS use_hive_partitioning = 0;

-- `host` is the box, from folders named host=NAME.
CREATE OR REPLACE VIEW pping.history AS
SELECT nullIf(extract(_path, '/host=([^/]+)/'), '') AS host, *
FROM pping.history_files;
