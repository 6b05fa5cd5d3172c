//! Checks and their results.

use serde::Serialize;

use super::name::Name;
#[cfg(test)]
use super::schema;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub(super) enum Status {
    /// All is well.
    Ok,
    /// pping runs, but measures less or costs more.
    Degraded,
    /// pping cannot run.
    Missing,
    /// pping could not find out, and `found` says why.
    Unknown,
}

impl Status {
    /// The word in the table and in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
        }
    }
}

/// One result.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(transform = schema::by_status))]
pub(super) struct Check {
    /// Name of the check.
    pub(super) name: Name,
    /// The interface, or the pattern that no interface matches; null for the whole machine.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub(super) subject: Option<String>,
    /// The result.
    pub(super) status: Status,
    /// Human-readable result.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub(super) found: String,
    /// Human-readable advice: what to do, and the effect of leaving it as it is. Present only if `status` is `degraded` or
    /// `missing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub(super) remedy: Option<String>,
}

impl Check {
    pub(super) fn ok(name: Name, found: impl Into<String>) -> Self {
        Self { name, subject: None, status: Status::Ok, found: found.into(), remedy: None }
    }

    pub(super) fn degraded(name: Name, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status: Status::Degraded, remedy: Some(remedy.into()), ..Self::ok(name, found) }
    }

    pub(super) fn missing(name: Name, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status: Status::Missing, remedy: Some(remedy.into()), ..Self::ok(name, found) }
    }

    pub(super) fn unknown(name: Name, found: impl Into<String>) -> Self {
        Self { status: Status::Unknown, ..Self::ok(name, found) }
    }

    /// Makes this a check of an interface.
    pub(super) fn of(self, interface: &str) -> Self {
        Self { subject: Some(interface.to_owned()), ..self }
    }

    /// The name of the interface, if any, and the name of the check.
    pub(super) fn title(&self) -> String {
        let name = self.name.text();
        self.subject.as_ref().map_or_else(|| name.to_owned(), |subject| format!("{subject} {name}"))
    }
}

/// The output of `pping check --json`: whether pping can run on this machine, and what limits its accuracy.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(title = "pping check", transform = schema::by_result))]
pub(super) struct Report {
    /// True if pping can run: no check is `missing`. The exit code is then 0, otherwise 1.
    pub(super) ok: bool,
    /// The results, first for the machine, then for each interface.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub(super) checks: Vec<Check>,
}

impl Report {
    pub(super) fn new(checks: Vec<Check>) -> Self {
        Self { ok: checks.iter().all(|check| check.status != Status::Missing), checks }
    }

    /// The titles of the checks with this result.
    pub(super) fn titles(&self, status: Status) -> Vec<String> {
        self.checks.iter().filter(|check| check.status == status).map(Check::title).collect()
    }
}
