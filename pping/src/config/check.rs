//! Checking a configuration file without starting anything.

use std::{fmt::Display, fs, path::Path};

use super::{
    Config, Error,
    file::File,
    option::Definition,
    settings::{Setting, Settings},
};

/// Checks a file, and has `check_groups` check the groups file that it names. Returns warnings.
///
/// # Errors
/// All that is wrong.
pub fn check<E: Display>(
    path: &Path,
    check_groups: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<Vec<String>, Error> {
    let definitions = Definition::all();
    let File { settings, mut mistakes } = File::read(path, &definitions)?;
    let settings = Settings::of_file(settings, definitions);
    // Where an invalid value is missing, the others may seem to contradict each other.
    if mistakes.is_empty()
        && let Err(found) = Config::new(settings.arguments()?)
    {
        mistakes.extend(settings.locate(found));
    }
    if let Some((setting, file)) = named(&settings, "groups")
        && let Err(error) = check_groups(file)
    {
        mistakes.push(setting.mistake(error.to_string()));
    }
    if mistakes.is_empty() { Ok(warnings(path, &settings)) } else { Err(Error::Invalid(mistakes)) }
}

/// What may be wrong, but cannot be known here and now.
fn warnings(path: &Path, settings: &Settings) -> Vec<String> {
    let mut warnings = Vec::new();
    if !settings.has("interface") {
        warnings.push(format!(
            "{}: there is no `interface` in it: PPING_INTERFACE or the command line has to name one",
            path.display()
        ));
    }
    if let Some((setting, file)) = named(settings, "web-config") {
        let reason = match fs::metadata(file) {
            Ok(_) => "the content of that file was not checked".to_owned(),
            Err(error) => error.to_string(),
        };
        warnings.push(setting.mistake(reason).to_string());
    }
    for key in ["write", "hdr-log", "pin"] {
        let Some((setting, file)) = named(settings, key) else { continue };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if folder.is_some_and(|folder| !folder.is_dir()) {
            warnings.push(setting.mistake("there is no such directory here and now").to_string());
        }
    }
    warnings
}

/// The file that an option names.
fn named<'a>(settings: &'a Settings, key: &str) -> Option<(&'a Setting, &'a Path)> {
    let setting = settings.get(key)?;
    Some((setting, Path::new(setting.values.as_ref()?.first()?)))
}
