//! The effect of a reload on options with new values.

use super::model::Config;

/// The effect of a reload on an option with a new value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reload {
    /// The reload takes the value over, and the agent makes the change. The function returns whether the value changed.
    Follow(Change, fn(&mut Config, &Config) -> bool),
    /// As `Follow` if the option was set before and still is; else a change takes a restart. The first function returns what the
    /// kernel programs have to know of it: mostly whether it is set.
    FollowWhileSet(Change, fn(&Config) -> u8, fn(&mut Config, &Config) -> bool),
    /// None: the kernel programs, their maps or the open files were made for the old value. The function returns whether the new
    /// value differs.
    Restart(fn(&Config, &Config) -> bool),
}

impl Reload {
    /// The value cannot change.
    pub(super) const NEVER: Self = Self::Restart(|_, _| false);

    /// Describes the effect for users.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Follow(..) => "A reload changes it.",
            Self::FollowWhileSet(..) => {
                "A reload changes it if there was one before and still is, else a change takes a restart."
            }
            Self::Restart(_) => "A change takes a restart.",
        }
    }
}

/// A change that a reload asks of the agent. The agent matches all of them, so that none can be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The interfaces to watch, or whether to wait for them.
    Interfaces,
    /// The groups file.
    Groups,
    /// The file of networks at the other end, or what they are told apart by.
    Networks,
    /// The networks that are inside.
    Inside,
    /// The time after which a group without traffic is forgotten.
    GroupTimeout,
    /// The file that records go to.
    Output,
    /// The address of metrics.
    Listen,
    /// The web configuration, or the names of the server.
    WebConfig,
    /// The groups in metrics, or their baseline.
    Metrics,
    /// The profiles for scores.
    Quality,
    /// The memory for the history of groups.
    HistoryMemory,
    /// How much of the history is kept.
    HistoryLimits,
    /// The receiver of exports, or another setting of them.
    Otlp,
    /// The level of the log.
    Verbosity,
}

/// Replaces a value, and returns whether the new one differs.
pub(super) fn replace<T: Clone + PartialEq>(value: &mut T, new: &T) -> bool {
    let differs = value != new;
    if differs {
        value.clone_from(new);
    }
    differs
}

/// A reload takes over this field of [`super::Config`], and the agent makes this change.
macro_rules! follow {
    ($change:ident, $($field:ident).+) => {{
        use $crate::config::reload::{Change, Reload, replace};
        Reload::Follow(Change::$change, |config, new| replace(&mut config.$($field).+, &new.$($field).+))
    }};
}

/// As [`follow!`] if the field was set before and still is. Setting or unsetting it takes a restart.
macro_rules! follow_while_set {
    ($change:ident, $($field:ident).+) => {{
        use $crate::config::reload::{Change, Reload, replace};
        Reload::FollowWhileSet(
            Change::$change,
            |config| config.$($field).+.is_some().into(),
            |config, new| replace(&mut config.$($field).+, &new.$($field).+),
        )
    }};
}

/// Another value of this field of [`super::Config`] takes a restart.
macro_rules! restart {
    ($($field:ident).+) => {
        $crate::config::reload::Reload::Restart(|config, new| config.$($field).+ != new.$($field).+)
    };
}

pub(super) use {follow, follow_while_set, restart};
