//! The tree of groups on the page.

use std::fs;

use pping_lab::Namespace;
use serde_json::{Value, json};

use super::{
    PAGE, api,
    browser::{Browser, ENTER, ESCAPE},
    fed::FedServer,
};
use crate::agent::monitor::{ok, repository, wait_until};

/// The name of each node, with its members, how many of these are bad, and its samples.
const ROWS: &str = "[...document.querySelectorAll('#groups > tbody > tr')].map((row) => [row.querySelector('th a').textContent, \
                    ...['members', 'bad', 'count'].map((name) => Number(row.querySelector(`.c-${name}`)?.dataset.value ?? -1))])";

/// The names of the rows of customers.
const NAMES: &str = "[...document.querySelectorAll('#groups > tbody > tr th a')].map((it) => it.textContent)\
                     .filter((it) => it.startsWith('customer'))";

/// The names on the way to the node that is open.
const WAY: &str = "document.getElementById('way').hidden ? [] : \
                   [...document.querySelectorAll('#way a')].map((it) => it.textContent)";

/// Returns the rows of nodes that match the API's answer: the busiest series of each.
fn expected(nodes: &Value) -> Value {
    let row = |node: &Value| {
        let column = node["level"].as_str().unwrap();
        let count = |it: &Value| it["rtt"]["count"].as_u64().unwrap_or(0);
        let count = node["series"].as_array().unwrap().iter().map(count).max().unwrap();
        json!([node["labels"][column], node["members"], node["bad"], count])
    };
    nodes["groups"].as_array().unwrap().iter().map(row).collect()
}

fn choose(browser: &Browser<'_>, level: &str) {
    browser.value(&format!(
        "(() => {{ const it = document.getElementById('level'); it.value = '{level}'; it.dispatchEvent(new Event('change')); }})()"
    ));
}

/// Waits until the page shows what the API answers.
fn shows(browser: &Browser<'_>, host: &Namespace, query: &str) {
    wait_until(query, || browser.value(ROWS) == expected(&api(host, &format!("/groups?{query}"))));
}

#[test]
fn the_tree_is_walked_by_links_keys_and_addresses() {
    let host = ok(Namespace::new("page"));
    let fed = FedServer::start_with_tree(&host, 9);
    fed.go_on();
    let browser = Browser::start(&host);
    browser.open(PAGE);
    browser.wait_for("document.querySelectorAll('#groups > tbody > tr').length === 14");
    browser.wait_for("!document.getElementById('level').parentElement.hidden");
    let levels = "[...document.getElementById('level').options].map((it) => it.textContent)";
    assert_eq!(browser.value(levels), json!(["groups", "site", "ap"]));

    choose(&browser, "site");
    shows(&browser, &host, "by=site");
    assert_eq!(browser.value("location.hash"), "#/?by=site");
    assert_eq!(browser.text("#found"), "2 site in the last minute");
    let bad = browser.value(ROWS).as_array().unwrap().iter().map(|row| row[2].as_u64().unwrap()).sum::<u64>();
    assert!(bad > 0 && bad < 14, "some groups are bad: {bad}");
    axe(&browser);
    browser.click("#groups th.c-bad button");
    browser.wait_for("document.querySelector('#groups [aria-sort=descending]').textContent === 'bad'");

    // A node's name leads to what is under it.
    browser.value(
        "[...document.querySelectorAll('#groups th a')].find((it) => it.textContent === 'berlin').click()",
    );
    shows(&browser, &host, "by=ap&under=berlin");
    assert_eq!(browser.value(WAY), json!(["all site", "berlin"]));
    browser.value(
        "[...document.querySelectorAll('#groups th a')].find((it) => it.textContent === 'x/y').focus()",
    );
    browser.keys(&[ENTER]);
    browser.wait_for("document.querySelector('#groups .c-members') === null");
    let hash = browser.value("decodeURIComponent(location.hash.replaceAll('+', ' '))");
    assert_eq!(hash, "#/?under=berlin/x\\/y");
    let members = |path: &str| -> Value {
        let answer = api(&host, &format!("/groups?under={path}&view=series"));
        assert_eq!(answer["found"], 4);
        let groups = answer["groups"].as_array().unwrap().iter().map(|it| it["group"].clone());
        groups.filter(|it| it.as_str().unwrap().starts_with("customer")).collect()
    };
    browser.wait_for("document.querySelectorAll('#groups > tbody > tr').length === 4");
    wait_until("the groups of the node", || browser.value(NAMES) == members("berlin/x%5C/y"));
    assert_eq!(browser.value(WAY), json!(["all site", "berlin", "x/y"]));
    axe(&browser);

    // Back by the browser, a level up by the keyboard, and to the beginning by the way.
    browser.value("history.back()");
    shows(&browser, &host, "by=ap&under=berlin");
    browser.keys(&[ESCAPE]);
    shows(&browser, &host, "by=site");
    assert_eq!(browser.value(WAY), json!([]));
    // The address is enough.
    browser.open(&format!("{PAGE}#/?by=ap&under=%3Cb%3ELund"));
    shows(&browser, &host, "by=ap&under=%3Cb%3ELund");
    assert_eq!(browser.value(WAY), json!(["all site", "<b>Lund"]));
    browser.click("#way a");
    shows(&browser, &host, "by=site");

    // A node's own page.
    browser.click("#groups .c-past a");
    browser.wait_for("document.querySelectorAll('.panel').length === 2");
    let facts = browser.text("#facts");
    assert!(facts.contains("groups") && facts.contains(" of which "), "{facts}");
    browser.click("#back");
    shows(&browser, &host, "by=site");
    assert_eq!(browser.console(), [""; 0]);
}

