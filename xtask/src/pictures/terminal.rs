//! A picture of a terminal: tmux has the screen, with its colours.

use std::{fs, path::Path, process::Command, thread, time::Duration};

use anstyle_svg::Term;
use anyhow::Result;
use pping_lab::Namespace;

/// Columns and rows.
const SIZE: [&str; 2] = ["118", "32"];

/// The time for a screen to be drawn.
const SETTLED: Duration = Duration::from_secs(3);

/// A program in a terminal, which ends with this.
pub(super) struct Terminal {
    /// The name of its server.
    name: String,
}

impl Terminal {
    /// Starts a command in a terminal of a host.
    pub(super) fn start(host: &Namespace, command: &str) -> Result<Self> {
        let terminal = Self { name: format!("pping-{}", host.name()) };
        let command = format!("exec ip netns exec {} env COLORTERM=truecolor {command}", host.name());
        let [width, height] = SIZE;
        terminal.tmux(&["-f/dev/null", "new-session", "-d", "-x", width, "-y", height, &command])?;
        Ok(terminal)
    }

    /// Types keys.
    pub(super) fn keys(&self, keys: &[&str]) -> Result<()> {
        self.tmux(&[&["send-keys"], keys].concat()).map(drop)
    }

    /// Writes the screen to a file as SVG.
    pub(super) fn picture(&self, file: &Path) -> Result<()> {
        thread::sleep(SETTLED);
        let screen = self.tmux(&["capture-pane", "-p", "-e"])?;
        let svg = Term::new().render_svg(&screen);
        Ok(fs::write(file, svg)?)
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String> {
        Ok(pping_lab::run(Command::new("tmux").args(["-L", &self.name]).args(arguments))?)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        Command::new("tmux").args(["-L", &self.name, "kill-server"]).output().ok();
    }
}
