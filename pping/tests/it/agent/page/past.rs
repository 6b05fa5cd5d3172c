//! Ranges of the history on the page, their links, and the comparison with the week before.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use pping_lab::{Namespace, Signal, Topology};
use serde_json::{Value, json};

use super::{
    PAGE, api,
    browser::{Browser, ENTER, LEFT},
    fed::FedServer,
    history::{self, DAY, GAP, GROUPS, HOUR, MINUTE, WEEK},
};
use crate::agent::{
    http::{LISTEN, scrape},
    monitor::{ENDING, ok, ping, repository, topology, wait_until, watch},
};

/// Whether both sides have their lines.
const DRAWN: &str = "document.querySelectorAll('.panel .lines .uplot').length === 2";

/// The hash of the page, when a range is read.
const READ: &str = "document.getElementById('intervals').textContent !== ''";

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A server with a history that ends at a whole hour, and that hour.
fn with_history(host: &Namespace) -> (FedServer, tempfile::TempDir, u64) {
    // In memory, where syncing takes no time.
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let end = now() / HOUR * HOUR;
    history::write(directory.path(), end);
    (FedServer::start_with_history(host, 3, directory.path()), directory, end)
}

/// The time as an address has it.
fn absolute(browser: &Browser<'_>, seconds: u64) -> String {
    let text = browser.value(&format!("new Date({seconds}000).toISOString().replace('.000', '')"));
    text.as_str().unwrap().to_owned()
}

/// The link to a range that does not change.
fn link(browser: &Browser<'_>, from: u64, to: u64) -> String {
    let given = [("from", from), ("to", to)]
        .map(|(name, at)| format!("{name}={}", absolute(browser, at).replace(':', "%3A")));
    format!("{PAGE}#/?{}", given.join("&"))
}

/// How many pixels of the first lines have a colour, between two parts of the width. The grid is grey.
fn coloured(browser: &Browser<'_>, from: f64, to: f64) -> u64 {
    let pixels = browser.value(&format!(
        "(() => {{ const canvas = document.querySelector('.panel .lines canvas'); \
         const over = document.querySelector('.panel .lines .u-over'); const ratio = devicePixelRatio; \
         const [left, top, width, height] = ['left', 'top', 'width', 'height'].map((name) => parseFloat(over.style[name]) * ratio); \
         const {{ data }} = canvas.getContext('2d').getImageData(Math.ceil(left + {from} * width), Math.ceil(top), Math.floor(({to} - {from}) * width), Math.floor(height)); \
         let found = 0; \
         for (let at = 0; at < data.length; at += 4) \
         if (data[at + 3] > 0 && Math.max(data[at], data[at + 1], data[at + 2]) - Math.min(data[at], data[at + 1], data[at + 2]) > 40) found += 1; \
         return found; }})()"
    ));
    pixels.as_u64().unwrap()
}

/// What axe-core finds.
fn violations(browser: &Browser<'_>) -> Value {
    let axe = fs::read_to_string(repository("pping/page/vendor/axe.min.js")).unwrap();
    browser.run(
        &axe,
        "axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations.map((it) => \
         `${it.impact} ${it.id}: ${it.nodes.map((node) => node.target.join(' ')).join(', ')}`))",
    )
}

/// How the page writes a round-trip time of at least 1 ms.
fn time(ns: f64) -> String {
    if ns < 1e7 { format!("{:.2} ms", ns / 1e6) } else { format!("{:.1} ms", ns / 1e6) }
}

/// The sentences that compare the percentiles of two distributions.
fn compared(now: &Value, before: &Value) -> String {
    let sentence = |name: &str| {
        let [now, before] = [now, before].map(|rtt| rtt[name].as_f64().unwrap());
        let percent = 100.0 * (now - before) / before;
        assert!(percent >= 10.0, "{name}: {now} after {before}");
        format!("{name} {}, a week before {}: {percent:.0} % higher.", time(now), time(before))
    };
    format!("All of the range: {} {}", sentence("p50"), sentence("p95"))
}

