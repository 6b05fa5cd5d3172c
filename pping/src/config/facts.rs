//! What there is to know of an option beyond the command line.

use super::reload::Reload;

/// The properties of an option beyond the command line.
#[derive(Debug)]
pub(super) struct Facts {
    /// The places where it can be set.
    pub(super) scope: Scope,
    /// Its effect on a capture.
    pub(super) capture: Capture,
    /// The effect of a reload that changes it.
    pub(super) reload: Reload,
    /// A value as a file has it, for an option without a default.
    pub(super) example: Option<&'static str>,
}

impl Facts {
    pub(super) const DEFAULT: Self =
        Self { scope: Scope::Everywhere, capture: Capture::Applies, reload: Reload::NEVER, example: None };
}

/// The places where an option can be set.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope {
    /// On the command line, in the environment and in a file.
    Everywhere,
    /// Not in a file, for this reason.
    NotInFiles(&'static str),
    /// On the command line only, for this reason.
    CommandLine(&'static str),
}

/// The effect of an option on a capture.
#[derive(Clone, Copy, Debug)]
pub(super) enum Capture {
    /// The same as to packets of interfaces.
    Applies,
    /// Nothing: the environment and the file may set it all the same.
    Ignored,
    /// Nothing, as `Ignored`; for this reason it is rejected on the command line.
    Rejected(&'static str),
}
