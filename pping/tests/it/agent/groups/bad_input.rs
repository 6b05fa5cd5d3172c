//! Clients that do not follow the rules.

use std::time::Instant;

use pping_lab::Topology;
use serde_json::json;

use super::client::{Agent, Client, OPTIONS};
use crate::agent::{
    http::scrape,
    monitor::{interrupt, ping, wait_until},
};

#[test]
fn a_client_that_writes_half_a_line_holds_up_nobody() {
    let agent = Agent::new(None, OPTIONS);
    let mut half = agent.connect();
    half.send(b"{\"op\":\"add\",\"prefix\":\"10.11.2.2\",");
    let mut deaf = agent.connect();
    let (mut client, began) = (agent.connect(), Instant::now());
    client.add("10.11.2.2", "customer");
    for number in 0..2000 {
        client.add(&format!("10.1.{}.{}", number / 250, number % 250), "others");
    }
    // One that asks for much and reads nothing is left after a while.
    for _ in 0..20 {
        deaf.send(b"{\"op\":\"list\"}\n");
    }
    ping(agent.topology.client(), Topology::SERVER_IPV4, "-c10 -i0.01");
    wait_until("pings are measured", || agent.samples_of("customer") == 10);
    client.add("10.11.2.2", "customer-2");
    let answer = half.next().expect("the reason");
    assert!(answer["error"].as_str().unwrap().contains("the rest of the line did not come"), "{answer}");
    assert_eq!(half.next(), None, "the connection is closed");
    assert!(began.elapsed().as_secs() >= 9, "it had time");
    client.add("10.11.2.2", "customer-3");
    interrupt(agent.process);
}

#[test]
fn each_wrong_line_is_answered_and_the_next_one_is_carried_out() {
    let agent = Agent::new(Some("10.11.2.0/24,servers\n"), OPTIONS);
    let mut client = agent.connect();
    for (line, said) in [
        (&b"add 10.0.0.1 x"[..], "write one JSON object a line"),
        (b"{\"op\":\"add\",\"prefix\":\"10.0.0.1/24\",\"label\":\"x\"}", "write 10.0.0.0/24, or 10.0.0.1"),
        (b"{\"op\":\"add\",\"prefix\":\"10.0.0.1\",\"label\":\"\xff\"}", "UTF-8"),
        (b"{\"op\":\"add\",\"prefix\":\"10.0.0.1\",\"label\":\"unlisted\"}", "choose another label"),
        (b"{\"op\":\"remove\",\"prefix\":\"10.0.0.1\"}", "10.0.0.1/32 is not listed"),
        (b"{\"op\":\"remove\",\"prefix\":\"10.11.2.0/24\"}", "is in the groups file; remove it there"),
        (b"{\"op\":\"commit\"}", "nothing to commit"),
    ] {
        client.send(line);
        client.send(b"\n");
        let answer = client.next().unwrap();
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(said)), "{answer}");
    }
    client.add("10.11.2.2", "customer");
    let other = json!({"op": "remove", "prefix": "10.11.2.2", "source": "radius"});
    assert!(client.ask(&other)["error"].as_str().unwrap().contains("comes from the source `cli`"));
    client.send(&vec![b'x'; 70_000]);
    assert!(client.next().unwrap()["error"].as_str().unwrap().contains("longer than 65536 bytes"));
    // Many lines at once, some of them wrong.
    let mut client = agent.connect();
    let mut lines = String::new();
    for number in 0..1000 {
        let prefix = if number % 10 == 3 { "10.0.0".to_owned() } else { format!("10.0.{}.7", number % 250) };
        let request = json!({"op": "add", "prefix": prefix, "label": format!("label-{number}")});
        lines.extend([request.to_string().as_str(), "\n"]);
    }
    client.send(lines.as_bytes());
    for number in 0..1000 {
        let answer = client.next().unwrap();
        assert_eq!(answer["error"].is_string(), number % 10 == 3, "{number}: {answer}");
    }
    let refused = || scrape(agent.topology.router()).sum("pping_group_requests_refused_total", &[]);
    wait_until("refusals are counted", || refused() == Some(109.0));
    interrupt(agent.process);
}

#[test]
fn the_number_of_clients_is_bounded() {
    let agent = Agent::new(None, OPTIONS);
    let mut clients: Vec<Client> = (0..32).map(|_| agent.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.ask(&json!({"op": "ping"}))["ok"], true);
    }
    let mut one_more = agent.connect();
    assert!(one_more.next().unwrap()["error"].as_str().unwrap().contains("32 clients already"));
    assert_eq!(one_more.next(), None);
    clients.pop();
    wait_until("there is room again", || {
        let mut client = agent.connect();
        client.send(b"{\"op\":\"ping\"}\n");
        client.next().is_some_and(|answer| answer["ok"] == true)
    });
    interrupt(agent.process);
}
