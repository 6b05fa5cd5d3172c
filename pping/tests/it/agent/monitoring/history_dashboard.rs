//! The dashboard on `ClickHouse` shows what a real pping kept.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pping_lab::{Signal, Topology};
use serde_json::Value;

use super::dashboard::{array, assert_importable, dashboard, text};
use crate::{
    agent::monitor::{ENDING, converse, ok, ping, topology, watch},
    clickhouse::{Engine, Parameters},
    engines::make_tables,
};

const HISTORY: &str = "pping.history.json";

/// A macro, and what Grafana's data source puts in its place.
type Macro<'a> = (&'a str, &'a dyn Fn(&str) -> String);

/// Splits a text after the parenthesis that closes the one before it.
fn split_at_closing(text: &str) -> (&str, &str) {
    let mut depth = 1;
    let closing = text.find(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let closing = closing.unwrap_or_else(|| panic!("no closing parenthesis in {text}"));
    (&text[..closing], &text[closing + 1..])
}

/// Replaces macros and variables, as Grafana and its data source do. A variable without a value stands for all values.
fn substituted(query: &str, values: &BTreeMap<String, Option<String>>) -> String {
    let now = Timestamp::now().as_second();
    let time_filter = |column: &str| {
        format!("{column} >= toDateTime({}) AND {column} <= toDateTime({})", now - 6 * 3600, now + 3600)
    };
    let time_interval = |column: &str| format!("toStartOfInterval(toDateTime({column}), INTERVAL 60 second)");
    let unless_all = |arguments: &str| {
        let (condition, variable) = arguments.rsplit_once(", $").unwrap();
        values[variable].as_ref().map_or_else(|| "1=1".to_owned(), |_| condition.to_owned())
    };
    let macros: [Macro<'_>; 3] = [
        ("$__timeFilter(", &time_filter),
        ("$__timeInterval(", &time_interval),
        ("$__conditionalAll(", &unless_all),
    ];
    let mut query = query.replace("$__interval_s", "60");
    for (name, replacement) in macros {
        while let Some((before, after)) = query.split_once(name) {
            let (arguments, rest) = split_at_closing(after);
            query = format!("{before}{}{rest}", replacement(arguments));
        }
    }
    for (name, value) in values {
        let value = value.as_deref().unwrap_or_default();
        query = query.replace(&format!("${{{name}:singlequote}}"), &format!("'{value}'"));
        query = query.replace(&format!("${name}"), value);
    }
    assert!(!query.contains('$'), "a macro or variable that nothing replaces: {query}");
    query
}

/// The first value of each variable that a query finds. Of those with several values all are chosen, unless `is_single`.
fn chosen(engine: &Engine<'_>, dashboard: &Value, is_single: bool) -> BTreeMap<String, Option<String>> {
    let mut values = BTreeMap::new();
    for variable in array(&dashboard["templating"]["list"]) {
        let name = text(variable, "name");
        if name == "datasource" {
            continue;
        }
        let query = substituted(text(variable, "query"), &values);
        let found = engine.rows(&query, &Parameters::new());
        let first = found.first().unwrap_or_else(|| panic!("{name} has no choice: {query}"));
        let choice = first.as_object().unwrap().values().next().unwrap().as_str().unwrap();
        let is_all = variable["includeAll"] == true && !is_single;
        values.insert(name.to_owned(), (!is_all).then(|| choice.to_owned()));
    }
    values
}

#[test]
fn history_dashboard_has_the_structure_that_grafana_imports() {
    let dashboard = dashboard(HISTORY);
    assert_importable(&dashboard, ["datasource", "group", "host", "interface", "matched", "method"]);
    let mut sources = vec![&dashboard["templating"]["list"][0]["query"]];
    for panel in array(&dashboard["panels"]) {
        sources.extend(array(&panel["targets"]).iter().map(|target| &target["datasource"]["type"]));
    }
    assert!(sources.iter().all(|source| *source == "grafana-clickhouse-datasource"), "{sources:?}");
}

#[test]
fn every_query_of_the_history_dashboard_has_rows() {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let history = directory.path().join("host=gw1");
    let arguments =
        format!("--format none --rate-limit 0 --group-by /32,/128 --history {}", history.display());
    let mut pping = watch(topology.router(), Topology::WAN, &arguments);
    converse(&topology, 40);
    // Scores take a hundred samples in a minute.
    ping(topology.client(), Topology::SERVER_IPV4, "-c250 -i0.005");
    ok(pping.stop(Signal::SIGTERM, ENDING));

    let data = tempfile::tempdir().unwrap();
    let engine = Engine::open(None, data.path());
    make_tables(&engine, &format!("{}/host=*/1m/**/*.parquet", directory.path().display()));
    let dashboard = dashboard(HISTORY);
    for is_single in [false, true] {
        let values = chosen(&engine, &dashboard, is_single);
        let mut queries = 0;
        for panel in array(&dashboard["panels"]) {
            for target in array(&panel["targets"]) {
                let (title, query) = (text(panel, "title"), substituted(text(target, "rawSql"), &values));
                assert_shows(title, &engine.rows(&query, &Parameters::new()), &query);
                queries += 1;
            }
        }
        assert!(queries >= 15, "{queries}");
    }
}

/// Asserts that each column of a panel has a value in some row, and that some number is above zero where there is
/// something to see.
fn assert_shows(title: &str, rows: &[Value], query: &str) {
    let first = rows.first().unwrap_or_else(|| panic!("{title} has no rows: {query}"));
    let mut highest = 0.0;
    for name in first.as_object().unwrap().keys() {
        assert!(rows.iter().any(|row| !row[name].is_null()), "{title}: {name} has no value: {query}");
        let numbers = rows.iter().filter_map(|row| row[name].as_f64());
        highest = numbers.fold(highest, f64::max);
    }
    // Nothing is lost or marked between these namespaces.
    let is_zero = ["Retransmissions", "CE marks"].contains(&title);
    assert!(highest > 0.0 || is_zero, "{title} shows nothing: {query}");
}
