//! Tools to make and try packages.

use std::{io, path::Path};

use anyhow::{Context as _, Result, ensure};

use super::Missing;
use crate::{command, environment};

/// Where Debian's policy for `SELinux` has the contexts of files.
pub const CONTEXTS: &str = "/etc/selinux/default/contexts/files/file_contexts";

const TOOLS: [Missing; 2] = [tool("dpkg-shlibdeps", &["dpkg-dev"]), tool("strip", &["binutils"])];

const TRYING: [Missing; 6] = [
    tool("debootstrap", &["debootstrap"]),
    // debootstrap downloads with it.
    tool("wget", &["wget"]),
    tool("lintian", &["lintian"]),
    tool("rpm", &["rpm"]),
    tool("rpmlint", &["rpmlint"]),
    // Serves repositories.
    tool("python3", &["python3"]),
];

/// What makes repositories.
const REPOSITORIES: [Missing; 4] = [
    tool("apt-ftparchive", &["apt-utils"]),
    tool("createrepo_c", &["createrepo-c"]),
    tool("rpmsign", &["rpm"]),
    tool("gpg", &["gnupg"]),
];

/// Tells which contexts `SELinux` would give to packaged files.
const POLICY: Missing = Missing {
    what: "Debian's policy for SELinux",
    packages: &["selinux-policy-default", "selinux-utils"],
    elsewhere: "only Debian has it",
};

/// What copies a container image and runs it.
const CONTAINERS: [Missing; 5] = [
    tool("skopeo", &["skopeo"]),
    tool("umoci", &["umoci"]),
    tool("runc", &["runc"]),
    tool("ip", &["iproute2"]),
    tool("ping", &["iputils-ping"]),
];

/// Cargo's subcommands, and how they are installed.
const SUBCOMMANDS: [(&str, [&str; 5]); 3] = [
    ("deb", ["install", "cargo-deb", "--version", "3.8.0", "--locked"]),
    ("generate-rpm", ["install", "cargo-generate-rpm", "--version", "0.21.1", "--locked"]),
    ("cyclonedx", ["install", "cargo-cyclonedx", "--version", "0.5.9", "--locked"]),
];

const fn tool(program: &'static str, packages: &'static [&'static str]) -> Missing {
    Missing { what: program, packages, elsewhere: "the package your distribution has it in" }
}

/// Returns the missing tools, with their packages.
pub(super) fn missing(tries: bool) -> Vec<Missing> {
    let trying = TRYING.into_iter().chain(CONTAINERS).chain(REPOSITORIES).filter(|_| tries);
    let tools = TOOLS.into_iter().chain(trying).filter(|tool| environment::find_program(tool.what).is_none());
    let policy = (tries && !Path::new(CONTEXTS).is_file()).then_some(POLICY);
    tools.chain(policy).collect()
}

/// Returns the missing tools for repositories.
pub(super) fn missing_for_repositories() -> Vec<Missing> {
    REPOSITORIES.into_iter().filter(|tool| environment::find_program(tool.what).is_none()).collect()
}

/// Builds cargo's subcommands, unless they are there already.
pub(super) fn complete() -> Result<()> {
    for (name, install) in SUBCOMMANDS {
        if has_subcommand(name) {
            continue;
        }
        command::run(environment::cargo().args(install).stdout(io::stderr()))
            .with_context(|| format!("could not install {}", install[1]))?;
        ensure!(has_subcommand(name), "{} was installed but does not run", install[1]);
    }
    Ok(())
}

fn has_subcommand(name: &str) -> bool {
    command::succeeds(environment::cargo().args([name, "--version"]))
}
