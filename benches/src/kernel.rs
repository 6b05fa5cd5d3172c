//! Measures the cost of a packet in the kernel.
//!
//! Each program is run by `BPF_PROG_TEST_RUN` on one packet many times, and the kernel says how long a run took. An
//! empty program is measured in every round just before and subtracted, because the machine is shared and its speed
//! changes. The report has the median of the rounds, with the lowest and the highest.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use aya::{Ebpf, maps::Array, programs::Program};
use pping::kernel::{
    drain,
    features::{DisabledFeatures, Feature},
    interfaces::Link,
    load::{self, Hook},
    load_options::LoadOptions,
    loaded::Kernel,
};
use pping_bench_programs::{BASELINE, exchange::Exchange};
use pping_common::{
    abi::Emit,
    copies::COPIES_WITHIN,
    group::Grouping,
    limits::{DEFAULT_MAX_GROUPS, DEFAULT_MAX_NETWORKS, LEASE_SECONDS},
    method::{Method, Methods},
    parse::Decap,
    rtt::Rules,
};

use crate::{
    exchanges::{self, Crowd, Sampled},
    frames,
    measure::{Figure, Rounds, run},
    report::Report,
};

/// The loopback interface, which test runs use as their interface.
const LOOPBACK: u32 = 1;

/// The lowest capacity, in flows, when many flows send in turn.
const CROWD: u32 = 1 << 18;

/// Events that are certain to fit the ring between two rounds.
const EVENTS_PER_ROUND: u32 = 16_384;

/// Enough bytes to evict a program and its data from the caches of a core.
const OTHER_MEMORY: usize = 1 << 20;

/// The packets that others are compared with.
const REPEATED: &str = "TCP with timestamps, repeated";
const REPEATED_V6: &str = "the same over IPv6";
const QUIC: &str = "UDP of a QUIC connection, repeated";