#[test]
fn a_day_is_compared_with_that_of_the_week_before() {
    let host = ok(Namespace::new("page"));
    let (_fed, _directory, end) = with_history(&host);
    let browser = Browser::start(&host);
    let (from, to) = (end - DAY, end);
    browser.open(&link(&browser, from, to));
    browser.wait_for(DRAWN);
    assert_eq!(browser.text("#intervals"), "intervals of 5 min");
    assert_eq!(browser.value("document.getElementById('range').value"), "between");
    assert_eq!(browser.text("#now"), "Groups now");

    // Intervals without samples have no lines, and no zeros.
    let part = |before_end: u64| (DAY - before_end) as f64 / DAY as f64;
    let gap = (part(GAP[0]) + 0.01, part(GAP[1]) - 0.01);
    assert_eq!(coloured(&browser, gap.0, gap.1), 0, "lines in a gap");
    assert!(coloured(&browser, 0.05, gap.0 - 0.05) > 100);
    let numbers = [to - GAP[0], to - GAP[1]].map(|at| at / 300);
    let answer = api(&host, &format!("/history?from={from}&to={to}&matched=ingress"));
    let cells = answer["series"][0]["cells"].as_array().unwrap();
    assert!(!cells.iter().any(|it| {
        let number = it["time"].as_u64().unwrap() / answer["cell"].as_u64().unwrap();
        (numbers[0] + 1..numbers[1]).contains(&number)
    }));

    // The comparison, by the keyboard.
    browser.value("document.getElementById('compare').focus()");
    browser.keys(&[" "]);
    browser.wait_for("document.querySelector('.panel .change')?.checkVisibility()");
    assert!(browser.value("location.hash").as_str().unwrap().ends_with("&compare=week"));
    assert!(coloured(&browser, gap.0, gap.1) > 20, "no lines of the week before");
    assert!(browser.value("document.getElementById('key-before').checkVisibility()") == true);
    let before = api(&host, &format!("/history?from={}&to={}&matched=ingress", from - WEEK, to - WEEK));
    let expected = compared(&answer["series"][0]["rtt"], &before["series"][0]["rtt"]);
    let said = "[...document.querySelectorAll('.panel')].find((it) => it.querySelector('h3').textContent.includes('beyond')).querySelector('.change').textContent";
    assert_eq!(browser.value(said), expected);
    browser.value("document.querySelector('.panel .heat').focus()");
    browser.keys(&[LEFT]);
    let spoken = browser.value("document.activeElement.ariaValueText");
    assert!(spoken.as_str().unwrap().contains("p95 a week before"), "{spoken}");

    // A link to it shows the same to somebody else.
    let link = browser.value("location.href").as_str().unwrap().to_owned();
    browser.open(&link);
    browser.wait_for("document.querySelector('.panel .change')?.checkVisibility()");
    assert_eq!(browser.value(said), expected);
    assert_eq!(browser.value("document.getElementById('compare').checked"), true);
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        for width in [360, 1280, 2560] {
            browser.resize(width);
            let wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
            assert_eq!(browser.value(wider), 0, "{width}");
        }
        browser.value("document.querySelectorAll('.panel details').forEach((it) => { it.open = true; })");
        assert_eq!(violations(&browser), json!([]), "{scheme}");
    }
    // This test reads the pixels of a canvas more than once.
    let said: Vec<String> =
        browser.console().into_iter().filter(|it| !it.contains("willReadFrequently")).collect();
    assert_eq!(said, [""; 0]);
}

