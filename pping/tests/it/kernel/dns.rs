//! DNS queries and responses, one by one.

use std::{
    net::IpAddr,
    thread,
    time::{Duration, Instant},
};

use pping::kernel::{labels, load, load_options::LoadOptions};
use pping_common::{
    abi::RttEvent,
    limits::{DNS_TIMEOUT_SECONDS, MAX_QUERIES},
    method::Method,
    parse::{Direction, LinkType, Protocol, Untracked},
    rings::RINGS,
    rtt::Rules,
};

use super::{
    flood::{keys, of_prefix, prefix_apart_from},
    frames::{Ip, UDP, dns, v4, v6},
    random::Random,
    rig::{self, Program, Rig, SETTINGS, counters, kernels, run, samples},
};

const QUERY: [u8; 2] = [0x01, 0x00];
const RESPONSE: [u8; 2] = [0x81, 0x80];
const TRUNCATED: [u8; 2] = [0x83, 0x80];
const NO_SUCH_NAME: [u8; 2] = [0x81, 0x83];
/// The IDs if there are no samples.
const NOTHING: [u32; 0] = [];

/// A client and a server.
#[derive(Clone, Copy)]
struct Pair {
    hosts: [IpAddr; 2],
    ports: [u16; 2],
}

impl Pair {
    /// Returns one pair of each family.
    fn both() -> [Self; 2] {
        [[v4(1), v4(53)], [v6(1), v6(53)]].map(|hosts| Self { hosts, ports: [4000, 53] })
    }

    /// Builds a message from one of the two hosts to the other.
    fn message(&self, from: usize, id: u16, flags: [u8; 2], bytes: usize) -> Vec<u8> {
        let to = 1 - from;
        let datagram = dns((self.ports[from], self.ports[to]), id, flags, bytes);
        Ip::between(self.hosts[from], self.hosts[to]).frame(UDP, &datagram)
    }

    fn ask(&self, rig: &mut Rig, id: u16) {
        rig.send(Program::Egress, &self.message(0, id, QUERY, 30));
    }

    /// Asks the same once more, late enough to be no copy.
    fn ask_again(&self, rig: &mut Rig, id: u16) {
        thread::sleep(Duration::from_millis(2));
        self.ask(rig, id);
    }

    fn answer(&self, rig: &mut Rig, id: u16, flags: [u8; 2]) {
        rig.send(Program::Ingress, &self.message(1, id, flags, 60));
    }
}

/// Returns the IDs of the samples since the last call.
fn ids(rig: &mut Rig, what: &str) -> Vec<u32> {
    samples(&rig.agree(what)).iter().map(|sample| sample.identifier).collect()
}

#[test]
fn a_response_gives_the_time_since_its_query() {
    for settings in kernels() {
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        for pair in Pair::both() {
            for ingress in [Program::Xdp, Program::Ingress] {
                rig.start_over();
                pair.ask(&mut rig, 7);
                let pause = Duration::from_millis(3);
                thread::sleep(pause);
                rig.send(ingress, &pair.message(1, 7, NO_SUCH_NAME, 12));
                let [RttEvent { endpoints, rtt, min_rtt, smoothed_rtt, method, direction, identifier, .. }] =
                    samples(&rig.agree("a response"))[..]
                else {
                    panic!("no sample");
                };
                assert_eq!((method, direction, identifier), (Method::Dns as u8, Direction::Ingress as u8, 7));
                assert_eq!((endpoints.source_port, endpoints.destination_port), (53, 4000), "who replied");
                assert_eq!(endpoints.protocol, Protocol::Udp as u8);
                assert!(rtt >= pause.as_nanos() as u64, "{rtt}");
                assert_eq!((min_rtt, smoothed_rtt), (rtt, rtt), "there is no flow");
                rig.agree_on_series("a response");
                let counters = rig.twin.counters;
                assert_eq!((counters.dns_queries, counters.dns_responses[3]), ([0, 1], 1));
                assert_eq!(counters.samples[0][Method::Dns as usize], 1);
                assert_eq!(counters.untracked, [0; Untracked::COUNT]);
                assert_eq!(counters.entries_made, [0; 2]);
            }
        }
    }
}

