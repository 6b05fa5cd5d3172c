//! What is looked at: another pping, or interfaces or a capture that this one measures.

use std::{io, path::PathBuf, sync::Arc, thread, time::Duration};

use tokio::sync::oneshot;

use super::{
    ask::{Answers, Question},
    play,
};
use crate::{
    agent, capabilities,
    client::{self, Client, Source},
    config::{Config, Loader},
    log::Held,
    replay::{Player, Position},
    view::View,
};

/// What to look at.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// Another pping.
    Service(Source),
    /// Interfaces, which are watched as long as the screen is there.
    Interfaces(Box<Config>, Loader),
    /// A capture, which is played.
    Capture(Box<Config>, PathBuf),
}

/// What is looked at, for as long as this is kept.
pub(super) struct Watched {
    name: String,
    asked: Asked,
    agent: Option<Agent>,
    pub(super) player: Option<Player>,
    /// What this pping has to say would be in the middle of the screen.
    held: Option<Held>,
}

/// Whom to ask.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    Service(Arc<Client>),
    View(View),
}

impl Asked {
    /// All that a screen shows.
    pub(super) async fn answer(self, question: Question) -> Result<Answers, client::Error> {
        match self {
            Self::Service(client) => Answers::of_service(&client, &question).await,
            Self::View(view) => Ok(Answers::of_view(&view, &question)),
        }
    }
}

impl Watched {
    /// Begins to look. `is_once` reads a capture to its end.
    ///
    /// # Errors
    /// A mistake in what is asked for.
    pub(super) fn begin(origin: Origin, is_once: bool) -> Result<Self, crate::Error> {
        let (name, view) = match &origin {
            Origin::Service(source) => {
                let asked = Asked::Service(Arc::new(Client::new(source)?));
                return Ok(Self { name: source.url.clone(), asked, agent: None, player: None, held: None });
            }
            Origin::Interfaces(config, _) => {
                (config.live.interfaces.join(" "), View::new(config.live.history_memory))
            }
            Origin::Capture(config, path) => {
                (path.display().to_string(), View::new(config.live.history_memory))
            }
        };
        let (mut agent, mut player) = (None, None);
        match origin {
            Origin::Interfaces(config, loader) => agent = Some(Agent::start(*config, loader, view.clone())?),
            Origin::Capture(config, path) => {
                player = Some(Player::start(*config, path, view.clone(), is_once)?);
            }
            Origin::Service(_) => {}
        }
        Ok(Self { name, asked: Asked::View(view), agent, player, held: None })
    }

    /// Waits until there is something to see: for one screen as text, what `time` brings, or all of a capture.
    ///
    /// # Errors
    /// Why there is nothing.
    pub(super) async fn ready(&mut self, once: Option<Duration>) -> Result<(), crate::Error> {
        if let (Some(agent), Asked::View(view)) = (&mut self.agent, &self.asked) {
            let mut seconds = view.seconds();
            tokio::select! {
                ended = &mut agent.ended => return ended_early(ended),
                _ = seconds.changed() => {}
            }
            if let Some(time) = once {
                tokio::select! {
                    ended = &mut agent.ended => return ended_early(ended),
                    () = tokio::time::sleep(time) => {}
                }
            }
        }
        if let Some(player) = &mut self.player {
            player.moved().await;
            while once.is_some() && !player.position().is_over {
                player.moved().await;
            }
            let Position { time, fault, .. } = player.position();
            if let Some(fault) = fault.filter(|_| once.is_some() && time.is_zero()) {
                return Err(io::Error::other(fault).into());
            }
        }
        Ok(())
    }

    /// Whether it is measured here.
    pub(super) fn is_here(&self) -> bool {
        matches!(self.asked, Asked::View(_))
    }

    /// Has the log wait until the screen is gone.
    pub(super) fn hold_log(&mut self) {
        self.held = self.is_here().then(Held::new);
    }

    /// Whom to ask.
    pub(super) fn asked(&self) -> Asked {
        self.asked.clone()
    }

    /// What is looked at and, of a capture, where it is.
    pub(super) fn title(&self) -> String {
        let position = self.player.as_ref().map(|player| play::shown(&player.position()));
        let title = format!("{}{}", self.name, position.unwrap_or_default());
        match Held::lines() {
            0 => title,
            lines => format!("{title}  lines logged, shown at the end: {lines}"),
        }
    }

    /// Resolves if the agent ends by itself.
    pub(super) async fn ended(&mut self) -> Result<(), crate::Error> {
        match &mut self.agent {
            Some(agent) => ended_early((&mut agent.ended).await),
            None => std::future::pending().await,
        }
    }

    /// Ends what was begun.
    ///
    /// # Errors
    /// What is wrong with the capture, or went wrong with the agent at its end.
    pub(super) async fn end(mut self) -> Result<(), crate::Error> {
        if let Some(agent) = self.agent.take() {
            drop(agent.stop);
            return ended_early(agent.ended.await);
        }
        match self.player.take().and_then(|player| player.position().fault) {
            Some(fault) => Err(io::Error::other(fault).into()),
            None => Ok(()),
        }
    }
}

/// How the thread of an agent ended; an error if that panicked.
type Ended = Result<Result<(), crate::Error>, oneshot::error::RecvError>;

fn ended_early(ended: Ended) -> Result<(), crate::Error> {
    ended.unwrap_or_else(|_| Err(io::Error::other("the agent stopped").into()))
}

/// An agent in a thread of its own, so that drawing does not delay it.
struct Agent {
    ended: oneshot::Receiver<Result<(), crate::Error>>,
    /// The agent ends when this is dropped.
    stop: oneshot::Sender<()>,
}

impl Agent {
    fn start(config: Config, loader: Loader, view: View) -> Result<Self, crate::Error> {
        let (stop, stopped) = oneshot::channel();
        let (over, ended) = oneshot::channel();
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let shutdown = async { drop(stopped.await) };
            runtime.block_on(agent::run_with(config, loader, Some(view), shutdown)).map(drop)
        };
        thread::Builder::new().name("pping-agent".into()).spawn(move || over.send(run()).ok())?;
        // Capabilities are each thread's own, and this one only draws.
        capabilities::renounce().map_err(io::Error::other)?;
        Ok(Self { ended, stop })
    }
}
