//! `pping top` measures by itself: on interfaces, or in a capture that it plays.

use std::{fs, path::Path};

use pping_lab::{Capture, Topology};

use super::{Terminal, top};
use crate::agent::monitor::{PPING, attachments, endless_ping, ok, ping, topology, wait_until};

const PINGS: usize = 30;

/// Captures some seconds of pings, first over IPv4 and then over IPv6.
fn capture(topology: &Topology, file: &Path) {
    let capture = ok(Capture::start(topology.router(), Topology::WAN, file));
    ping(topology.client(), Topology::SERVER_IPV4, &format!("-c{PINGS} -i0.1"));
    ping(topology.client(), Topology::SERVER_IPV6, &format!("-c{PINGS} -i0.1"));
    ok(capture.finish());
}

/// Returns the words in a group's row of a screen in text form.
fn row<'a>(said: &'a str, group: &str) -> Vec<&'a str> {
    let row = said.lines().find(|line| line.starts_with("icmp-echo") && line.contains(group));
    row.unwrap_or_else(|| panic!("no {group} in {said}")).split_whitespace().collect()
}

/// Returns the sample count in a group's row.
fn samples<'a>(said: &'a str, group: &str) -> &'a str {
    row(said, group)[4]
}

#[test]
fn top_reads_a_capture_for_once_and_plays_it_otherwise() {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pings.pcap");
    capture(&topology, &file);
    let file = file.display();

    let (code, said) = top(router, &format!("-r {file} --once --rate-limit 0"));
    assert_eq!(code, Some(0), "{said}");
    for group in ["10.11.2.0/24", "fd00:11:2::/48"] {
        assert_eq!(samples(&said, group), PINGS.to_string(), "{said}");
    }
    let (code, said) = top(router, &format!("-r {file} --once --rate-limit 0 --group-by /32,/128"));
    assert!(code == Some(0) && samples(&said, "10.11.2.2/32") == PINGS.to_string(), "{code:?} {said}");

    let (groups, networks) = (directory.path().join("groups.csv"), directory.path().join("networks.csv"));
    fs::write(&groups, "prefix,group,site\n10.11.2.0/24,one,lund\nfd00:11:2::/48,two,lund\n").unwrap();
    fs::write(&networks, "prefix,asn\n10.11.2.0/24,64500\n").unwrap();
    let (groups, networks) = (groups.display(), networks.display());
    let arguments = format!("-r {file} --once --rate-limit 0 --groups {groups} --roll-up site --by");
    let (code, said) = top(router, &format!("{arguments} site"));
    assert!(code == Some(0) && said.contains("1 of 1 site in"), "{code:?} {said}");
    assert!(said.contains(" site ") && said.contains("members  active     bad"), "{said}");
    let lund = row(&said, "lund");
    assert_eq!(lund[4], (2 * PINGS).to_string(), "{said}");
    assert_eq!(lund[lund.len() - 3..][..2], ["2", "2"], "members, and those that are active: {said}");
    let (code, said) = top(router, &format!("{arguments} ap"));
    assert!(
        code == Some(2) && said.contains("--by `ap`: there is no such level; give one of site"),
        "{said}"
    );
    let by = format!("-r {file} --once --rate-limit 0 --by network");
    let (code, said) = top(router, &by);
    assert!(code == Some(2) && said.contains("start pping with --roll-up or --remote-groups"), "{said}");
    let (code, said) = top(router, &format!("{by} --remote-groups {networks}"));
    assert!(code == Some(0) && said.contains(" networks in the last minute"), "{code:?} {said}");
    assert_eq!(samples(&said, "AS64500"), PINGS.to_string(), "{said}");

    let profiles = directory.path().join("quality.toml");
    let easy = "latency = [{ percentile = 90, optimal = \"10s\", unacceptable = \"20s\" }]";
    fs::write(&profiles, format!("[[profile]]\nname = \"easy\"\nsamples = 5\n{easy}\n")).unwrap();
    let arguments = format!("-r {file} --once --rate-limit 0 --quality {}", profiles.display());
    let (code, said) = top(router, &arguments);
    assert!(code == Some(0) && row(&said, "10.11.2.0/24").last() == Some(&"100"), "{code:?} {said}");

    let terminal = Terminal::new(router, (120, 20));
    // The playback is slow enough to follow even on a busy machine.
    terminal.keys(&[&format!("{PPING} top -r {file} --rate-limit 0 --worst-min-samples 7"), "Enter"]);
    terminal.wait_for("pings.pcap  00:00:0");
    terminal.keys(&["Space"]);
    terminal.wait_for("paused");
    terminal.keys(&[">", ">"]);
    terminal.wait_for("4x");
    terminal.keys(&["<", "<", "<"]);
    terminal.wait_for("1/2x");
    assert!(terminal.screen().contains("paused"));
    terminal.keys(&["2"]);
    let screen = terminal.wait_for("of those with 7 packets each way");
    assert!(screen.contains("flows of a capture are ranked by --worst"), "{screen}");
    terminal.keys(&["1"]);
    terminal.wait_without("of those with");
    // Jumps to the end, then back to the beginning.
    terminal.keys(&["Right", "Space"]);
    let screen = terminal.wait_for("the end");
    assert!(screen.contains("[==========]"), "{screen}");
    terminal.wait_for("fd00:11:2::/48");
    terminal.keys(&["Left"]);
    terminal.wait_without("the end");
    terminal.wait_without("fd00:11:2::/48");
    terminal.wait_for("10.11.2.0/24");
    terminal.keys(&["q"]);
    terminal.wait_for("ready-");
}

