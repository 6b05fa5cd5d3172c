//! Checks that dependencies are what `deny.toml` allows: their licences, their sources, and one version of each. It
//! needs no network, and no cargo-deny, which takes longer to compile than CI takes to run.

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, Result, ensure};
use pping_chores::{command, environment};
use serde::Deserialize;
use spdx::{Expression, LicenseReq, ParseMode};

const FILE: &str = "deny.toml";
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The parts of the file that are checked here.
#[derive(Deserialize)]
struct Allowed {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skip>,
}

#[derive(Deserialize)]
struct Skip {
    #[serde(rename = "crate")]
    package: String,
}

/// What `cargo metadata` prints.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// `None` for a package of the workspace.
    source: Option<String>,
}

/// Fails if a dependency is not allowed, or if an exception is no longer needed.
pub(super) fn check() -> Result<()> {
    let text = fs::read_to_string(environment::repository().join(FILE))
        .with_context(|| format!("cannot read {FILE}"))?;
    let allowed: Allowed = toml::from_str(&text).with_context(|| format!("cannot parse {FILE}"))?;
    let metadata = command::output(environment::cargo().args([
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--offline",
    ]))?;
    let Metadata { packages } =
        serde_json::from_str(&metadata).context("cannot parse what cargo metadata prints")?;
    let wrong = wrong(&allowed, &packages);
    ensure!(wrong.is_empty(), "dependencies that {FILE} does not allow:\n  {}", wrong.join("\n  "));
    Ok(())
}

fn wrong(allowed: &Allowed, packages: &[Package]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Package { name, version, license, source } in packages {
        let is_fine = license.as_deref().map(|license| is_allowed(license, &allowed.licenses.allow));
        let reason = match is_fine {
            Some(Ok(true)) => None,
            Some(Ok(false)) => Some(format!("the licence {license:?} is not allowed")),
            Some(Err(error)) => Some(error.to_string()),
            None => Some("it names no licence".to_owned()),
        };
        // Our own packages have the licences of the repository.
        if let Some(reason) = reason.filter(|_| source.is_some()) {
            wrong.push(format!("{name} {version}: {reason}"));
        }
        if source.as_ref().is_some_and(|source| source != REGISTRY) {
            wrong.push(format!("{name} {version} is not from crates.io: {source:?}"));
        }
        versions.entry(name).or_default().push(version);
    }
    let is_skipped = |name: &str, version: &&str| {
        allowed.bans.skip.iter().any(|skip| skip.package == format!("{name}@{version}"))
    };
    for (name, versions) in &versions {
        let counted = versions.iter().filter(|version| !is_skipped(name, version)).count();
        if counted > 1 {
            wrong.push(format!("{name} is used in several versions: {}", versions.join(", ")));
        }
    }
    let needless = allowed.bans.skip.iter().filter(|skip| {
        let (name, version) = skip.package.split_once('@').unwrap_or((&skip.package, ""));
        versions.get(name).is_none_or(|versions| versions.len() < 2 || !versions.contains(&version))
    });
    wrong.extend(needless.map(|skip| format!("{} needs no exception", skip.package)));
    wrong
}

/// Whether the allowed licences satisfy a licence expression.
fn is_allowed(license: &str, allowed: &[String]) -> Result<bool, spdx::ParseError> {
    let expression = Expression::parse_mode(license, ParseMode::LAX)?;
    let is_listed = |requirement: &LicenseReq| {
        requirement.license.id().is_some_and(|id| allowed.iter().any(|allowed| allowed == id.name))
    };
    Ok(expression.evaluate(is_listed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, license: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            license: Some(license.to_owned()),
            source: Some(REGISTRY.to_owned()),
        }
    }

    fn allowed(skip: &[&str]) -> Allowed {
        let skip = skip.iter().map(|&package| Skip { package: package.to_owned() }).collect();
        Allowed {
            licenses: Licenses { allow: vec!["MIT".to_owned(), "ISC".to_owned()] },
            bans: Bans { skip },
        }
    }

    #[test]
    fn one_of_several_licences_suffices_and_all_required_do() {
        for (license, is_fine) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("MIT/Apache-2.0", true),
            ("MIT AND ISC", true),
            ("MIT AND Zlib", false),
        ] {
            assert_eq!(
                wrong(&allowed(&[]), &[package("a", "1.0.0", license)]).is_empty(),
                is_fine,
                "{license}"
            );
        }
    }

    #[test]
    fn second_versions_and_exceptions_need_each_other() {
        let twice = [package("a", "1.0.0", "MIT"), package("a", "2.0.0", "MIT")];
        assert_eq!(wrong(&allowed(&[]), &twice), ["a is used in several versions: 1.0.0, 2.0.0"]);
        assert_eq!(wrong(&allowed(&["a@1.0.0"]), &twice), [""; 0]);
        assert_eq!(wrong(&allowed(&["a@1.0.0"]), &twice[1..]), ["a@1.0.0 needs no exception"]);
    }

    #[test]
    fn a_dependency_from_elsewhere_is_named() {
        let foreign =
            Package { source: Some("git+https://example.net/a".to_owned()), ..package("a", "1.0.0", "MIT") };
        assert_eq!(wrong(&allowed(&[]), &[foreign]).len(), 1);
    }
}
