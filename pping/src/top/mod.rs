//! `pping top`: what a running pping measures, in a terminal. It knows nothing but what that says at `/api/v1`.
//!
//! [`ask`] asks through [`client`]. [`state`] is what is on the screen, and what keys and clicks do to it; each of the [`panes`] has its
//! part of that, and draws it. [`draw`] draws what is around them, in the places of [`layout`], [`plot`] round-trip times over time.

mod ask;
mod client;
mod colors;
mod draw;
mod header;
mod help;
mod layout;
mod panes;
mod plot;
mod screen;
mod state;
mod table;
mod terminal;
mod text;

use std::{
    io::{self, IsTerminal as _, Write as _},
    sync::Arc,
    time::Duration,
};

use client::Client;
pub use client::{Error, Source};
use colors::Colors;
use state::State;

/// How `pping top` was called.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The pping to ask.
    pub source: Source,
    /// Between two questions.
    pub interval: Duration,
    /// Write one screen as text, and end.
    pub is_once: bool,
}

/// Shows what is measured, until the user has seen enough.
///
/// # Errors
/// When the other pping does not answer at first, or there is no terminal.
pub fn run(settings: &Settings) -> Result<(), Error> {
    let client = Arc::new(Client::new(&settings.source)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut state = State::new(Colors::of_environment());
        let answers = ask::all(Arc::clone(&client), state.question()).await?;
        if settings.is_once {
            return write(&table::text(&answers.summary, &answers.groups));
        }
        state.take(answers);
        if !io::stdout().is_terminal() || std::env::var_os("TERM").is_none_or(|term| term == "dumb") {
            return Err(Error::NoTerminal);
        }
        screen::run(&client, &mut state, settings.interval).await
    })
}

/// Writes text to standard output. A reader that closes it is not an error.
fn write(text: &str) -> Result<(), Error> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
