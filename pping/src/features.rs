//! The Cargo features of this build, and what it says about those that it lacks.

use std::sync::LazyLock;

#[cfg(feature = "live")]
use crate::config::Live;

/// The features, and whether this build has them.
const FEATURES: [(&str, bool); 5] = [
    ("history", cfg!(feature = "history")),
    ("live", cfg!(feature = "live")),
    ("otlp", cfg!(feature = "otlp")),
    ("page", cfg!(feature = "page")),
    ("top", cfg!(feature = "top")),
];

/// The version, and the commit that it was built from.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("PPING_REVISION"), ")");

/// The answer to `pping --version`: the version, and the features that this build lacks.
pub(crate) static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let lacks: Vec<_> =
        FEATURES.into_iter().filter(|(_, is_built)| !is_built).map(|(name, _)| name).collect();
    if lacks.is_empty() {
        VERSION.to_owned()
    } else {
        format!("{VERSION}\nbuilt without: {}", lacks.join(", "))
    }
});

/// This build lacks what was asked for.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "this build has no `{asked}`: it was built without the feature `{feature}`; `cargo xtask build` builds one with \
     all features"
)]
pub struct Missing {
    /// The command or the option, as it is typed.
    pub asked: &'static str,
    /// The name of the option, if it is one.
    pub option: Option<&'static str>,
    /// The feature.
    pub feature: &'static str,
}

impl Missing {
    /// The error of a command.
    #[cfg(not(all(feature = "history", feature = "top")))]
    pub(crate) fn command(asked: &'static str, feature: &'static str) -> Self {
        Self { asked, option: None, feature }
    }
}

/// Checks that this build has what the settings ask for.
///
/// # Errors
/// If it does not.
#[cfg(feature = "live")]
pub(crate) fn check(settings: &Live) -> Result<(), Missing> {
    if settings.otlp.is_some() && !cfg!(feature = "otlp") {
        return Err(Missing { asked: "--otlp", option: Some("otlp"), feature: "otlp" });
    }
    if settings.history.is_some() && !cfg!(feature = "history") {
        return Err(Missing { asked: "--history", option: Some("history"), feature: "history" });
    }
    Ok(())
}
