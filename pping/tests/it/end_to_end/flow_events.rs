//! Records of opened and closed flows.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsRawFd,
    time::Duration,
};

use pping_lab::{
    Topology,
    traffic::{self, Behaviour, Pace, Server},
};

use super::{
    Family, ok,
    ping::ping,
    records::{FlowEvent, Tuple},
    topology,
    watch::{Seen, Watch},
};

const CONVERSATION: Pace = Pace { chunks: 5, bytes: 100, pause: Duration::from_millis(5) };

/// A flow event without its flow.
type Event<'a> = (&'a str, &'a str, &'a str);

/// Returns the events of one direction of a flow, in order: `src` replies, and the packets of `dest` are timed.
fn events(seen: &Seen, src: SocketAddr, dest: SocketAddr) -> Vec<Event<'_>> {
    let tuple = Tuple { src_ip: src.ip(), src_port: src.port(), dest_ip: dest.ip(), dest_port: dest.port() };
    let events = seen.records.flow_events.iter().filter(|event| event.tuple == tuple);
    events.map(|FlowEvent { kind, reason, triggered_by, .. }| (&**kind, &**reason, &**triggered_by)).collect()
}

#[test]
fn a_connection_opens_by_syn_and_closes_by_fin_each_way() {
    let topology = topology();
    let server = ok(Server::start(topology.server(), 0, Behaviour::Echo));
    for family in [Family::Ipv4, Family::Ipv6] {
        let address = family.address_of(&server);
        let watch = Watch::start(topology.router(), Topology::WAN, "");
        let sent = ok(traffic::echo(topology.client(), address, CONVERSATION));
        let seen = watch.finish();
        assert_eq!(
            events(&seen, address, sent.local),
            [("opening", "SYN", "dest"), ("closing", "FIN", "dest")],
            "what the client sends"
        );
        assert_eq!(
            events(&seen, sent.local, address),
            [("opening", "SYN-ACK", "dest"), ("closing", "FIN", "dest")],
            "what the server sends"
        );
        assert_eq!(seen.records.flow_events.len(), 4, "{:?}", seen.records.flow_events);
        assert!(seen.records.flow_events.iter().all(|event| event.protocol == "TCP"));
    }
}

#[test]
fn a_reset_closes_both_ways() {
    let topology = topology();
    let listener = ok(topology.server().enter(|| TcpListener::bind("0.0.0.0:0"))).unwrap();
    let address = SocketAddr::new(Family::Ipv4.server(), listener.local_addr().unwrap().port());
    let watch = Watch::start(topology.router(), Topology::WAN, "");
    let mut client = ok(topology.client().enter(|| TcpStream::connect(address))).unwrap();
    let local = client.local_addr().unwrap();
    let (mut accepted, _) = listener.accept().unwrap();
    client.write_all(b"?").unwrap();
    accepted.read_exact(&mut [0]).unwrap();
    reset(client);
    let broken_off = accepted.read(&mut [0]);
    assert!(broken_off.is_err(), "{broken_off:?}");
    let seen = watch.finish();
    assert_eq!(
        events(&seen, address, local),
        [("opening", "SYN", "dest"), ("closing", "RST", "dest")],
        "what the client sends"
    );
    assert_eq!(
        events(&seen, local, address),
        [("opening", "SYN-ACK", "dest"), ("closing", "RST", "src")],
        "what the server sends"
    );
}

/// Closes a connection with a reset.
fn reset(stream: TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let length = size_of_val(&linger) as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_LINGER);
    // SAFETY: this option takes a `linger`, which outlives the call, and the length is its size.
    let result =
        unsafe { libc::setsockopt(stream.as_raw_fd(), level, option, (&raw const linger).cast(), length) };
    assert_eq!(result, 0);
    drop(stream);
}

/// No flow opens, so none closes. A reset echoes no timestamp.
#[test]
fn a_refused_connection_is_no_flow() {
    let topology = topology();
    let watch = Watch::start(topology.router(), Topology::WAN, "--rate-limit 0");
    // Nothing listens at port 9.
    let address = SocketAddr::new(Family::Ipv6.server(), 9);
    let refused = ok(topology.client().enter(|| TcpStream::connect(address)));
    assert!(refused.is_err(), "{refused:?}");
    ping(topology.client(), Family::Ipv6.server());
    let seen = watch.finish();
    assert!(seen.records.samples.iter().all(|sample| sample.method == "icmp-echo"));
    let [event] = &*seen.records.flow_events else { panic!("{:?}", seen.records.flow_events) };
    assert_eq!((&*event.protocol, &*event.kind), ("ICMPv6", "opening"));
}

#[test]
fn a_ping_opens_by_its_first_packet() {
    let topology = topology();
    let watch = Watch::start(topology.router(), Topology::WAN, "");
    ping(topology.client(), Family::Ipv4.server());
    let seen = watch.finish();
    let [event] = &*seen.records.flow_events else { panic!("{:?}", seen.records.flow_events) };
    assert_eq!((&*event.kind, &*event.reason), ("opening", "first observed packet"));
    assert_eq!((event.tuple.src_ip, event.tuple.dest_ip), (Family::Ipv4.server(), Family::Ipv4.client()));
    assert_eq!(event.tuple.src_port, event.tuple.dest_port);
    assert_eq!(event.protocol, "ICMP");
}
