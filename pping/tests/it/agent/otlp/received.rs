//! The points that a receiver accepted, compared with a page of metrics.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::http::Exposition;

/// The labels of a series.
pub(super) type Labels = BTreeMap<String, String>;

/// Returns the last point of each series, by metric and labels.
pub(super) fn latest(points: &[Value]) -> BTreeMap<(String, Labels), &Value> {
    let mut latest: BTreeMap<_, &Value> = BTreeMap::new();
    for point in points {
        let key = (point["name"].as_str().unwrap().to_owned(), labels(point));
        let known = latest.entry(key).or_insert(point);
        if known["time"].as_u64() <= point["time"].as_u64() {
            *known = point;
        }
    }
    latest
}

pub(super) fn labels(point: &Value) -> Labels {
    let attributes = point["attributes"].as_object().unwrap();
    attributes.iter().map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned())).collect()
}

/// Returns the name of a metric in Prometheus, by OpenTelemetry's specification "Prometheus and `OpenMetrics`
/// Compatibility".
pub(super) fn prometheus_name(point: &Value) -> String {
    let mut name = point["name"].as_str().unwrap().replace('.', "_");
    let unit = match point["unit"].as_str().unwrap() {
        "s" => "seconds",
        "By" => "bytes",
        "1" => "ratio",
        unit => {
            assert!(unit.is_empty() || unit.starts_with('{'), "{unit}");
            ""
        }
    };
    if !unit.is_empty() && !name.ends_with(unit) {
        name = format!("{name}_{unit}");
    }
    if point["is_monotonic"] == true { name + "_total" } else { name }
}

/// Returns the buckets of `/metrics`: how many samples are at most each power of two of a second from 2^-20 on, and how
/// many there are.
pub(super) fn octaves(histogram: &Value) -> Vec<u64> {
    let integer = |name: &str| histogram[name].as_i64().unwrap();
    let (scale, offset) = (integer("scale"), integer("offset"));
    assert_eq!((scale, integer("negative")), (3, 0), "{histogram}");
    assert!((histogram["zero_threshold"].as_f64().unwrap() - 0.5_f64.powi(20)).abs() < f64::EPSILON);
    let mut octaves: Vec<u64> = (-20..=6)
        .map(|octave| {
            let buckets = histogram["buckets"].as_array().unwrap().iter().zip(offset..);
            let below = buckets.filter(|(_, index)| *index < octave * 8);
            histogram["zero_count"].as_u64().unwrap()
                + below.map(|(count, _)| count.as_u64().unwrap()).sum::<u64>()
        })
        .collect();
    octaves.push(histogram["count"].as_u64().unwrap());
    octaves
}

/// Asserts that pping's series on a page are those of the points, with the same values. Returns the number of values.
#[track_caller]
pub(super) fn assert_same(page: &Exposition, points: &[Value]) -> usize {
    let latest = latest(points);
    let mut received: BTreeMap<(String, Labels), f64> = BTreeMap::new();
    for ((_, labels), point) in &latest {
        let name = prometheus_name(point);
        if let Some(histogram) = point.get("histogram") {
            for (octave, count) in (-20..).zip(octaves(histogram)) {
                let bound = if octave > 6 { "+Inf".to_owned() } else { 2_f64.powi(octave).to_string() };
                let mut labels = labels.clone();
                labels.insert("le".to_owned(), bound);
                received.insert((format!("{name}_bucket"), labels), count as f64);
            }
            let count = histogram["count"].as_f64().unwrap();
            received.insert((format!("{name}_count"), labels.clone()), count);
            received.insert((format!("{name}_sum"), labels.clone()), histogram["sum"].as_f64().unwrap());
        } else if let Some(summary) = point.get("summary") {
            assert!(summary["buckets"].as_array().unwrap().is_empty(), "{point}");
            for what in ["count", "sum"] {
                received.insert((format!("{name}_{what}"), labels.clone()), summary[what].as_f64().unwrap());
            }
        } else {
            received.insert((name, labels.clone()), point["value"].as_f64().unwrap());
        }
    }
    let mut compared = 0;
    for series in page.series() {
        // Metrics that a push itself changes, and metrics that OTLP has in another form: see docs/metrics.md.
        let changes = ["pping_otlp_", "pping_bpf_", "pping_build_info", "process_"];
        if changes.iter().any(|prefix| series.name.starts_with(prefix)) {
            continue;
        }
        let labels = series.labels.iter().map(|(&key, &value)| {
            let bound = (key == "le" && value != "+Inf").then(|| value.parse::<f64>().unwrap().to_string());
            (key.to_owned(), bound.unwrap_or_else(|| value.to_owned()))
        });
        let key = (series.name.to_owned(), labels.collect());
        let value = received.get(&key).unwrap_or_else(|| panic!("{key:?} did not arrive"));
        assert!(
            (value - series.value).abs() <= 1e-9 * value.abs(),
            "{key:?}: {value} is not {}",
            series.value
        );
        compared += 1;
    }
    compared
}
