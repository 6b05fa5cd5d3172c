//! `/api/v1` of a running pping: its answers about real packets agree with the metrics.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use jsonschema::Validator;
use pping_lab::{Namespace, Process, Signal, Topology};
use serde_json::{Value, json};

use super::{
    http::{self, LISTEN, PORT, Response, scrape},
    monitor::{interrupt, ok, ping, topology, wait_until, watch},
};

const PINGS: u64 = 12;
/// The least possible RTT in ns: the wire holds each packet for `HOLD` in both directions.
const ROUND_TRIP: u64 = 2 * super::monitor::HOLD.as_nanos() as u64;

fn description() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema/api.json");
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// A validator for one schema of the description.
fn validator(name: &str) -> Validator {
    let mut schema = description();
    schema["$ref"] = json!(format!("#/components/schemas/{name}"));
    jsonschema::validator_for(&schema).unwrap()
}

pub(super) fn request(host: &Namespace, path: &str) -> Response {
    http::get(host, PORT, &format!("/api/v1{path}"), "*/*").expect("pping listens")
}

/// Returns the answer to a request, after checking it against a schema of the description.
pub(super) fn answer(host: &Namespace, path: &str, schema: &str) -> Value {
    let response = request(host, path);
    assert_eq!(
        (response.status, &*response.content_type),
        (200, "application/json"),
        "{path}: {}",
        response.body
    );
    let answer: Value = serde_json::from_str(&response.body).unwrap();
    let found: Vec<String> = validator(schema).iter_errors(&answer).map(|error| error.to_string()).collect();
    assert!(found.is_empty(), "{path}: {found:#?} in {answer:#}");
    answer
}

/// The series of one method and direction.
fn series<'a>(of: &'a Value, matched: &str) -> &'a Value {
    let all = of["series"].as_array().unwrap();
    let is_it = |series: &&Value| series["method"] == "icmp-echo" && series["matched"] == matched;
    all.iter().find(is_it).unwrap_or_else(|| panic!("no echo that matched on {matched} in {of:#}"))
}

