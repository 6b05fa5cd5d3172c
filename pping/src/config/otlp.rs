//! `--otlp`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{endpoint::Endpoint, error::SettingError, model::Otlp, values::Temporality};

/// The settings for pushing metrics, if there is a receiver.
///
/// # Errors
/// If a file is given that has no use.
pub(super) fn otlp(
    endpoint: Option<Endpoint>,
    interval: Duration,
    headers: Option<PathBuf>,
    ca: Option<PathBuf>,
    temporality: Temporality,
) -> Result<Option<Otlp>, SettingError> {
    let useless = |option, file: &Path, reason| {
        Err(SettingError::contradiction(option, file.display().to_string(), reason))
    };
    let Some(endpoint) = endpoint else {
        let files = [("otlp-headers", headers), ("otlp-ca", ca)];
        let given = files.into_iter().find_map(|(option, file)| Some((option, file?)));
        return given.map_or(Ok(None), |(option, file)| {
            useless(option, &file, "nothing is pushed without --otlp; give a URL there")
        });
    };
    match ca {
        Some(file) if !endpoint.is_tls => {
            useless("otlp-ca", &file, "--otlp has no https URL, so there is no certificate to check")
        }
        authorities => Ok(Some(Otlp { endpoint, interval, headers, authorities, temporality })),
    }
}
