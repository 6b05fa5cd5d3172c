//! Texts generated from the options: man pages, completions, and the example configuration.

mod example;
mod man;
mod page;

use clap_complete::Shell;

use crate::cli::{self, Page};

/// Generates a page.
pub fn generate(page: Page) -> Vec<u8> {
    match page {
        Page::Man => man::program().into_bytes(),
        Page::ManToml => man::configuration().into_bytes(),
        Page::CompleteBash => completion(Shell::Bash),
        Page::CompleteZsh => completion(Shell::Zsh),
        Page::CompleteFish => completion(Shell::Fish),
        Page::Config => example::file().into_bytes(),
    }
}

fn completion(shell: Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "pping", &mut text);
    text
}