#[test]
fn the_api_says_what_the_metrics_say() {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let groups = directory.path().join("groups.csv");
    let lists = |prefixes_of_six: &[&str]| {
        let mut text =
            "prefix,group,site\n10.11.0.0/16,\"<b>\u{202e}&\",Lund\n10.11.1.0/24,near,\n".to_owned();
        text.extend(prefixes_of_six.iter().map(|prefix| format!("{prefix},six,Åre\n")));
        fs::write(&groups, text).unwrap();
    };
    lists(&["fd00::/8", "2001:db8::/32"]);
    let router = topology.router();
    let arguments =
        format!("{LISTEN} --rate-limit 0 --groups {} --worst-min-samples {PINGS}", groups.display());
    let mut pping = watch(router, Topology::WAN, &arguments);
    ping(topology.client(), Topology::SERVER_IPV4, &format!("-c{PINGS} -i0.05"));
    ping(topology.client(), Topology::SERVER_IPV6, &format!("-c{PINGS} -i0.05"));
    let echoes = |summary: &Value| -> u64 {
        let all = summary["interfaces"][0]["series"].as_array().unwrap();
        let echoes = all.iter().filter(|it| it["method"] == "icmp-echo" && it["matched"] == "ingress");
        echoes.filter_map(|it| it["rtt"]["count"].as_u64()).sum()
    };
    wait_until("all samples are in the summary", || {
        echoes(&answer(router, "/summary", "Summary")) == 2 * PINGS
    });

    let summary = answer(router, "/summary", "Summary");
    let interface = &summary["interfaces"][0];
    assert_eq!((&interface["interface"], &interface["is_up"]), (&json!(Topology::WAN), &json!(true)));
    let echo = series(interface, "ingress");
    let metrics = scrape(router);
    let resident = metrics.sum("process_resident_memory_bytes", &[]).unwrap();
    let shown = summary["cost"]["memory"].as_f64().unwrap();
    assert!((shown / resident - 1.0).abs() < 0.2, "{shown} of {resident} bytes");
    let labels = [("method", "icmp-echo"), ("matched", "ingress")];
    assert_eq!(metrics.sum("pping_rtt_seconds_count", &labels), Some(2.0 * PINGS as f64));
    let sum = metrics.sum("pping_rtt_seconds_sum", &labels).unwrap();
    let mean = echo["rtt"]["mean"].as_u64().unwrap() as f64 / 1e9;
    assert!((mean - sum / (2.0 * PINGS as f64)).abs() < 1e-8, "{mean} of {sum}");
    assert!(echo["rtt"]["min"].as_u64().unwrap() >= ROUND_TRIP, "{echo:#}");

    let answered = answer(router, "/groups?sort=group&order=asc&method=icmp-echo&matched=ingress", "Groups");
    let found: Vec<_> =
        answered["groups"].as_array().unwrap().iter().map(|it| (&it["group"], &it["labels"])).collect();
    let hostile = json!("<b>\u{202e}&");
    assert_eq!(found, [(&hostile, &json!({"site": "Lund"})), (&json!("six"), &json!({"site": "Åre"}))]);
    for group in answered["groups"].as_array().unwrap() {
        assert_eq!(series(group, "ingress")["rtt"]["count"], PINGS, "{group:#}");
        let detail = answer(router, &format!("/groups/{}", group["id"].as_str().unwrap()), "GroupDetail");
        assert_eq!(detail["group"], group["group"]);
        let cells = series(&detail["history"], "ingress")["cells"].as_array().unwrap();
        let of_bins = cells.iter().flat_map(|cell| cell["histogram"].as_array().unwrap());
        assert_eq!(of_bins.map(|bin| bin[1].as_u64().unwrap()).sum::<u64>(), PINGS, "{detail:#}");
    }
    let filtered = answer(router, "/groups?filter=%C3%A5RE", "Groups");
    assert_eq!((&filtered["groups"][0]["group"], &filtered["found"]), (&json!("six"), &json!(1)));
    assert_eq!(answer(router, "/groups?limit=1", "Groups")["groups"].as_array().unwrap().len(), 1);

    for (filter, found) in
        [("10.11.2.2", Some(&hostile)), ("fd00::/16", Some(&json!("six"))), ("10.11.1.2", None)]
    {
        let filtered = answer(router, &format!("/groups?filter={filter}"), "Groups");
        assert_eq!(filtered["groups"].get(0).map(|it| &it["group"]), found, "{filter}");
    }
    let mistyped = answer(router, "/groups?filter=10.11.1.300", "Groups");
    assert_eq!(mistyped["found"], 0, "{mistyped:#}");
    assert!(mistyped["note"].as_str().unwrap().contains("no valid address"), "{mistyped:#}");
    let prefixes = || {
        let six = &answer(router, "/groups?filter=six", "Groups")["groups"][0];
        let of_one = answer(router, &format!("/groups/{}", six["id"].as_str().unwrap()), "GroupDetail");
        assert_eq!(of_one["prefixes"], six["prefixes"]);
        assert_eq!(json!([six["prefix"]]), json!([six["prefixes"][0]]));
        assert_eq!(six["prefix_count"], six["prefixes"].as_array().unwrap().len());
        six["prefixes"].clone()
    };
    assert_eq!(prefixes(), json!(["2001:db8::/32", "fd00::/8"]));

    let worst = answer(router, "/worst?by=rtt&limit=3", "Worst");
    for flow in worst["flows"].as_array().unwrap() {
        let is_echo = [json!("ICMP"), json!("ICMPv6")].contains(&flow["protocol"]);
        assert!(is_echo && flow["packets"] == PINGS, "{worst:#}");
    }
    let groups = worst["groups"].as_array().unwrap();
    assert_eq!((groups.len(), worst["min_samples"].as_u64()), (2, Some(PINGS)), "{worst:#}");
    for group in groups {
        assert_eq!(
            (&group["hosts"], &group["ranked_rtt"]),
            (&json!(1), &group["series"]["rtt"]["p95"]),
            "{group:#}"
        );
    }

    let history = answer(router, &format!("/history?interface={}", Topology::WAN), "History");
    let counts = series(&history, "ingress")["cells"].as_array().unwrap().iter();
    assert_eq!(counts.filter_map(|cell| cell["rtt"]["count"].as_u64()).sum::<u64>(), 2 * PINGS);
    assert_eq!(answer(router, "/history?interface=eth7", "History")["series"], json!([]));

    lists(&["fd00:11::/32"]);
    ok(pping.signal(Signal::SIGHUP));
    let found = || answer(router, "/groups?filter=six", "Groups")["groups"][0]["prefixes"].clone();
    wait_until("the new prefix is listed", || found() == json!(["fd00:11::/32"]));
    assert_eq!(prefixes(), json!(["fd00:11::/32"]));
    interrupt(pping);
}

