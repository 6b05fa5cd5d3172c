//! What `pping top` watches: another pping, or interfaces or a capture that this one measures.

use std::{io, path::PathBuf, sync::Arc, thread, time::Duration};

use tokio::sync::oneshot;
use tracing::warn;

use super::{
    ask::{Answers, Question},
    play,
};
use crate::{
    agent, capabilities,
    client::{self, Client, Source},
    config::{Config, Loader},
    log::Held,
    recent::RecentHistory,
    replay::{Player, Position},
};
#[cfg(feature = "history")]
use crate::{
    history::{self, Archive, Moment},
    quality,
};

/// What to watch.
#[derive(Clone, Debug)]
pub(super) enum WatchTarget {
    /// Another pping.
    Service(Source),
    /// Interfaces, which are watched as long as the screen exists.
    Interfaces(Box<Config>, Loader),
    /// A capture, which is played.
    Capture(Box<Config>, PathBuf),
    /// The past, at a moment.
    #[cfg(feature = "history")]
    Past(Archive, Moment),
}

/// What is watched, until this is dropped.
pub(super) struct Watched {
    name: String,
    /// Whether it is the past, which a screen as text dates.
    is_past: bool,
    backend: Backend,
    agent: Option<Agent>,
    pub(super) player: Option<Player>,
    /// Holds the log back, which would otherwise be written over the screen.
    held: Option<Held>,
}

/// Where to send questions.
#[derive(Clone, Debug)]
pub(super) enum Backend {
    Service(Arc<Client>),
    Recent(RecentHistory),
}

impl Backend {
    /// Returns all that a screen shows.
    pub(super) async fn answer(self, question: Question) -> Result<Answers, client::Error> {
        match self {
            Self::Service(client) => Answers::of_service(&client, &question).await,
            Self::Recent(recent) => Ok(Answers::of_recent(&recent, &question)),
        }
    }
}

impl Watched {
    /// Begins to watch. `is_once` reads a capture to its end.
    ///
    /// # Errors
    /// If the interfaces, the capture or the options for another pping cannot be used.
    pub(super) fn begin(target: WatchTarget, is_once: bool) -> Result<Self, crate::Error> {
        let (name, recent) = match &target {
            WatchTarget::Service(source) => {
                let backend = Backend::Service(Arc::new(Client::new(source)?));
                let mut name = source.url.clone();
                if source.is_insecure {
                    warn!(
                        "--insecure: the certificate of {name} is not checked, so anybody on the way can read and \
                         change what is exchanged, even the password"
                    );
                    name.push_str(" (certificate not checked)");
                }
                return Ok(Self { name, is_past: false, backend, agent: None, player: None, held: None });
            }
            #[cfg(feature = "history")]
            WatchTarget::Past(archive, at) => {
                let recent = RecentHistory::new(usize::MAX);
                recent.score_by(quality::load(None).map_err(crate::Error::Quality)?);
                for reason in archive.recall(*at, &recent)? {
                    warn!("{reason}; it is left out");
                }
                let name = format!("the past, until {}", history::local(*at));
                return Ok(Self {
                    name,
                    is_past: true,
                    backend: Backend::Recent(recent),
                    agent: None,
                    player: None,
                    held: None,
                });
            }
            WatchTarget::Interfaces(config, _) => {
                (config.live.interfaces.join(" "), RecentHistory::new(config.live.history_memory))
            }
            WatchTarget::Capture(config, path) => {
                (path.display().to_string(), RecentHistory::new(config.live.history_memory))
            }
        };
        let (mut agent, mut player) = (None, None);
        match target {
            WatchTarget::Interfaces(config, loader) => {
                agent = Some(Agent::start(*config, loader, recent.clone())?);
            }
            WatchTarget::Capture(config, path) => {
                player = Some(Player::start(*config, path, recent.clone(), is_once)?);
            }
            _ => {}
        }
        Ok(Self { name, is_past: false, backend: Backend::Recent(recent), agent, player, held: None })
    }

    /// Waits until there is something to show. For one screen as text it waits for as long as `once` says, or until the
    /// end of a capture.
    ///
    /// # Errors
    /// If there is nothing to show.
    pub(super) async fn ready(&mut self, once: Option<Duration>) -> Result<(), crate::Error> {
        if let (Some(agent), Backend::Recent(recent)) = (&mut self.agent, &self.backend) {
            let mut seconds = recent.seconds();
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

    /// Whether this process does the measuring.
    pub(super) fn is_here(&self) -> bool {
        matches!(self.backend, Backend::Recent(_))
    }

    /// Holds the log back until the screen is gone.
    pub(super) fn hold_log(&mut self) {
        self.held = self.is_here().then(Held::new);
    }

    /// Returns where to send questions.
    pub(super) fn backend(&self) -> Backend {
        self.backend.clone()
    }

    /// Returns what a screen as text begins with: of which time it is, if that is not the present.
    pub(super) fn date(&self) -> String {
        if self.is_past { format!("{}\n", self.name) } else { String::new() }
    }

    /// Returns the name of what is watched, and the position in a capture.
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

    /// Stops the agent or the player.
    ///
    /// # Errors
    /// If the capture has an error, or the agent failed at its end.
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

/// The end of an agent's thread; an error of the channel means that the thread panicked.
type Ended = Result<Result<(), crate::Error>, oneshot::error::RecvError>;

fn ended_early(ended: Ended) -> Result<(), crate::Error> {
    ended.unwrap_or_else(|_| Err(io::Error::other("the agent stopped").into()))
}

/// An agent in a separate thread, so that drawing does not delay it.
struct Agent {
    ended: oneshot::Receiver<Result<(), crate::Error>>,
    /// The agent ends when this is dropped.
    stop: oneshot::Sender<()>,
}

impl Agent {
    fn start(config: Config, loader: Loader, recent: RecentHistory) -> Result<Self, crate::Error> {
        let (stop, stopped) = oneshot::channel();
        let (over, ended) = oneshot::channel();
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let shutdown = async { drop(stopped.await) };
            runtime.block_on(agent::run_with(config, loader, Some(recent), shutdown)).map(drop)
        };
        thread::Builder::new().name("pping-agent".into()).spawn(move || over.send(run()).ok())?;
        // Each thread has its own capabilities, and this one only draws.
        capabilities::drop_all().map_err(io::Error::other)?;
        Ok(Self { ended, stop })
    }
}
