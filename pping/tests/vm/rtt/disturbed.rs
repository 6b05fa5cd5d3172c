//! Lost and reordered packets lead to no wrong values.

use std::time::Duration;

use pping_lab::{Topology, traffic::Pace};

use super::{
    EXACT, FAMILIES, Net, PAUSE, Sample, Watched, assert_minimum_agrees, assert_ping_agrees, pings, to_server,
};

/// Each packet of the server is delayed by 15 to 25 ms, so that many are reordered, and one in a hundred is lost. The
/// same packets are lost each time: netem uses the kernel's random numbers, whose seed is the same in every guest.
const NETEM: &str = "delay 20ms 5ms loss 1%";
const SHORTEST: Duration = Duration::from_millis(15);
const LONGEST: Duration = Duration::from_millis(25);

const CONVERSATION: Pace = Pace { chunks: 300, bytes: 100, pause: PAUSE };
const PINGS: usize = 300;

/// The same delay, with more loss.
const WORSE: &str = "delay 20ms 5ms loss 5%";

/// Loss behind the router, so the router also sees the retransmission.
const AHEAD: &str = "loss 3%";

/// How long a receiver may delay an acknowledgement (Linux: `TCP_DELACK_MIN`). The server's kernel delays none, but the
/// next acknowledgement makes up for a lost one. A retransmitted segment takes longer: a round trip, three more
/// segments, and another round trip.
const DELAYED: Duration = Duration::from_millis(40);

/// How far the minima of pping and of the sender may differ: pping gives up some segments that the sender times by
/// selective acknowledgements.
const MINIMA: Duration = Duration::from_micros(500);

/// The minimum retransmission time-out of Linux (RFC 6298 has a longer one).
const RETRANSMISSION: Duration = Duration::from_millis(200);

#[test]
fn lost_or_reordered_segments_give_no_wrong_value() {
    let net = Net::new();
    net.netem(NETEM);
    let mut watched = Watched::start(&net.router, Topology::WAN, "");
    for family in FAMILIES {
        let said = pings(&net.client, family.server(), PINGS);
        let samples = watched.take();
        let samples = to_server(&samples, family);
        assert!(said.len() > PINGS * 9 / 10, "{} replies", said.len());
        // pping has exactly the replies that arrived, in the same order.
        assert_ping_agrees(&samples, &said);
        for sample in samples {
            assert!((SHORTEST..=LONGEST + EXACT).contains(&sample.rtt()), "{sample:?}");
        }

        net.converse(family, CONVERSATION);
        assert_timestamps(&to_server(&watched.take(), family));
    }

    net.timestamps(false);
    net.netem(WORSE);
    net.netem_ahead(AHEAD);
    for family in FAMILIES {
        let sent = net.converse(family, CONVERSATION);
        assert!(sent.tcp_info.retransmissions > 0, "{sent:?}");
        let samples = watched.take();
        let samples = to_server(&samples, family);
        assert_segments(&samples);
        assert_minimum_agrees(&samples, sent.tcp_info, MINIMA);
    }
    watched.finish();
}

#[track_caller]
fn assert_timestamps(samples: &[&Sample]) {
    assert!(samples.len() > 100, "{} samples", samples.len());
    let mut late = 0;
    for sample in samples {
        assert!(sample.rtt() >= SHORTEST, "faster than the network: {sample:?}");
        // If the acknowledgement of a timestamp is lost, the next packet echoes the timestamp, unless the client sends
        // before. Then that packet echoes the next segment's timestamp or, at the end, a retransmission's.
        late += usize::from(sample.rtt() > LONGEST + EXACT);
        assert!(sample.rtt() <= LONGEST + RETRANSMISSION * 2, "{sample:?}");
    }
    assert!(late * 20 <= samples.len(), "{late} of {} are late", samples.len());
}

/// Asserts that no acknowledgement of a retransmitted segment gives a sample.
#[track_caller]
fn assert_segments(samples: &[&Sample]) {
    // A SYN may be lost too, and then gives no sample.
    let is_known = |sample: &&Sample| ["tcp-seq", "tcp-handshake"].contains(&sample.method.as_str());
    assert!(samples.iter().all(is_known), "{samples:?}");
    assert!(samples.len() > 100, "{} samples", samples.len());
    for sample in samples {
        assert!(sample.rtt() >= SHORTEST, "faster than the network: {sample:?}");
        assert!(sample.rtt() <= LONGEST + DELAYED, "{sample:?}");
    }
    // A lost segment delays other acknowledgements, which then arrive together.
    let late = samples.iter().filter(|sample| sample.rtt() > LONGEST + EXACT).count();
    assert!(late * 20 <= samples.len(), "{late} of {} are late", samples.len());
}
