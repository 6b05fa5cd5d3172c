//! The agents' files: configurations and groups, valid and invalid.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use super::receiver;

const GROUPS: &str = "prefix,group\n10.11.1.0/24,clients\n10.11.2.0/24,servers\nfd00:11:1::/64,clients\n\
                      fd00:11:2::/64,servers-6\n10.12.0.0/16,dial\n";
const OTHER_GROUPS: &str = "prefix,group\n10.11.1.0/24,clients\n10.11.2.2/32,server\n10.11.2.0/24,servers\n\
                            fd00:11:1::/64,clients\nfd00:11:2::/64,servers-6\nfd00:12::/32,dial-6\n";
const BROKEN_GROUPS: &str = "prefix,group\n10.11.1.1/24,bits set beyond the prefix\n";

/// What a reload finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    Plain,
    Talkative,
    OtherGroups,
    MoreInterfaces,
    /// An invalid configuration.
    Broken,
    /// Invalid groups.
    BrokenGroups,
}

impl Variant {
    /// In the order in which the agents get them.
    pub(super) const ALL: [Self; 6] = [
        Self::Talkative,
        Self::Broken,
        Self::OtherGroups,
        Self::BrokenGroups,
        Self::MoreInterfaces,
        Self::Plain,
    ];

    /// Whether the agent must reject it.
    pub(super) fn is_broken(self) -> bool {
        matches!(self, Self::Broken | Self::BrokenGroups)
    }

    /// What the log says when the agent has rejected it, or put it into force.
    pub(super) fn answer(self) -> &'static str {
        match self {
            Self::Broken => "the configuration stays as it was",
            Self::BrokenGroups => "the groups stay as they were",
            _ => ": now ",
        }
    }
}

/// The files of one agent.
pub(super) struct Files {
    pub(super) config: PathBuf,
    pub(super) listen: &'static str,
    pub(super) groups: PathBuf,
    /// The directory of the history.
    pub(super) history: PathBuf,
    /// Where the agent writes records, if it does.
    pub(super) records: Option<PathBuf>,
    /// Whether the agent measures residence.
    pub(super) has_residence: bool,
    /// Where the agent pins, if it does.
    pub(super) pins: Option<PathBuf>,
}

impl Files {
    /// Writes the files, so that the next start or reload finds this variant.
    pub(super) fn write(&self, variant: Variant) -> Result<()> {
        let groups = match variant {
            Variant::OtherGroups => OTHER_GROUPS,
            Variant::BrokenGroups => BROKEN_GROUPS,
            _ => GROUPS,
        };
        write(&self.groups, groups)?;
        write(&self.config, &self.config(variant))
    }

    fn config(&self, variant: Variant) -> String {
        let more = if variant == Variant::MoreInterfaces { ", \"extra*\"" } else { "" };
        let rate_limit = if variant == Variant::Broken { "fast" } else { "0" };
        let (verbose, labels) = if variant == Variant::Talkative { (2, 60) } else { (1, 100) };
        let output = match &self.records {
            Some(records) => format!("format = \"jsonl\"\nwrite = \"{}\"\n", records.display()),
            None => "format = \"none\"\n".to_owned(),
        };
        let pin =
            self.pins.as_ref().map_or_else(String::new, |pins| format!("pin = \"{}\"\n", pins.display()));
        let residence = if self.has_residence { "residence = true\nresidence-every = 4\n" } else { "" };
        let history = self.history.display();
        format!(
            "interface = [\"lan0\", \"wan0\", \"queue0\", \"dial*\"{more}]\nwait = true\ninclude-local = true\n\
             rate-limit = \"{rate_limit}\"\nlisten = \"{}\"\ngroups = \"{}\"\ngroup-timeout = \"1d\"\n\
             verbose = {verbose}\nprometheus-groups = {labels}\notlp = \"http://{}\"\notlp-interval = \"1s\"\n\
             history = \"{history}\"\n{output}{pin}{residence}",
            self.listen,
            self.groups.display(),
            receiver::ADDRESS,
        )
    }
}

fn write(path: &Path, content: &str) -> Result<()> {
    fs::write(path, content).with_context(|| format!("could not write {}", path.display()))
}