#[test]
fn invalid_queries_name_the_error() {
    let topology = topology();
    let router = topology.router();
    let pping = watch(router, Topology::WAN, LISTEN);
    for (path, status, text) in [
        ("/groups?sort=p42", 400, "p42"),
        ("/groups?limit=-1", 400, "limit"),
        ("/groups?limit=1001", 400, "limit: at most 1000"),
        ("/groups?sorted=p50", 400, "sorted"),
        ("/groups?sort=inside_p50", 400, "sort: `inside_p50` is no column of view=series"),
        ("/groups?view=both", 400, "view: unknown value `both`, expected `series` or `sides`"),
        ("/groups?view=sides", 400, "start it with --inside"),
        ("/history?minutes=%00", 400, "minutes"),
        ("/worst?by=age", 400, "age"),
        ("/worst?sort=rtt", 400, "sort"),
        ("/groups/%2e%2e", 404, "/api/v1/groups"),
        ("/groups/00000000000000000000000000000000", 404, "no group with this id"),
        ("/nothing", 404, "there is no such page"),
    ] {
        let response = request(router, path);
        assert_eq!(response.status, status, "{path}: {}", response.body);
        assert!(response.body.contains(text), "{path}: {}", response.body);
    }
    assert_eq!(serde_json::from_str::<Value>(&request(router, "/openapi.json").body).unwrap(), description());
    interrupt(pping);
}

#[test]
fn who_has_the_latest_answer_gets_no_other() {
    let topology = topology();
    let router = topology.router();
    let pping = watch(router, Topology::WAN, LISTEN);
    let curl = |etag: &str| {
        let mut curl = router.command("curl");
        curl.args([
            "-s",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code} %header{etag}",
            "-H",
            &format!("If-None-Match: {etag}"),
        ]);
        let said = ok(pping_lab::run(curl.arg(format!("http://127.0.0.1:{PORT}/api/v1/summary"))));
        let (status, etag) = said.split_once(' ').unwrap();
        (status.to_owned(), etag.to_owned())
    };
    let (status, _) = curl("\"none\"");
    assert_eq!(status, "200");
    // The answer changes once a second, so two requests within one second may take several attempts.
    wait_until("two requests in a second", || {
        let (_, etag) = curl("\"none\"");
        assert!(etag.len() > 2 && etag.starts_with('"'), "{etag}");
        curl(&etag) == ("304".to_owned(), etag)
    });
    interrupt(pping);
}

/// A client that reads the stream of events until it is dropped.
fn stream(host: &Namespace) -> Process {
    let mut curl = host.command("curl");
    curl.args(["-sSNi", &format!("http://127.0.0.1:{PORT}/api/v1/events")]);
    ok(Process::spawn(curl))
}

#[test]
fn events_are_summaries_one_at_once_and_one_a_second() {
    let topology = topology();
    let router = topology.router();
    let pping = watch(router, Topology::WAN, LISTEN);
    let begun = Instant::now();
    let client = stream(router);
    let said = || ok(client.stdout()).replace('\r', "");
    wait_until("four events have come", || said().matches("\n\n").count() > 4);
    let took = begun.elapsed();
    let said = said();
    let (head, body) = said.split_once("\n\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("content-type: text/event-stream"), "{head}");
    assert!(head.contains("cache-control: no-cache"), "{head}");
    let mut times = Vec::new();
    for event in body.rsplit_once("\n\n").unwrap().0.split("\n\n") {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let summary: Value = serde_json::from_str(field("data: ")).unwrap();
        let found: Vec<String> =
            validator("Summary").iter_errors(&summary).map(|error| error.to_string()).collect();
        assert!(found.is_empty(), "{found:#?}");
        assert_eq!((field("event: "), field("id: ")), ("summary", &*summary["sequence"].to_string()));
        times.push(summary["time"].as_u64().unwrap());
    }
    assert!(times.is_sorted_by(|one, next| one < next), "{times:?}");
    assert!(took > Duration::from_secs(1), "more than one a second: {took:?}");
    interrupt(pping);
}

#[test]
fn streams_are_limited_and_leave_room_for_scrapes() {
    let topology = topology();
    let router = topology.router();
    let pping = watch(router, Topology::WAN, LISTEN);
    let mut streams: Vec<Process> = (0..32).map(|_| stream(router)).collect();
    for stream in &streams {
        wait_until("it has an event", || ok(stream.stdout()).contains("data: "));
    }
    let refused = request(router, "/events");
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.body.contains("/api/v1/summary"), "{}", refused.body);
    assert!(scrape(router).sum("pping_packets_total", &[]).is_some());
    drop(streams.pop());
    wait_until("there is room again", || {
        let another = stream(router);
        wait_until("it is answered", || !ok(another.stdout()).is_empty());
        ok(another.stdout()).starts_with("HTTP/1.1 200")
    });
    interrupt(pping);
}
