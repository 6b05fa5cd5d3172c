//! A machine that boots a whole system instead of tests.

use std::{fs, num::NonZeroU8, path::Path, time::Duration};

use anyhow::{Context as _, Result, bail};
use pping_chores::{arch::Arch, environment, setup};
use pping_lab::Interrupt;

use super::{
    boot::{self, End, Machine, Processors},
    image,
    kernel::Kernel,
    line::Line,
};

/// The kernel of Debian 12.
const KERNEL: &str = "6.1";

/// Boots the system in a directory, which has the program `/init` for it, until it switches itself off. Returns what the
/// serial console showed.
///
/// The kernel unpacks the system into memory, together with modules in `/modules` that `/init` may insert in their order.
pub fn boot_system(arch: Arch, root: &Path, patience: Duration) -> Result<String> {
    setup::for_machines(arch)?;
    let directory = environment::target_directory().join("vm");
    let (images, logs) = (directory.join("images"), directory.join("logs"));
    for directory in [&images, &logs] {
        fs::create_dir_all(directory)?;
    }
    let line = Line::named(&[KERNEL.to_owned()])?.pop().context("there is such a line")?;
    let kernel = Kernel::get(line, arch, &directory)?;
    let name = format!("{line}-{}-system", arch.debian());
    let archive = tempfile::Builder::new().suffix(".cpio").tempfile_in(&images)?.into_temp_path();
    image::pack(root, &archive)?;
    let image = image::image(&kernel, &archive, &images, &name)?;
    drop(archive);
    let log = logs.join(format!("{name}.log"));
    let machine = Machine {
        kernel: &kernel,
        image: &image,
        parameters: "systemd.show_status=0",
        processors: &Processors { count: NonZeroU8::MIN, model: None },
        counts_time: false,
        log: &log,
        patience,
    };
    let end = machine.run(&Interrupt::catch()?, &mut |_| {})?;
    fs::remove_file(&image)?;
    match end {
        End::Off => boot::console(&log),
        End::Interrupted => bail!("interrupted"),
        End::Failed(reason) => bail!("{reason}; the console is in {}", log.display()),
    }
}
