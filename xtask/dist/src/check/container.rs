//! Checks the container image as engines use it: skopeo copies each architecture out of it, and runc runs the copies.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{self, Command},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use pping_chores::{arch::Arch, environment};
use pping_lab::{
    Namespace, Process,
    veth::{self, End, Offloads},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::emulation::Emulation;
use crate::{containerfile::Containerfile, image::sha256};

/// A small capture, and the number of its samples.
const CAPTURE: (&str, usize) = ("pping/tests/golden/connections.pcap", 10);

/// What `deploy/container/README.md` adds to a container that watches interfaces.
const CAPABILITIES: [&str; 3] = ["CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"];

/// The address that the host pings, whose interface the container watches.
const PEER: [u8; 4] = [192, 0, 2, 2];

/// How many pings the container measures.
const PINGS: usize = 5;

/// How long to wait for a container on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Copies each architecture out of the image, has it read a capture and, where the kernel can run its programs, measure
/// an interface.
pub(super) fn check(image: &Path) -> Result<()> {
    let host = Arch::of_host()?;
    let mut records = Vec::new();
    for arch in Arch::ALL {
        let _emulation = Emulation::of(arch)?;
        let container = Container::copy(image, arch)?;
        let read = container.read_capture()?;
        let samples = read.lines().filter(|line| line.contains("\"rtt\"")).count();
        ensure!(samples == CAPTURE.1, "{samples} samples of the capture on {}:\n{read}", arch.name());
        records.push(read);
        if arch == host {
            container.watch_interface()?;
        }
    }
    ensure!(records.iter().all(|it| *it == records[0]), "architectures read a capture differently");
    Ok(())
}

/// One architecture's image, unpacked for runc.
struct Container {
    arch: Arch,
    directory: TempDir,
}

impl Container {
    /// Copies the image of an architecture as an engine does that runs on it.
    fn copy(image: &Path, arch: Arch) -> Result<Self> {
        let container = Self { arch, directory: tempfile::tempdir()? };
        let source = format!("oci-archive:{}", image.display());
        let copied = container.path("copied");
        let target = format!("dir:{}", copied.display());
        container.skopeo(&["copy", "--quiet", &source, &target])?;
        for entry in fs::read_dir(&copied)? {
            let entry = entry?;
            let (name, sum) = (entry.file_name().to_string_lossy().into_owned(), sha256(&entry.path())?);
            // skopeo names the manifest and the version of its format.
            ensure!(["manifest.json", "version", &sum].contains(&name.as_str()), "{name} has checksum {sum}");
        }
        let config: Value =
            serde_json::from_str(&container.skopeo(&["inspect", "--config", "--raw", &target])?)?;
        ensure!(
            config["architecture"] == arch.debian(),
            "the image for {} is another: {config}",
            arch.debian()
        );
        let said = Containerfile::of_repository()?;
        let wanted = json!({"User": said.user, "Entrypoint": said.entrypoint, "Labels": said.labels});
        ensure!(config["config"] == wanted, "the image says {config}, the Containerfile {wanted}");

        // umoci reads layouts of one architecture only.
        let layout = format!("oci:{}:pping", container.path("layout").display());
        container.skopeo(&["copy", "--quiet", &target, &layout])?;
        let mut umoci = Command::new("umoci");
        umoci
            .arg("unpack")
            .arg("--image")
            .arg(layout.trim_start_matches("oci:"))
            .arg(container.path("bundle"));
        pping_lab::run(&mut umoci)?;
        Ok(container)
    }

    /// The container's name, which runc gives a cgroup too.
    fn name(&self) -> String {
        format!("pping-{}-{}", self.arch.debian(), process::id())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn skopeo(&self, arguments: &[&str]) -> Result<String> {
        let mut skopeo = Command::new("skopeo");
        // No policy says whose signatures to trust, and a file has none.
        skopeo.args(["--insecure-policy", "--override-os", "linux", "--override-arch", self.arch.debian()]);
        Ok(pping_lab::run(skopeo.args(arguments))?)
    }

    /// Returns the records of the capture, read from standard input by the image's own user.
    fn read_capture(&self) -> Result<String> {
        let mut runc = self.runc(&["-r", "-"], |_| ())?;
        let capture = environment::repository().join(CAPTURE.0);
        Ok(pping_lab::run(runc.stdin(File::open(&capture)?))?)
    }

    /// Measures pings of a host, in whose network the container runs.
    fn watch_interface(&self) -> Result<()> {
        let (host, peer) = (Namespace::new("container")?, Namespace::new("peer")?);
        let ends = [End::new(&host, "eth0"), End::new(&peer, "eth0")];
        veth::connect(ends[0], ends[1], Offloads::On)?;
        ends[0].add_address([192, 0, 2, 1], 24)?;
        ends[1].add_address(PEER, 24)?;
        let runc = self.runc(&["-v", "-i", "eth0", "--rate-limit", "0"], |config| {
            config["process"]["user"] = json!({"uid": 0, "gid": 0});
            for kind in ["bounding", "permitted", "effective"] {
                config["process"]["capabilities"][kind] = json!(CAPABILITIES);
            }
            // Engines mount these of a host whose network they share.
            let mounts = config["mounts"].as_array_mut().into_iter().flatten();
            for mount in mounts.filter(|mount| mount["destination"] == "/sys") {
                *mount = json!({"destination": "/sys", "source": "/sys", "type": "bind",
                    "options": ["rbind", "ro", "nosuid", "nodev", "noexec"]});
            }
            let namespaces = config["linux"]["namespaces"].as_array_mut().into_iter().flatten();
            for namespace in namespaces.filter(|it| it["type"] == "network") {
                namespace["path"] = json!(host.path());
            }
        })?;
        let mut process = Process::spawn(runc)?;
        process.wait_for_output("measuring round-trip times", PATIENCE)?;
        let count = PINGS.to_string();
        let address = PEER.map(|it| it.to_string()).join(".");
        pping_lab::run(host.command("ping").args(["-c", &count, "-i", "0.05", &address]))?;
        pping_lab::run(&mut self.control(&["kill", &self.name(), "TERM"]))?;
        let status = process.wait_timeout(PATIENCE)?;
        let (said, records) = (process.stderr()?, process.stdout()?);
        ensure!(status.success(), "the container ended with {status}: {said}");
        let samples = records.lines().filter(|line| line.contains("\"method\":\"icmp-echo\"")).count();
        ensure!(samples == PINGS, "{samples} samples of {PINGS} pings:\n{records}{said}");
        Ok(())
    }

    /// Returns runc for the unpacked image with these arguments, and a configuration that `change` has changed.
    fn runc(&self, arguments: &[&str], change: impl FnOnce(&mut Value)) -> Result<Command> {
        let file = self.path("bundle/config.json");
        let original = self.path("config.json");
        if !original.exists() {
            fs::copy(&file, &original)?;
        }
        let mut config: Value = serde_json::from_str(&fs::read_to_string(original)?)?;
        config["process"]["terminal"] = json!(false);
        let command = config["process"]["args"].as_array_mut().context("umoci writes a command")?;
        command.extend(arguments.iter().map(|it| json!(it)));
        config["root"]["readonly"] = json!(true);
        for kind in ["bounding", "permitted", "effective", "inheritable", "ambient"] {
            config["process"]["capabilities"][kind] = json!([]);
        }
        // QEMU makes system calls of its own.
        if self.arch == Arch::of_host()? {
            let list = environment::repository().join("deploy/container/seccomp.json");
            config["linux"]["seccomp"] = serde_json::from_str(&fs::read_to_string(list)?)?;
        }
        change(&mut config);
        fs::write(&file, config.to_string())?;
        let mut runc = self.control(&["run", "--bundle"]);
        runc.arg(self.path("bundle")).arg(self.name());
        Ok(runc)
    }

    fn control(&self, arguments: &[&str]) -> Command {
        let mut runc = Command::new("runc");
        runc.arg("--root").arg(self.path("state")).args(arguments);
        runc
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // This fails if the container has ended by itself.
        pping_chores::command::succeeds(&mut self.control(&["delete", "--force", &self.name()]));
    }
}
