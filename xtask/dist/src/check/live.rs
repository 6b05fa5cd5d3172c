//! Checks that a package measures on another architecture, in an emulated machine with a kernel and systemd of its own.

use std::{os::unix::fs::symlink, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use pping_chores::arch::Arch;

use super::{emulation::Emulation, root::Root};

/// The first program of the machine.
const INIT: &str = include_str!("guest/init");

/// What its systemd runs, and the unit.
const CHECK: &str = include_str!("guest/check");
const UNIT: &str = include_str!("guest/check.service");

/// The last line that the check prints.
const DONE: &str = "The package measures.";

/// The pings of the check, and how long the other host holds each back, in milliseconds.
const PINGS: f64 = 20.0;
const DELAY: f64 = 20.0;

/// How long the machine may take, on a busy host.
const PATIENCE: Duration = Duration::from_mins(20);

/// Boots the system with the kernel of its release, installs the package, and has the service measure pings. Compares
/// its round-trip times with those of ping.
pub(super) fn measures(arch: Arch, package: &Path) -> Result<()> {
    let root = {
        let _emulation = Emulation::of(arch)?;
        Root::for_machine(arch)?
    };
    root.copy_in(package, "/srv/pping.deb")?;
    root.write("/init", INIT, 0o755)?;
    root.write("/srv/check", CHECK, 0o755)?;
    let unit = "/etc/systemd/system/check.service";
    root.write(unit, UNIT, 0o644)?;
    symlink(unit, root.path("/etc/systemd/system/multi-user.target.wants/check.service"))?;
    let console = pping_vm::boot_system(arch, &root.path(""), PATIENCE)?;
    agrees(&console).with_context(|| format!("the console of the machine shows\n{console}"))
}

/// Compares what pping and ping say on the console.
fn agrees(console: &str) -> Result<()> {
    ensure!(console.lines().any(|line| line.trim() == DONE), "the check ended early");
    let sum = |family: &str| {
        let values = console.lines().filter(|line| line.starts_with(family)).map(|line| {
            let value = line.rsplit_once(' ').context("no value")?.1;
            value.trim().parse::<f64>().with_context(|| format!("{line}: not a number"))
        });
        values.sum::<Result<f64>>()
    };
    let (count, seconds) = (sum("pping_rtt_seconds_count{")?, sum("pping_rtt_seconds_sum{")?);
    let rtt = seconds * 1000.0 / count;
    // `rtt min/avg/max/mdev = 20.184/20.501/21.920/0.382 ms`
    let of_ping = console.lines().find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = "));
    let average = of_ping.and_then(|rest| rest.split('/').nth(1)).context("ping shows no times")?;
    let average: f64 = average.parse().with_context(|| format!("{average} is no time"))?;
    ensure!(count == PINGS, "pping measured {count} of {PINGS} pings");
    // ping itself waits a little longer than its packets, which is all that pping measures.
    ensure!(DELAY <= rtt && rtt <= average, "pping measured {rtt} ms, and ping {average} ms, of {DELAY} ms");
    eprintln!("an emulated machine measured {count} pings of {rtt:.3} ms, which ping saw as {average} ms");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_have_to_be_those_of_ping() {
        let console = |count: u32, sum: f64| {
            format!(
                "rtt min/avg/max/mdev = 20.184/20.500/21.920/0.382 ms\n\
                 pping_rtt_seconds_count{{interface=\"eth0\"}} {count}\n\
                 pping_rtt_seconds_sum{{interface=\"eth0\"}} {sum}\n{DONE}\n"
            )
        };
        agrees(&console(20, 0.405)).unwrap();
        for (count, sum) in [(19, 0.385), (20, 0.399), (20, 0.411)] {
            agrees(&console(count, sum)).unwrap_err();
        }
        agrees(console(20, 0.405).trim_end_matches("The package measures.\n")).unwrap_err();
    }
}