#[test]
fn top_says_what_is_wrong_with_a_capture() {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("notes.txt");
    fs::write(&text, "nothing of use").unwrap();
    for (arguments, code, reason) in [
        (format!("-r {}/none.pcap --once", directory.path().display()), 2, "none.pcap: No such file"),
        (format!("-r {} --once", text.display()), 1, "not a capture file"),
        (format!("-r {0} --quality {0} --once", text.display()), 2, "notes.txt:1:"),
        (format!("-r {} --listen 127.0.0.1:1", text.display()), 2, "--listen: pping top only shows"),
        ("--group-by /24,/48".to_owned(), 2, "--group-by: use this with -i or -r"),
        ("-i nowhere0 --once".to_owned(), 2, "no such interface"),
        (format!("-i {} --connect http://127.0.0.1", Topology::WAN), 2, "cannot be used with"),
        (format!("-i {}", Topology::WAN), 2, "needs a terminal"),
    ] {
        let (ended, said) = top(router, &arguments);
        assert!(ended == Some(code) && said.contains(reason), "{arguments}: {ended:?} {said}");
    }
}

#[test]
fn top_watches_an_interface_by_itself_and_leaves_nothing_behind() {
    let topology = topology();
    let router = topology.router();
    let _pings = [
        endless_ping(topology.client(), Topology::SERVER_IPV4),
        endless_ping(topology.client(), Topology::SERVER_IPV6),
    ];
    let (code, said) = top(router, &format!("-i {} --once --interval 3s --rate-limit 0", Topology::WAN));
    assert!(code == Some(0) && said.starts_with(&format!("{}: in ", Topology::WAN)), "{code:?} {said}");
    assert_ne!(samples(&said, "10.11.2.0/24"), "0", "{said}");

    let terminal = Terminal::new(router, (120, 20));
    let before = attachments(router, Topology::WAN);
    // XDP, because every version of bpftool shows it.
    terminal.keys(&[&format!("{PPING} top -i {} --ingress xdp", Topology::WAN), "Enter"]);
    let screen = terminal.wait_for("fd00:11:2::/48");
    assert!(screen.contains("icmp-echo ") && screen.contains(" beyond "), "{screen}");
    wait_until("round trips of ten milliseconds", || {
        terminal
            .screen()
            .lines()
            .any(|it| it.contains("beyond") && it.contains("10.11.2") && it.contains("10."))
    });
    let during = attachments(router, Topology::WAN);
    assert!(during.contains("prog/xdp"), "{during}");
    terminal.keys(&["q"]);
    terminal.wait_for("ready-");
    wait_until("nothing is attached", || attachments(router, Topology::WAN) == before);
    // pping prints nothing after it ends.
    let screen = terminal.screen();
    assert!(!screen.contains("pping:") && !screen.contains("WARN"), "{screen}");
}