#[test]
fn several_queries_of_a_port_are_pending_at_the_same_time() {
    let mut rig = Rig::new();
    for pair in Pair::both() {
        (1..=40).for_each(|id| pair.ask(&mut rig, id));
        (1..=40).rev().for_each(|id| pair.answer(&mut rig, id, RESPONSE));
    }
    let expected: Vec<u32> = (1..=40).rev().chain((1..=40).rev()).collect();
    assert_eq!(ids(&mut rig, "many questions"), expected);
    rig.agree_on_series("many questions");
}

/// Somebody behind one interface can send both in the names of others.
#[test]
fn response_from_the_query_side_changes_nothing() {
    for settings in kernels() {
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        for (has_two_arms, pair) in
            [true, false].into_iter().flat_map(|two| Pair::both().map(|pair| (two, pair)))
        {
            rig.start_over();
            rig.set_two_arms(has_two_arms);
            for (asked, guessed, answered) in [
                (Program::Egress, Program::Egress, Program::Ingress),
                (Program::Ingress, Program::Ingress, Program::Egress),
                (Program::Xdp, Program::Ingress, Program::Egress),
            ] {
                rig.send(asked, &pair.message(0, 7, QUERY, 30));
                rig.send(guessed, &pair.message(1, 7, RESPONSE, 60));
                let expected = if has_two_arms { &[][..] } else { &[7] };
                assert_eq!(ids(&mut rig, "from its side"), expected);
                rig.send(answered, &pair.message(1, 7, RESPONSE, 60));
                assert_eq!(ids(&mut rig, "from the other side").len(), usize::from(has_two_arms));
            }
            let refused = if has_two_arms { 3 } else { 0 };
            assert_eq!(rig.twin.counters.untracked[Untracked::SameHook as usize], refused);
            assert_eq!(rig.twin.counters.dns_responses[0], 3);
        }
    }
}

/// An interface shows with its first packets how many arms it has, and queries may wait then.
#[test]
fn query_pending_while_arms_are_found_is_matched() {
    for settings in kernels() {
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        for (pair, has_two_arms) in Pair::both().into_iter().flat_map(|pair| [(pair, true), (pair, false)]) {
            rig.start_over();
            rig.set_two_arms(!has_two_arms);
            (1..=20).for_each(|id| pair.ask(&mut rig, id));
            rig.set_two_arms(has_two_arms);
            (11..=20).for_each(|id| pair.answer(&mut rig, id, RESPONSE));
            (21..=30).for_each(|id| pair.ask(&mut rig, id));
            (21..=30).chain(1..=10).for_each(|id| pair.answer(&mut rig, id, RESPONSE));
            let answered: Vec<u32> = (11..=30).chain(1..=10).collect();
            assert_eq!(ids(&mut rig, "answered"), answered, "{has_two_arms}");
        }
    }
}

#[test]
fn a_query_from_the_other_side_is_another_one_between_two_arms() {
    for settings in kernels() {
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        for pair in Pair::both() {
            for [asked, forged] in [[Program::Egress, Program::Ingress], [Program::Ingress, Program::Egress]]
            {
                for (has_two_arms, expected) in [(true, &[7][..]), (false, &[])] {
                    rig.start_over();
                    rig.set_two_arms(has_two_arms);
                    rig.send(asked, &pair.message(0, 7, QUERY, 30));
                    thread::sleep(Duration::from_millis(2));
                    rig.send(forged, &pair.message(0, 7, QUERY, 30));
                    rig.send(forged, &pair.message(1, 7, RESPONSE, 60));
                    assert_eq!(ids(&mut rig, "asked from both sides"), expected);
                }
            }
        }
    }
}

