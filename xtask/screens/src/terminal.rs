//! A terminal in tmux, from which the screen can be read with its colours.

use std::process::Command;

use anstyle_svg::Term;
use anyhow::Result;
use pping_lab::Namespace;

/// A program in a terminal. Dropping it ends the program.
pub(super) struct Terminal {
    /// The name of the tmux server.
    name: String,
}

impl Terminal {
    /// Starts a command in a terminal of this size on a host.
    pub(super) fn start(host: &Namespace, (columns, rows): (u16, u16), command: &str) -> Result<Self> {
        let terminal = Self { name: format!("pping-{}", host.name()) };
        let command = format!("exec ip netns exec {} env COLORTERM=truecolor {command}", host.name());
        let [columns, rows] = [columns, rows].map(|it| it.to_string());
        terminal.tmux(&["-f/dev/null", "new-session", "-d", "-x", &columns, "-y", &rows, &command])?;
        Ok(terminal)
    }

    /// Types keys.
    pub(super) fn keys(&self, keys: &[&str]) -> Result<()> {
        self.tmux(&[&["send-keys"], keys].concat()).map(drop)
    }

    /// Returns the screen as text.
    pub(super) fn text(&self) -> Result<String> {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Returns the screen as SVG.
    pub(super) fn svg(&self) -> Result<String> {
        Ok(Term::new().render_svg(&self.tmux(&["capture-pane", "-p", "-e"])?))
    }

    /// Returns the process id of the program.
    pub(super) fn id(&self) -> Result<u32> {
        Ok(self.tmux(&["list-panes", "-F", "#{pane_pid}"])?.trim().parse()?)
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