#[test]
fn ranges_groups_and_back_are_in_the_address() {
    let host = ok(Namespace::new("page"));
    let (fed, _directory, end) = with_history(&host);
    let browser = Browser::start(&host);
    browser.open(PAGE);
    browser.wait_for("document.getElementById('range').checkVisibility()");
    assert_eq!(browser.text("#past"), "Last 15 minutes");
    assert_eq!(browser.value("document.getElementById('compare').checkVisibility()"), false);
    let choose = |value: &str| {
        browser.value(&format!(
            "(() => {{ const it = document.getElementById('range'); it.value = '{value}'; it.dispatchEvent(new Event('change')); }})()"
        ));
    };
    choose("7d");
    browser.wait_for(READ);
    let shown = || (browser.text("#past"), browser.text("#intervals"), browser.value("location.hash"));
    assert_eq!(shown(), ("Last 7 days".into(), "intervals of 30 min".into(), json!("#/?range=7d")));
    // The worst groups of the range are those of the API.
    browser.wait_for("document.querySelectorAll('#worst-of-range tbody tr').length === 3");
    let names = "[...document.querySelectorAll('#worst-of-range tbody a')].map((it) => it.textContent)";
    let worst = api(&host, "/history/worst?from=-7d");
    let expected: Vec<&Value> = worst["groups"].as_array().unwrap().iter().map(|it| &it["group"]).collect();
    assert_eq!((browser.value(names), expected[0]), (json!(expected), &json!(GROUPS[0])));
    choose("3h");
    browser.wait_for("document.getElementById('past').textContent === 'Last 3 hours'");
    browser.wait_for(READ);

    // A group that pping no longer knows keeps the range.
    browser.wait_for("document.querySelectorAll('#worst-of-range tbody tr').length === 3");
    browser.click("#worst-of-range tbody a");
    browser.wait_for("document.body.dataset.view === 'group'");
    browser.wait_for(DRAWN);
    assert_eq!(browser.text("#label"), GROUPS[0]);
    assert!(browser.text("#gone").contains("it has sent nothing for 15 minutes"));
    let group = browser.value("location.hash").as_str().unwrap().to_owned();
    assert!(group.ends_with(&format!("?range=3h&label={}", GROUPS[0])), "{group}");
    browser.open(&format!("{PAGE}{group}"));
    browser.wait_for(DRAWN);
    assert_eq!((browser.text("#label"), browser.text("#past")), (GROUPS[0].into(), "Last 3 hours".into()));
    browser.wait_for("document.getElementById('gone').checkVisibility()");
    assert_eq!(violations(&browser), json!([]));
    // One that it knows has its present minute too.
    browser.click("#back");
    browser.wait_for("document.body.dataset.view === 'groups'");
    assert_eq!(browser.value("location.hash"), "#/?range=3h");
    fed.go_on();
    browser.wait_for("document.querySelector('#groups tbody a')");
    browser.value("[...document.querySelectorAll('#groups tbody a')].find((it) => it.textContent === 'customer-01').click()");
    browser.wait_for("document.getElementById('series').checkVisibility()");
    browser.wait_for(DRAWN);
    assert_eq!(browser.text("#past"), "Last 3 hours");

    // Back through what was chosen.
    browser.value("history.back()");
    browser.wait_for("location.hash === '#/?range=3h' && document.body.dataset.view === 'groups'");
    browser.wait_for("document.getElementById('past').textContent === 'Last 3 hours'");
    choose("24h");
    browser.wait_for("location.hash === '#/?range=24h'");
    browser.value("history.back()");
    browser.wait_for("document.getElementById('past').textContent === 'Last 3 hours'");
    assert_eq!(browser.value("document.getElementById('range').value"), "3h");
    browser.value("history.forward()");
    browser.wait_for("document.getElementById('past').textContent === 'Last 24 hours'");

    // A beginning and an end, typed by the user.
    choose("between");
    browser.wait_for("document.getElementById('from').checkVisibility()");
    assert!(browser.value("location.hash").as_str().unwrap().starts_with("#/?from=20"));
    let local = |seconds: u64| {
        format!("new Date({seconds}000 - 60000 * new Date().getTimezoneOffset()).toISOString().slice(0, 16)")
    };
    let fill = |from: u64, to: u64| {
        browser.value(&format!("(() => {{ document.getElementById('from').value = {}; document.getElementById('to').value = {}; document.getElementById('to').focus(); }})()", local(from), local(to)));
        browser.keys(&[ENTER]);
    };
    fill(end - 2 * HOUR, end - 3 * HOUR);
    browser.wait_for(
        "document.getElementById('range-problem').textContent === 'The range ends before it begins.'",
    );
    fill(end - 3 * HOUR, end - 2 * HOUR);
    let expected = link(&browser, end - 3 * HOUR, end - 2 * HOUR).replace(PAGE, "");
    browser.wait_for(&format!("location.hash === '{expected}'"));
    browser.wait_for(READ);
    browser.wait_for(DRAWN);
    assert_eq!(browser.text("#intervals"), "intervals of 1 min");
    assert_eq!(browser.value("document.getElementById('range-problem').checkVisibility()"), false);
    let refused: Vec<String> =
        browser.console().into_iter().filter(|it| !it.contains("status of 404")).collect();
    assert_eq!(refused, [""; 0]);
}

