//! The loop of the screen: keys, answers, and signals.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use ratatui::crossterm::event::{self, Event, KeyEventKind};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::{MissedTickBehavior, interval},
};

use super::{
    ask,
    client::{Client, Error},
    draw,
    state::{Effect, State},
};

/// How long to wait for a key before it is looked at whether there is still a screen.
const PATIENCE: Duration = Duration::from_millis(200);

/// Shows the state until a key or a signal ends it. The terminal is as it was then, whatever happens.
pub(super) async fn run(client: &Client, state: &mut State, every: Duration) -> Result<(), Error> {
    let mut end = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()].map(signal);
    let mut terminal = ratatui::try_init()?;
    let shown = show(client, state, every, &mut terminal, &mut end).await;
    ratatui::restore();
    shown
}

async fn show(
    client: &Client,
    state: &mut State,
    every: Duration,
    terminal: &mut ratatui::DefaultTerminal,
    end: &mut [io::Result<tokio::signal::unix::Signal>; 3],
) -> Result<(), Error> {
    let [terminated, hung_up, interrupted] = end;
    let (terminated, hung_up, interrupted) = (
        terminated.as_mut().map_err(again)?,
        hung_up.as_mut().map_err(again)?,
        interrupted.as_mut().map_err(again)?,
    );
    let mut keys = keys();
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        terminal.draw(|frame| draw::draw(frame, state, client.url(), Instant::now()))?;
        tokio::select! {
            _ = terminated.recv() => return Ok(()),
            _ = hung_up.recv() => return Ok(()),
            _ = interrupted.recv() => return Ok(()),
            event = keys.recv() => match event {
                Some(Event::Key(key)) if key.kind == KeyEventKind::Press => {
                    let height = terminal.size()?.height;
                    match state.key(key, draw::page(height, state)) {
                        Effect::Quit => return Ok(()),
                        Effect::Ask => update(client, state).await,
                        Effect::Draw => {}
                    }
                }
                Some(_) => {}
                // The terminal is gone.
                None => return Ok(()),
            },
            _ = ticks.tick() => update(client, state).await,
        }
    }
}

/// Asks again. A pping that does not answer may be restarting: the screen says so, and goes on when it is back.
async fn update(client: &Client, state: &mut State) {
    if let Err(error) = try_update(client, state).await {
        state.fail(error.to_string(), Instant::now());
    }
}

async fn try_update(client: &Client, state: &mut State) -> Result<(), Error> {
    let (summary, groups) = ask::latest(client, state.query()).await?;
    state.take(summary, groups);
    if let Some((row, _)) = state.open() {
        let past = ask::past(client, &row.id.clone()).await?;
        state.take_past(past);
    }
    Ok(())
}

/// What is typed, read by a thread of its own, as the terminal has no other way to wait.
fn keys() -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel(16);
    thread::spawn(move || {
        while !sender.is_closed() {
            match event::poll(PATIENCE) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(_) => break,
            }
            let Ok(event) = event::read() else { break };
            if sender.blocking_send(event).is_err() {
                break;
            }
        }
    });
    receiver
}

fn again(error: &mut io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}
