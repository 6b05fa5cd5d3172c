//! The mode of the terminal: the alternate screen, single keys, and clicks. The mode is restored afterwards, whatever
//! ends pping.

use std::{
    io::{self, Write as _},
    panic, thread,
};

use ratatui::DefaultTerminal;

/// Clicks and the wheel (1000), also beyond column 223 (1006). Moves of the mouse are not reported, since each would
/// redraw the screen.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";

/// A terminal whose mode is changed, until this is dropped.
#[derive(Debug)]
pub(super) struct Terminal(pub(super) DefaultTerminal);

impl Terminal {
    /// Changes the mode. A panic restores it before its message is written.
    pub(super) fn new() -> io::Result<Self> {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            write(MOUSE_OFF);
            hook(info);
        }));
        // This installs its own hook, for the rest of the mode.
        let terminal = ratatui::try_init()?;
        write(MOUSE_ON);
        Ok(Self(terminal))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The panic hooks did so already. A second time would put the cursor onto their message.
        if !thread::panicking() {
            write(MOUSE_OFF);
            ratatui::restore();
        }
    }
}

/// Writes to the terminal. Ignores errors: a terminal that is gone has no mode.
fn write(text: &str) {
    let mut output = io::stdout();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).ok();
}
