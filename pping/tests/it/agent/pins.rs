//! `--pin`: measuring goes on while pping is away, and the next run continues the numbers.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use pping_lab::{Process, Signal, Topology, run};

use super::{
    bpffs::{Bpffs, files},
    http::{Exposition, LISTEN, is_ready, scrape},
    interfaces::is_watched,
    monitor::{
        ENDING, converse, endless_ping, ok, ping, pping, tool, topology, wait_until, watch, watch_with,
    },
};

const ICMP: [(&str, &str); 3] =
    [("interface", Topology::WAN), ("method", "icmp-echo"), ("matched", "ingress")];

fn options(pins: &Bpffs, more: &str) -> String {
    format!("{LISTEN} --rate-limit 0 --format none --pin {} {more}", pins.pins().display())
}

/// Returns the counters that a restart must not set back. Left out are those of the process, and those of the programs'
/// statistics, which the machine may switch off.
fn counters(exposition: &Exposition) -> BTreeMap<String, f64> {
    let counters = exposition.series().filter(|series| {
        let ends = ["_total", "_count", "_sum", "_bucket"];
        let is_other = ["process_", "pping_bpf_"].iter().any(|it| series.name.starts_with(it));
        !is_other && ends.iter().any(|end| series.name.ends_with(end))
    });
    counters.map(|series| (format!("{}{:?}", series.name, series.labels), series.value)).collect()
}

fn assert_nothing_went_back(before: &Exposition, after: &Exposition) {
    let after = counters(after);
    for (series, value) in counters(before) {
        let now = after.get(&series).unwrap_or_else(|| panic!("{series} is gone"));
        assert!(*now >= value, "{series} was {value} and is {now}");
    }
}

/// Returns the samples of pings: as counted by interface, and in the histogram.
fn pings(topology: &Topology) -> [Option<f64>; 2] {
    let exposition = scrape(topology.router());
    ["pping_samples_total", "pping_rtt_seconds_count"].map(|name| exposition.sum(name, &ICMP))
}

fn kill(mut pping: Process, signal: Signal) {
    ok(pping.signal(signal));
    ok(pping.wait_timeout(ENDING));
}

fn assert_goes_on(ingress: &str, grouping: &str) {
    let (topology, pins) = (topology(), Bpffs::new());
    let options = options(&pins, &format!("--ingress {ingress} {grouping}"));
    let (mut sent, mut before) = (0, None);
    // The agent is killed, then stopped cleanly, then killed again.
    for end in [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGKILL] {
        let agent = watch(topology.router(), Topology::WAN, &options);
        converse(&topology, 3);
        ping(topology.client(), Topology::SERVER_IPV4, "-c5 -i0.05");
        sent += 5;
        wait_until("the samples so far, and no others", || pings(&topology) == [Some(f64::from(sent)); 2]);
        let now = scrape(topology.router());
        if let Some(before) = &before {
            assert_nothing_went_back(before, &now);
        }
        before = Some(now);
        kill(agent, end);
        // pping is away, so only the kernel programs count these.
        ping(topology.client(), Topology::SERVER_IPV4, "-c7 -i0.05");
        sent += 7;
    }
    let agent = watch(topology.router(), Topology::WAN, &options);
    wait_until("packets from between the runs are counted", || {
        pings(&topology) == [Some(f64::from(sent)); 2]
    });
    assert_nothing_went_back(before.as_ref().unwrap(), &scrape(topology.router()));
    kill(agent, Signal::SIGINT);
    let programs = pins.pins().join("programs").read_dir().unwrap();
    let arrays = programs.filter(|it| it.as_ref().unwrap().file_name().to_string_lossy().contains("STAGES"));
    assert_eq!(arrays.count(), 2, "those of the last run, for tc and for XDP");
    let held = files(&pins.pins());
    let (unpinned, said) = unpin(&pins);
    assert!(unpinned && held > 15 && files(pins.path()) == 2, "{held}: {said}");
    let (_, attached) = tool("bpftool", &["net", "show"]);
    assert!(!attached.contains("pping"), "{attached}");
}

/// New links start with programs whose stages are loaded, and existing links are updated to such programs.
#[test]
fn pinned_start_and_restart_have_all_stages() {
    let (topology, pins) = (topology(), Bpffs::new());
    for ingress in ["tc", "xdp"] {
        let options = options(&pins, &format!("--ingress {ingress}"));
        let traffic = endless_ping(topology.client(), Topology::SERVER_IPV4);
        for end in [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGKILL] {
            let agent = watch(topology.router(), Topology::WAN, &options);
            wait_until("it measures", || pings(&topology)[0] > Some(50.0));
            let not_loaded = [("reason", "not_loaded")];
            let exposition = scrape(topology.router());
            assert_eq!(exposition.sum("pping_untracked_packets_total", &not_loaded), Some(0.0));
            kill(agent, end);
        }
        drop(traffic);
        assert!(unpin(&pins).0);
    }
}

