//! Every panel of the dashboard shows data.

use std::{
    collections::BTreeSet,
    env, fs, thread,
    time::{Duration, Instant},
};

use pping_common::parse::Direction;
use pping_lab::Namespace;
use serde_json::Value;

use super::{
    agents::{Agent, FORWARDING, LAN, QUEUES, WAN, counts_at, counts_of},
    stack::{self, Store},
};
use crate::agent::monitor::{PATIENCE, ok, repository, wait_until};

const CLASSIC: &str = "pping.json";
const NATIVE: &str = "pping.native.json";

pub(super) fn dashboard(file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(repository("deploy/grafana").join(file)).unwrap()).unwrap()
}

pub(super) fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn text<'a>(value: &'a Value, what: &str) -> &'a str {
    value[what].as_str().unwrap_or_else(|| panic!("no {what} in {value}"))
}

/// The queries of all panels, each with the title of its panel.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    array(&dashboard["panels"])
        .iter()
        .flat_map(|panel| {
            array(&panel["targets"])
                .iter()
                .map(move |target| (text(panel, "title").to_owned(), text(target, "expr").to_owned()))
        })
        .collect()
}

/// Replaces variables by values, as Grafana does.
fn substituted(dashboard: &Value, expression: &str) -> String {
    let mut expression = expression.replace("$__rate_interval", "10s").replace("$__range", "1m");
    for variable in array(&dashboard["templating"]["list"]) {
        let all = variable["allValue"].as_str().unwrap_or("prometheus");
        expression = expression.replace(&format!("${}", text(variable, "name")), all);
    }
    assert!(!expression.contains('$'), "a variable that the dashboard does not have: {expression}");
    expression
}

/// What the dashboard for native histograms has in place of what the classic one has.
const REPLACED: [(&str, &str); 8] = [
    (
        "\"title\": \"pping\",\n  \"uid\": \"pping\",",
        "\"title\": \"pping, native histograms\",\n  \"uid\": \"pping-native\",",
    ),
    ("label_values(pping_rtt_seconds_count{", "label_values(pping_rtt_seconds{"),
    ("are in each octave", "are in each bin"),
    ("\"{{le}}\"", "\"RTTs\""),
    ("pping.rules.yml", "pping.native.rules.yml"),
    ("sum by (le) (", "sum("),
    ("by (le, ", "by ("),
    ("_seconds_bucket{", "_seconds{"),
];

/// Returns the dashboard for native histograms that is made from the classic one.
fn made_native(mut classic: String) -> String {
    for (from, to) in REPLACED {
        classic = classic.replace(from, to);
    }
    for part in ["count", "sum"] {
        let call = format!("rate(pping_rtt_seconds_{part}{{");
        let mut pieces = classic.split(&call);
        let mut native = pieces.next().unwrap().to_owned();
        for piece in pieces {
            let (selector, rest) = piece.split_once(')').unwrap();
            native.extend(["histogram_", part, "(rate(pping_rtt_seconds{", selector, "))", rest]);
        }
        classic = native;
    }
    classic
}

#[test]
fn native_dashboard_is_made_from_the_classic_one() {
    let folder = repository("deploy/grafana");
    let made = made_native(fs::read_to_string(folder.join(CLASSIC)).unwrap());
    if made != fs::read_to_string(folder.join(NATIVE)).unwrap() {
        let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/pping.native.json");
        fs::write(file, made).unwrap();
        panic!("deploy/grafana/{NATIVE} is out of date; run `cp {file} {}`", folder.display());
    }
}

#[test]
fn it_has_the_structure_that_grafana_imports() {
    let variables = ["datasource", "group", "instance", "interface", "matched", "method"];
    assert_importable(&dashboard(CLASSIC), variables);
    assert_importable(&dashboard(NATIVE), variables);
}

