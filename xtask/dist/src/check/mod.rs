//! `cargo xtask dist --check`: tries the files of a release, each in a system of its own.

mod checkout;
mod container;
mod deb;
mod dnf;
mod emulation;
mod live;
mod machine;
mod older;
mod repository;
pub(super) mod reproduce;
mod root;
mod rpm;
mod server;
mod service;
mod upgrade;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use pping_chores::{arch::Arch, environment};

use self::{emulation::Emulation, older::Maps};
use super::{Release, package::Package, rpm::Rpm};

/// The packages of one architecture, and how they are made.
pub(super) struct Packages<'a> {
    pub(super) debian: Package<'a>,
    pub(super) debian_file: PathBuf,
    pub(super) rpm: Rpm<'a>,
    pub(super) rpm_file: PathBuf,
}

/// Fails if something is missing that cannot be installed: emulation by the kernel, apt's source of Debian, or the commit of
/// the last release.
pub(super) fn ensure_possible() -> Result<()> {
    for arch in Arch::ALL {
        drop(Emulation::of(arch)?);
    }
    root::source()?;
    older::ensure_here()
}

/// Tries the image, repositories of the packages, and each package: its installation, its upgrade to one that is made
/// here, the service, and the upgrade from the last release.
pub(super) fn run(release: &Release, image: &Path, packages: &[Packages<'_>]) -> Result<()> {
    let directory = environment::target_directory().join("dist-check");
    fs::create_dir_all(&directory)?;
    container::check(image)?;
    repository::check(&release.directory)?;
    for Packages { debian, debian_file, rpm, rpm_file } in packages {
        let arch = debian.arch;
        let newer = debian.debian(&directory, &format!("{}-2", release.version))?;
        deb::lintian(debian_file)?;
        deb::lifecycle(arch, debian_file, &newer)?;
        if debian.is_of_host()? {
            service::try_out(&deb::root(arch, debian_file, &newer)?, &deb::APT)?;
            upgrade::from_last_release(&newer)?;
        } else {
            live::measures(arch, debian_file)?;
        }
        let newer = rpm.make(&directory, 2)?;
        rpm::check(rpm, rpm_file, debian_file)?;
        dnf::lifecycle(arch, rpm_file, &newer)?;
        if debian.is_of_host()? {
            service::try_out(&dnf::root(arch, rpm_file, &newer)?, &dnf::DNF)?;
            upgrade::without_loss(&dnf::root(arch, rpm_file, &newer)?, &dnf::DNF, Maps::Kept)?;
        }
    }
    rpm::contexts()
}
