//! Looking at a configuration file without starting anything.

use std::{fs, path::Path};

use super::{
    contradictions,
    file::File,
    option::Definition,
    settings::{Setting, Settings},
};
use crate::{
    Error,
    error::Fault,
    groups::{self, Labels},
};

/// Looks for all that is wrong with a file, and returns what else there is to say of it.
///
/// # Errors
/// All that is wrong.
pub fn check(path: &Path) -> Result<Vec<Fault>, Error> {
    let definitions = Definition::all();
    let File { settings, mut faults } = File::read(path, &definitions)?;
    let settings = Settings::of_file(settings, definitions);
    // Where a value is missing, since it is wrong, what is left may not go together for that alone.
    if faults.is_empty() {
        for error in contradictions(&settings.arguments()?) {
            match settings.placed(error) {
                Error::Configuration(found) => faults.extend(found),
                error => return Err(error),
            }
        }
    }
    faults.extend(groups_file(&settings));
    if faults.is_empty() { Ok(remarks(path, &settings)) } else { Err(Error::Configuration(faults)) }
}

/// What is wrong with the groups file, if one is named.
fn groups_file(settings: &Settings) -> Option<Fault> {
    let (setting, file) = named(settings, "groups")?;
    let error = groups::load(file, &mut Labels::default()).err()?.to_string();
    // The option's name is that of the key, which is there already.
    Some(setting.fault(error.strip_prefix("--groups ").unwrap_or(&error)))
}

/// What may be wrong, but cannot be known here and now.
fn remarks(path: &Path, settings: &Settings) -> Vec<Fault> {
    let mut remarks = Vec::new();
    if !settings.has("interface") {
        remarks.push(Fault {
            place: path.display().to_string(),
            reason: "there is no `interface` in it: PPING_INTERFACE or the command line has to name one"
                .to_owned(),
        });
    }
    if let Some((setting, file)) = named(settings, "web-config") {
        let reason = match fs::metadata(file) {
            Ok(_) => "what is in that file was not looked at".to_owned(),
            Err(error) => error.to_string(),
        };
        remarks.push(setting.fault(&reason));
    }
    for key in ["write", "hdr-log", "pin"] {
        let Some((setting, file)) = named(settings, key) else { continue };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if folder.is_some_and(|folder| !folder.is_dir()) {
            remarks.push(setting.fault("there is no such directory here and now"));
        }
    }
    remarks
}

/// The file that an option names.
fn named<'a>(settings: &'a Settings, key: &str) -> Option<(&'a Setting, &'a Path)> {
    let setting = settings.get(key)?;
    Some((setting, Path::new(setting.values.as_ref()?.first()?)))
}
