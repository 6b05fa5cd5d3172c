//! The loop of the screen: keys, answers, and signals.

use std::{
    thread,
    time::{Duration, Instant},
};

use ratatui::{
    crossterm::event::{self, Event, KeyEventKind},
    layout::{Position, Rect},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

use super::{
    ask::Answers,
    draw::{self, Status},
    panes::Effect,
    play,
    state::State,
    terminal::Terminal,
    watched::Watched,
};
use crate::client;

/// How long to wait for a key before checking whether the screen still exists.
const KEY_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The longest time between two questions to this pping itself. They cost next to nothing.
const MAX_LOCAL_INTERVAL: Duration = Duration::from_millis(250);

/// Shows the state until a key or a signal ends it. Restores the terminal in every case.
pub(super) async fn run(
    watched: &mut Watched,
    state: &mut State,
    every: Duration,
) -> Result<(), crate::Error> {
    watched.hold_log();
    let every = if watched.is_here() { every.min(MAX_LOCAL_INTERVAL) } else { every };
    let mut terminal = Terminal::new()?;
    show(watched, state, every, &mut terminal.0).await
}

async fn show(
    watched: &mut Watched,
    state: &mut State,
    every: Duration,
    terminal: &mut ratatui::DefaultTerminal,
) -> Result<(), crate::Error> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let (mut keys, mut asking) = (keys(), JoinSet::<Result<Answers, client::Error>>::new());
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        let status = Status { source: &watched.title(), now: Instant::now() };
        terminal.draw(|frame| draw::draw(frame, state, &status))?;
        tokio::select! {
            _ = terminated.recv() => return Ok(()),
            _ = hung_up.recv() => return Ok(()),
            _ = interrupted.recv() => return Ok(()),
            Some(asked) = asking.join_next() => match asked {
                Ok(Ok(answers)) => state.take(answers),
                // A pping that does not answer may be restarting: the screen reports the failure, and recovers when
                // pping is back.
                Ok(Err(error)) => state.fail(error.to_string(), Instant::now()),
                // An aborted question.
                Err(_) => {}
            },
            event = keys.recv() => match event {
                Some(event) => {
                    if let (Event::Key(key), Some(player)) = (&event, &watched.player)
                        && key.kind == KeyEventKind::Press
                        && !state.takes_text()
                        && let Some(command) = play::command(*key)
                    {
                        player.command(command);
                        continue;
                    }
                    let screen = Rect::from((Position::ORIGIN, terminal.size()?));
                    let effect = match event {
                        Event::Key(key) if key.kind == KeyEventKind::Press => state.key(key, screen),
                        Event::Mouse(event) => state.mouse(event, screen),
                        _ => Effect::Draw,
                    };
                    match effect {
                        Effect::Quit => return Ok(()),
                        Effect::Ask => {
                            asking.abort_all();
                            asking.spawn(watched.backend().answer(state.question()));
                        }
                        Effect::Draw => {}
                    }
                }
                // The terminal is gone.
                None => return Ok(()),
            },
            ended = watched.ended() => return ended,
            // This runs in a separate task, so that the screen reacts to keys however long an answer takes.
            _ = ticks.tick() => if asking.is_empty() {
                asking.spawn(watched.backend().answer(state.question()));
            },
        }
    }
}

/// Returns the events of the terminal. A separate thread reads them, since the terminal has no other way to wait.
fn keys() -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel(16);
    thread::spawn(move || {
        while !sender.is_closed() {
            match event::poll(KEY_POLL_INTERVAL) {
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
