//! The page at `/` in a real browser: Chromium, controlled by chromedriver, with real packets and with made-up ones.

mod browser;
mod fed;
mod history;
mod past;
mod report;
mod sides;
mod tree;

use std::{cmp::Reverse, fs, thread, time::Duration};

use pping::recent::CELL;
use pping_lab::{Namespace, Topology};
use serde_json::{Value, json};

use self::{
    browser::{Browser, DOWN, ENTER, ESCAPE, LEFT, RIGHT, TAB},
    fed::{FedServer, HOSTILE},
};
use super::{
    http::{LISTEN, PORT, get},
    monitor::{interrupt, ok, ping, repository, topology, wait_until, watch},
};

const PAGE: &str = "http://127.0.0.1:9464/";

/// How long an update may take from the API to the page, if the machine is not busy with other tests.
const PROMPT: Duration = Duration::from_secs(2);

/// How many updates the test tries until one takes no longer than `PROMPT`.
const UPDATES: u64 = 6;

/// The figures of each row of the table as the API gives them, from `data-value`.
const ROWS: &str = "[...document.querySelectorAll('#groups tbody tr')].map((row) => \
                    [row.querySelector('a').textContent, ...[...row.querySelectorAll('td')].map((cell) => cell.dataset.value ?? null)])";