#[test]
fn a_bad_link_or_file_is_named() {
    let host = ok(Namespace::new("page"));
    let (_fed, directory, end) = with_history(&host);
    let browser = Browser::start(&host);
    for (query, text) in [
        ("range=13h", "The link asks for the range “13h”, which there is not: only 3h, 24h, 7d, 60d,"),
        (
            "from=yesterday&to=2026-11-25T20:00:00Z",
            "In the link, from is “yesterday”, which is no time like 20",
        ),
        ("from=2026-11-25T20:00:00Z", "The link has a beginning or an end, but no to."),
        ("from=2026-11-25T20:00:00&to=2026-11-25T21:00:00Z", "In the link, from is “2026-11-25T20:00:00”"),
        ("from=2026-11-25T20:00:00Z&to=2026-11-25T19:00:00Z", "The range ends before it begins."),
        ("from=2999-11-25T20:00:00Z&to=2999-11-25T21:00:00Z", "The range is in the future."),
        ("compare=week", "The last 15 minutes cannot be compared with the week before"),
    ] {
        browser.open(&format!("{PAGE}#/?{query}"));
        browser.wait_for("document.getElementById('range-problem').checkVisibility()");
        let said = browser.text("#range-problem");
        assert!(
            said.starts_with(text) && said.ends_with("The page shows the last 15 minutes."),
            "{query}: {said}"
        );
        browser.wait_for(DRAWN);
        assert_eq!(browser.text("#past"), "Last 15 minutes");
    }
    browser.open(&format!("{PAGE}#/?range=24h&compare=month"));
    browser.wait_for(
        "document.getElementById('range-problem').textContent.includes('a comparison with “month”')",
    );
    browser.wait_for(DRAWN);
    // What is right again takes the message away.
    browser.value("location.hash = '#/?range=24h'");
    browser.wait_for("!document.getElementById('range-problem').checkVisibility()");

    // A damaged file is left out and named.
    let file = day_file(&directory.path().join("5m"));
    fs::write(&file, "no Parquet").unwrap();
    browser.open(&link(&browser, end - 8 * DAY, end));
    browser.wait_for("document.getElementById('damaged').checkVisibility()");
    let said = browser.text("#damaged");
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(said.starts_with("Left out of the range: ") && said.contains(name), "{name}: {said}");
    browser.wait_for(DRAWN);
    assert_eq!(browser.console(), [""; 0]);
}

/// The latest file of a whole day.
fn day_file(directory: &Path) -> PathBuf {
    let entries = fs::read_dir(directory).unwrap().map(|it| it.unwrap().path());
    entries.filter(|path| path.extension().is_some()).max().unwrap()
}

#[test]
fn without_a_history_there_is_no_range() {
    let host = ok(Namespace::new("page"));
    let _fed = FedServer::start(&host, 3);
    let browser = Browser::start(&host);
    browser.open(PAGE);
    browser.wait_for(DRAWN);
    for id in ["range", "compare", "between", "of-range", "range-problem"] {
        assert_eq!(
            browser.value(&format!("document.getElementById('{id}').checkVisibility()")),
            false,
            "{id}"
        );
    }
    browser.open(&format!("{PAGE}#/?range=24h&compare=week"));
    browser.wait_for(
        "document.getElementById('range-problem').textContent.includes('this pping keeps no history')",
    );
    browser.wait_for(DRAWN);
    assert_eq!(browser.text("#past"), "Last 15 minutes");
    assert_eq!(browser.console(), [""; 0]);
}

#[test]
fn a_range_shows_what_pping_measured() {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let history = directory.path().join("history");
    let arguments =
        format!("{LISTEN} --format none --rate-limit 0 --group-by /32,/128 --history {}", history.display());
    let mut pping = watch(router, Topology::WAN, &arguments);
    ping(topology.client(), Topology::SERVER_IPV4, "-c20 -i0.01");
    wait_until("the samples are counted", || {
        scrape(router).sum("pping_samples_total", &[]).is_some_and(|samples| samples >= 20.0)
    });
    // The end writes the present minute.
    ok(pping.stop(Signal::SIGTERM, ENDING));
    let minute = now() / MINUTE;
    let mut pping = watch(router, Topology::WAN, &arguments);
    wait_until("the minute is over", || now() / MINUTE > minute);
    let browser = Browser::start(router);
    browser.open(&format!("{PAGE}#/?range=3h"));
    browser.wait_for("document.querySelector('.panel details')");
    browser.value("document.querySelector('.panel summary').click()");
    let answer = api(router, "/history?from=-3h");
    let cells = answer["series"].as_array().unwrap().iter().flat_map(|it| it["cells"].as_array().unwrap());
    let kept: u64 = cells.filter_map(|it| it["rtt"]["count"].as_u64()).sum();
    assert!(kept >= 20, "{answer}");
    let rows =
        "[...document.querySelectorAll('.panel tbody tr')].map((row) => Number(row.cells[1].textContent))";
    browser.wait_for(&format!("{rows}.reduce((sum, it) => sum + it, 0) === {kept}"));
    assert_eq!(browser.text("#intervals"), "intervals of 1 min");
    let count = "document.querySelector('#worst-of-range tbody td.c-count')?.dataset.value";
    browser.wait_for(&format!("{count} === '{kept}'"));
    let listed = browser.text("#worst-of-range tbody a");
    assert_eq!(listed, format!("{}/32", Topology::SERVER_IPV4));
    assert_eq!(browser.console(), [""; 0]);
    ok(pping.stop(Signal::SIGTERM, ENDING));
}
