//! The properties of an option that the parser of the command line does not know.

use super::reload::Reload;

/// The properties of an option that the parser of the command line does not know.
#[derive(Debug)]
pub(super) struct Facts {
    /// Where it can be set.
    pub(super) allowed_in: AllowedIn,
    /// Its effect on a capture.
    pub(super) capture: Capture,
    /// The effect of a reload that changes it.
    pub(super) reload: Reload,
    /// The default with `--profile small`, if that is another.
    pub(super) small: Option<&'static str>,
    /// An example as written in a file, for an option without a default.
    pub(super) example: Option<&'static str>,
    /// The option has an effect only if one of these is set too; always, if there are none. [`SCREEN`] among them is no option.
    pub(super) needs: &'static [&'static str],
}

/// Stands for the screen of `pping top`, among what options need.
pub(super) const SCREEN: &str = "top";

impl Facts {
    pub(super) const DEFAULT: Self = Self {
        allowed_in: AllowedIn::Everywhere,
        capture: Capture::Applies,
        reload: Reload::NEVER,
        small: None,
        example: None,
        needs: &[],
    };
}

/// Where an option can be set.
#[derive(Clone, Copy, Debug)]
pub(super) enum AllowedIn {
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
    /// The same as on packets of interfaces.
    Applies,
    /// The same, but it has this default.
    AppliesWithDefault(&'static str),
    /// None. The environment and the file may still set the option.
    Ignored,
    /// None, as `Ignored`. The command line rejects the option, for this reason.
    Rejected(&'static str),
}
