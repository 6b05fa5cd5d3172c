//! The mode of the terminal: a screen of its own, keys one by one, and clicks. It is as it was afterwards, whatever ends pping.

use std::{
    io::{self, Write as _},
    panic, thread,
};

use ratatui::DefaultTerminal;

/// Clicks and the wheel (1000), with places beyond column 223 (1006). Not each move of the mouse, which would draw all the time.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";

/// A terminal whose mode is changed, until this is dropped.
#[derive(Debug)]
pub(super) struct Terminal(pub(super) DefaultTerminal);

impl Terminal {
    /// Changes the mode. A panic changes it back before it is written about.
    pub(super) fn new() -> io::Result<Self> {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            write(MOUSE_OFF);
            hook(info);
        }));
        // Has a hook of its own, for the rest.
        let terminal = ratatui::try_init()?;
        write(MOUSE_ON);
        Ok(Self(terminal))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The hooks of a panic did so already, and a second time would put the cursor onto what they wrote.
        if !thread::panicking() {
            write(MOUSE_OFF);
            ratatui::restore();
        }
    }
}

/// A terminal that is gone has no mode.
fn write(text: &str) {
    let mut output = io::stdout();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).ok();
}
