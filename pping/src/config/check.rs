//! Checking a configuration file without starting anything.

use std::{fmt::Display, fs, path::Path};

use super::{
    definition::Definition, error::Error, file::File, layered::Layered, setting::Setting, values::RemoteBy,
};

/// Checks a file. `check_file` finds the errors of the files that it names under `groups`, `remote-groups` and `quality`, with or
/// without a groups socket, and by what networks are told apart, and `missing_levels` says which columns of `roll-up` a groups file lacks. Returns warnings.
///
/// # Errors
/// If the file cannot be read, or has errors: all of them.
pub fn check<E: Display>(
    path: &Path,
    check_file: impl Fn(&str, &Path, bool, RemoteBy) -> Vec<E>,
    missing_levels: impl Fn(&Path, &[String]) -> Option<String>,
) -> Result<Vec<String>, Error> {
    let definitions = Definition::all();
    let File { settings, mut errors } = File::read(path, &definitions)?;
    let layered = Layered::of_file(settings, definitions);
    // An invalid value is left out, and without it the others may seem to contradict each other.
    let (mut levels, mut remote_by) = (Vec::new(), RemoteBy::Asn);
    if errors.is_empty() {
        match layered.config() {
            Ok(config) => {
                (levels, remote_by) = (config.aggregation.roll_up, config.aggregation.remote_by);
            }
            Err(Error::Invalid(found)) => errors.extend(found),
            Err(error) => return Err(error),
        }
    }
    for key in ["groups", "remote-groups", "quality"] {
        if let Some((setting, file)) = named(&layered, key) {
            let found = check_file(key, file, layered.has("groups-socket"), remote_by);
            errors.extend(found.into_iter().map(|error| setting.error(error.to_string())));
        }
    }
    if let (Some(roll_up), Some((_, file))) = (layered.get("roll-up"), named(&layered, "groups")) {
        errors.extend(missing_levels(file, &levels).map(|reason| roll_up.error(reason)));
    }
    if errors.is_empty() { Ok(warnings(path, &layered)) } else { Err(Error::Invalid(errors)) }
}

/// Warns of what cannot be checked here and now.
fn warnings(path: &Path, layered: &Layered) -> Vec<String> {
    let mut warnings = Vec::new();
    if !layered.has("interface") {
        warnings.push(format!(
            "{}: there is no `interface` in it: PPING_INTERFACE or the command line has to name one",
            path.display()
        ));
    }
    for key in ["web-config", "otlp-headers", "otlp-ca"] {
        let Some((setting, file)) = named(layered, key) else { continue };
        let reason = match fs::metadata(file) {
            Ok(_) => "the content of that file was not checked".to_owned(),
            Err(error) => error.to_string(),
        };
        warnings.push(setting.error(reason).to_string());
    }
    for key in ["write", "hdr-log", "pin"] {
        let Some((setting, file)) = named(layered, key) else { continue };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if folder.is_some_and(|folder| !folder.is_dir()) {
            warnings.push(setting.error("there is no such directory at present").to_string());
        }
    }
    warnings
}

/// The setting of an option, and the file that it names.
fn named<'a>(layered: &'a Layered, key: &str) -> Option<(&'a Setting, &'a Path)> {
    let setting = layered.get(key)?;
    Some((setting, Path::new(setting.values.as_ref()?.first()?)))
}