fn api(host: &Namespace, path: &str) -> Value {
    let answer = get(host, PORT, &format!("/api/v1{path}"), "*/*").expect("pping listens");
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

/// Shows the other rows of all groups.
const UNFOLD: &str =
    "document.querySelectorAll('#groups .fold[aria-expanded=false]').forEach((fold) => fold.click())";

/// Returns the table rows that match the API's answer, with all numbers as text: the busiest series of a group first, and none
/// without samples.
fn expected(groups: &Value) -> Value {
    let rows = groups["groups"].as_array().unwrap().iter().flat_map(|group| {
        let count = |series: &Value| series["rtt"]["count"].as_u64().unwrap_or(0);
        let measured = group["series"].as_array().unwrap().iter().filter(move |series| count(series) > 0);
        let mut series: Vec<&Value> = measured.collect();
        if let Some(at) = (0..series.len()).min_by_key(|&at| Reverse(count(series[at]))) {
            series[..=at].rotate_right(1);
        }
        series.into_iter().map(move |series| {
            let rtt = |name: &str| series["rtt"][name].as_u64().map(|it| it.to_string());
            let sum = |name: &str| {
                series["sent"][name].as_u64().unwrap() + series["received"][name].as_u64().unwrap()
            };
            let score = series["quality"].as_object().unwrap().values().next().unwrap().as_u64();
            let side = if series["matched"] == "ingress" { "beyond" } else { "behind" };
            let retx = (sum("packets") > 0)
                .then(|| (sum("retransmissions") as f64 / sum("packets") as f64).to_string());
            json!([
                group["group"],
                series["interface"],
                series["method"],
                side,
                rtt("count"),
                rtt("min"),
                rtt("p50"),
                rtt("p95"),
                rtt("p99"),
                null,
                sum("packets").to_string(),
                retx,
                score.map(|score| score.to_string())
            ])
        })
    });
    rows.collect()
}

/// Opens the worst flows, and compares them with the API's.
fn worst(browser: &Browser<'_>, topology: &Topology) {
    let router = topology.router();
    ping(topology.client(), Topology::SERVER_IPV4, "-c25 -i0.05");
    browser.value("document.querySelector('#worst summary').click()");
    let flow = "[...document.querySelectorAll('#worst-flows tr')].map((row) => [...row.cells].map((cell) => cell.dataset.value ?? cell.textContent.trim()))[0]";
    wait_until("the worst flow", || {
        let worst = &api(router, "/worst?by=rtt")["flows"][0];
        let text = |name: &str| worst[name].to_string();
        let name = format!(
            "{}:{1} + {2}:{3}",
            worst["src_ip"],
            text("src_port"),
            worst["dest_ip"],
            text("dest_port")
        );
        let expected = json!([
            text("smoothed_rtt"),
            text("inflation"),
            worst["retransmissions"].as_f64().unwrap_or(0.0).to_string(),
            text("bytes"),
            Topology::WAN,
            "beyond",
            "icmp-echo",
            format!("{} four", name.replace('"', ""))
        ]);
        browser.value(flow) == expected
    });
}

#[test]
#[expect(clippy::too_many_lines, reason = "one walk through the page")]
fn page_follows_the_api_within_two_seconds() {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let groups = directory.path().join("groups.csv");
    fs::write(
        &groups,
        "prefix,group\n10.11.0.0/16,four\n10.12.0.0/16,unseen\nfd00::/8,six\nfd00:1::/32,six\n",
    )
    .unwrap();
    let arguments = format!("{LISTEN} --rate-limit 0 --format none --groups {}", groups.display());
    let pping = watch(router, Topology::WAN, &arguments);
    let browser = Browser::start(router);
    browser.open(PAGE);
    browser.wait_for("document.documentElement.dataset.state === 'live'");
    ping(topology.client(), Topology::SERVER_IPV4, "-c7 -i0.05");
    let is_complete = |groups: usize, count: u64| {
        let answer = api(router, "/groups");
        let counts =
            |group: &Value| group["series"].as_array().unwrap().iter().any(|it| it["rtt"]["count"] == count);
        answer["groups"].as_array().unwrap().iter().filter(|it| counts(it)).count() == groups
    };
    wait_until("all samples are in the API", || is_complete(1, 7));
    let shows = |count: u64| {
        let counts = "[...document.querySelectorAll('#groups .c-count')]";
        browser.wait_for(&format!("{counts}.some((cell) => cell.dataset.value === '{count}')"))
    };
    shows(7);
    // A new group appears while the page is open.
    let is_prompt = (1..=UPDATES).any(|count| {
        ping(topology.client(), Topology::SERVER_IPV6, "-c1");
        wait_until("the sample is in the API", || is_complete(1, count));
        shows(count) < PROMPT
    });
    assert!(is_prompt, "none of {UPDATES} updates was seen within {PROMPT:?}");
    wait_until("the same figures", || {
        browser.value(UNFOLD);
        browser.value(ROWS) == expected(&api(router, "/groups"))
    });
    browser.wait_for("document.querySelector('.panel .heat') !== null");
    assert!(browser.text(".card").contains(Topology::WAN), "{}", browser.text(".card"));
    let (rows, groups) = (browser.value(ROWS), api(router, "/groups"));
    assert!(rows.as_array().unwrap().len() >= 2, "{rows:#}");
    // The text of one cell: how the page shows a round trip of about 10 ms.
    let p50 = groups["groups"][0]["series"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["matched"] == "ingress")
        .unwrap();
    let p50 = p50["rtt"]["p50"].as_f64().unwrap();
    let text = if p50 < 1e7 { format!("{:.2} ms", p50 / 1e6) } else { format!("{:.1} ms", p50 / 1e6) };
    let cells =
        browser.value("[...document.querySelectorAll('#groups td.c-p50')].map((cell) => cell.textContent)");
    assert!(cells.as_array().unwrap().contains(&json!(text)), "{text} in {cells}");

    worst(&browser, &topology);
    // An address finds the group that it belongs to.
    let names =
        "[...new Set([...document.querySelectorAll('#groups tbody a')].map((it) => it.textContent))].join()";
    for (address, group, prefix) in
        [("10.11.2.99", "four", "10.11.0.0/16"), ("fd00:99::1", "six", "2 prefixes"), ("10.12.0.1", "", "")]
    {
        browser.open(&format!("{PAGE}#/?filter={address}"));
        browser.wait_for(&format!(
            "document.getElementById('found').textContent !== '' && {names} === '{group}'"
        ));
        if !group.is_empty() {
            browser.click("#groups tbody a");
            browser.wait_for(&format!("document.getElementById('facts').textContent.includes('{prefix}')"));
        }
    }
    browser.open(PAGE);
    browser.wait_for("document.documentElement.dataset.state === 'live'");
    // The page explains which packets are not tracked.
    let in_words = |summary: &Value| {
        let untracked = summary["losses"]["untracked"].as_object().unwrap();
        let fragments = untracked.get("fragment").and_then(Value::as_u64).unwrap_or(0);
        (fragments > 0).then(|| json!([fragments.to_string(), "fragments", "fragments without ports"]))
    };
    ping(topology.client(), Topology::SERVER_IPV4, "-c1 -s4000");
    wait_until("fragments are counted", || in_words(&api(router, "/summary")).is_some());
    browser.value("document.querySelector('#health summary').click()");
    wait_until("fragments are explained", || {
        let row = "[...document.querySelectorAll('#reasons tr')].find((row) => row.cells[1].textContent === 'fragments')";
        let cells = format!("[...({row})?.cells ?? []].map((cell) => cell.textContent)");
        let shown = browser.value(&cells);
        let advice = shown[3].as_str().is_some_and(|it| it.contains("MTU"));
        advice
            && in_words(&api(router, "/summary"))
                .is_some_and(|row| shown.as_array().unwrap()[..3] == row.as_array().unwrap()[..])
    });
    assert!(browser.text("#untracked").contains("fragments"), "{}", browser.text("#untracked"));
    assert_eq!(browser.console(), [""; 0]);

    // The service ends and starts again.
    interrupt(pping);
    browser.wait_for("document.documentElement.dataset.state === 'lost'");
    let said = browser.text("#trouble");
    assert!(said.contains("No answer from pping") && said.contains("no answer for"), "{said}");
    assert_eq!(browser.value("document.getElementById('trouble').hidden"), false);
    let pping = watch(router, Topology::WAN, &arguments);
    browser.wait_for(
        "document.documentElement.dataset.state === 'live' && document.getElementById('trouble').hidden",
    );
    ping(topology.client(), Topology::SERVER_IPV4, "-c3 -i0.05");
    browser.wait_for(
        "[...document.querySelectorAll('#groups .c-count')].some((cell) => cell.dataset.value === '3')",
    );
    interrupt(pping);
}

#[test]
fn groups_are_sorted_filtered_and_opened_by_links_and_keys() {
    let host = ok(Namespace::new("page"));
    let fed = FedServer::start(&host, 20);
    let browser = Browser::start(&host);
    browser.open(PAGE);
    let first = "document.querySelector('#groups tbody a')?.textContent";
    let count = "new Set([...document.querySelectorAll('#groups tbody a')].map((it) => it.textContent)).size";
    browser.wait_for(&format!("{count} === 25"));
    assert_eq!(browser.value(ROWS).as_array().unwrap().len(), 25, "one row for both sides of each");
    assert_eq!(browser.value("document.querySelector('#groups [aria-sort]').textContent"), "p95");

    // The table sorts by its columns, in both directions, and the address keeps the order.
    browser.click("#groups th.c-group button");
    browser.wait_for(&format!(
        "{first} === '\"><script>document.title=\\'owned\\'</script>' || {first}?.startsWith('?[2J')"
    ));
    browser.click("#groups th.c-group button");
    browser.wait_for(&format!("{first}?.startsWith('long-')"));
    assert_eq!(browser.value("location.hash"), "#/?sort=group");
    browser.click("#groups th.c-p50 button");
    browser.wait_for("document.querySelector('#groups [aria-sort=descending]').textContent === 'p50'");
    // The lowest score is the worst.
    browser.click("#groups th.c-quality button");
    browser.wait_for("document.querySelector('#groups [aria-sort=ascending]')?.textContent === 'quality'");

    // From here on the test uses only keys: for the filter, for a group's row and its history, and back.
    browser.open(PAGE);
    browser.wait_for(&format!("{count} === 25"));
    browser.keys(&["/", "R", "-", "1", "3"]);
    browser.wait_for(&format!("{count} === 1 && {first} === 'customer-13'"));
    assert_eq!(browser.value("location.hash"), "#/?filter=R-13");
    assert!(browser.text("#found").contains("1 of 25"), "{}", browser.text("#found"));
    for _ in 0..60 {
        if browser.value("document.activeElement.matches('#groups tbody a')") == true {
            break;
        }
        browser.keys(&[TAB]);
    }
    let row = "[...document.querySelectorAll('#groups tbody a')].indexOf(document.activeElement)";
    assert_eq!(browser.value(row), 0);
    browser.keys(&[RIGHT]);
    browser.wait_for("document.querySelectorAll('#groups tbody tr').length === 2");
    assert_eq!(browser.value("document.querySelector('#groups .fold').ariaExpanded"), "true");
    browser.keys(&[LEFT]);
    browser.wait_for("document.querySelectorAll('#groups tbody tr').length === 1");
    browser.keys(&[RIGHT, DOWN]);
    assert_eq!(browser.value(row), 1);
    // New data does not move the focus.
    fed.add("customer-13", &[5_000_000]);
    browser.wait_for("document.querySelector('#groups td.c-min').dataset.value === '5000000'");
    assert_eq!(browser.value(row), 1);
    browser.keys(&[ENTER]);
    browser.wait_for("document.getElementById('label').textContent === 'customer-13'");
    browser.wait_for("document.querySelectorAll('.panel').length === 2");
    assert_eq!(browser.value("document.title"), "customer-13 - pping");
    let link = browser.value("location.href");
    let at = "document.querySelector('.panel .at').textContent";
    let latest = browser.value(at);
    for _ in 0..60 {
        if browser.value("document.activeElement.matches('.heat')") == true {
            break;
        }
        browser.keys(&[TAB]);
    }
    browser.keys(&[LEFT; 4]);
    browser.wait_for(&format!("{at} !== {latest}"));
    let spoken = browser.value("document.activeElement.ariaValueText");
    let shown = browser.value(at);
    assert!(spoken.as_str().unwrap().starts_with(shown.as_str().unwrap()), "{spoken} at {shown}");
    // The values at the cursor are those of the cell under it.
    let id = link.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let detail = api(&host, &format!("/groups/{id}"));
    let cells = detail["history"]["series"][0]["cells"].as_array().unwrap();
    let number =
        browser.value("Number(document.querySelector('.panel .at').dataset.value)").as_u64().unwrap();
    let cell =
        cells.iter().find(|cell| cell["time"] == number * CELL).unwrap_or_else(|| panic!("no cell {number}"));
    let cell = &cell["rtt"];
    for name in ["count", "min", "p50", "p95", "p99", "max"] {
        let value = browser.value(&format!("document.querySelector('.panel .v-{name} b').dataset.value"));
        assert_eq!(value, cell[name].to_string(), "{name} of {cell}");
    }
    // Escape first releases the cursor, then returns to the previous view.
    browser.keys(&[ESCAPE]);
    browser.wait_for(&format!("{at} === {latest}"));
    browser.keys(&[TAB, ESCAPE]);
    browser.wait_for(&format!("document.body.dataset.view === 'groups' && {first} === 'customer-13'"));
    assert_eq!(browser.value("location.hash"), "#/?filter=R-13");
    browser.keys(&[ESCAPE]);
    browser.wait_for(&format!("{count} === 25"));

    // The link opens the same group in another session, also restricted to one side.
    browser.open(&format!("{}?side=behind", link.as_str().unwrap()));
    browser.wait_for("document.querySelectorAll('.panel').length === 1");
    assert_eq!(browser.text("#label"), "customer-13");
    assert!(browser.text(".panel h3").contains("behind"), "{}", browser.text(".panel h3"));
    browser.open(&format!("{PAGE}#/groups/00000000000000000000000000000000"));
    browser.wait_for("document.getElementById('gone').textContent.startsWith('There is no such group')");
    let refused: Vec<String> =
        browser.console().into_iter().filter(|it| !it.contains("status of 404")).collect();
    assert_eq!(refused, [""; 0]);
}

#[test]
fn page_is_accessible_and_escapes_hostile_labels() {
    let host = ok(Namespace::new("page"));
    let fed = FedServer::start(&host, 5);
    let browser = Browser::start(&host);
    let axe = repository("pping/page/vendor/axe.min.js");
    let axe = fs::read_to_string(axe).expect("`cargo xtask setup --tests` fetches axe-core");
    let group = api(&host, "/groups?filter=onerror")["groups"][0]["id"].as_str().unwrap().to_owned();
    let views = [
        (PAGE.to_owned(), "document.querySelectorAll('#groups tbody tr').length === 10"),
        (format!("{PAGE}#/groups/{group}"), "document.querySelectorAll('#series tbody tr').length === 2"),
    ];
    for (scheme, background) in [("light", "rgb(246, 246, 244)"), ("dark", "rgb(16, 19, 22)")] {
        browser.prefer(scheme);
        for (url, is_there) in &views {
            for width in [360, 2560, 1280] {
                browser.resize(width);
                fed.go_on();
                browser.open(url);
                browser.wait_for(is_there);
                browser.wait_for("document.querySelectorAll('.panel .lines .uplot').length === 2");
                assert_eq!(browser.value("getComputedStyle(document.body).backgroundColor"), background);
                let wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
                assert_eq!(
                    (browser.value("innerWidth"), browser.value(wider)),
                    (json!(width), json!(0)),
                    "{url}"
                );
                assert!(paints(&browser), "{url} at {width}: the heatmap is empty");
                // On a screen of a usual width, no column is cut off.
                let cut = "[...document.querySelectorAll('#groups, #series')].filter((table) => table.checkVisibility() && \
                           table.parentElement.scrollWidth > table.parentElement.clientWidth).map((table) => table.id)";
                assert!(
                    width < 1000 || browser.value(cut) == json!([]),
                    "{url} at {width}: {}",
                    browser.value(cut)
                );
            }
            browser.value(UNFOLD);
            browser.value("document.getElementById('health').open = true");
            browser.value("document.getElementById('worst').open = true");
            if url == PAGE {
                // Fed groups leave the ranking after a minute, so this waits for the caption and not for rows.
                browser.wait_for("document.getElementById('min-samples').textContent !== ''");
            }
            let found = browser.run(
                &axe,
                "axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations.map((it) => \
                 `${it.impact} ${it.id}: ${it.nodes.map((node) => node.target.join(' ')).join(', ')}`))",
            );
            assert_eq!(found, json!([]), "{scheme} {url}");
        }
    }

    // Labels stay text, and none of them reorders or hides the text around it.
    assert_eq!(browser.text("#label"), HOSTILE[0]);
    assert_eq!(browser.text("#facts dd"), "<b>Lund");
    browser.open(PAGE);
    browser.wait_for(views[0].1);
    let page = browser.value("document.documentElement.textContent").as_str().unwrap().to_owned();
    assert!(
        page.contains(HOSTILE[0]) && page.contains("?[2J?]0;owned?red") && page.contains("exe.?gpj.?x??"),
        "{page}"
    );
    assert!(!page.contains(['\u{1b}', '\u{202e}', '\u{2066}', '\u{200b}']), "{page}");
    assert_eq!(browser.value("document.querySelectorAll('main img, main script').length"), 0);
    assert!(browser.value("document.title").as_str().unwrap().starts_with("pping"));
    let longest = "Math.max(...[...document.querySelectorAll('#groups tbody tr')].map((row) => row.getBoundingClientRect().height))";
    assert!(browser.value(longest).as_f64().unwrap() < 40.0, "a label of 10 kB makes a row high");

    // The page loads nothing from other hosts, and its policy forbids that.
    let elsewhere = browser.value(
        "performance.getEntriesByType('resource').map((it) => it.name).filter((it) => !it.startsWith(location.origin + '/'))",
    );
    assert_eq!(elsewhere, json!([]));
    let requested = browser.value("performance.getEntriesByType('resource').length").as_u64().unwrap();
    assert!(requested > 8, "{requested}");
    let policy =
        browser.run("", "fetch('/').then((answer) => answer.headers.get('Content-Security-Policy'))");
    let policy = policy.as_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    assert_eq!(browser.console(), [""; 0]);
}

#[test]
fn labels_of_logarithmic_axes_do_not_overlap() {
    /// Records the text that is drawn on each canvas, and where.
    const RECORDED: &str = "window.drawn = new Map(); const fill = CanvasRenderingContext2D.prototype.fillText; \
        CanvasRenderingContext2D.prototype.fillText = function (text, x, y) { \
        const at = this.getTransform().transformPoint(new DOMPoint(x, y)); \
        const texts = drawn.get(this.canvas) ?? new Map(); drawn.set(this.canvas, texts); \
        texts.set(`${text} ${at.x}`, { text, x: at.x, y: at.y }); return fill.apply(this, arguments); };";
    /// The labels beside the axis of each canvas, from the lowest to the highest.
    const LABELS: &str = "[...drawn.values()].map((texts) => [...texts.values()].filter((it) => / (µs|ms|s)$/.test(it.text)) \
        .sort((one, other) => other.y - one.y).map((it) => [it.text, it.y]))";
    let host = ok(Namespace::new("page"));
    let fed = FedServer::start(&host, 1);
    let browser = Browser::start(&host);
    browser.protocol("Page.addScriptToEvaluateOnNewDocument", &json!({"source": RECORDED}));
    for decades in 1..=7 {
        let label = format!("wide-{decades}");
        fed.add_decades(&label, decades);
        let group =
            api(&host, &format!("/groups?filter={label}"))["groups"][0]["id"].as_str().unwrap().to_owned();
        browser.open(&format!("{PAGE}#/groups/{group}"));
        browser.wait_for("document.querySelector('.panel .lines .uplot') !== null");
        // What is drawn next, in whole: the heatmap and the lines.
        browser.value("drawn.clear()");
        fed.add(&label, &[2_000]);
        browser.wait_for("drawn.size === 2");
        // No time below the lines is cut off at the right edge.
        let cut = "[...drawn].flatMap(([canvas, texts]) => [...texts.values()].filter((it) => /^[0-9][0-9]:[0-9][0-9]$/.test(it.text) && \
                   it.x + 14 * devicePixelRatio > canvas.width))";
        assert_eq!(browser.value(cut), json!([]));
        for canvas in browser.value(LABELS).as_array().unwrap() {
            let labels = canvas.as_array().unwrap();
            let heights: Vec<f64> = labels.iter().map(|label| label[1].as_f64().unwrap()).collect();
            let is_apart = heights.windows(2).all(|pair| pair[0] - pair[1] >= 12.0);
            assert!(labels.len() >= 2 && is_apart, "{decades} decades: {labels:?}");
        }
    }
    // Nor would they in smaller plots: five decades in 60 px have fewer labels.
    let least = "const least = (found, height) => \
        Math.min(...found.slice(1).map(({ at }, index) => height * (at - found[index].at)));";
    let found = browser.run(
        "",
        &format!(
            "{least} import('/assets/axis.js').then(({{ labels }}) => [1, 2, 3, 5, 7].flatMap((decades) => [60, 90, 150].map((height) => {{ \
             const found = labels(1500, 1500 * 10 ** decades, height); return [decades, height, found.length, least(found, height)]; }})))"
        ),
    );
    for plot in found.as_array().unwrap() {
        let [number, distance] = [2, 3].map(|at| plot[at].as_f64().unwrap_or(f64::INFINITY));
        assert!(number >= 1.0 && distance >= 14.0, "[decades, height, labels, distance] {plot}");
    }
    assert_eq!(found.as_array().unwrap().len(), 15, "{found}");
}

/// Returns true if each heatmap shows a colour. Lines and letters are grey.
fn paints(browser: &Browser<'_>) -> bool {
    let colours = browser.value(
        "[...document.querySelectorAll('.heat canvas')].map((canvas) => { \
         const { data } = canvas.getContext('2d').getImageData(60, 0, canvas.width - 60, canvas.height); \
         const colours = new Set(); \
         for (let at = 0; at < data.length; at += 4) \
         if (data[at + 3] > 0 && Math.max(data[at], data[at + 1], data[at + 2]) - Math.min(data[at], data[at + 1], data[at + 2]) > 60) \
         colours.add(`${data[at]} ${data[at + 1]} ${data[at + 2]}`); \
         return colours.size; })",
    );
    colours.as_array().unwrap().iter().all(|colours| colours.as_u64().unwrap() > 0)
}

#[test]
fn a_page_without_uplot_says_so_and_one_without_events_asks() {
    let host = ok(Namespace::new("page"));
    let fed = FedServer::start(&host, 3);
    let browser = Browser::start(&host);
    browser.protocol("Network.enable", &json!({}));
    let blocked = json!({"urls": ["*/assets/uplot.js", "*/api/v1/events"]});
    browser.protocol("Network.setBlockedURLs", &blocked);
    browser.open(PAGE);
    browser.wait_for("document.querySelectorAll('#groups tbody tr').length === 8");
    browser.wait_for("document.querySelectorAll('.panel').length === 2");
    assert!(
        browser
            .value("document.getElementById('without').innerText")
            .as_str()
            .unwrap()
            .contains("cargo xtask setup")
    );
    assert!(paints(&browser), "heatmaps need no uPlot");
    fed.add("customer-01", &[77_000]);
    browser.wait_for(
        "[...document.querySelectorAll('#groups td.c-min')].some((cell) => cell.dataset.value === '77000')",
    );
    // While frozen, the page does not change.
    browser.click("#freeze");
    fed.add("customer-01", &[66_000]);
    thread::sleep(PROMPT);
    assert_eq!(browser.text("#state"), "frozen");
    assert_eq!(browser.value("[...document.querySelectorAll('#groups td.c-min')].some((cell) => cell.dataset.value === '66000')"), false);
    browser.click("#freeze");
    browser.wait_for(
        "[...document.querySelectorAll('#groups td.c-min')].some((cell) => cell.dataset.value === '66000')",
    );
}
