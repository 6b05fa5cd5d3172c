-- Makes pping.history of the files that match the parameter `files`, for instance /srv/pping/host=*/5m/**/*.parquet. Name
-- one tier only: each has the whole time, so two of them would count it twice. A server reads below its user_files_path
-- alone; clickhouse local reads everywhere.
CREATE DATABASE IF NOT EXISTS pping;

-- Has the columns of all files, because labels and scores come and go.
CREATE OR REPLACE TABLE pping.history_files AS file({files:String}, Parquet)
SETTINGS schema_inference_mode = 'union', use_hive_partitioning = 0;

-- `host` is the box if folders are named host=NAME, and NULL if not. The functions for percentiles take numbers without
-- signs.
CREATE OR REPLACE VIEW pping.history AS
SELECT
    nullIf(extract(_path, '/host=([^/]+)/'), '') AS host,
    * REPLACE (CAST(min, 'Nullable(UInt64)') AS min, CAST(max, 'Nullable(UInt64)') AS max,
        CAST(histogram_upper, 'Array(UInt64)') AS histogram_upper, CAST(histogram_samples, 'Array(UInt64)') AS histogram_samples)
FROM pping.history_files;
