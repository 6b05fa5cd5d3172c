//! What a packet costs in the kernel.
//!
//! Each program is run by `BPF_PROG_TEST_RUN` on one packet many times over, and the kernel says how long a
//! run took. An empty program is measured in every round just before and is subtracted, since the machine
//! is shared and its speed changes; of the rounds the median is reported, and the lowest and highest.

use anyhow::{Context as _, Result};
use aya::{
    Ebpf, EbpfLoader,
    maps::{Array, RingBuf},
    programs::Program,
};
use pping::source::{
    drain,
    interfaces::Link,
    load::{self, Kernel, Settings},
};
use pping_common::{
    abi::{Interface, place},
    parse::{Decap, LinkType},
    rtt::Rules,
};

use crate::{
    frames,
    measure::{Figure, Rounds},
};

static BASELINE: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/pping-baseline"));

/// The loopback interface, by which test runs pretend to come in.
const LOOPBACK: u32 = 1;

/// Events that surely fit the ring between two rounds.
const EVENTS_PER_ROUND: u32 = 16_384;

/// Measures each program.
pub(crate) fn measure(rounds: Rounds) -> Result<()> {
    let repeat = rounds.repeat;
    println!("{} rounds of {repeat} runs; ns per packet over an empty program\n", rounds.rounds);
    println!("{:<52} {:>7} {:>7} {:>7}", "", "median", "min", "max");

    let mut baseline = baseline()?;
    let empty = |hook: &str| if hook == "xdp" { "baseline_xdp" } else { "baseline_empty" };
    let packet = frames::tcp(1, 2, 1400);
    let own = |program| rounds.measure((&baseline, "baseline_empty"), (&baseline, program), &packet, || ());
    let clock = own("baseline_clock")?;
    print("reading the clock", &clock);
    let parse = own("baseline_parse")?;
    print("parsing, and reading the clock", &parse);

    // The default rate limit, so nothing but the first of a kind is recorded.
    let rules = Rules { rate_limit: 100_000_000, ..Rules::UNLIMITED };
    let settings = Settings { rules, ..Settings::DEFAULT };
    let kernel = watching_loopback(&settings)?;
    let mut repeated = 0.0_f64;
    for (name, packet) in [
        ("TCP with timestamps, repeated", packet.clone()),
        ("a pure ACK, repeated", frames::tcp(1, 2, 0)),
        ("TCP without timestamps", frames::tcp_without_timestamps()),
        ("UDP", frames::udp()),
        ("ICMP echo request, repeated", frames::echo_request()),
    ] {
        for hook in ["ingress", "egress", "xdp"] {
            let program = format!("pping_{hook}");
            let figure =
                rounds.measure((&baseline, empty(hook)), (&kernel.programs, &program), &packet, || ())?;
            if name.starts_with("TCP with timestamps") {
                repeated = repeated.max(figure.median);
            }
            print(&format!("{name} ({hook})"), &figure);
        }
    }

    let inside = watching_loopback(&Settings { decap: Decap::ALL, ..settings })?;
    for (name, packet) in [
        ("TCP with timestamps", packet.clone()),
        ("UDP", frames::udp()),
        ("TCP with timestamps in VXLAN", frames::in_vxlan(&frames::tcp(1, 2, 1400))),
    ] {
        let program = (&inside.programs, "pping_ingress");
        let figure = rounds.measure((&baseline, "baseline_empty"), program, &packet, || ())?;
        print(&format!("{name}, tunnels on (ingress)"), &figure);
    }

    let mut events = RingBuf::try_from(baseline.take_map("EVENTS").context("no map EVENTS")?)?;
    let few = Rounds { repeat: repeat.min(EVENTS_PER_ROUND), ..rounds };
    let (program, subtracted) = ((&baseline, "bench_echo"), (&baseline, "baseline_echo"));
    let mut reported = 0_u64;
    let both = few.measure(subtracted, program, &packet, || {
        drain::drain(&mut events, |_| reported += 1);
    })?;
    print("a new TSval, and its echo: both packets, 1 event", &both);
    anyhow::ensure!(
        reported > u64::from(few.repeat) * u64::from(few.rounds),
        "only {reported} echoes matched: the figure above is of something else"
    );

    println!(
        "\nTCP with timestamps, repeated, costs at most {:.2} x parsing and reading the clock (the ceiling is 2.5).\n\
         The clock is read for neither that nor UDP; of a new TSval and its echo it is {:.0} %, read twice.",
        repeated / parse.median,
        200.0 * clock.median / both.median,
    );
    Ok(())
}

/// The programs as the agent loads them, ready for test runs.
fn watching_loopback(settings: &Settings) -> Result<Kernel> {
    let mut kernel = load::load(settings, true)?;
    // To the kernel, loopback has Ethernet headers.
    Link { name: "lo".into(), ifindex: LOOPBACK, hardware_type: 772 }.register(&mut kernel)?;
    Ok(kernel)
}

/// The programs to measure against, and the one that makes packets as it goes, with no rate limit.
fn baseline() -> Result<Ebpf> {
    let mut programs = EbpfLoader::new()
        .override_global("RULES", &Rules::UNLIMITED, true)
        .override_global("AYA_LOG_LEVEL", &0_u8, true)
        .load(BASELINE)
        .context("loading the baseline programs")?;
    for (name, program) in programs.programs_mut() {
        match program {
            Program::SchedClassifier(program) => program.load(),
            Program::Xdp(program) => program.load(),
            _ => continue,
        }
        .with_context(|| format!("loading {name}"))?;
    }
    let mut interfaces: Array<_, Interface> =
        Array::try_from(programs.map_mut("INTERFACES").context("no map INTERFACES")?)?;
    let loopback = Interface { ifindex: LOOPBACK, link_type: LinkType::Ethernet as u32 };
    interfaces.set(place(LOOPBACK, 0), loopback, 0)?;
    Ok(programs)
}

fn print(name: &str, figure: &Figure) {
    println!("{name:<52} {:>7.1} {:>7.1} {:>7.1}", figure.median, figure.min, figure.max);
}