fn unpin(pins: &Bpffs) -> (bool, String) {
    tool(super::monitor::PPING, &["unpin", pins.pins().to_str().unwrap()])
}

#[test]
fn nothing_is_lost_between_two_runs_at_tc() {
    assert_goes_on("tc", "");
}

#[test]
fn nothing_is_lost_between_two_runs_at_xdp() {
    assert_goes_on("xdp", "");
}

#[test]
fn groups_without_a_label_lose_nothing() {
    assert_goes_on("tc", "--group-by /32,/128,both --prometheus-groups 1");
}

/// The next run may number the labels of a groups file differently.
#[test]
fn groups_of_a_file_keep_their_labels_in_the_next_run() {
    let (topology, pins, directory) = (topology(), Bpffs::new(), tempfile::tempdir().unwrap());
    let path = directory.path().join("groups.csv");
    fs::write(&path, format!("{}/32,servers\n{}/32,clients\n", Topology::SERVER_IPV4, Topology::CLIENT_IPV4))
        .unwrap();
    let options = options(&pins, &format!("--groups {}", path.display()));
    let agent = watch(topology.router(), Topology::WAN, &options);
    ping(topology.client(), Topology::SERVER_IPV4, "-c4 -i0.05");
    kill(agent, Signal::SIGKILL);
    ping(topology.client(), Topology::SERVER_IPV4, "-c4 -i0.05");
    fs::write(&path, format!("198.51.100.0/24,new\n{}/32,servers\n", Topology::SERVER_IPV4)).unwrap();
    let agent = watch(topology.router(), Topology::WAN, &options);
    let count = || {
        let labels = [("group", "servers"), ("method", "icmp-echo")];
        scrape(topology.router()).sum("pping_rtt_seconds_count", &labels)
    };
    wait_until("samples of before, of between and of now", || count() == Some(8.0));
    ping(topology.client(), Topology::SERVER_IPV4, "-c4 -i0.05");
    wait_until("samples of before, of between and of now", || count() == Some(12.0));
    kill(agent, Signal::SIGKILL);
    // The label is no longer in the file, but samples with it remain.
    fs::write(&path, "198.51.100.0/24,new\n").unwrap();
    let agent = watch(topology.router(), Topology::WAN, &options);
    wait_until("earlier counts are still served", || count() == Some(12.0));
    kill(agent, Signal::SIGINT);
}

#[test]
fn two_runs_do_not_share_pins_and_a_running_one_keeps_its_own() {
    let (topology, pins) = (topology(), Bpffs::new());
    let agent = watch(topology.router(), Topology::WAN, &options(&pins, ""));
    let second = format!("-i {} --format none --pin {}", Topology::WAN, pins.pins().display());
    let mut second = ok(Process::spawn(pping(topology.router(), &second)));
    assert_eq!(ok(second.wait_timeout(ENDING)).code(), Some(2));
    let said = ok(second.stderr());
    assert!(said.contains("another pping uses it; stop that one, or give each its own directory"), "{said}");
    let (unpinned, said) = unpin(&pins);
    assert!(!unpinned && said.contains("another pping uses it"), "{said}");
    ping(topology.client(), Topology::SERVER_IPV4, "-c2 -i0.05");
    wait_until("samples all the same", || pings(&topology) == [Some(2.0); 2]);
    kill(agent, Signal::SIGINT);
}

