//! Feeds the history.

use super::state::Agent;
use crate::{
    Error,
    history::{HistoryWriter, Settings},
    kernel::clock,
    quality::Profiles,
};

impl Agent {
    /// Begins to write the history, if `--history` asks for that.
    pub(super) fn begin_history(&mut self, profiles: Profiles) -> Result<(), Error> {
        let live = &self.config.live;
        if let Some(directory) = &live.history {
            let settings = Settings { directory: directory.clone(), limits: live.history_limits };
            self.history = Some(HistoryWriter::start(settings, profiles, clock::wall()?)?);
        }
        Ok(())
    }
}