#[test]
fn without_a_tree_there_is_no_choice() {
    let host = ok(Namespace::new("page"));
    let _fed = FedServer::start(&host, 3);
    let browser = Browser::start(&host);
    browser.open(&format!("{PAGE}#/?by=site&under=berlin"));
    browser.wait_for("document.querySelectorAll('#groups > tbody > tr').length === 8");
    assert_eq!(browser.value("document.getElementById('level').parentElement.hidden"), true);
    assert_eq!(browser.value(WAY), json!([]));
    assert_eq!(browser.console(), [""; 0]);
}

/// Checks that the page is accessible, and fits screens of all widths.
fn axe(browser: &Browser<'_>) {
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
}

#[test]
fn networks_are_a_choice_of_the_table() {
    let host = ok(Namespace::new("page"));
    let fed = FedServer::start(&host, 3);
    fed.add_network(64_500, "AS64500 <b>Example", &[5_000_000; 30]);
    fed.add_network(64_501, "AS64501 Other", &[9_000_000; 40]);
    let browser = Browser::start(&host);
    browser.open(PAGE);
    browser.wait_for("!document.getElementById('level').parentElement.hidden");
    choose(&browser, "network");
    let names = "[...document.querySelectorAll('#groups > tbody > tr th a')].map((it) => it.textContent)";
    wait_until("both networks", || {
        let found = browser.value(names);
        eprintln!("{found} {} {}", browser.value("location.hash"), browser.text("#found"));
        found == json!(["AS64501 Other", "AS64500 <b>Example"])
    });
    assert_eq!(browser.value("location.hash"), "#/?by=network");
    assert_eq!(browser.value("document.querySelectorAll('#groups .c-members').length"), 0);
    browser.value("document.querySelector('#groups > tbody > tr th a').click()");
    browser.wait_for("document.getElementById('facts').textContent.includes('64501')");
    browser.wait_for(
        "document.querySelector('h2, h1').ownerDocument.body.textContent.includes('AS64501 Other')",
    );
    assert!(browser.value("location.hash").as_str().unwrap().starts_with("#/groups/"));
}
