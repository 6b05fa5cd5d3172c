//! DNS queries that cannot be timed.

use std::{thread, time::Duration};

use pping_common::limits::DNS_TIMEOUT_SECONDS;
use pping_lab::Topology;

use super::{FAMILIES, Net, Resolver, Watched, ask, assert_each_exact, to_server};
use crate::{
    http::{LISTEN, scrape},
    monitor::wait_until,
    resolver::UNANSWERED,
};

const DELAY: Duration = Duration::from_millis(20);

/// The IDs of six queries. The second ID occurs twice, and the last two queries are not answered.
const IDS: [u16; 6] = [1, 2, 2, 3, UNANSWERED.start, UNANSWERED.start + 1];

#[test]
fn repeated_queries_give_no_sample_unanswered_count() {
    let net = Net::new();
    net.delay(DELAY);
    let resolver = Resolver::start(&net);
    for family in FAMILIES {
        ask(&net, family, 0..1);
    }
    resolver.took();
    let mut watched = Watched::start(&net.router, Topology::WAN, LISTEN);
    for family in FAMILIES {
        ask(&net, family, IDS);
        let samples = watched.take();
        let samples = to_server(&samples, family);
        assert_eq!(samples.len(), 2, "{samples:?}");
        let took = resolver.took();
        let expected = [0, 3].map(|position| DELAY + took[position]);
        assert_each_exact(&samples.iter().copied().zip(expected).collect::<Vec<_>>());
    }
    let counted = |name: &str, labels: &[(&str, &str)]| {
        scrape(&net.router).sum(name, labels).map(|count| count as usize)
    };
    thread::sleep(Duration::from_secs(DNS_TIMEOUT_SECONDS));
    wait_until("those without a response are counted", || {
        counted("pping_dns_unanswered_total", &[]) == Some(4)
    });
    assert_eq!(counted("pping_dns_queries_total", &[("direction", "egress")]), Some(12));
    assert_eq!(counted("pping_dns_responses_total", &[("rcode", "NOERROR")]), Some(6));
    watched.finish();
    drop(resolver);
}
