//! What is lost or overtaken makes no value wrong.

use std::time::Duration;

use pping_lab::{Topology, traffic::Pace};

use super::{EXACT, FAMILIES, Net, PAUSE, Sample, Watched, pings, to_server};

/// Each packet of the server's waits for 15 to 25 ms, so that many overtake others, and one in a hundred is lost. What is
/// lost is the same each time: netem draws by what the kernel knows of chance, and that begins alike here.
const NETEM: &str = "delay 20ms 5ms loss 1%";
const SHORTEST: Duration = Duration::from_millis(15);
const LONGEST: Duration = Duration::from_millis(25);

const CONVERSATION: Pace = Pace { chunks: 300, bytes: 100, pause: PAUSE };
const PINGS: usize = 300;

/// The least time after which a segment is sent again (RFC 6298 has more, Linux this).
const RETRANSMISSION: Duration = Duration::from_millis(200);

#[test]
fn what_is_lost_or_overtaken_has_no_wrong_value() {
    let net = Net::new();
    net.netem(NETEM);
    let mut watched = Watched::start(&net.router, Topology::WAN, "");
    for family in FAMILIES {
        let said = pings(&net.client, family.server(), PINGS);
        let samples = watched.take();
        let samples = to_server(&samples, family);
        assert!(said.len() > PINGS * 9 / 10, "{} replies", said.len());
        // Each reply that came, in the order in which they came, and no other.
        assert_eq!(samples.len(), said.len());
        for (sample, said) in samples.iter().zip(said) {
            said.assert_agrees(sample);
            assert!((SHORTEST..=LONGEST + EXACT).contains(&sample.rtt()), "{sample:?}");
        }

        net.converse(family, CONVERSATION);
        assert_segments(&to_server(&watched.take(), family));
    }
    watched.finish();
}

#[track_caller]
fn assert_segments(samples: &[&Sample]) {
    assert!(samples.len() > 100, "{} samples", samples.len());
    let mut late = 0;
    for sample in samples {
        assert!(sample.rtt() >= SHORTEST, "faster than the network: {sample:?}");
        // Where the acknowledgement of a timestamp is lost, the next packet echoes it, unless the client sends before:
        // that packet is an echo of the next segment, or, at the end, sent again after a while.
        late += usize::from(sample.rtt() > LONGEST + EXACT);
        assert!(sample.rtt() <= LONGEST + RETRANSMISSION * 2, "{sample:?}");
    }
    assert!(late * 20 <= samples.len(), "{late} of {} are late", samples.len());
}