/// Measures each program.
pub(crate) fn measure(rounds: Rounds, report: &mut Report) -> Result<()> {
    let repeat = rounds.repeat;
    println!("{} rounds of {repeat} runs; ns per packet over an empty program\n", rounds.rounds);
    println!("{:<52} {:>7} {:>7} {:>7}", "", "median", "min", "max");

    let baseline = baseline()?;
    let at_each_direction =
        |name: &str, [incoming, outgoing]: &[Kernel; 2], packet: &[u8], report: &mut Report| {
            let mut most = 0.0_f64;
            for (direction, kernel) in [("ingress", incoming), ("egress", outgoing), ("xdp", incoming)] {
                let empty = if direction == "xdp" { "baseline_xdp" } else { "baseline_empty" };
                let program = format!("pping_{direction}");
                let figure =
                    rounds.measure((&baseline, empty), (&kernel.programs, &program), packet, || ())?;
                most = most.max(figure.median);
                report.print(&format!("{name} ({direction})"), &figure);
            }
            anyhow::Ok(most)
        };
    let packet = frames::tcp(1, 2, 1400);
    let own = |program| rounds.measure((&baseline, "baseline_empty"), (&baseline, program), &packet, || ());
    let clock = own("baseline_clock")?;
    report.print("reading the clock", &clock);
    let parse = own("baseline_parse")?;
    report.print("parsing, and reading the clock", &parse);

    // The default rate limit, so only the first packet of each kind is recorded.
    let rules = Rules { rate_limit: 100_000_000, ..Rules::UNLIMITED };
    let settings = LoadOptions { rules, ..LoadOptions::DEFAULT };
    // A flow is bound to the hook of its first packet, and is not followed at the other one.
    let kernels = [watching_loopback(&settings)?, watching_loopback(&settings)?];
    for (kernel, hooks) in
        kernels.iter().zip([["pping_ingress", "pping_egress"], ["pping_egress", "pping_ingress"]])
    {
        open_quic(kernel, hooks)?;
        confirm_tcp(kernel, hooks)?;
    }
    let mut most = Vec::new();
    for (name, packet) in [
        (REPEATED, packet.clone()),
        (REPEATED_V6, frames::tcp_v6(1, 2, 1400)),
        ("a pure ACK, repeated", frames::tcp(1, 2, 0)),
        ("TCP without timestamps", frames::tcp_without_timestamps()),
        ("UDP", frames::udp()),
        (QUIC, frames::quic_short(true)),
        ("ICMP echo request, repeated", frames::echo_request()),
    ] {
        most.push((name, at_each_direction(name, &kernels, &packet, report)?));
    }
    let methods = [Method::Dns, Method::QuicSpin, Method::QuicHandshake]
        .into_iter()
        .fold(rules.methods, Methods::without);
    let without_udp = LoadOptions { rules: Rules { methods, ..rules }, ..settings };
    let without_udp = [watching_loopback(&without_udp)?, watching_loopback(&without_udp)?];
    let udp_off = at_each_direction("UDP, its methods off", &without_udp, &frames::udp(), report)?;
    drop(without_udp);
    let most = |of: &str| most.iter().find(|(name, _)| *name == of).map_or(f64::NAN, |(_, most)| *most);

    older_kernels(rounds, &settings, &baseline, &packet, report)?;

    cold(rounds, &baseline, &kernels[0], &packet, report)?;

    with_tunnels(rounds, &settings, &baseline, &packet, report)?;

    let few = Rounds { repeat: repeat.min(EVENTS_PER_ROUND), ..rounds };
    let unlimited = LoadOptions::DEFAULT;
    let aggregated = few.echo(LoadOptions { emit: Emit::NOTHING, ..unlimited }, &packet)?;
    report.print("a new TSval, and its echo: both packets, aggregated", &aggregated);
    let both = few.echo(unlimited, &packet)?;
    report.print("the same, and an event", &both);
    let grouping = Grouping { by_source: 1, v4_len: 24, v6_len: 48, ..Grouping::NONE };
    let grouped = LoadOptions { emit: Emit::NOTHING, grouping, max_groups: DEFAULT_MAX_GROUPS, ..unlimited };
    report.print("aggregated in groups", &few.echo(grouped, &packet)?);
    let networked = LoadOptions { emit: Emit::NOTHING, max_networks: DEFAULT_MAX_NETWORKS, ..unlimited };
    report.print("aggregated, and by the network at the other end", &few.echo(networked, &packet)?);

    println!("\nA packet, its answer and the sample; with no other method on, aggregated:");
    for sampled in exchanges::of_each_method() {
        let name = sampled.method.name();
        report.print(name, &few.exchange(&sampled).with_context(|| format!("measuring {name}"))?);
    }
    println!("\nTwo packets of different flows, nothing to record or match:");
    for half in [1, 512, 1 << 16] {
        report.print(&format!("{} flows in turn", 2 * half), &rounds.crowd(half, 0)?);
    }
    at_mirror_ports(rounds, &settings, &baseline, &packet, report)?;
    let flood = rounds.flood()?;
    report.print("two SYNs of a flood, every method on", &flood);
    println!(
        "So a core takes {:.1} million SYNs of a flood a second, and nothing else.",
        2000.0 / flood.median
    );

    println!(
        "\nTCP with timestamps, repeated, costs at most {:.2} x parsing and reading the clock (the ceiling is 2.5).\n\
         The clock is read for neither that nor UDP; of a new TSval and its echo it is {:.0} %, read twice.",
        most(REPEATED) / parse.median,
        200.0 * clock.median / both.median,
    );
    println!(
        "Over IPv6 it is {:.2} x what it is over IPv4 (1.25 is asked for). UDP of a flow that is followed costs {:.0} ns at most \
         (40), and {udp_off:.0} with its methods off (15).",
        most(REPEATED_V6) / most(REPEATED),
        most(QUIC),
    );
    println!(
        "A sample costs {:.2} x as much as an event as when the kernel aggregates it.",
        both.median / aggregated.median,
    );
    Ok(())
}

/// Measures programs that leave out copies.
fn at_mirror_ports(
    rounds: Rounds,
    settings: &LoadOptions,
    baseline: &Ebpf,
    packet: &[u8],
    report: &mut Report,
) -> Result<()> {
    // So many that no packet comes again soon enough to be a copy.
    let half = 1 << 16;
    let figure = rounds.crowd(half, COPIES_WITHIN)?;
    report.print(&format!("{} flows in turn, with --mirror", 2 * half), &figure);
    let copies = watching_loopback(&LoadOptions { copies_within: COPIES_WITHIN, ..*settings })?;
    let program = (&copies.programs, "pping_ingress");
    let figure = rounds.measure((baseline, "baseline_empty"), program, packet, || ())?;
    report.print("a packet that is a copy, with --mirror", &figure);
    Ok(())
}

/// Measures programs that look into tunnels.
fn with_tunnels(
    rounds: Rounds,
    settings: &LoadOptions,
    baseline: &Ebpf,
    packet: &[u8],
    report: &mut Report,
) -> Result<()> {
    let inside = watching_loopback(&LoadOptions { decap: Decap::ALL, ..*settings })?;
    for (name, packet) in [
        ("TCP with timestamps", packet.to_vec()),
        ("UDP", frames::udp()),
        ("TCP with timestamps in VXLAN", frames::in_vxlan(&frames::tcp(1, 2, 1400))),
    ] {
        let program = (&inside.programs, "pping_ingress");
        let figure = rounds.measure((baseline, "baseline_empty"), program, &packet, || ())?;
        report.print(&format!("{name}, tunnels on (ingress)"), &figure);
    }
    Ok(())
}