#[test]
fn a_repeated_query_gives_no_sample() {
    let mut rig = Rig::new();
    for pair in Pair::both() {
        pair.ask(&mut rig, 1);
        pair.ask_again(&mut rig, 1);
        pair.answer(&mut rig, 1, RESPONSE);
        pair.answer(&mut rig, 1, RESPONSE);
    }
    assert_eq!(ids(&mut rig, "repeated"), NOTHING);
    assert_eq!(rig.twin.counters.dns_responses[0], 2, "one of each family took a query out");
    for pair in Pair::both() {
        pair.ask(&mut rig, 1);
        pair.answer(&mut rig, 1, RESPONSE);
        pair.ask(&mut rig, 1);
        pair.answer(&mut rig, 1, TRUNCATED);
        pair.answer(&mut rig, 1, RESPONSE);
    }
    assert_eq!(ids(&mut rig, "an ID that is used again"), [1, 1, 1, 1]);
    assert_eq!(rig.twin.counters.dns_responses[0], 6);
    assert_eq!(rig.twin.counters.dns_queries, [0, 8]);
}

#[test]
fn a_response_without_its_query_is_ignored() {
    let mut rig = Rig::new();
    let [pair, other] = Pair::both();
    pair.ask(&mut rig, 1);
    pair.answer(&mut rig, 2, RESPONSE);
    other.answer(&mut rig, 1, RESPONSE);
    Pair { ports: [4001, 53], ..pair }.answer(&mut rig, 1, RESPONSE);
    Pair { hosts: [pair.hosts[0], v4(54)], ..pair }.answer(&mut rig, 1, RESPONSE);
    Pair { hosts: [v4(3), pair.hosts[1]], ..pair }.answer(&mut rig, 1, RESPONSE);
    assert_eq!(ids(&mut rig, "responses to others"), NOTHING);
    assert_eq!(rig.twin.counters.dns_responses, [0; 16]);
    assert_eq!(rig.twin.counters.untracked, [0; Untracked::COUNT]);
    pair.answer(&mut rig, 1, RESPONSE);
    assert_eq!(ids(&mut rig, "the response"), [1]);
}

#[test]
fn dns_messages_not_of_or_to_a_server_port_are_not_measured() {
    let mut rig = Rig::new();
    for pair in Pair::both() {
        rig.send(Program::Ingress, &pair.message(1, 1, QUERY, 30));
        rig.send(Program::Egress, &pair.message(0, 1, RESPONSE, 30));
        rig.send(Program::Egress, &pair.message(0, 1, QUERY, 11));
        rig.send(Program::Egress, &pair.message(0, 1, QUERY, 12));
        let whole = pair.message(0, 2, QUERY, 30);
        rig.send(Program::Egress, &whole[..whole.len() - 27]);
    }
    assert_eq!(ids(&mut rig, "wrong ways and ends"), NOTHING);
    let counters = rig.twin.counters;
    assert_eq!((counters.dns_queries, counters.dns_responses), ([0, 2], [0; 16]));
    let not_measured = [Untracked::Unsupported, Untracked::Malformed, Untracked::Truncated];
    assert_eq!(not_measured.map(|reason| counters.untracked[reason as usize]), [4, 2, 2]);
}

#[test]
fn servers_listen_at_the_configured_ports() {
    let settings = LoadOptions { dns_ports: [5300, 0, 0, 0, 0, 0, 5353], ..SETTINGS };
    let mut rig = Rig::with(settings, LinkType::Ethernet);
    for pair in Pair::both() {
        for (id, port) in [(1, 5300), (2, 53), (3, 5353), (4, 0)] {
            let pair = Pair { ports: [4000, port], ..pair };
            pair.ask(&mut rig, id);
            pair.answer(&mut rig, id, RESPONSE);
        }
    }
    assert_eq!(ids(&mut rig, "ports"), [1, 3, 1, 3]);
    assert_eq!(rig.twin.counters.dns_queries, [0, 4]);
}

