//! `--rate-limit` spaces the recordings of a flow direction.

use std::{collections::BTreeMap, thread, time::Duration};

use pping_lab::{
    Topology,
    traffic::{self, Behaviour, Pace, Server},
};

use super::{Family, ok, records::Tuple, topology, watch::Watch};

/// A conversation of 2 s, and another one that begins in the middle of it.
const CONVERSATION: Pace = Pace { chunks: 400, bytes: 100, pause: Duration::from_millis(5) };
const SHORT: Pace = Pace { chunks: 150, bytes: 100, pause: Duration::from_millis(5) };
const LIMIT: Duration = Duration::from_millis(100);
/// How far times since the epoch may drift: they are monotonic times plus an offset that is read repeatedly.
const CLOCK: Duration = Duration::from_millis(1);

#[test]
fn recordings_of_a_flow_direction_are_spaced() {
    let topology = topology();
    let server = ok(Server::start(topology.server(), 0, Behaviour::Echo));
    let address = Family::Ipv4.address_of(&server);
    let watch = Watch::start(topology.router(), Topology::WAN, "--rate-limit 100ms");
    thread::scope(|scope| {
        scope.spawn(|| ok(traffic::echo(topology.client(), address, SHORT)));
        ok(traffic::echo(topology.client(), address, CONVERSATION));
    });
    let seen = watch.finish();

    seen.assert_nothing_unjustified();
    let mut directions: BTreeMap<&Tuple, Vec<u64>> = BTreeMap::new();
    // The limit does not apply to handshakes: a connection has only one.
    for sample in seen.records.samples.iter().filter(|sample| sample.method == "tcp-ts") {
        directions.entry(&sample.tuple).or_default().push(sample.recorded_at());
    }
    assert_eq!(directions.len(), 4, "two flows have four directions: {directions:?}");
    for (tuple, mut recorded) in directions {
        recorded.sort_unstable();
        for pair in recorded.windows(2) {
            let apart = Duration::from_nanos(pair[1] - pair[0]);
            assert!(apart + CLOCK >= LIMIT, "recorded {apart:?} apart: {tuple:?}");
        }
        // The limit delays a recording only until the next segment that can be timed, about 5 ms later.
        assert!(recorded.len() >= 4, "{} recordings of {tuple:?}", recorded.len());
    }
}