#[test]
fn a_pin_directory_that_others_can_change_is_refused() {
    let (topology, pins) = (topology(), Bpffs::new());
    let run = |directory: &Path| {
        let arguments = format!("-i {} --format none --pin {}", Topology::WAN, directory.display());
        let output = pping(topology.router(), &arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        said
    };
    let change = |program: &str, to: &str, path: &Path| {
        let (changed, said) = tool(program, &[to, path.to_str().unwrap()]);
        assert!(changed, "{said}");
    };
    // The mount point has mode 1777: others can write to it, and not rename what belongs to root in it.
    let said = run(pins.path());
    assert!(said.contains("other users can write to it") && said.contains("mode=0700"), "{said}");
    fs::create_dir(pins.pins()).unwrap();
    change("chown", "65534", &pins.pins());
    let said = run(&pins.pins());
    assert!(said.contains("it belongs to the user 65534"), "{said}");
    change("chown", "0", &pins.pins());
    change("chmod", "777", pins.path());
    let said = run(&pins.pins());
    assert!(said.contains("other users can rename") && files(&pins.pins()) == 0, "{said}");
    // With the sticky bit the directory is used, and closed to other users.
    change("chmod", "1777", pins.path());
    let agent = watch(topology.router(), Topology::WAN, &options(&pins, ""));
    let mode = fs::metadata(pins.pins()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    kill(agent, Signal::SIGTERM);
}

#[test]
fn a_pin_directory_outside_bpffs_is_refused_and_left_alone() {
    let (topology, directory) = (topology(), tempfile::tempdir().unwrap());
    let pins = directory.path().join("pping");
    let arguments = format!("-i {} --pin {}", Topology::WAN, pins.display());
    let mut agent = ok(Process::spawn(pping(topology.router(), &arguments)));
    assert_eq!(ok(agent.wait_timeout(ENDING)).code(), Some(2));
    let said = ok(agent.stderr());
    assert!(said.contains("not on a BPF file system") && said.contains("mount -t bpf"), "{said}");
    assert!(!pins.exists());
}

#[test]
fn pinned_map_sizes_win_and_that_is_reported() {
    let (topology, pins) = (topology(), Bpffs::new());
    kill(watch(topology.router(), Topology::WAN, &options(&pins, "--max-flows 1000")), Signal::SIGTERM);
    let agent = watch(topology.router(), Topology::WAN, &options(&pins, "--max-flows 2000"));
    wait_until("metrics are served", || is_ready(topology.router()));
    let said = ok(agent.stderr());
    assert!(
        said.contains("--max-flows 2000: the maps pinned in") && said.contains("have room for 1000"),
        "{said}"
    );
    let capacity = [("map", "FLOWS_V4")];
    assert_eq!(scrape(topology.router()).sum("pping_map_capacity", &capacity), Some(1000.0));
    kill(agent, Signal::SIGINT);
}

/// After an upgrade that changes the layout, the pinned maps cannot be used.
#[test]
fn another_layout_is_replaced_once_the_new_programs_run() {
    let (topology, pins) = (topology(), Bpffs::new());
    kill(watch(topology.router(), Topology::WAN, &options(&pins, "")), Signal::SIGKILL);
    let maps = |name: &str| -> Vec<_> {
        let entries = pins.pins().read_dir().unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(name)).collect()
    };
    let [ours] = &maps("maps-")[..] else { panic!("one set of maps") };
    let other = pins.pins().join("maps-0123456789abcdef");
    fs::rename(ours, &other).unwrap();
    let agent = watch(topology.router(), Topology::WAN, &options(&pins, ""));
    wait_until("the warning is printed", || ok(agent.stderr()).contains("counters start again from zero"));
    let said = ok(agent.stderr());
    assert!(
        said.contains("pinned by another version of pping")
            && said.contains("counters start again from zero"),
        "{said}"
    );
    wait_until("the old maps are gone", || maps("maps-") == [ours.clone()]);
    ping(topology.client(), Topology::SERVER_IPV4, "-c3 -i0.05");
    wait_until("each sample once", || pings(&topology) == [Some(3.0); 2]);
    // Two links remain: the new programs replaced the old ones in the same links.
    assert_eq!(files(&pins.pins().join("links")), 2);
    kill(agent, Signal::SIGINT);
}

#[test]
fn another_attach_point_replaces_the_pinned_one() {
    let (topology, pins) = (topology(), Bpffs::new());
    let mut sent = 0;
    for ingress in ["tc", "xdp", "auto", "tc"] {
        let agent = watch(topology.router(), Topology::WAN, &options(&pins, &format!("--ingress {ingress}")));
        ping(topology.client(), Topology::SERVER_IPV4, "-c3 -i0.05");
        sent += 3;
        wait_until("each sample once", || pings(&topology) == [Some(f64::from(sent)); 2]);
        let links = pins.pins().join("links").read_dir().unwrap();
        let names: Vec<_> = links.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        kill(agent, Signal::SIGTERM);
    }
}

#[test]
fn an_interface_no_longer_watched_is_detached() {
    let (topology, pins) = (topology(), Bpffs::new());
    let both = format!("-v -i {} -i {} {}", Topology::WAN, Topology::LAN, options(&pins, ""));
    let links = || files(&pins.pins().join("links"));
    let agent = watch_with(pping(topology.router(), &both), Topology::LAN);
    wait_until("both are watched", || links() == 4);
    kill(agent, Signal::SIGKILL);
    let agent = watch(topology.router(), Topology::WAN, &options(&pins, ""));
    wait_until("one is watched", || links() == 2);
    kill(agent, Signal::SIGINT);
}

/// The link of a device that was deleted between runs is useless. pping attaches to the new device.
#[test]
fn an_interface_recreated_meanwhile_is_attached_to() {
    let (host, pins) = (super::host::Host::new(), Bpffs::new());
    let options = options(&pins, "--wait --include-local");
    ok(run(host.namespace.command("ip").args(["link", "set", "lo", "up"])));
    let agent = watch(&host.namespace, "eth0", &options);
    kill(agent, Signal::SIGKILL);
    let ip = |arguments: &str| ok(run(host.namespace.command("ip").args(arguments.split(' '))));
    ip("link delete eth0");
    ip("link add eth0 type veth peer name far0");
    ip("link set eth0 up");
    ip("link set far0 up");
    let agent = watch(&host.namespace, "eth0", &options);
    wait_until("its metrics say so", || is_watched(&host.namespace, "eth0"));
    assert_eq!(files(&pins.pins().join("links")), 2);
    kill(agent, Signal::SIGINT);
}

/// The kernel takes some time to detach a program that is no longer pinned, and pping must not attach a program twice.
#[test]
fn an_interface_renamed_to_match_is_attached_at_once() {
    let (host, pins) = (super::host::Host::new(), Bpffs::new());
    let agent = watch(&host.namespace, "eth0", &options(&pins, "-i wan7 --wait"));
    let ip = |arguments: &str| ok(run(host.namespace.command("ip").args(arguments.split(' '))));
    ip("link set eth0 down");
    for (name, other) in [("eth0", "wan7"), ("wan7", "eth0"), ("eth0", "wan7")] {
        ip(&format!("link set {name} name {other}"));
        wait_until("it is watched", || {
            is_watched(&host.namespace, other) && !is_watched(&host.namespace, name)
        });
    }
    let said = ok(agent.stderr());
    assert!(!said.contains("not watched:"), "{said}");
    kill(agent, Signal::SIGINT);
}

/// This runs as nobody, with only the three capabilities.
#[test]
fn three_capabilities_are_enough_to_pin_and_to_go_on() {
    let (topology, pins, copy) = (topology(), Bpffs::new(), super::copy::Copy::new());
    let (owned, said) = tool("chown", &["65534:65534", pins.path().to_str().unwrap()]);
    assert!(owned, "{said}");
    fs::set_permissions(pins.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let start = || {
        let mut command: Command = topology.router().command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.args([
            "--inh-caps=-all,+bpf,+net_admin,+perfmon",
            "--ambient-caps=-all,+bpf,+net_admin,+perfmon",
        ]);
        command
            .arg(&copy.program)
            .args(["-v", "-i", Topology::WAN])
            .args(options(&pins, "").split(' ').filter(|it| !it.is_empty()));
        watch_with(command, Topology::WAN)
    };
    kill(start(), Signal::SIGKILL);
    ping(topology.client(), Topology::SERVER_IPV4, "-c3 -i0.05");
    let agent = start();
    wait_until("packets from between the runs are counted", || pings(&topology) == [Some(3.0); 2]);
    kill(agent, Signal::SIGINT);
}

#[test]
fn a_summary_has_what_its_own_run_counted() {
    let (topology, pins) = (topology(), Bpffs::new());
    let options = options(&pins, "");
    for sent in [5, 3] {
        let mut agent = watch(topology.router(), Topology::WAN, &options);
        ping(topology.client(), Topology::SERVER_IPV4, &format!("-c{sent} -i0.05"));
        ok(agent.stop(Signal::SIGINT, ENDING));
        let said = ok(agent.stderr());
        let total = said.lines().find(|line| line.contains(" packets, ")).expect(&said);
        assert!(total.contains(&format!(" {sent} samples")), "{said}");
        let row = said.lines().find(|line| line.contains("icmp-echo")).expect(&said);
        assert!(row.contains(&format!(" {sent} samples")), "{said}");
        let packets: u64 = total
            .split(' ')
            .zip(total.split(' ').skip(1))
            .find(|pair| pair.1 == "packets,")
            .unwrap()
            .0
            .parse()
            .unwrap();
        // There are some packets of the kernel too.
        assert!((2 * sent..2 * sent + 12).contains(&packets), "{said}");
        // pping is away, so only the kernel programs count these.
        ping(topology.client(), Topology::SERVER_IPV4, "-c20 -i0.05");
    }
}