#[test]
fn local_query_is_timed_only_with_include_local() {
    for (include_local, expected) in [(false, vec![2, 2]), (true, vec![1, 2, 1, 2])] {
        let rules = Rules { include_local, ..SETTINGS.rules };
        let mut rig = Rig::with(LoadOptions { rules, ..SETTINGS }, LinkType::Ethernet);
        for pair in Pair::both() {
            let [here, there] = pair.hosts;
            rig.add_local(match here {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            });
            let to_here = Pair { hosts: [there, here], ..pair };
            rig.send(Program::Ingress, &to_here.message(0, 1, QUERY, 30));
            rig.send(Program::Egress, &to_here.message(1, 1, RESPONSE, 30));
            pair.ask(&mut rig, 2);
            pair.answer(&mut rig, 2, RESPONSE);
        }
        assert_eq!(ids(&mut rig, "locality"), expected);
        assert_eq!(rig.twin.counters.dns_queries, [2, 2]);
        assert_eq!(rig.twin.counters.to_this_host, if include_local { 0 } else { 2 });
    }
}

#[test]
fn pseudo_random_messages_match_as_in_user_space() {
    for settings in kernels() {
        let settings = LoadOptions { dns_ports: [53, 54, 0, 0, 0, 0, 0], ..settings };
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        let mut random = Random::seeded(53);
        let mut reported = 0;
        for packet in 1..=6000 {
            let hosts = random.pick(&[[v4(1), v4(2)], [v4(2), v4(1)], [v6(1), v6(2)], [v6(2), v6(1)]]);
            let ports = [random.pick(&[4000, 53]), random.pick(&[53, 54, 55])];
            let flags = [random.next() as u8, random.next() as u8];
            let bytes = 10 + random.below(20);
            let message =
                Pair { hosts, ports }.message(random.below(2), random.below(4) as u16, flags, bytes);
            rig.send(random.pick(&Program::ALL), &message);
            if packet % 500 == 0 {
                let what = format!("packet {packet}");
                reported += samples(&rig.agree(&what)).len();
                rig.agree_on_series(&what);
            }
        }
        assert!(reported > 200, "only {reported} samples");
        assert!(rig.twin.counters.dns_responses.iter().all(|&count| count > 10));
    }
}

#[test]
fn a_method_that_is_off_takes_no_memory_and_sees_nothing() {
    let methods = Rules::UNLIMITED.methods.without(Method::Dns);
    let rules = Rules { methods, ..SETTINGS.rules };
    for settings in kernels() {
        let mut rig = Rig::with(LoadOptions { rules, ..settings }, LinkType::Ethernet);
        for pair in Pair::both() {
            pair.ask(&mut rig, 1);
            pair.answer(&mut rig, 1, RESPONSE);
        }
        rig.sweep();
        assert_eq!(ids(&mut rig, "off"), NOTHING);
        assert_eq!(rig.twin.counters.dns_queries, [0; 2]);
        assert_eq!(room(&rig), [RINGS; 2]);
    }
    assert_eq!(room(&Rig::new()), [MAX_QUERIES; 2]);
}

/// Returns how many queries the maps can hold.
fn room(rig: &Rig) -> [u32; 2] {
    ["QUERIES_V4", "QUERIES_V6"].map(|name| {
        let Some(aya::maps::Map::HashMap(map)) = rig.kernel.programs.map(name) else {
            panic!("{name} is no such map");
        };
        map.info().unwrap().max_entries()
    })
}

#[test]
fn the_latest_of_too_many_queries_are_matched() {
    /// On a busy machine queries may time out before the test has sent them all, and the test tries again.
    const ATTEMPTS: usize = 5;
    for pair in Pair::both() {
        let is_in_time = (0..ATTEMPTS).any(|_| too_many_queries(pair));
        assert!(is_in_time, "each attempt took longer than a query waits for its response");
    }
}

