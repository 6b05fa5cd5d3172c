//! Interfaces that come, go, move and change by the hundred, and names of all kinds.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    process::Stdio,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use pping_lab::{Namespace, Process, Signal, run};

use super::{
    bpffs::Bpffs,
    host::Host,
    http::{LISTEN, scrape},
    interfaces::{is_watched, packet_counts, watch_pattern},
    monitor::{ENDING, LOADING, interrupt, ok, pping, wait_until},
};

/// How long a test changes interfaces.
const CHANGING: Duration = Duration::from_secs(5);

/// Runs a batch of commands of ip(8) quickly, in one process. Commands may fail if `is_forced`.
fn batch(host: &Namespace, commands: &str, is_forced: bool) {
    let mut ip = host.command("ip");
    ip.args(if is_forced { &["-force", "-batch", "-"][..] } else { &["-batch", "-"] });
    let mut child = ip.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), commands.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success() || is_forced, "{commands}");
}

/// The commands that make so many pairs of interfaces.
fn made(pairs: u32) -> String {
    let pair = |number| format!("link add dial{number} group 77 up type veth peer name dial{number}x\n");
    (0..pairs).map(pair).collect()
}

const ALL_GONE: &str = "link delete group 77\n";

fn assert_runs(pping: &mut Process) {
    assert_eq!(ok(pping.status()), None, "{}", ok(pping.stderr()));
}

/// Waits until so many interfaces are watched.
fn wait_until_up(host: &Namespace, pping: &mut Process, count: f64) {
    wait_until(&format!("{count} interfaces are watched"), || {
        assert_runs(pping);
        scrape(host).sum("pping_interface_up", &[]) == Some(count)
    });
}

/// Sends pings to all hosts on the wire of an interface until pping has counted all that the kernel counts.
fn assert_counts(host: &Namespace, interface: &str) {
    wait_until(&format!("packets of {interface} are counted"), || {
        let counted = |[_, by_pping]: [[u64; 2]; 2]| by_pping[1];
        let before = counted(packet_counts(host, interface));
        let mut ping = host.command("ping");
        ping.args(["-q", "-L", "-i0.01", "-W1", "-c5", "-I", interface, "ff02::1"]);
        // Nobody has to answer.
        ping.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        counted(packet_counts(host, interface)) >= before + 5
    });
}

#[test]
fn survives_hundreds_of_interfaces_coming_and_going() {
    let host = Host::new();
    let mut pping = watch_pattern(&host, "-i dial* -i eth0");
    let begun = Instant::now();
    // More than one pping watches.
    while begun.elapsed() < CHANGING {
        batch(&host.namespace, &made(150), false);
        batch(&host.namespace, ALL_GONE, false);
        assert_runs(&mut pping);
    }
    batch(&host.namespace, &made(150), false);
    wait_until_up(&host.namespace, &mut pping, 256.0);
    assert!(ok(pping.stderr()).contains("there is no room for more interfaces; raise --max-interfaces"));
    batch(&host.namespace, ALL_GONE, false);
    wait_until_up(&host.namespace, &mut pping, 1.0);
    assert_counts(&host.namespace, "eth0");
    interrupt(pping);
}

#[test]
fn more_interfaces_than_usual_are_watched_if_there_is_to_be_room() {
    let host = Host::new();
    let mut pping = watch_pattern(&host, "-i dial* -i eth0 -i uplink --wait --max-interfaces 350");
    batch(&host.namespace, &made(130), false);
    batch(&host.namespace, "link set dial129 up\nlink set dial129x up\n", false);
    wait_until_up(&host.namespace, &mut pping, 261.0);
    assert_counts(&host.namespace, "dial129");
    let metrics = scrape(&host.namespace);
    let of_map = |name| metrics.sum(name, &[("map", "INTERFACES")]);
    assert_eq!((of_map("pping_map_entries"), of_map("pping_map_capacity")), (Some(261.0), Some(350.0)));
    // Those of the pattern may go; these two should be there.
    let expected = |interface| metrics.sum("pping_interface_expected", &[("interface", interface)]);
    assert_eq!((expected("eth0"), expected("uplink")), (Some(1.0), Some(1.0)));
    assert_eq!(metrics.sum("pping_interface_expected", &[]), Some(2.0));
    batch(&host.namespace, ALL_GONE, false);
    wait_until_up(&host.namespace, &mut pping, 1.0);
    interrupt(pping);
}