/// Measures programs that find none of their data in the caches of a core.
fn cold(rounds: Rounds, baseline: &Ebpf, kernel: &Kernel, packet: &[u8], report: &mut Report) -> Result<()> {
    println!("\nSingle runs, each after a megabyte of other memory was written to:");
    for (name, program, packet) in [
        ("parsing, and reading the clock", (baseline, "baseline_parse"), packet),
        (REPEATED, (&kernel.programs, "pping_ingress"), packet),
        (REPEATED_V6, (&kernel.programs, "pping_ingress"), &frames::tcp_v6(1, 2, 1400)),
        (QUIC, (&kernel.programs, "pping_ingress"), &frames::quic_short(true)),
    ] {
        let figure = rounds.measure_cold((baseline, "baseline_empty"), program, packet, OTHER_MEMORY)?;
        report.print(&format!("{name}, cold (ingress)"), &figure);
    }
    println!();
    Ok(())
}

/// Opens the QUIC connection whose packets are measured. Those of the client pass the first of two hooks.
fn open_quic(kernel: &Kernel, [client, server]: [&str; 2]) -> Result<()> {
    let opened = || kernel.counters.sum(0).entries_made[0];
    let before = opened();
    run((&kernel.programs, client), &frames::quic_initial(true), 1)?;
    run((&kernel.programs, server), &frames::quic_initial(false), 1)?;
    anyhow::ensure!(opened() == before + 1, "the connection was not taken for one of QUIC");
    Ok(())
}

/// Lets both ends of the TCP connections that are measured be seen. The packets of the client pass the first of two hooks.
fn confirm_tcp(kernel: &Kernel, [client, server]: [&str; 2]) -> Result<()> {
    for [packet, answer] in [
        [frames::tcp(1, 2, 1400), frames::tcp_answer(true, 0x10)],
        [frames::tcp_v6(1, 2, 1400), frames::tcp_answer_v6()],
    ] {
        run((&kernel.programs, client), &packet, 1)?;
        run((&kernel.programs, server), &answer, 1)?;
    }
    Ok(())
}

/// Measures what the most common packet costs on kernels that lack a feature.
fn older_kernels(
    rounds: Rounds,
    settings: &LoadOptions,
    baseline: &Ebpf,
    packet: &[u8],
    report: &mut Report,
) -> Result<()> {
    let name = "pping_ingress";
    let without = |features: &[Feature]| {
        watching_loopback(&LoadOptions { without: DisabledFeatures::these(features), ..*settings })
    };
    let measure = |kernel: &Kernel| {
        rounds.measure((baseline, "baseline_empty"), (&kernel.programs, name), packet, || ())
    };
    // The lease begins here, and lasts longer than the rounds.
    let leased = without(&[Feature::Tcx])?;
    let began = Instant::now();
    let figure = measure(&leased)?;
    let lease = Duration::from_secs(LEASE_SECONDS);
    anyhow::ensure!(began.elapsed() < lease, "the lease has run out: fewer rounds or runs");
    report.print("the first of these, as before Linux 6.6", &figure);
    thread::sleep(lease + Duration::from_secs(1));
    report.print("the same, once the lease has run out", &measure(&leased)?);
    report.print("the first of these, as before Linux 5.12", &measure(&without(&[Feature::Fetch])?)?);
    Ok(())
}

impl Rounds {
    /// The cost of a new `TSval` and its echo together, without generating the two packets.
    fn echo(self, settings: LoadOptions, packet: &[u8]) -> Result<Figure> {
        // The program contains all of pping twice, and uses this method only.
        let rules = Rules { methods: Methods::NONE.with(Method::TcpTs), ..settings.rules };
        let mut kernel = exchanging(&LoadOptions { rules, ..settings })?;
        let Kernel { programs, events, series, .. } = &mut kernel;
        let (mut reported, mut samples) = (0, 0);
        let (subtracted, program) = ((&*programs, "baseline_echo"), (&*programs, "bench_echo"));
        let figure = self.measure(subtracted, program, packet, || {
            drain::drain(events, |_| reported += 1);
            // A failure shows below.
            series.rotate();
            series.take(|_, counts| samples += counts.count()).ok();
            series.commit().ok();
        })?;
        let runs = u64::from(self.repeat) * u64::from(self.rounds);
        anyhow::ensure!(
            samples > runs && (settings.emit == Emit::NOTHING) == (reported == 0),
            "{samples} echoes matched and {reported} events came: the figure is of something else"
        );
        Ok(figure)
    }

