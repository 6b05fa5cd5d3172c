//! `pping top`: what a running pping measures, in a terminal. It knows nothing but what that says at `/api/v1`.
//!
//! [`ask`] asks through [`client`]. [`state`] is what is on the screen, and what keys do to it, without drawing. [`draw`] and [`past`]
//! draw it.

mod ask;
mod client;
mod draw;
mod past;
mod screen;
mod state;
mod table;

use std::{
    io::{self, IsTerminal as _, Write as _},
    sync::Arc,
    time::Duration,
};

use client::Client;
pub use client::{Error, Source};
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
        let mut state = State::default();
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
