//! Packets count for the interface that they pass.

use aya::maps::{Array, Map, MapData};
use pping::kernel::{
    interfaces::Link,
    load::{self, Hook},
    load_options::LoadOptions,
};
use pping_common::{
    abi::{Counters, Interface, InterfaceRoom, LAYOUT},
    limits::{DEFAULT_MAX_INTERFACES, INTERFACE_PROBES, SWEEP_INTERVAL_SECONDS, UNANSWERED_IDLE_SECONDS},
    parse::{Direction, LinkType},
};
use pping_lab::{
    Namespace,
    veth::{End, Offloads, connect},
};

use super::{
    frames::{echo, v4, v6},
    rig::{LOOPBACK, Program, SETTINGS, counters, events, kernels, loopback, run, run_on, samples},
    shapes::catalogue,
};
use crate::agent::bpffs::Bpffs;

const ROOM: InterfaceRoom = InterfaceRoom::of(DEFAULT_MAX_INTERFACES);

fn ethernet(ifindex: u32) -> Link {
    Link { name: format!("eth{ifindex}"), ifindex, hardware_type: libc::ARPHRD_ETHER, ..Link::default() }
}

#[test]
fn packets_of_an_unwatched_interface_pass_and_count_nowhere() {
    let mut kernel = load::load(&SETTINGS, false).unwrap();
    // In the interface table, the candidate entries of this interface belong to others or are free.
    for neighbour in [LOOPBACK + ROOM.table(), LOOPBACK + 2 * ROOM.table(), LOOPBACK + 2] {
        ethernet(neighbour).register(&mut kernel).unwrap();
    }
    for shape in catalogue() {
        for program in Program::ALL {
            assert!(run(&mut kernel, program, &shape.frame) || shape.frame.len() < 54, "{}", shape.name);
        }
    }
    for interface_id in 0..ROOM.ids as u16 {
        assert_eq!(counters(&kernel, interface_id), Counters::ZERO, "interface_id {interface_id}");
    }
    assert!(events(&mut kernel).is_empty());
}

#[test]
fn an_interface_whose_entry_is_taken_gets_another() {
    let mut kernel = load::load(&SETTINGS, false).unwrap();
    // All candidate entries but the last get the interfaces whose first entry they are.
    for probe in 0..INTERFACE_PROBES - 1 {
        let first = InterfaceRoom::entry(ROOM.last_entry, LOOPBACK, probe);
        let other = if first == LOOPBACK { first + ROOM.table() } else { first };
        ethernet(other).register(&mut kernel).unwrap();
    }
    let last = loopback(LinkType::Ethernet).register(&mut kernel).unwrap();
    for program in Program::ALL {
        run(&mut kernel, program, &echo(v4(1), v4(2), 1, 1, false));
    }
    for other in 0..ROOM.ids as u16 {
        let counters = counters(&kernel, other);
        let packets: u64 = Direction::ALL.map(|direction| counters.packets(direction)).iter().sum();
        assert_eq!(packets, if other == last { 3 } else { 0 }, "interface_id {other}");
    }
    // The entry is free again once the interface is gone.
    kernel.interface_ids.remove(LOOPBACK);
    ethernet(InterfaceRoom::entry(ROOM.last_entry, LOOPBACK, INTERFACE_PROBES - 1))
        .register(&mut kernel)
        .unwrap();
    assert!(loopback(LinkType::Ethernet).register(&mut kernel).is_err(), "all candidates are taken");
}

#[test]
fn colliding_runs_of_interfaces_are_all_watched() {
    let mut kernel = load::load(&SETTINGS, false).unwrap();
    for run in 0..4 {
        for neighbour in 0..ROOM.ids / 4 {
            ethernet(5 + run * ROOM.table() + neighbour).register(&mut kernel).unwrap();
        }
    }
}

#[test]
fn each_of_thousands_of_interfaces_knows_the_present_sweep() {
    const MAX: u32 = 5_000;
    // Longer than an unanswered flow is kept.
    const SWEEPS: u32 = 2 * UNANSWERED_IDLE_SECONDS / SWEEP_INTERVAL_SECONDS;
    let [settings, older] = kernels().map(|settings| LoadOptions { max_interfaces: MAX, ..settings });
    let error = load::load(&older, false).err().unwrap();
    assert!(error.to_string().contains("--max-interfaces 5000: this kernel can have up to 256"), "{error}");
    let mut kernel = load::load(&settings, false).unwrap();
    for other in 0..MAX - 1 {
        ethernet(LOOPBACK + 1 + other).register(&mut kernel).unwrap();
    }
    let last = loopback(LinkType::Ethernet).register(&mut kernel).unwrap();
    assert_eq!(u32::from(last), MAX - 1);
    let error = ethernet(MAX + 1).register(&mut kernel).unwrap_err();
    assert!(error.to_string().contains("raise --max-interfaces"), "{error}");
    for _ in 0..SWEEPS {
        kernel.sweep().unwrap();
    }
    run(&mut kernel, Program::Ingress, &echo(v4(1), v4(2), 1, 1, false));
    kernel.sweep().unwrap();
    let counted = counters(&kernel, last);
    assert_eq!(counted.packets(Direction::Ingress), 1);
    assert_eq!((counted.entries_made[0], counted.entries_deleted[0]), (1, 0), "the flow is of this sweep");
    assert_eq!(counters(&kernel, last - 1), Counters::ZERO);
}

#[test]
fn interface_entry_of_another_version_is_found() {
    let file_system = Bpffs::new();
    let start = || {
        let pins = file_system.take();
        let mut kernel = load::load_entry_programs(&SETTINGS, &[Hook::Tc], Some(&pins)).unwrap();
        load::load_stages(&mut kernel, &[Hook::Tc], Some(&pins)).unwrap();
        let id = loopback(LinkType::Ethernet).register(&mut kernel).unwrap();
        (kernel, pins, id)
    };
    let (kernel, pins, id) = start();
    drop((kernel, pins));
    let path = file_system.pins().join(format!("maps-{LAYOUT:016x}/INTERFACES"));
    let map = Map::from_map_data(MapData::from_pin(path).unwrap()).unwrap();
    let mut map: Array<_, Interface> = Array::try_from(map).unwrap();
    // Earlier versions took the next entry if the first was taken.
    let entry = map.get(&LOOPBACK, 0).unwrap();
    map.set(LOOPBACK + 1, entry, 0).unwrap();
    map.set(LOOPBACK, Interface::EMPTY, 0).unwrap();
    let (mut kernel, _pins, next_id) = start();
    kernel.interface_ids.clear_others(|ifindex| ifindex == LOOPBACK);
    assert_eq!(next_id, id, "its counters go on");
    run(&mut kernel, Program::Ingress, &echo(v4(1), v4(2), 1, 1, false));
    assert_eq!(counters(&kernel, id).packets(Direction::Ingress), 1);
    let taken = (0..ROOM.table()).filter(|entry| map.get(entry, 0).unwrap().ifindex != 0);
    assert_eq!(taken.collect::<Vec<_>>(), [LOOPBACK], "the old entry is removed");
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