/// Pairs of interfaces that take longer to attach to than a start takes: some 30 ms each.
const MANY: u32 = 120;

#[test]
fn a_start_among_hundreds_measures_what_is_named_at_once_and_the_others_later() {
    let (host, pins) = (Host::new(), Bpffs::new());
    batch(&host.namespace, &made(MANY), false);
    let all = u64::from(2 * MANY + 1);
    let arguments = format!("-i dial* -i eth0 --max-interfaces 1000 --pin {}", pins.pins().display());
    let up = || scrape(&host.namespace).sum("pping_interface_up", &[]).unwrap() as u64;
    // Ended in the midst of it, and by SIGKILL.
    let mut pping = watch_pattern(&host, &arguments);
    assert!(is_watched(&host.namespace, "eth0"));
    assert_counts(&host.namespace, "eth0");
    let some = up();
    ok(pping.signal(Signal::SIGKILL));
    ok(pping.wait_timeout(ENDING));
    let mut pping = watch_pattern(&host, &arguments);
    assert!(up() >= some, "what was attached to is taken over at once: {} of {some}", up());
    wait_until_up(&host.namespace, &mut pping, all as f64);
    assert_counts(&host.namespace, "eth0");
    interrupt(pping);
    let pping = watch_pattern(&host, &arguments);
    assert_eq!(up(), all, "all are taken over at once");
    interrupt(pping);
    // Interfaces that are gone by the next start leave nothing.
    batch(&host.namespace, ALL_GONE, false);
    let pping = watch_pattern(&host, &arguments);
    let links = pins.pins().join("links").read_dir().unwrap().count();
    assert_eq!(links, 2, "those of eth0");
    interrupt(pping);
}

#[test]
fn renamed_and_moved_interfaces_stay_watched() {
    let (host, elsewhere) = (Host::new(), ok(Namespace::new("elsewhere")));
    let mut pping = watch_pattern(&host, "-i dial* -i wan*");
    batch(&host.namespace, "link add wan7 up type veth peer name far7\nlink set far7 up\n", false);
    let (here, there) = (host.namespace.name().to_owned(), elsewhere.name().to_owned());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                batch(&host.namespace, &made(20), true);
                batch(&host.namespace, ALL_GONE, true);
            }
        });
        let begun = Instant::now();
        while begun.elapsed() < CHANGING {
            // It ends where it began, with the same number and name.
            batch(
                &host.namespace,
                "link set wan7 down\nlink set wan7 name lan7\nlink set lan7 name wan8\nlink set wan8 mtu 1400\n\
                 link set wan8 name wan7\nlink set wan7 mtu 1500\nlink set wan7 up\n",
                false,
            );
            batch(&host.namespace, &format!("link set wan7 netns {there}\n"), false);
            batch(&elsewhere, &format!("link set wan7 mtu 1450\nlink set wan7 netns {here}\n"), false);
            batch(&host.namespace, "link set wan7 up\n", false);
            assert_runs(&mut pping);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    wait_until("only it is watched", || {
        is_watched(&host.namespace, "wan7")
            && scrape(&host.namespace).sum("pping_interface_up", &[]) == Some(1.0)
    });
    assert_counts(&host.namespace, "wan7");
    interrupt(pping);
}

#[test]
fn an_interface_that_is_made_again_with_its_number_is_watched() {
    let host = Host::new();
    let pping = watch_pattern(&host, "-i wan7 --wait");
    let make = "link add wan7 index 777 up type veth peer name far7\nlink set far7 up\n";
    batch(&host.namespace, make, false);
    assert_counts(&host.namespace, "wan7");
    for _ in 0..5 {
        batch(&host.namespace, &format!("link delete wan7\n{make}"), false);
        assert_counts(&host.namespace, "wan7");
    }
    interrupt(pping);
}

