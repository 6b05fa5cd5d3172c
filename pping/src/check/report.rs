//! Checks and their results.

use serde::Serialize;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    /// All is well.
    Ok,
    /// pping runs, but measures less, or at a higher cost.
    Degraded,
    /// pping does not run.
    Missing,
    /// It could not be checked.
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

/// A check.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    /// The name of the check.
    pub(super) name: &'static str,
    /// The interface that was checked; `None` for the whole machine.
    pub(super) subject: Option<String>,
    /// The result.
    pub(super) status: Status,
    /// The finding.
    pub(super) found: String,
    /// The remedy, and the consequence of leaving it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

impl Check {
    pub(super) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, subject: None, status: Status::Ok, found: found.into(), remedy: None }
    }

    pub(super) fn degraded(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status: Status::Degraded, remedy: Some(remedy.into()), ..Self::ok(name, found) }
    }

    pub(super) fn missing(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status: Status::Missing, remedy: Some(remedy.into()), ..Self::ok(name, found) }
    }

    pub(super) fn unknown(name: &'static str, found: impl Into<String>) -> Self {
        Self { status: Status::Unknown, ..Self::ok(name, found) }
    }

    /// Makes this a check of an interface.
    pub(super) fn of(self, interface: &str) -> Self {
        Self { subject: Some(interface.to_owned()), ..self }
    }

    /// The name of the interface, if any, and the name of the check.
    pub(super) fn title(&self) -> String {
        let name = self.name;
        self.subject.as_ref().map_or_else(|| name.to_owned(), |subject| format!("{subject} {name}"))
    }
}

/// The result of all checks.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    /// Whether pping can run.
    pub(super) ok: bool,
    /// The checks: first of the whole machine, then of each interface.
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
