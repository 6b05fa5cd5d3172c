//! `/api/v1/groups?view=sides` of a running pping: each side from the interface that it is beyond.

use pping_lab::Topology;
use serde_json::{Value, json};

use super::{
    api::{answer, request},
    http::LISTEN,
    monitor::{converse, interrupt, ping, topology, wait_until, watch},
};

const PINGS: u64 = 12;
const INSIDE: &str = "--inside 10.11.1.0/24,fd00:11:1::/64";
const SIDES: &str = "/groups?view=sides&sort=group&order=asc";

#[test]
fn each_side_is_that_of_the_interface_that_it_is_beyond() {
    let topology = topology();
    let router = topology.router();
    let arguments = format!("-i {} {LISTEN} {INSIDE} --rate-limit 0 --group-by /24,/48", Topology::LAN);
    let pping = watch(router, Topology::WAN, &arguments);
    // Sides are told apart, though nothing has passed yet.
    assert_eq!(answer(router, SIDES, "Groups")["groups"], json!([]));
    assert_eq!(answer(router, "/summary", "Summary")["sides"], true);
    ping(topology.client(), Topology::SERVER_IPV4, &format!("-c{PINGS} -i0.05"));
    ping(topology.server(), Topology::CLIENT_IPV4, &format!("-c{PINGS} -i0.05"));
    // The client is inside, so its network has both sides, whichever host replied.
    let sides = || answer(router, SIDES, "Groups")["groups"][0]["sides"].clone();
    let counts = |sides: &Value| ["inside", "outside"].map(|side| sides[side]["rtt"]["count"].as_u64());
    wait_until("all echoes", || counts(&sides()) == [Some(PINGS); 2]);
    let measured = sides();
    for (side, interface) in [("inside", Topology::LAN), ("outside", Topology::WAN)] {
        let side = &measured[side];
        assert_eq!(
            [&side["interface"], &side["matched"], &side["methods"]],
            [&json!(interface), &json!("ingress"), &json!(["icmp-echo"])],
            "{measured:#}"
        );
    }
    // The packets passed two interfaces and may count for both sides, so all series together have them several times.
    let group = &answer(router, SIDES, "Groups")["groups"][0];
    let packets = |series: &Value| {
        series["sent"]["packets"].as_u64().unwrap() + series["received"]["packets"].as_u64().unwrap()
    };
    let all: u64 = group["series"].as_array().unwrap().iter().map(packets).sum();
    let once = packets(&group["sides"]["inside"]).max(packets(&group["sides"]["outside"]));
    assert_eq!(group["sides"]["traffic"]["packets"], once, "{group:#}");
    assert!(once >= 2 * PINGS && 2 * once <= all, "{once} of {all}: {group:#}");

    // The round trips of TCP replace those of echoes.
    converse(&topology, 40);
    wait_until("round trips of TCP", || sides()["outside"]["methods"][0] == "tcp-ts");
    let measured = sides();
    assert!(
        !measured["outside"]["methods"].as_array().unwrap().contains(&json!("icmp-echo")),
        "{measured:#}"
    );
    let slow = answer(router, "/groups?view=sides&sort=outside_p95&limit=1", "Groups");
    assert_eq!(slow["groups"].as_array().unwrap().len(), 1);
    let refused = request(router, "/groups?view=sides&sort=p95");
    assert!(refused.status == 400 && refused.body.contains("`inside_p95`"), "{}", refused.body);
    interrupt(pping);
}
