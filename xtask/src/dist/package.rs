//! The Debian package. `pping/Cargo.toml` says what is in it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use super::Release;
use crate::command;

/// The pages that `pping generate` writes, and the file for each.
const PAGES: [(&str, &str); 5] = [
    ("man", "pping.1"),
    ("man-toml", "pping.toml.5"),
    ("complete-bash", "pping.bash"),
    ("complete-zsh", "_pping"),
    ("complete-fish", "pping.fish"),
];

/// The man pages, which are packaged compressed.
const MANUAL: [&str; 2] = ["pping.1", "pping.toml.5"];

/// The package's own changelog, which tells packages of the same version apart.
const CHANGES: &str = "changelog.Debian";

/// The packaged files that are not in the repository.
pub(super) struct Package<'a> {
    directory: PathBuf,
    release: &'a Release,
}

impl<'a> Package<'a> {
    /// Has the built program write its man pages and completions, into `package` beside it.
    pub(super) fn prepare(program: &Path, release: &'a Release) -> Result<Self> {
        let directory = program.with_file_name("package");
        fs::create_dir_all(&directory)?;
        for (page, file) in PAGES {
            let text = pping_lab::run(Command::new(program).args(["generate", page]))?;
            fs::write(directory.join(file), text)?;
        }
        for page in MANUAL {
            compress(&directory.join(page))?;
        }
        Ok(Self { directory, release })
    }

    /// Returns the files of the man pages and completions.
    pub(super) fn pages(&self) -> impl Iterator<Item = PathBuf> {
        PAGES.map(|(_, file)| self.directory.join(file)).into_iter()
    }

    /// Makes the package in a directory, and returns its path.
    pub(super) fn debian(&self, directory: &Path, version: &str) -> Result<PathBuf> {
        self.write_changes(version)?;
        let mut cargo = self.release.cargo();
        cargo.args([
            "deb",
            "--package",
            "pping",
            "--no-build",
            "--strip",
            "--deb-version",
            version,
            "--output",
        ]);
        // The empty component adds a slash, so that the path is a directory even if it does not exist yet.
        command::run(cargo.arg(directory.join("")))?;
        let end = format!("_{version}_");
        let mut entries = fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.path()));
        entries
            .find(|path| {
                path.to_string_lossy().contains(&end) && path.extension().is_some_and(|it| it == "deb")
            })
            .with_context(|| format!("cargo-deb made no package of version {version}"))
    }

    fn write_changes(&self, version: &str) -> Result<()> {
        let Release { version: upstream, date, .. } = self.release;
        let changes = format!(
            "pping ({version}) unstable; urgency=medium\n\n  * pping {upstream}: see changelog.gz for what is new.\n\n \
             -- The pping project <pping@localhost>  {date}\n"
        );
        let path = self.directory.join(CHANGES);
        fs::write(&path, changes)?;
        compress(&path)
    }
}

/// Writes a compressed copy beside a file.
fn compress(file: &Path) -> Result<()> {
    command::run(Command::new("gzip").args(["--force", "--keep", "--best", "--no-name"]).arg(file))
}