#[test]
fn a_name_that_is_no_text_is_watched_and_escaped() {
    let host = Host::new();
    let named = |name: &[u8]| {
        let mut ip = host.namespace.command("ip");
        ip.args(["link", "add"]).arg(OsStr::from_bytes(name)).args(["up", "type", "veth"]);
        ok(run(&mut ip));
    };
    named(b"dial\xff\xfe");
    let pping = watch_pattern(&host, "-i dial* -i wan\\xc3 --wait");
    named(b"wan\xc3");
    named(b"dial\x1b[2J");
    named(b"other\xf0");
    for name in ["dial\\xff\\xfe", "wan\\xc3", "dial\\x1b[2J"] {
        // A backslash is escaped on the page too.
        let label = name.replace('\\', "\\\\");
        wait_until(name, || is_watched(&host.namespace, name) || is_watched(&host.namespace, &label));
    }
    // Each change lists all of them again.
    for _ in 0..10 {
        batch(&host.namespace, "link set lo down\nlink set lo up\n", false);
    }
    let said = ok(pping.stderr());
    assert!(said.contains("watching dial\\xff\\xfe at"), "{said}");
    assert!(!said.contains('\u{fffd}') && !said.contains('\u{1b}') && !said.contains("other\\xf0"), "{said}");
    interrupt(pping);
}

#[test]
fn an_alternative_name_selects_an_interface() {
    let host = Host::new();
    let property = ["link", "property", "add", "dev", "eth0", "altname", "enp1s0-of-the-first-slot"];
    ok(run(host.namespace.command("ip").args(property)));
    for selection in ["-i enp1s0-of-the-first-slot", "-i enp*"] {
        let pping = watch_pattern(&host, selection);
        wait_until("it is watched by its name", || is_watched(&host.namespace, "eth0"));
        interrupt(pping);
    }
    // Renamed, it is selected as before.
    let renamed = watch_pattern(&host, "-v -i enp1s0-of-the-first-slot");
    batch(&host.namespace, "link set eth0 down\nlink set eth0 name eth7\nlink set eth7 up\n", false);
    wait_until("it is watched by its new name", || is_watched(&host.namespace, "eth7"));
    let said = ok(renamed.stderr());
    assert!(
        said.contains("INFO eth0 (ifindex") && said.contains("is eth7 now, and watched by that name"),
        "{said}"
    );
    assert!(!said.contains("not watched any more"), "{said}");
    interrupt(renamed);
    let missing = pping(&host.namespace, "-i enp1s0-of-the-first-slit").output().unwrap();
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(said.contains("did you mean enp1s0-of-the-first-slot?"), "{said}");
}

#[test]
fn xdp_that_is_refused_for_the_mtu_says_so() {
    let host = Host::new();
    // The driver looks at the MTU of the other end.
    batch(
        &host.namespace,
        "link add wan7 mtu 9000 up type veth peer name far7\nlink set far7 mtu 9000 up\n",
        false,
    );
    for (ingress, point, instead) in
        [("auto", "tcx", "at tc instead"), ("xdp", "xdp-generic", "by generic XDP, instead")]
    {
        let pping = watch_pattern(&host, &format!("-i wan7 --ingress {ingress}"));
        let said = ok(pping.stderr());
        assert!(said.contains("wan7: its MTU (9000)") && said.contains(instead), "{said}");
        assert!(said.contains("ip link set dev wan7 mtu 3400"), "{said}");
        assert!(said.contains(&format!("watching wan7 at {point}")), "{said}");
        interrupt(pping);
    }
}

/// Says so once, and at any verbosity.
#[test]
fn a_start_says_what_it_watches_and_that_it_measures() {
    let host = Host::new();
    let mut pping = ok(Process::spawn(pping(&host.namespace, &format!("-i eth0 --format none {LISTEN}"))));
    ok(pping.wait_for_output("watching eth0: measuring", super::monitor::PATIENCE));
    let said = ok(pping.stderr());
    // A slow start also says what it waits for.
    let lines = said.lines().filter(|line| !line.ends_with(LOADING));
    assert_eq!(lines.count(), 1, "{said}");
    interrupt(pping);
}
