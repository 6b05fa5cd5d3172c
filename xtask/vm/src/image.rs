//! Packs what a guest boots: tools, the modules of its kernel, and the tests.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempPath;

use super::{
    guest_tools::GuestTools,
    kernel::Kernel,
    payload::{Payload, TestClass},
};
const INIT: &str = include_str!("guest/init");

/// Programs that the tests use. Busybox has applets of the same names that can do less, and its own shell prefers them.
/// So those applets are left out, and `sh` is another shell.
const TOOLS: [&str; 7] = ["dash", "ip", "tc", "ping", "bpftool", "nsenter", "tcpdump"];
const NOT_OF_BUSYBOX: [&str; 7] = ["busybox", "sh", "ash", "ip", "tc", "ping", "nsenter"];

const DIRECTORIES: [&str; 11] =
    ["bin", "dev", "modules", "proc", "run", "sys", "tests", "tmp", "root", "var", "etc"];

/// The modules that tests may need. A kernel that lacks one does without it.
const MODULES: [&str; 19] = [
    "veth",
    "dummy",
    "tun",
    "sch_ingress",
    "cls_bpf",
    "act_bpf",
    "act_mirred",
    "cls_matchall",
    "sch_netem",
    "sch_fq",
    "sch_fq_codel",
    "sch_htb",
    "sch_tbf",
    "8021q",
    "pppoe",
    "ip_gre",
    "ipip",
    "vxlan",
    "geneve",
];

/// Packs what is the same for all kernels, and returns the archive. Another run beside this one has its own.
pub(super) fn common(
    payload: &Payload,
    tools: &GuestTools,
    tests: &[(TestClass, Vec<String>)],
    directory: &Path,
) -> Result<TempPath> {
    let root = tempfile::tempdir_in(directory)?;
    let root = root.path();
    for part in DIRECTORIES {
        fs::create_dir(root.join(part))?;
    }
    symlink("/run", root.join("var/run"))?;
    // tcpdump looks up the name of its user.
    fs::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n")?;
    fs::write(root.join("etc/group"), "root:x:0:\n")?;
    fs::write(root.join("init"), INIT)?;
    fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755))?;
    for (class, names) in tests {
        fs::write(root.join("tests").join(class.name()), names.join("\n") + "\n")?;
    }

    let mut programs = vec![tools.program("busybox")?];
    for name in TOOLS {
        programs.push(tools.program(name)?);
    }
    for program in &programs {
        let name = program.file_name().context("a program has a name")?;
        fs::copy(program, root.join("bin").join(name))?;
    }
    symlink("dash", root.join("bin/sh"))?;
    for applet in tools.applets()?.iter().filter(|applet| !NOT_OF_BUSYBOX.contains(&applet.as_str())) {
        if !root.join("bin").join(applet).exists() {
            symlink("busybox", root.join("bin").join(applet))?;
        }
    }
    // Tests look for the program where it was built.
    for (from, to) in [(&payload.tests, Path::new("/tests/vm")), (&payload.pping, payload.pping.as_path())] {
        let to = inside(root, to);
        make_parent(&to)?;
        let strip = format!("{}-strip", payload.arch.gnu());
        pping_lab::run(Command::new(strip).arg("-o").arg(&to).arg(from))?;
        programs.push(from.clone());
    }
    for (path, library) in tools.libraries(&programs)? {
        let to = inside(root, &path);
        make_parent(&to)?;
        fs::copy(&library, to).with_context(|| format!("copying {}", library.display()))?;
    }
    let archive = tempfile::Builder::new().suffix(".cpio").tempfile_in(directory)?.into_temp_path();
    pack(root, &archive)?;
    Ok(archive)
}

/// Adds the modules of a kernel, and returns the path of the image. The kernel accepts archives one after the other.
/// They are not compressed, because the guest would be slow to decompress them.
pub(super) fn image(kernel: &Kernel, common: &Path, directory: &Path, name: &str) -> Result<PathBuf> {
    let root = tempfile::tempdir_in(directory)?;
    let into = root.path().join("modules");
    fs::create_dir(&into)?;
    for (number, module) in modules(kernel)?.iter().enumerate() {
        let name = module.file_name().context("a module has a name")?.to_string_lossy();
        // In the order in which they can be inserted, which the number keeps.
        let to = into.join(format!("{number:03}-{}", name.trim_end_matches(".xz")));
        if name.ends_with(".xz") {
            let xz = Command::new("xz")
                .args(["--decompress", "--stdout"])
                .arg(module)
                .stdout(File::create(to)?)
                .status();
            ensure!(xz.context("starting xz")?.success(), "xz cannot read {}", module.display());
        } else {
            fs::copy(module, to).with_context(|| format!("copying {}", module.display()))?;
        }
    }
    let archive = root.path().join("modules.cpio");
    pack_some(root.path(), "modules", &archive)?;
    let image = directory.join(format!("{name}.cpio"));
    fs::copy(common, &image)?;
    let mut end = fs::OpenOptions::new().append(true).open(&image)?;
    io::copy(&mut File::open(&archive)?, &mut end)?;
    Ok(image)
}

/// Returns the files of the modules that the kernel has, each after those it needs.
fn modules(kernel: &Kernel) -> Result<Vec<PathBuf>> {
    ensure!(kernel.modules().is_dir(), "there is no {}", kernel.modules().display());
    let mut files = Vec::new();
    for module in MODULES {
        let mut modprobe = Command::new("modprobe");
        // Without the options that this machine gives them.
        modprobe.args(["--config", "/dev/null", "--dirname"]).arg(&kernel.directory);
        modprobe.args(["--set-version", &kernel.release, "--show-depends", module]);
        // modprobe fails for a module that the kernel does not have.
        let output = modprobe.stderr(Stdio::null()).output().context("starting modprobe")?;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let file = line.strip_prefix("insmod ").map(|rest| PathBuf::from(rest.trim()));
            files.extend(file.filter(|file| !files.contains(file)));
        }
    }
    Ok(files)
}

/// Returns where a path of the guest is on this machine.
fn inside(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn make_parent(path: &Path) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    Ok(())
}

/// Packs a directory into an archive that a kernel unpacks at its start.
pub(super) fn pack(root: &Path, archive: &Path) -> Result<()> {
    pack_some(root, ".", archive)
}

/// Packs one directory of `root`, or all.
fn pack_some(root: &Path, part: &str, archive: &Path) -> Result<()> {
    let mut find = Command::new("find");
    let mut find =
        find.arg(part).current_dir(root).stdout(Stdio::piped()).spawn().context("starting find")?;
    let names = find.stdout.take().context("find writes to a pipe")?;
    let mut cpio = Command::new("cpio");
    cpio.args(["--create", "--format=newc", "--owner=0:0", "--quiet"]).current_dir(root);
    let status = cpio.stdin(names).stdout(File::create(archive)?).status().context("starting cpio")?;
    ensure!(find.wait()?.success() && status.success(), "cpio could not pack {}", root.display());
    Ok(())
}
