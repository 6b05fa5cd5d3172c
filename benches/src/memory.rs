//! Measures the memory of flows in the kernel, the memory of the agent, and how long it takes to start.
//!
//! The memory of maps is what the kernel charges for them (`memlock` in `/proc/PID/fdinfo`), summed over all maps of a
//! running pping. The agent's own memory is its resident set at rest, which includes mapped pages of maps and of its
//! program file. The agent reports when it watches, and from then on counts packets; some time later it reports that it
//! measures. For comparison, the same program is run to print its version.

use std::{
    collections::{BTreeMap, HashMap},
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use aya::maps::loaded_maps;
use pping_common::limits::DEFAULT_MAX_FLOWS;
use pping_lab::{Namespace, Process, Signal};

use crate::{
    measure::Figure,
    report::Report,
    watcher::{self, Started},
};

/// The capacity in flows of each address family.
const MAX_FLOWS: [u32; 2] = [DEFAULT_MAX_FLOWS, 1_000_000];

/// How often pping is started.
const STARTS: usize = 9;

/// How long pping rests before its memory is read: the first sweep is over by then.
const REST: Duration = Duration::from_millis(1_500);

const INTERFACE: &str = "lo";

/// Bytes in a MiB, and in a MB.
const MIB: f64 = (1 << 20) as f64;
const MB: f64 = 1e6;

/// Measures the memory of maps, then that of the agent, and its start.
pub(crate) fn measure(report: &mut Report) -> Result<()> {
    let host = Namespace::new("bench")?;
    println!("\nmemory of maps in the kernel\n");
    for max_flows in MAX_FLOWS {
        let process = watch(&host, &["--max-flows", &max_flows.to_string()])?.process;
        let maps = maps(process.id())?;
        stop(process)?;
        let all = maps.values().sum::<u64>() as f64 / MIB;
        let mut of_flows = Vec::new();
        for family in ["V4", "V6"] {
            let bytes: u64 = maps
                .iter()
                .filter(|(name, _)| name.ends_with(family) && !name.starts_with("QUERIES"))
                .map(|(_, bytes)| bytes)
                .sum();
            let each = bytes as f64 / f64::from(max_flows);
            of_flows.push(bytes as f64 / MIB);
            report.print_one(
                &format!("{max_flows} flows: bytes of each, IP{}", family.to_lowercase()),
                "bytes",
                each,
            )?;
        }
        report.print_one(&format!("{max_flows} flows of each family: all maps, MiB"), "MiB", all)?;
        if max_flows == 1_000_000 {
            println!(
                "\nA million flows of one family take {:.0} MiB (256 MiB are asked for).",
                of_flows.first().context("there are no maps of flows")?
            );
        }
    }
    agent(&host, report)
}

/// Measures the start of the agent, and its memory.
fn agent(host: &Namespace, report: &mut Report) -> Result<()> {
    println!("\nthe agent at its default settings, started {STARTS} times\n");
    println!("{:<52} {:>7} {:>7} {:>7}", "", "median", "min", "max");
    let (mut versions, mut counts, mut measures) = (Vec::new(), Vec::new(), Vec::new());
    let mut memory: [Vec<f64>; 4] = Default::default();
    for _ in 0..STARTS {
        let mut version = host.command(watcher::pping()?);
        version.arg("--version");
        let began = Instant::now();
        pping_lab::run(&mut version)?;
        versions.push(began.elapsed().as_secs_f64() * 1e3);
        let started = watch(host, &[])?;
        counts.push(started.counts.as_secs_f64() * 1e3);
        measures.push(started.measures.as_secs_f64() * 1e3);
        thread::sleep(REST);
        let resident = Resident::of(started.process.id())?;
        for (of, bytes) in memory.iter_mut().zip(resident.parts()) {
            of.push(bytes as f64 / MB);
        }
        stop(started.process)?;
    }
    report.print_as("a process that tells its version, ms", "ms", &Figure::of(versions)?);
    let (counts, measures) = (Figure::of(counts)?, Figure::of(measures)?);
    report.print_as("from its start until it watches, ms", "ms", &counts);
    report.print_as("from its start until it measures, ms", "ms", &measures);
    let mut all = None;
    for (name, of) in ["all", "its own", "maps of the kernel", "its program file"].into_iter().zip(memory) {
        let figure = Figure::of(of)?;
        report.print_as(&format!("resident memory, {name}, MB"), "MB", &figure);
        all = all.or(Some(figure.median));
    }
    println!(
        "\nIt counts packets after {:.0} ms (150 ms are asked for), measures after {:.0} ms, and takes {:.1} MB (20 MB).",
        counts.median,
        measures.median,
        all.unwrap_or_default()
    );
    Ok(())
}

/// Starts pping, and waits until it measures.
fn watch(host: &Namespace, arguments: &[&str]) -> Result<Started> {
    let mut command = host.command(watcher::pping()?);
    command.args(["-v", "-i", INTERFACE, "--format", "none"]).args(arguments);
    watcher::start(command, INTERFACE)
}

fn stop(mut process: Process) -> Result<()> {
    Ok(process.stop(Signal::SIGINT, Duration::from_secs(10))?)
}

/// The memory of a process's maps, in bytes, by name.
fn maps(process: u32) -> Result<HashMap<String, u64>> {
    let names: HashMap<u64, String> = loaded_maps()
        .flatten()
        .map(|map| (u64::from(map.id()), map.name_as_str().unwrap_or_default().to_owned()))
        .collect();
    // A map can have several descriptors.
    let mut bytes = BTreeMap::new();
    for descriptor in fs::read_dir(format!("/proc/{process}/fdinfo"))? {
        let Ok(text) = fs::read_to_string(descriptor?.path()) else { continue };
        if let (Some(id), Some(memory)) = (number(&text, "map_id:"), number(&text, "memlock:")) {
            bytes.insert(id, memory);
        }
    }
    let mut maps = HashMap::new();
    for (id, bytes) in bytes {
        *maps.entry(names.get(&id).cloned().unwrap_or_default()).or_default() += bytes;
    }
    Ok(maps)
}

/// The resident set of a process, in bytes.
pub(crate) struct Resident {
    all: u64,
    pub(crate) own: u64,
    maps: u64,
}

impl Resident {
    pub(crate) fn of(process: u32) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status"))?;
        let (mut maps, mut is_map) = (0, false);
        for line in fs::read_to_string(format!("/proc/{process}/smaps"))?.lines() {
            // A mapping begins with a line that has an address first; the others begin with a word and a colon.
            if line.split(' ').next().is_some_and(|word| !word.ends_with(':')) {
                is_map = line.ends_with("bpf-map");
            } else if is_map {
                maps += number(line, "Rss:").unwrap_or(0);
            }
        }
        Ok(Self {
            all: kib(&status, "VmRSS:")? << 10,
            own: kib(&status, "RssAnon:")? << 10,
            maps: maps << 10,
        })
    }

    /// Total, private, maps, and the rest.
    fn parts(&self) -> [u64; 4] {
        let Self { all, own, maps } = *self;
        [all, own, maps, all.saturating_sub(own + maps)]
    }
}

/// What the resident set of this process grows by, at most, from a moment on.
pub(crate) struct Growth {
    before: u64,
}

impl Growth {
    pub(crate) fn begin() -> Result<Self> {
        // What was freed before is not used again unnoticed.
        // SAFETY: it touches free memory only.
        #[cfg(target_env = "gnu")]
        unsafe {
            libc::malloc_trim(0);
        }
        // The kernel then knows the highest since now (proc(5), `clear_refs`).
        fs::write("/proc/self/clear_refs", "5")?;
        Ok(Self { before: kib(&fs::read_to_string("/proc/self/status")?, "VmRSS:")? })
    }

    /// The highest so far, in MiB.
    pub(crate) fn highest(&self) -> Result<f64> {
        let highest = kib(&fs::read_to_string("/proc/self/status")?, "VmHWM:")?;
        Ok(highest.saturating_sub(self.before) as f64 / 1024.0)
    }
}

/// A number of KiB in `/proc/PID/status`.
fn kib(status: &str, name: &str) -> Result<u64> {
    number(status, name).with_context(|| format!("no {name} in /proc/PID/status"))
}

/// The number behind a name at the beginning of a line.
fn number(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
