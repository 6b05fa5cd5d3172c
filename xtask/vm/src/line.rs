//! The lines of kernels that are tested, and where Debian has them.

use std::fmt;

use anyhow::{Result, bail};
use pping_cross::archive::{BOOKWORM, BOOKWORM_SECURITY, Suite};

/// Kernels of which only the newest is of interest, such as those of a stable series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) name: &'static str,
    /// How the versions of its packages begin.
    prefix: &'static str,
    /// All suites that may have the line. Which of them has the newest kernel changes from week to week.
    pub(super) suites: &'static [Suite],
}

const BULLSEYE: Suite = Suite { name: "bullseye", label: "Debian" };
const BULLSEYE_SECURITY: Suite = Suite { name: "bullseye-security", label: "Debian-Security" };
const TRIXIE_SECURITY: Suite = Suite { name: "trixie-security", label: "Debian-Security" };
const TRIXIE: Suite = Suite { name: "trixie", label: "Debian" };
const TRIXIE_BACKPORTS: Suite = Suite { name: "trixie-backports", label: "Debian" };
const SID: Suite = Suite { name: "sid", label: "Debian" };
const EXPERIMENTAL: Suite = Suite { name: "experimental", label: "Debian" };

impl Line {
    /// All of them, oldest first. Debian has no 5.15 and no 6.6.
    pub(super) const ALL: [Self; 6] = [
        Self { name: "5.10", prefix: "5.10.", suites: &[BULLSEYE_SECURITY, BULLSEYE] },
        Self { name: "6.1", prefix: "6.1.", suites: &[BOOKWORM_SECURITY, BOOKWORM] },
        Self { name: "6.12", prefix: "6.12.", suites: &[TRIXIE_SECURITY, TRIXIE] },
        Self { name: "6.18", prefix: "6.18.", suites: &[TRIXIE_BACKPORTS] },
        Self { name: "7.2", prefix: "7.2.", suites: &[SID, TRIXIE_BACKPORTS] },
        Self { name: "newest", prefix: "", suites: &[TRIXIE_BACKPORTS, SID, EXPERIMENTAL] },
    ];

    /// Returns the lines with these names, in the order of [`Self::ALL`]; `all` stands for every line.
    pub(super) fn named(names: &[String]) -> Result<Vec<Self>> {
        if let Some(unknown) =
            names.iter().find(|name| *name != "all" && Self::ALL.iter().all(|line| line.name != **name))
        {
            let known = Self::ALL.map(|line| line.name).join(", ");
            bail!("there is no line of kernels called {unknown}; give some of {known}, or all");
        }
        let is_wanted = |line: &Self| names.iter().any(|name| name == "all" || name == line.name);
        Ok(Self::ALL.into_iter().filter(is_wanted).collect())
    }

    /// Whether a package of this version belongs to the line.
    pub(super) fn has(&self, version: &str) -> bool {
        version.starts_with(self.prefix)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Result<Vec<&'static str>> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        Ok(Line::named(&names)?.iter().map(|line| line.name).collect())
    }

    #[test]
    fn lines_are_chosen_by_name_and_kept_in_order() {
        assert_eq!(names(&["6.1", "5.10"]).expect("both are known"), ["5.10", "6.1"]);
        assert_eq!(names(&["all"]).expect("all are known").len(), Line::ALL.len());
        let error = names(&["6.1", "2.4"]).expect_err("there is no such line").to_string();
        assert!(error.contains("2.4") && error.contains("5.10, 6.1,"), "{error}");
    }

    #[test]
    fn a_line_has_its_own_versions_only() {
        let [oldest, bookworm, ..] = Line::ALL;
        assert!(oldest.has("5.10.262-1") && !oldest.has("5.1.3-1"));
        assert!(bookworm.has("6.1.192-2") && !bookworm.has("6.12.117-1"));
        assert!(Line::ALL[5].has("7.3~rc7-1~exp1"));
    }
}
