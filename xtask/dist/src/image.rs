//! The container image: an OCI layout in one file, with the static program of each architecture.
//!
//! `deploy/container/Containerfile` says what is in it. It is packed here, because the tools that build images write the
//! time of the build into them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use pping_chores::command;
use serde_json::{Value, json};

use super::{build::Build, containerfile::Containerfile};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// Packs the image of a version into a directory, and returns its path. `epoch` is the time that all files get.
pub(super) fn make(version: &str, epoch: &str, builds: &[Build], directory: &Path) -> Result<PathBuf> {
    let work = tempfile::tempdir_in(directory)?;
    let image = Image { epoch, from: Containerfile::of_repository()?, layout: work.path().join("image") };
    fs::create_dir_all(image.blobs())?;
    let manifests: Result<Vec<_>> = builds.iter().map(|build| image.manifest(build, work.path())).collect();
    let mut index = image.json(
        &json!({
            "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests?,
        }),
        INDEX,
    )?;
    // Podman takes its name for the image from the one, containerd and Docker from the other. A registry's name would
    // not be true of a file.
    let name = format!("localhost/pping:{version}");
    index["annotations"] =
        json!({"org.opencontainers.image.ref.name": name, "io.containerd.image.name": name});
    // One entry, so that tools choose the architecture and need no name.
    let layout = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [index]});
    fs::write(image.layout.join("index.json"), layout.to_string())?;
    fs::write(image.layout.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string())?;

    let file = directory.join(format!("pping-{version}-oci.tar"));
    pack(&image.layout, &["blobs", "index.json", "oci-layout"], "u=rwX,go=rX", epoch, &file)?;
    Ok(file)
}

/// An image that is being packed.
struct Image<'a> {
    epoch: &'a str,
    from: Containerfile,
    /// The directory with its parts.
    layout: PathBuf,
}

impl Image<'_> {
    /// Returns the directory with the files that are named by their checksums.
    fn blobs(&self) -> PathBuf {
        self.layout.join("blobs/sha256")
    }

    /// Adds the image of an architecture, and returns its entry in an index.
    fn manifest(&self, build: &Build, work: &Path) -> Result<Value> {
        let Build { arch, program, .. } = build;
        let root = work.join(arch.debian());
        let to = root.join(&self.from.program);
        fs::create_dir_all(to.parent().context("a program is in a directory")?)?;
        fs::copy(program, &to).with_context(|| format!("copying {}", program.display()))?;
        let layer = root.with_extension("tar");
        let first = self.from.program.split('/').next().unwrap_or_default();
        // Directories and the program have the same mode.
        pack(&root, &[first], "u=rwx,go=rx", self.epoch, &layer)?;
        let unpacked = sha256(&layer)?;
        command::run(Command::new("gzip").args(["--no-name", "--best"]).arg(&layer))?;
        let layer = self.add(&layer.with_extension("tar.gz"), LAYER)?;

        let mut created = Command::new("date");
        created.args(["--utc", &format!("--date=@{}", self.epoch), "+%Y-%m-%dT%H:%M:%SZ"]);
        let config = json!({
            "architecture": arch.debian(),
            "os": "linux",
            "created": pping_lab::run(&mut created)?.trim(),
            "config": {"User": self.from.user, "Entrypoint": self.from.entrypoint, "Labels": self.from.labels},
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{unpacked}")]},
        });
        let config = self.json(&config, CONFIG)?;
        let mut manifest = self.json(
            &json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]}),
            MANIFEST,
        )?;
        manifest["platform"] = json!({"architecture": arch.debian(), "os": "linux"});
        Ok(manifest)
    }

    /// Adds a document, and returns what others refer to it by.
    fn json(&self, document: &Value, media_type: &str) -> Result<Value> {
        let file = self.blobs().join("new");
        fs::write(&file, document.to_string())?;
        self.add(&file, media_type)
    }

    /// Moves a file into the image, and returns what others refer to it by.
    fn add(&self, file: &Path, media_type: &str) -> Result<Value> {
        let (digest, size) = (sha256(file)?, fs::metadata(file)?.len());
        fs::rename(file, self.blobs().join(&digest))?;
        Ok(json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size}))
    }
}

