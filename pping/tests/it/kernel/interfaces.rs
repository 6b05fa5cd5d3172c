//! Packets count for the interface that they pass.

use pping::kernel::{interfaces::Link, load};
use pping_common::{
    abi::{Counters, Direction},
    limits::{INTERFACE_PROBES, INTERFACE_TABLE, MAX_INTERFACES},
    parse::LinkType,
};
use pping_lab::{
    Namespace,
    veth::{End, Offloads, connect},
};

use super::{
    frames::{echo, v4, v6},
    rig::{LOOPBACK, Program, SETTINGS, counters, events, loopback, run, run_on, samples},
    shapes::catalogue,
};

fn ethernet(ifindex: u32) -> Link {
    Link { name: format!("eth{ifindex}"), ifindex, hardware_type: libc::ARPHRD_ETHER }
}

#[test]
fn packets_of_an_unwatched_interface_pass_and_count_nowhere() {
    let mut kernel = load::load(&SETTINGS, false).unwrap();
    // In the interface table, the candidate entries of this interface belong to others or are free.
    for neighbour in [LOOPBACK + INTERFACE_TABLE, LOOPBACK + 2] {
        ethernet(neighbour).register(&mut kernel).unwrap();
    }
    for shape in catalogue() {
        for program in Program::ALL {
            assert!(run(&mut kernel, program, &shape.frame) || shape.frame.len() < 54, "{}", shape.name);
        }
    }
    for interface_id in 0..MAX_INTERFACES as u16 {
        assert_eq!(counters(&kernel, interface_id), Counters::ZERO, "interface_id {interface_id}");
    }
    assert!(events(&mut kernel).is_empty());
}

#[test]
fn an_interface_whose_entry_is_taken_gets_the_next() {
    let mut kernel = load::load(&SETTINGS, false).unwrap();
    for probe in 1..INTERFACE_PROBES {
        ethernet(LOOPBACK + probe * INTERFACE_TABLE).register(&mut kernel).unwrap();
    }
    let last = loopback(LinkType::Ethernet).register(&mut kernel).unwrap();
    for program in Program::ALL {
        run(&mut kernel, program, &echo(v4(1), v4(2), 1, 1, false));
    }
    for other in 0..MAX_INTERFACES as u16 {
        let counters = counters(&kernel, other);
        let packets: u64 = Direction::ALL.map(|direction| counters.packets(direction)).iter().sum();
        assert_eq!(packets, if other == last { 3 } else { 0 }, "interface_id {other}");
    }
    // An interface can have any of INTERFACE_PROBES entries, and all of them are taken now.
    assert!(ethernet(LOOPBACK + INTERFACE_PROBES * INTERFACE_TABLE).register(&mut kernel).is_err());
}

#[test]
fn the_same_addresses_on_another_interface_are_another_flow() {
    let host = Namespace::new("interfaces").unwrap();
    connect(End::new(&host, "left"), End::new(&host, "right"), Offloads::Off).unwrap();
    host.enter(|| {
        let ifindex = |name| -> u32 {
            let path = format!("/proc/thread-self/net/dev_snmp6/{name}");
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().next().unwrap().trim_start_matches("ifIndex").trim().parse().unwrap()
        };
        let [left, right] = ["left", "right"].map(ifindex);
        let mut kernel = load::load(&SETTINGS, false).unwrap();
        let ids = [left, right].map(|ifindex| ethernet(ifindex).register(&mut kernel).unwrap());
        for [a, b] in [[v4(1), v4(2)], [v6(1), v6(2)]] {
            for ingress in [Program::Xdp, Program::Ingress] {
                run_on(&mut kernel, Program::Egress, &echo(a, b, 1, 1, false), left);
                run_on(&mut kernel, ingress, &echo(b, a, 1, 1, true), right);
                assert!(samples(&events(&mut kernel)).is_empty(), "matched across interfaces");
                run_on(&mut kernel, ingress, &echo(b, a, 1, 1, true), left);
                let reported = samples(&events(&mut kernel));
                assert_eq!(reported.len(), 1);
                assert_eq!(reported[0].endpoints.interface, ids[0]);
            }
        }
        let packets = ids.map(|interface_id| {
            let counters = counters(&kernel, interface_id);
            Direction::ALL.map(|direction| counters.packets(direction))
        });
        assert_eq!(packets, [[4, 4], [4, 0]]);
    })
    .unwrap();
}
