//! All options, what they are set to, and by whom.

use std::{fmt::Write as _, path::Path};

use super::settings::{Setting, Settings};

/// Columns of the longest assignment that the comments of others are aligned with.
const WIDEST: usize = 60;

/// Options that say what is read, and are no part of a file.
const NOT_IN_FILES: [&str; 2] = ["config", "read"];

/// Writes a configuration file that sets what is set, with a comment that says by whom.
pub(super) fn show(settings: &Settings, file: Option<&Path>) -> String {
    let mut text = match file {
        Some(file) => format!("# {} is read\n", file.display()),
        None => "# no configuration file is read\n".to_owned(),
    };
    let (beside, inside): (Vec<&Setting>, Vec<&Setting>) =
        settings.all.iter().partition(|setting| NOT_IN_FILES.contains(&setting.definition.key.as_str()));
    for setting in beside.iter().filter(|setting| setting.values.is_some()) {
        // Writing to a string cannot fail.
        writeln!(text, "# {}   # {}", assignment(setting), setting.origin).ok();
    }
    let lines: Vec<(String, String)> =
        inside.iter().map(|setting| (assignment(setting), setting.origin.to_string())).collect();
    let widths = lines.iter().map(|(assignment, _)| assignment.chars().count());
    let width = widths.filter(|&width| width <= WIDEST).max().unwrap_or(0);
    for (assignment, origin) in lines {
        writeln!(text, "{assignment:width$}   # {origin}").ok();
    }
    text
}

fn assignment(setting: &Setting) -> String {
    let key = &setting.definition.key;
    setting.written().map_or_else(|| format!("# {key} is not set"), |value| format!("{key} = {value}"))
}