/// Packs files of a directory, with nothing in the archive that depends on when and where that happens.
fn pack(directory: &Path, names: &[&str], mode: &str, epoch: &str, into: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args([format!("--mode={mode}"), format!("--mtime=@{epoch}")]).env("LC_ALL", "C");
    command::run(tar.arg("--directory").arg(directory).arg("-cf").arg(into).args(names))
}

/// Returns the checksum of a file's content.
pub(super) fn sha256(file: &Path) -> Result<String> {
    let sum = pping_lab::run(Command::new("sha256sum").arg("--binary").arg(file))?;
    Ok(sum.split(' ').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt as _, thread, time::Duration};

    use super::*;
    use pping_chores::arch::Arch;

    /// Packs an image of two programs in a new directory.
    fn packed(mode: u32) -> (tempfile::TempDir, Vec<u8>) {
        let directory = tempfile::tempdir().unwrap();
        let builds = Arch::ALL.map(|arch| {
            let program = directory.path().join(arch.name());
            fs::write(&program, format!("the program for {}", arch.name())).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
            Build { arch, program, pages: PathBuf::new() }
        });
        let file = make("1.2.3", "1700000000", &builds, directory.path()).unwrap();
        let bytes = fs::read(file).unwrap();
        (directory, bytes)
    }

    #[test]
    fn the_same_programs_make_the_same_bytes() {
        let (first_directory, first) = packed(0o755);
        // Later, elsewhere, and from files with another mode.
        thread::sleep(Duration::from_millis(1100));
        let (second_directory, second) = packed(0o600);
        assert_ne!(first_directory.path(), second_directory.path());
        assert!(first == second);
    }

    #[test]
    fn each_architecture_has_what_the_containerfile_says() {
        let (directory, _) = packed(0o755);
        let unpacked = directory.path().join("unpacked");
        fs::create_dir(&unpacked).unwrap();
        let mut tar = Command::new("tar");
        pping_lab::run(
            tar.arg("-xf").arg(directory.path().join("pping-1.2.3-oci.tar")).arg("-C").arg(&unpacked),
        )
        .unwrap();
        let blob = |descriptor: &Value| {
            unpacked.join("blobs").join(descriptor["digest"].as_str().unwrap().replace(':', "/"))
        };
        let read = |file: &Path| serde_json::from_str::<Value>(&fs::read_to_string(file).unwrap()).unwrap();
        let layout = read(&unpacked.join("index.json"));
        let index = read(&blob(&layout["manifests"][0]));
        for (number, arch) in Arch::ALL.into_iter().enumerate() {
            let entry = &index["manifests"][number];
            assert_eq!(entry["platform"]["architecture"], arch.debian());
            let manifest = read(&blob(entry));
            let config = read(&blob(&manifest["config"]));
            assert_eq!(config["architecture"], arch.debian());
            assert_eq!(config["created"], "2023-11-14T22:13:20Z");
            assert_eq!(config["config"]["User"], "65534:65534");
            assert_eq!(config["config"]["Entrypoint"], json!(["/usr/bin/pping"]));
            assert_eq!(config["config"]["Labels"]["org.opencontainers.image.title"], "pping");
            let mut tar = Command::new("tar");
            let listing = pping_lab::run(tar.arg("-tvf").arg(blob(&manifest["layers"][0]))).unwrap();
            let modes: Vec<_> = listing.lines().map(|line| line.split(' ').next().unwrap()).collect();
            assert_eq!(modes, ["drwxr-xr-x", "drwxr-xr-x", "-rwxr-xr-x"], "{listing}");
            let mut tar = Command::new("tar");
            let layer = blob(&manifest["layers"][0]);
            let program = pping_lab::run(tar.arg("-xOf").arg(layer).arg("usr/bin/pping")).unwrap();
            assert_eq!(program, format!("the program for {}", arch.name()));
        }
    }
}