/// Sends more queries than fit, and answers all. Returns `false` if that took too long for a conclusion.
fn too_many_queries(pair: Pair) -> bool {
    const EACH: u32 = MAX_QUERIES;
    /// All come from one prefix.
    const PLACES: u32 = MAX_QUERIES / RINGS;
    let mut rig = Rig::new();
    let numbered = |number: u32| (Pair { ports: [4000 + (number >> 15) as u16, 53], ..pair }, number as u16);
    let began = Instant::now();
    for number in 0..EACH {
        let (pair, id) = numbered(number);
        run(&mut rig.kernel, Program::Egress, &pair.message(0, id, QUERY, 12));
    }
    let mut answered = vec![0];
    for number in (0..EACH).rev() {
        let (pair, id) = numbered(number);
        run(&mut rig.kernel, Program::Ingress, &pair.message(1, id, RESPONSE, 12));
        if number % 4000 == 0 {
            answered.push(samples(&rig::events(&mut rig.kernel)).len());
        }
    }
    if began.elapsed() >= Duration::from_secs(DNS_TIMEOUT_SECONDS) {
        return false;
    }
    let total: usize = answered.iter().sum();
    assert_eq!(total, PLACES as usize, "{answered:?}");
    assert_eq!(
        answered[2..].iter().sum::<usize>(),
        (PLACES - 768) as usize,
        "the latest are there: {answered:?}"
    );
    let counters = counters(&rig.kernel, rig.twin.interface_id);
    assert_eq!(counters.dns_queries, [0, u64::from(EACH)]);
    assert_eq!(counters.dns_responses[0], total as u64);
    assert_eq!(counters.dns_unanswered, 0, "none has waited too long");
    assert_eq!(counters.dns_given_up, u64::from(EACH - PLACES));
    true
}

#[test]
fn a_query_waits_for_its_timeout_and_no_longer() {
    let mut rigs = kernels().map(|settings| Rig::with(settings, LinkType::Ethernet));
    let wait_until = |began: Instant, seconds: u64, ms: u64| {
        let time = Duration::from_secs(seconds) + Duration::from_millis(ms);
        thread::sleep((began + time).saturating_duration_since(Instant::now()));
    };
    let began = Instant::now();
    for rig in &mut rigs {
        for pair in Pair::both() {
            (1..=5).for_each(|id| pair.ask(rig, id));
        }
    }
    wait_until(began, DNS_TIMEOUT_SECONDS / 2, 0);
    for rig in &mut rigs {
        rig.sweep();
        for pair in Pair::both() {
            pair.ask(rig, 2);
            pair.answer(rig, 5, RESPONSE);
        }
        assert_eq!(ids(rig, "in time"), [5, 5]);
        assert_eq!(rig.twin.counters.dns_unanswered, 0);
    }
    // The margin leaves a busy machine time for the steps above.
    wait_until(began, DNS_TIMEOUT_SECONDS, 2_500);
    for rig in &mut rigs {
        for pair in Pair::both() {
            pair.answer(rig, 3, RESPONSE);
            pair.ask(rig, 4);
            pair.answer(rig, 4, RESPONSE);
        }
        assert_eq!(ids(rig, "too late, and asked again"), [4, 4]);
        assert_eq!(rig.twin.counters.dns_unanswered, 4);
        rig.sweep();
        rig.agree_on_counters("unanswered queries");
        assert_eq!(rig.twin.counters.dns_unanswered, 6);
        for pair in Pair::both() {
            pair.answer(rig, 1, RESPONSE);
            pair.answer(rig, 2, RESPONSE);
        }
        assert_eq!(ids(rig, "the repeated one waits from then"), NOTHING);
        assert_eq!(rig.twin.counters.dns_responses[0], 6);
        rig.kernel.sweep().unwrap();
        rig.agree_on_counters("nothing is left");
    }
}

