//! Packets that a test run cannot make: headers outside the linear part of an skb, and VLAN tags removed by the device.

use std::{
    io,
    mem::size_of_val,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    time::{Duration, Instant},
};

use pping::kernel::{
    attach::{FilterOwner, Wanted, attach},
    attach_point::AttachPoint,
    interfaces::Link,
    load,
};
use pping_common::{
    abi::Counters,
    parse::{Direction, LinkType, Protocol, Untracked},
};
use pping_lab::{
    Namespace, run,
    veth::{End, Offloads, connect},
};

use super::{
    frames::{ETHERNET_HEADER, v4, v6},
    random::Random,
    rig::{SETTINGS, Timeless, counters, events, samples, timeless},
    talk::{Connection, Temper},
    twin::Twin,
};

/// Long enough for the kernel to put a frame into pages.
const FRAME: usize = 5000;

const PACKETS: usize = 3000;

/// Sends frames of which only the first bytes are linear.
struct Scatterer(OwnedFd);

impl Scatterer {
    fn open(ifindex: u32) -> Self {
        // SAFETY: takes numbers only.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        assert!(socket >= 0, "{}", io::Error::last_os_error());
        // SAFETY: just opened, and nothing else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let (fd, on) = (socket.as_raw_fd(), 1_i32);
        let (option, len) = (libc::PACKET_VNET_HDR, size_of_val(&on) as libc::socklen_t);
        // SAFETY: the option is an integer.
        let result = unsafe { libc::setsockopt(fd, libc::SOL_PACKET, option, (&raw const on).cast(), len) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
        // SAFETY: zero is a valid value of each field.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = ifindex as i32;
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: a packet socket's address, and its length.
        let result = unsafe { libc::bind(fd, (&raw const address).cast(), len) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
        Self(socket)
    }

    /// Sends a frame. All of it is linear if `is_whole`, otherwise only the Ethernet header.
    fn send(&self, frame: &[u8], is_whole: bool) {
        // `virtio_net_hdr` of linux/virtio_net.h: the third and fourth byte are the length of the headers.
        let mut message = vec![0; 10];
        let linear = if is_whole { frame.len() } else { ETHERNET_HEADER };
        message[2..4].copy_from_slice(&(linear as u16).to_ne_bytes());
        message.extend(frame);
        // SAFETY: a slice and its length.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
        assert_eq!(sent, message.len() as isize, "{}", io::Error::last_os_error());
    }
}

pub(super) fn link(name: &str) -> Link {
    let text = std::fs::read_to_string(format!("/proc/thread-self/net/dev_snmp6/{name}")).unwrap();
    let ifindex = text.lines().next().unwrap().trim_start_matches("ifIndex").trim().parse().unwrap();
    Link { name: name.to_owned(), ifindex, hardware_type: libc::ARPHRD_ETHER, ..Link::default() }
}

/// Sends a conversation from `left` to `right` while pping watches one of the two, and compares the counters.
fn talk(watched: &str, direction: Direction, is_whole: bool) {
    let watched = link(watched);
    let mut kernel = load::load(&SETTINGS, false).unwrap();
    let interface_id = watched.register(&mut kernel).unwrap();
    let _attachment =
        attach(&mut kernel, &watched, Wanted::both(&[AttachPoint::Tcx]), None, &mut FilterOwner::default())
            .unwrap();
    let mut twin = Twin::new(SETTINGS, LinkType::Ethernet, interface_id);
    let sender = Scatterer::open(link("left").ifindex);
    let mut random = Random::seeded(41);
    let mut connections = [[v4(1), v4(2)], [v6(2), v6(1)]]
        .map(|hosts| Connection::new(hosts, 40_000, Temper::Wild, &mut random));
    for number in 1..=PACKETS {
        let (_, mut frame) = connections[number % 2].next(&mut random);
        frame.resize(FRAME, 0);
        sender.send(&frame, is_whole);
        twin.packet(direction, &frame, number as u64);
    }
    let (mut reported, began) = (Vec::new(), Instant::now());
    while reported.len() < twin.events.len() && began.elapsed() < Duration::from_mins(1) {
        reported.extend(events(&mut kernel));
    }
    let expected = timeless(&twin.events);
    for (position, (event, expected)) in reported.iter().zip(&expected).enumerate() {
        assert_eq!(Timeless::from(event), *expected, "event {position} at {direction:?}");
    }
    assert_eq!(reported.len(), expected.len());
    assert!(samples(&reported).len() > PACKETS / 10);
    // The hosts' kernels send packets of their own, but no TCP.
    let counted = counters(&kernel, interface_id);
    let tcp = |counters: &Counters| counters.of(direction, Protocol::Tcp).packets();
    assert_eq!(tcp(&counted), tcp(&twin.counters));
    assert_eq!(counted.untracked[Untracked::Truncated as usize], 0);
    assert_eq!(counted.samples, twin.counters.samples);
}

#[test]
fn headers_in_pages_and_stripped_tags_are_found() {
    let host = Namespace::new("attached").unwrap();
    connect(End::new(&host, "left"), End::new(&host, "right"), Offloads::Off).unwrap();
    for end in ["left", "right"] {
        run(host.command("ip").args(["link", "set", end, "mtu", "9000"])).unwrap();
    }
    host.enter(|| {
        for is_whole in [true, false] {
            talk("left", Direction::Egress, is_whole);
            talk("right", Direction::Ingress, is_whole);
        }
    })
    .unwrap();
}

#[test]
fn an_interface_whose_name_another_took_is_not_mistaken_for_it() {
    let host = Namespace::new("heir").unwrap();
    let (left, right) = (End::new(&host, "left"), End::new(&host, "right"));
    connect(left, right, Offloads::Off).unwrap();
    let gone = host.enter(|| link("left")).unwrap();
    run(host.command("ip").args(["link", "delete", "left"])).unwrap();
    connect(left, right, Offloads::Off).unwrap();
    host.enter(|| {
        assert_ne!(link("left").ifindex, gone.ifindex);
        let mut kernel = load::load(&SETTINGS, false).unwrap();
        for ingress in [&[AttachPoint::Tcx][..], &[AttachPoint::XdpNative, AttachPoint::Tcx]] {
            let error = attach(&mut kernel, &gone, Wanted::both(ingress), None, &mut FilterOwner::default())
                .err()
                .unwrap();
            assert!(error.to_string().contains("left"), "{error}");
        }
    })
    .unwrap();
}
