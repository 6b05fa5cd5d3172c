//! Writes all options, their values, and the origins of these.

use std::{fmt::Write as _, path::Path};

use super::{layered::Layered, setting::Setting};

/// The longest assignment, in columns, whose comment is aligned with the others.
const WIDEST: usize = 60;

/// Writes a configuration file, with a comment on each line that says where its value is set.
pub(super) fn show(layered: &Layered, file: Option<&Path>) -> String {
    let mut text = match file {
        Some(file) => format!("# {} is read\n", file.display()),
        None => "# no configuration file is read\n".to_owned(),
    };
    let (beside, inside): (Vec<&Setting>, Vec<&Setting>) =
        layered.all.iter().partition(|setting| !setting.definition.is_for_files());
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
    setting.to_toml().map_or_else(|| format!("# {key} is not set"), |value| format!("{key} = {value}"))
}