#[test]
fn queries_and_responses_of_excluded_hosts_are_ignored() {
    for pair in Pair::both() {
        for host in pair.hosts {
            let mut kernel = load::load(&LoadOptions { excludes: true, ..SETTINGS }, false).unwrap();
            let interface_id = rig::loopback(LinkType::Ethernet).register(&mut kernel).unwrap();
            labels::add(&mut kernel.excluded, 0, [(host.into(), 1)].into_iter()).unwrap();
            run(&mut kernel, Program::Egress, &pair.message(0, 1, QUERY, 12));
            run(&mut kernel, Program::Ingress, &pair.message(1, 1, RESPONSE, 12));
            let counters = counters(&kernel, interface_id);
            assert_eq!(counters.untracked[Untracked::Excluded as usize], 2);
            assert_eq!((counters.dns_queries, counters.dns_responses), ([0; 2], [0; 16]));
            assert!(rig::events(&mut kernel).is_empty());
        }
    }
}

/// A rig whose rings have 32 places each.
fn rig_with_rings(settings: LoadOptions) -> Rig {
    Rig::with(LoadOptions { max_queries: 256, table_keys: Some(keys()), ..settings }, LinkType::Ethernet)
}

/// Sends queries between a pair of hosts, one from each of many ports.
fn flood(rig: &mut Rig, pair: Pair, queries: u16) {
    for number in 0..queries {
        Pair { ports: [10_000 + number, 53], ..pair }.ask(rig, number);
    }
}

#[test]
fn query_flood_spares_other_prefixes() {
    for settings in kernels() {
        let mut rig = rig_with_rings(settings);
        for pair in Pair::both() {
            (0..32).for_each(|id| pair.ask(&mut rig, id));
            let [client, server] = pair.hosts;
            let other = of_prefix(client, prefix_apart_from(client));
            flood(&mut rig, Pair { hosts: [other, server], ..pair }, 2_000);
            (0..32).for_each(|id| pair.answer(&mut rig, id, RESPONSE));
            assert_eq!(ids(&mut rig, "slow answers in a flood"), (0..32).collect::<Vec<_>>());
        }
        assert_eq!(rig.twin.counters.dns_given_up, 2 * (2_000 - 32));
    }
}

#[test]
fn query_flood_from_everywhere_is_counted() {
    for settings in kernels() {
        let mut rig = rig_with_rings(settings);
        let [pair, _] = Pair::both();
        let from = |prefix| Pair { hosts: [of_prefix(pair.hosts[0], prefix), pair.hosts[1]], ..pair };
        (0..3_000).for_each(|prefix| from(prefix).ask(&mut rig, 1));
        (0..3_000).for_each(|prefix| from(prefix).answer(&mut rig, 1, RESPONSE));
        assert_eq!(ids(&mut rig, "queries from everywhere").len(), 256);
        let counters = rig.twin.counters;
        assert_eq!((counters.dns_given_up, counters.dns_unanswered), (3_000 - 256, 0));
    }
}

#[test]
fn slow_answer_survives_answered_queries_of_its_prefix() {
    for settings in kernels() {
        let mut rig = rig_with_rings(settings);
        for pair in Pair::both() {
            pair.ask(&mut rig, 999);
            pair.ask(&mut rig, 998);
            pair.ask_again(&mut rig, 998);
            for id in 0..500 {
                pair.ask(&mut rig, id);
                pair.answer(&mut rig, id, RESPONSE);
            }
            assert_eq!(ids(&mut rig, "quick ones").len(), 500);
            pair.answer(&mut rig, 998, RESPONSE);
            pair.answer(&mut rig, 999, RESPONSE);
            assert_eq!(ids(&mut rig, "the slow one, and one that was repeated"), [999]);
        }
        assert_eq!(rig.twin.counters.dns_given_up, 0);
        assert_eq!(rig.twin.counters.dns_responses[0], 2 * 502);
    }
}