/// Asserts that a dashboard has the structure that Grafana imports, and these variables.
pub(super) fn assert_importable(dashboard: &Value, expected: [&str; 6]) {
    assert!(dashboard["schemaVersion"].as_u64() >= Some(36) && dashboard["id"].is_null());
    for key in ["title", "uid"] {
        assert!(!text(dashboard, key).is_empty());
    }
    let variables: BTreeSet<&str> =
        array(&dashboard["templating"]["list"]).iter().map(|variable| text(variable, "name")).collect();
    assert_eq!(variables, BTreeSet::from(expected));
    let (mut numbers, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    let mut positions: Vec<[u64; 4]> = Vec::new();
    for panel in array(&dashboard["panels"]) {
        let title = text(panel, "title");
        assert!(numbers.insert(panel["id"].as_u64().unwrap()), "{title}: its number is taken");
        kinds.insert(text(panel, "type"));
        let position = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        let [x, y, width, height] = position;
        assert!(width > 0 && height > 0 && x + width <= 24, "{title}: {position:?}");
        for [left, top, w, h] in &positions {
            let is_apart = x >= left + w || *left >= x + width || y >= top + h || *top >= y + height;
            assert!(is_apart, "{title} lies on another panel: {position:?}");
        }
        positions.push(position);
        let is_row = text(panel, "type") == "row";
        assert_eq!(array(&panel["targets"]).is_empty(), is_row, "{title}");
        assert!(is_row || panel["datasource"]["uid"] == "${datasource}", "{title}");
        let references: Vec<_> =
            array(&panel["targets"]).iter().map(|target| text(target, "refId")).collect();
        assert_eq!(references.iter().collect::<BTreeSet<_>>().len(), references.len(), "{title}");
    }
    for kind in ["heatmap", "timeseries", "stat", "table"] {
        assert!(kinds.contains(kind), "no {kind}");
    }
}

/// Asserts that each query has a result. Queries without one are repeated for a while.
fn assert_answers(store: &mut Store<'_>, name: &str, queries: &[(String, String)]) {
    let deadline = Instant::now() + PATIENCE;
    let mut empty: Vec<_> = queries.iter().collect();
    loop {
        empty.retain(|(_, expression)| {
            let found = store.query(expression);
            let is_number = |series: &Value| series["value"][1].as_str().is_some_and(|value| value != "NaN");
            let has_samples =
                |series: &Value| series["histogram"][1]["count"].as_str().is_some_and(|it| it != "0");
            !found.iter().any(|series| is_number(series) || has_samples(series))
        });
        if empty.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{name} finds nothing for {empty:#?}");
        thread::sleep(Duration::from_millis(500));
    }
}

const PORTS: [u16; 2] = [9464, 9465];

/// Starts agents with samples of several groups.
fn busy(host: &Namespace) -> [Agent; 2] {
    PORTS.map(|port| {
        Agent::start(host, port, || {
            let rtts: Vec<u64> = (1..100).map(|ms| ms * 1_000_000).collect();
            let site = [("site", "a \"b\" \\ c")];
            vec![
                counts_of("customer-7", &site, Direction::Egress, &rtts),
                counts_of("customer-8", &[], Direction::Ingress, &rtts[..50]),
                counts_of("other", &[], Direction::Ingress, &rtts[..10]),
                counts_at(LAN, "customer-7", &site, Direction::Egress, &[30_000; 100]),
            ]
        })
    })
}

/// Returns every query of a dashboard with its variables replaced, and the title of its panel.
fn expressions(dashboard: &Value) -> Vec<(String, String)> {
    let mut expressions: Vec<(String, String)> = queries(dashboard)
        .into_iter()
        .map(|(panel, expression)| (panel, substituted(dashboard, &expression)))
        .collect();
    assert!(expressions.len() > 30, "{}", expressions.len());
    // Variables whose choices come from a query.
    for variable in array(&dashboard["templating"]["list"]) {
        let Some(query) = variable["query"]["query"].as_str() else { continue };
        let inner = query.strip_prefix("label_values(").and_then(|inner| inner.strip_suffix(')')).unwrap();
        let (series, label) = inner.rsplit_once(", ").unwrap();
        let series = substituted(dashboard, series);
        expressions.push((text(variable, "name").to_owned(), format!("count by ({label}) ({series})")));
    }
    // A label value with quotes and backslashes comes through unchanged.
    let site = r#"pping_group_info{group="customer-7", site="a \"b\" \\ c"}"#.to_owned();
    expressions.push(("what a groups file says".to_owned(), site));
    expressions
}

#[test]
fn every_query_has_a_result_and_none_fails() {
    let host = ok(Namespace::new("monitor"));
    let mut victoria = stack::victoria_metrics(&host);
    let mut prometheus = stack::prometheus(&host, &PORTS, true);
    let _agents = busy(&host);
    let expressions = expressions(&dashboard(CLASSIC));
    assert_answers(&mut prometheus, "Prometheus", &expressions);
    assert_answers(&mut victoria, "VictoriaMetrics", &expressions);
    assert!(!prometheus.log().contains("level=error"), "{}", prometheus.log());
    assert!(!prometheus.log().contains("level=warn"), "{}", prometheus.log());
}

#[test]
fn every_native_query_has_a_result_and_none_fails() {
    let host = ok(Namespace::new("monitor"));
    let mut prometheus = stack::prometheus_native(&host, &PORTS);
    let _agents = busy(&host);
    let mut expressions = expressions(&dashboard(NATIVE));
    let rules = fs::read_to_string(repository("deploy/prometheus/pping.native.rules.yml")).unwrap();
    let recorded = rules.lines().filter_map(|line| line.trim().strip_prefix("- record: "));
    expressions.extend(recorded.map(|name| ("a rule".to_owned(), name.to_owned())));
    assert!(expressions.len() > 45, "{}", expressions.len());
    assert_answers(&mut prometheus, "Prometheus", &expressions);
    assert!(!prometheus.log().contains("level=error"), "{}", prometheus.log());
    assert!(!prometheus.log().contains("level=warn"), "{}", prometheus.log());
}

/// RTTs of a group at each interface, ns.
const RTTS: [(&str, u64); 2] = [(LAN, 30_000), (WAN, 82_000_000)];

/// Asserts that each percentile that the dashboard shows, or that a rule records, is that of one interface. Both have
/// samples of the same group, and far more at one of them.
fn assert_percentiles_of_one_interface(host: &Namespace, mut store: Store<'_>, file: &str, rules: &str) {
    let _agents = PORTS.map(|port| {
        Agent::start(host, port, || {
            let counts = |(interface, rtt): (&str, u64), count| {
                counts_at(interface, "all", &[], Direction::Ingress, &vec![rtt; count])
            };
            vec![counts(RTTS[0], 900), counts(RTTS[1], 100)]
        })
    });
    let rules = fs::read_to_string(repository("deploy/prometheus").join(rules)).unwrap();
    let recorded = rules.lines().filter_map(|line| line.trim().strip_prefix("- record: ").map(str::to_owned));
    let dashboard = dashboard(file);
    let shown = queries(&dashboard).into_iter().map(|(_, expression)| substituted(&dashboard, &expression));
    let is_percentile = |expression: &String| {
        ["histogram_quantile", "p50_5m", "p95_5m", "p99_5m", "mean5m"]
            .iter()
            .any(|it| expression.contains(it))
    };
    let all: BTreeSet<String> = recorded.chain(shown).filter(is_percentile).collect();
    assert!(all.len() > 10, "{all:#?}");
    let all: Vec<_> = all.into_iter().map(|expression| (String::new(), expression)).collect();
    assert_answers(&mut store, file, &all);
    for (_, expression) in &all {
        let of_interface = match expression {
            it if it.contains("queue_seconds") => QUEUES,
            it if it.contains("forwarding_seconds") => FORWARDING,
            _ => RTTS,
        };
        // An interface may come a scrape later.
        let mut found = Vec::new();
        wait_until(&format!("both interfaces in {expression}"), || {
            found = store.query(expression);
            of_interface.iter().all(|(name, _)| found.iter().any(|it| it["metric"]["interface"] == *name))
        });
        for series in found {
            let interface = text(&series["metric"], "interface");
            let value: f64 = text_at(&series["value"], 1).parse().unwrap();
            let (_, expected) = of_interface.into_iter().find(|(name, _)| *name == interface).unwrap();
            let ratio = value / (expected as f64 / 1e9);
            assert!(
                (0.5..=2.0).contains(&ratio),
                "{expression}: {value} s at {interface}, not {expected} ns"
            );
        }
    }
}

fn text_at(value: &Value, index: usize) -> &str {
    value[index].as_str().unwrap_or_else(|| panic!("no text at {index} of {value}"))
}

#[test]
fn percentiles_of_interfaces_stay_apart() {
    let host = ok(Namespace::new("monitor"));
    let prometheus = stack::prometheus(&host, &PORTS, false);
    assert_percentiles_of_one_interface(&host, prometheus, CLASSIC, "pping.rules.yml");
}

#[test]
fn native_percentiles_of_interfaces_stay_apart() {
    let host = ok(Namespace::new("monitor"));
    let prometheus = stack::prometheus_native(&host, &PORTS);
    assert_percentiles_of_one_interface(&host, prometheus, NATIVE, "pping.native.rules.yml");
}

/// Converts the expressions in a text to the form for native histograms.
fn native(classic: &str) -> String {
    let mut native = classic.to_owned();
    for (from, to) in [
        ("sum by (le) (", "sum("),
        ("sum by (le, ", "sum by ("),
        (", le) (", ") ("),
        ("rate(pping_rtt_seconds_bucket", "rate(pping_rtt_seconds"),
        ("rate(pping_queue_seconds_bucket", "rate(pping_queue_seconds"),
        ("rate(pping_group_queue_seconds_bucket", "rate(pping_group_queue_seconds"),
        ("rate(pping_forwarding_seconds_bucket", "rate(pping_forwarding_seconds"),
        ("increase(pping_rtt_seconds_bucket", "increase(pping_rtt_seconds"),
        ("label_values(pping_rtt_seconds_count", "label_values(pping_rtt_seconds"),
    ] {
        native = native.replace(from, to);
    }
    for part in ["count", "sum"] {
        // `histogram_count(` or `histogram_sum(` closes right after the rate it encloses.
        let rate = format!("rate(pping_rtt_seconds_{part}");
        let mut rest = native.split(&rate);
        let mut changed = rest.next().unwrap().to_owned();
        for rate in rest {
            changed.extend(["histogram_", part, "(rate(pping_rtt_seconds", &rate.replacen("])", "]))", 1)]);
        }
        native = changed;
    }
    native
}

/// With `PPING_BLESS=1` the test writes the native dashboard.
#[test]
fn native_dashboard_differs_only_in_expressions() {
    let folder = repository("deploy/grafana");
    let mut expected = native(&fs::read_to_string(folder.join(CLASSIC)).unwrap());
    for (from, to) in [
        ("\"title\": \"pping\"", "\"title\": \"pping, native histograms\""),
        ("\"uid\": \"pping\"", "\"uid\": \"pping-native\""),
        ("are in each octave", "are in each bin"),
        ("pping.rules.yml", "pping.native.rules.yml"),
        ("\"legendFormat\": \"{{le}}\"", "\"legendFormat\": \"RTTs\""),
    ] {
        expected = stack::replace(&expected, from, to);
    }
    if env::var_os("PPING_BLESS").is_some() {
        fs::write(folder.join(NATIVE), &expected).unwrap();
    }
    let written = fs::read_to_string(folder.join(NATIVE)).unwrap();
    assert!(written == expected, "{NATIVE} is not {CLASSIC} in its native form; PPING_BLESS=1 makes it so");
}

#[test]
fn the_native_rules_are_the_classic_ones_with_other_expressions() {
    /// Reads a rules file without its comments.
    fn rules(file: &str) -> String {
        let text = fs::read_to_string(repository("deploy/prometheus").join(file)).unwrap();
        text.split_inclusive('\n').filter(|line| !line.trim_start().starts_with('#')).collect()
    }
    let merged = "sum by (group, interface, method, matched) (rate(pping_rtt_seconds[5m]))";
    let recorded = "group_interface_method_matched_le:pping_rtt_seconds_bucket:rate5m";
    let record = format!("      - record: {recorded}\n        expr: {merged}\n\n");
    let mut expected = native(&rules("pping.rules.yml"));
    for (from, to) in
        [(record.as_str(), ""), (recorded, merged), ("- name: pping\n", "- name: pping.native\n")]
    {
        expected = stack::replace(&expected, from, to);
    }
    assert_eq!(rules("pping.native.rules.yml"), expected);
}