    /// The cost of a packet and its answer together, without generating them.
    fn exchange(self, sampled: &Sampled) -> Result<Figure> {
        let rules = Rules { methods: Methods::NONE.with(sampled.method), ..Rules::UNLIMITED };
        let mut kernel = exchanging(&LoadOptions { rules, emit: Emit::NOTHING, ..LoadOptions::DEFAULT })?;
        let Kernel { programs, series, .. } = &mut kernel;
        // The longest one: shorter frames end where their headers say.
        let packet = frames::tcp(1, 2, 1400);
        if let Some(before) = &sampled.before {
            set_exchange(programs, before)?;
            Rounds { rounds: 1, repeat: 1 }.measure(
                (programs, "baseline_exchange"),
                (programs, "bench_exchange"),
                &packet,
                || (),
            )?;
        }
        set_exchange(programs, &sampled.exchange)?;
        let rounds = Self { repeat: self.repeat.min(sampled.most / 2 / (self.rounds + 1)), ..self };
        let (subtracted, program) = ((&*programs, "baseline_exchange"), (&*programs, "bench_exchange"));
        let mut samples = 0;
        let figure = rounds.measure(subtracted, program, &packet, || {
            series.rotate();
            series.take(|_, counts| samples += counts.count()).ok();
            series.commit().ok();
        })?;
        let runs = u64::from(rounds.repeat) * u64::from(rounds.rounds);
        anyhow::ensure!(
            samples >= runs,
            "{samples} samples of {runs} exchanges: the figure is of something else"
        );
        Ok(figure)
    }

    /// The cost of two packets of different flows, without generating them, while `2 * half` flows send in turn.
    fn crowd(self, half: u32, copies_within: u64) -> Result<Figure> {
        let rules = Rules { rate_limit: 100_000_000, ..Rules::UNLIMITED };
        let max_flows = CROWD.max(4 * half);
        let mut kernel = exchanging(&LoadOptions {
            rules,
            emit: Emit::NOTHING,
            max_flows,
            copies_within,
            ..LoadOptions::DEFAULT
        })?;
        let programs = &mut kernel.programs;
        let packet = frames::tcp(1, 2, 1400);
        let Crowd { before, packets } = exchanges::crowd(half);
        for before in before {
            set_exchange(programs, &before)?;
            run((programs, "bench_exchange"), &packet, half)?;
        }
        set_exchange(programs, &packets)?;
        let (subtracted, program) = ((&*programs, "baseline_exchange"), (&*programs, "bench_exchange"));
        self.measure(subtracted, program, &packet, || ())
    }

    /// The cost of two SYNs of a flood together, without generating them, when the table is full.
    fn flood(self) -> Result<Figure> {
        let mut kernel = exchanging(&LoadOptions::DEFAULT)?;
        set_exchange(&mut kernel.programs, &exchanges::flood())?;
        let programs = &kernel.programs;
        let (subtracted, program) = ((programs, "baseline_exchange"), (programs, "bench_exchange"));
        self.measure(subtracted, program, &frames::tcp(1, 2, 1400), || ())
    }
}

/// The programs of [`exchanges`], loaded as the agent loads programs.
pub(crate) fn exchanging(settings: &LoadOptions) -> Result<Kernel> {
    let mut kernel = load::open(BASELINE, settings)?;
    load_all(&mut kernel.programs)?;
    register(&mut kernel)?;
    Ok(kernel)
}

/// Sets the packets that the programs generate.
pub(crate) fn set_exchange(programs: &mut Ebpf, exchange: &Exchange) -> Result<()> {
    let map = programs.map_mut("EXCHANGE").context("there is no map of the exchange")?;
    Array::try_from(map)?.set(0, *exchange, 0)?;
    Ok(())
}

/// The programs as the agent loads them, ready for test runs.
pub(crate) fn watching_loopback(settings: &LoadOptions) -> Result<Kernel> {
    let mut kernel = load::load(settings, true)?;
    register(&mut kernel)?;
    Ok(kernel)
}

pub(crate) fn register(kernel: &mut Kernel) -> Result<()> {
    // The kernel gives loopback Ethernet headers.
    Link { name: "lo".into(), ifindex: LOOPBACK, hardware_type: 772, ..Link::default() }.register(kernel)?;
    Ok(())
}

/// The programs to compare with.
pub(crate) fn baseline() -> Result<Ebpf> {
    let mut kernel = load::open(BASELINE, &LoadOptions::DEFAULT)?;
    load_all(&mut kernel.programs)?;
    Ok(kernel.programs)
}

fn load_all(programs: &mut Ebpf) -> Result<()> {
    load::load_packet_programs(programs, &[Hook::Tc])?;
    // None of these calls a stage.
    for (name, program) in programs.programs_mut() {
        if let Program::Xdp(program) = program {
            program.load().with_context(|| format!("loading {name}"))?;
        }
    }
    Ok(())
}
