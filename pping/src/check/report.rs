//! What was looked at, and what was found.

use serde::Serialize;

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    /// As it should be.
    Ok,
    /// pping runs, but measures less, or at a higher price.
    Degraded,
    /// pping does not run.
    Missing,
    /// It could not be found out.
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

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    /// What it is.
    pub(super) name: &'static str,
    /// The interface that it is about; otherwise it is about the whole machine.
    pub(super) subject: Option<String>,
    /// How it is.
    pub(super) status: Status,
    /// What was found.
    pub(super) found: String,
    /// What helps, and what it costs to leave it.
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

    /// The same about an interface.
    pub(super) fn of(self, interface: &str) -> Self {
        Self { subject: Some(interface.to_owned()), ..self }
    }

    /// What it is, and of which interface.
    pub(super) fn title(&self) -> String {
        let name = self.name;
        self.subject.as_ref().map_or_else(|| name.to_owned(), |subject| format!("{subject} {name}"))
    }
}

/// All that was looked at.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    /// Whether pping can run.
    pub(super) ok: bool,
    /// What was looked at, first for the whole machine, then for each interface.
    pub(super) checks: Vec<Check>,
}

impl Report {
    pub(super) fn new(checks: Vec<Check>) -> Self {
        Self { ok: checks.iter().all(|check| check.status != Status::Missing), checks }
    }

    /// The titles of those that are in this state.
    pub(super) fn titles(&self, status: Status) -> Vec<String> {
        self.checks.iter().filter(|check| check.status == status).map(Check::title).collect()
    }
}
