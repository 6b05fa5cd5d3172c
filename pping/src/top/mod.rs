//! `pping top`: shows in a terminal what a running pping measures, or what this one measures. It uses only what
//! `/api/v1` offers.
//!
//! [`watched`] is the source of the figures, and [`ask`] asks it. [`state`] is what is on the screen, and changes with
//! keys and clicks; each of the [`panes`] has its part of that, and draws it. [`draw`] draws the lines around the
//! panes, in the areas of [`layout`], and [`plot`] draws round-trip times over time. [`play`] is for captures.

mod ask;
mod colors;
mod command;
mod draw;
mod header;
mod help;
mod layout;
mod once;
mod panes;
mod play;
mod plot;
mod screen;
mod sparkline;
mod state;
mod table;
mod terminal;
mod text;
mod watched;

use std::io::{self, IsTerminal as _};

use clap::ArgMatches;
use colors::Colors;
use state::State;
use watched::{WatchTarget, Watched};

use crate::{Error, cli::TopArguments, config::Loader, output};

/// Shows measurements until the user quits. `typed` has the options on the command line, from which `loader` makes the
/// configuration.
///
/// # Errors
/// If there is nothing to show, or no terminal.
pub(crate) fn look(typed: &ArgMatches, loader: &Loader, asked: TopArguments) -> Result<(), Error> {
    let (interval, is_once, by) = (asked.interval, asked.once, asked.by.clone());
    let target = command::target(typed, loader, asked)?;
    let has_terminal =
        io::stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb");
    let is_service = matches!(target, WatchTarget::Service(_));
    if !is_once && !is_service && !has_terminal {
        return Err(Error::NoTerminal);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut watched = Watched::begin(target, is_once)?;
        watched.ready(is_once.then_some(interval)).await?;
        let mut state = State::new(Colors::of_environment());
        state.set_capture(watched.player.is_some());
        let mut question = state.question();
        question.groups.by.clone_from(&by);
        let answers = watched.backend().answer(question).await?;
        let shown = if is_once {
            once::text(&answers.summary, &answers.groups, by.as_deref()).and_then(|text| {
                let text = watched.date() + &text;
                Ok(output::print(text.as_bytes())?)
            })
        } else if has_terminal {
            state.take(answers);
            screen::run(&mut watched, &mut state, interval).await
        } else {
            Err(Error::NoTerminal)
        };
        let ended = watched.end().await;
        shown.and(ended)
    })
}

#[cfg(test)]
mod tests;
