//! pping.toml(5).

use super::page::{Page, written};
use crate::config::definition::Definition;

/// Writes the page.
pub(super) fn page() -> String {
    let mut page = Page::new("PPING.TOML", "5", "File Formats");
    page.prose(include_str!("pping.toml.5.txt"), |page, _| {
        page.options(Definition::all().into_iter().filter(Definition::is_for_files), written, more);
    });
    page.render()
}

/// What there is to say of an option beside what it means.
fn more(option: &Definition) -> String {
    let default = match option.default() {
        Some(default) if !default.is_empty() => {
            format!("The default is `{}`.", option.written(&default))
        }
        _ => format!("It is not set by default. An example: `{}`.", option.example()),
    };
    format!("{default} In the environment: `{}`. {}", option.variable(), option.on_reload())
}
