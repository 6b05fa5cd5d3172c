//! The table of groups where sides of the network are told apart.

use std::fs;

use pping_lab::Namespace;
use serde_json::{Value, json};

use super::{
    PAGE, api,
    browser::{Browser, LEFT, RIGHT},
    fed::FedServer,
};
use crate::agent::monitor::{ok, repository, wait_until};

/// The name of each group, and the figures of its row.
const ROWS: &str = "[...document.querySelectorAll('#groups > tbody > tr:not(.below)')].map((row) => [row.querySelector('a').textContent, \
                    ...[...row.querySelectorAll(':scope > td')].filter((cell) => !cell.querySelector('svg')).map((cell) => cell.dataset.value ?? null)])";

/// Returns the rows that match the API's answer.
fn expected(groups: &Value) -> Vec<Value> {
    let rows = groups["groups"].as_array().unwrap().iter().map(|group| {
        let sides = &group["sides"];
        let figure = |pointer: &str| sides.pointer(pointer).filter(|it| !it.is_null()).map(Value::to_string);
        let [packets, retransmissions] =
            ["packets", "retransmissions"].map(|name| sides["traffic"][name].as_f64().unwrap());
        json!([
            group["group"],
            figure("/inside/rtt/p50"),
            figure("/inside/rtt/p95"),
            figure("/outside/rtt/p50"),
            figure("/outside/rtt/p95"),
            figure("/traffic/packets"),
            figure("/traffic/bytes"),
            (retransmissions / packets).to_string(),
            null
        ])
    });
    rows.collect()
}

#[test]
fn a_group_has_one_row_for_both_sides_and_its_series_below() {
    let host = ok(Namespace::new("page"));
    let fed = FedServer::start_with_sides(&host, 5);
    // Packets without round-trip times.
    fed.add("idle", &[]);
    let browser = Browser::start(&host);
    browser.open(PAGE);
    browser.wait_for("document.querySelectorAll('#groups tbody tr').length === 10");
    let answer = api(&host, "/groups?view=sides");
    assert_eq!(answer["found"], 11, "the idle group is in the API");
    // A page that was drawn before the latest cell began shows another quarter of an hour.
    wait_until("the page shows what the API has", || {
        let rows = expected(&api(&host, "/groups?view=sides")).into_iter().filter(|row| {
            let name = row[0].as_str().unwrap();
            name != "idle" && name.len() < 100 && !name.contains(['\u{1b}', '\u{202e}'])
        });
        let shown = browser.value(ROWS);
        rows.collect::<Vec<_>>().iter().all(|row| shown.as_array().unwrap().contains(row))
    });
    assert_eq!(
        browser.value("document.querySelector('#groups [aria-sort=descending]').textContent"),
        "inside p95"
    );
    let trend = browser.value("document.querySelector('#groups .c-inside_trend svg').ariaLabel");
    assert!(trend.as_str().unwrap().starts_with("inside p95, 15 min: up to "), "{trend}");
    let hint = browser.value("document.querySelector('#groups td.c-inside_p95').title");
    assert_eq!(hint, "lan0: tcp-ts");

    browser.click("#groups th.c-outside_p50 button");
    browser
        .wait_for("document.querySelector('#groups [aria-sort=descending]').textContent === 'outside p50'");
    assert_eq!(browser.value("location.hash"), "#/?sort=outside_p50");
    // An order of the other view is that of nobody here.
    browser.open(&format!("{PAGE}#/?sort=p99"));
    browser
        .wait_for("document.querySelector('#groups [aria-sort=descending]')?.textContent === 'inside p95'");

    // The series below, by the keyboard.
    browser.value("document.querySelector('#groups tbody a').focus()");
    browser.keys(&[RIGHT]);
    browser.wait_for("document.querySelectorAll('#groups .below tbody tr').length === 4");
    assert_eq!(browser.value("document.querySelector('#groups .fold').ariaExpanded"), "true");
    let series = browser.value(
        "[...document.querySelectorAll('#groups .below tbody tr')].map((row) => \
                               [...row.cells].slice(0, 3).map((cell) => cell.textContent).join(' '))",
    );
    assert_eq!(
        series,
        json!(["lan0 tcp-ts inside", "lan0 tcp-ts outside", "wan0 tcp-ts outside", "wan0 tcp-ts inside"])
    );
    let axe = fs::read_to_string(repository("pping/page/vendor/axe.min.js")).unwrap();
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        for width in [360, 1280, 2560] {
            browser.resize(width);
            let wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
            assert_eq!(browser.value(wider), 0, "{width}");
        }
        let found = browser.run(
            &axe,
            "axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations.map((it) => \
             `${it.impact} ${it.id}: ${it.nodes.map((node) => node.target.join(' ')).join(', ')}`))",
        );
        assert_eq!(found, json!([]), "{scheme}");
    }
    browser.keys(&[LEFT]);
    browser.wait_for("document.querySelector('#groups .below') === null");
    assert_eq!(browser.console(), [""; 0]);
}
